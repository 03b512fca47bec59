"""The vectors of texts, and the embedding services that made them: the one in use, one that the
store is changing to, and former ones.

A vector is a float32 row under the sha256 of its text and its service, so the same text is embedded
once, wherever it occurs. A query's vector has another hash than a document with the same words,
since some services embed the two differently. Vectors of two services are never compared. The
service in use is one row of ``meta``, so a change is one transaction, which every process sees at
its next search. Ids are never used again: a removed service is not mistaken for a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Row, and_, delete, func, insert, select

from memchat.db import Tx, records
from memchat.db.records import from_row
from memchat.db.schema import embeddings, services, utc_text
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import Service, ServiceInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


_s = services.c
_e = embeddings.c
_IN_USE = "service_id"
_COMING = "coming_service_id"
_LEASE = "coming_lease"
_NEWEST = "newest_service_id"
_CHANGES = "service_changes"
_IDENTITY = ("provider", "model", "version", "dimensions")
ServiceState = tuple[int | None, int]


def register_service(tx: Tx, service: Service) -> int:
    """The id of a service, which is stored if it is new."""
    same = [_s[name] == getattr(service, name) for name in _IDENTITY]
    found = tx.execute(select(_s.id).where(*same)).scalar()
    if found is not None:
        return int(found)
    newest = tx.execute(select(func.max(_s.id))).scalar() or 0
    new_id = max(newest, int(records.get(tx, _NEWEST) or 0)) + 1
    records.put(tx, _NEWEST, str(new_id))
    values = {name: getattr(service, name) for name in (*_IDENTITY, "max_tokens")}
    tx.execute(insert(services).values(id=new_id, created_at=tx.now, **values))
    return new_id


def get_service(tx: Tx, service_id: int | None) -> Service | None:
    """A registered service, or None. Its floor and whether it is local are not stored; the adapter
    has them."""
    row = tx.execute(select(services).where(_s.id == service_id)).first()
    return None if row is None else _service(row)


def service_exists(tx: Tx, service_id: int) -> bool:
    """Whether a service is still registered; checked before each search."""
    return bool(tx.rows("SELECT 1 FROM services WHERE id = ?", service_id))


def service_ids(tx: Tx) -> list[int]:
    """The ids of all services."""
    return [row[0] for row in tx.rows("SELECT id FROM services")]


def all_services(tx: Tx) -> dict[int, Service]:
    """All services by id."""
    return {row.id: _service(row) for row in tx.execute(select(services).order_by(_s.id))}


def in_use(tx: Tx) -> int | None:
    """The id of the service whose vectors are searched; None in a store without vectors."""
    found = records.get(tx, _IN_USE)
    return int(found) if found else None


def service_state(tx: Tx) -> ServiceState:
    """The id of the service in use, and how often it was changed.

    Between two changes every new vector of the service in use has an event, by which an index stays
    current. Vectors of a coming service have none.
    """
    return in_use(tx), int(records.get(tx, _CHANGES) or 0)


def coming(tx: Tx) -> int | None:
    """The id of the service that the store is changing to, or None."""
    found = records.get(tx, _COMING)
    return int(found) if found else None


def use_service(tx: Tx, service_id: int) -> None:
    """Search the vectors of this service from now on."""
    service = get_service(tx, service_id)
    assert service is not None, service_id
    if in_use(tx) not in (None, service_id):
        records.put(tx, _CHANGES, str(service_state(tx)[1] + 1))
    records.put(tx, _IN_USE, str(service_id))
    records.put(tx, "embed_dim", str(service.dimensions))
    if coming(tx) == service_id:
        clear_coming(tx)


def set_coming(tx: Tx, service_id: int) -> None:
    """Note that the store is changing to this service, whose vectors are being made."""
    records.put(tx, _COMING, str(service_id))


def clear_coming(tx: Tx) -> None:
    """End the change to another service. The vectors that were made for it stay."""
    records.remove(tx, _COMING)
    records.remove(tx, _LEASE)


def lease(tx: Tx) -> tuple[str, datetime] | None:
    """Who makes the vectors of the coming service, and until when; None if nobody does."""
    owner, _, until = (records.get(tx, _LEASE) or "").rpartition(" ")
    return (owner, datetime.fromisoformat(until)) if owner else None


def take_lease(tx: Tx, owner: str, now: datetime, seconds: float) -> None:
    """Note that ``owner`` makes them, for ``seconds`` from now."""
    records.put(tx, _LEASE, f"{owner} {(now + timedelta(seconds=seconds)).isoformat()}")


def release_lease(tx: Tx, owner: str) -> None:
    """Note that ``owner`` no longer makes them."""
    held = lease(tx)
    if held is not None and held[0] == owner:
        records.remove(tx, _LEASE)


def service_infos(tx: Tx, lacking: dict[int, int]) -> list[ServiceInfo]:
    """Every service and its number of vectors; ``lacking`` is the number of texts without one, by
    id."""
    counts = select(_e.service_id, func.count()).group_by(_e.service_id)
    held = {row[0]: row[1] for row in tx.execute(counts)}
    states = {coming(tx): "coming", in_use(tx): "in use"}
    return [
        from_row(
            ServiceInfo,
            row,
            name=_service(row).name,
            state=states.get(row.id, "kept"),
            vectors=held.get(row.id, 0),
            lacking=lacking.get(row.id, 0),
        )
        for row in tx.execute(select(services).order_by(_s.id))
    ]


def remove_vectors(tx: Tx, service_id: int, after: str, limit: int) -> tuple[str | None, int]:
    """Delete up to ``limit`` vectors of a service, in the order of their hashes, from the first one
    after ``after``. Returns the last hash, or None if there was none left, and how many were
    deleted."""
    of_it = select(_e.hash).where(_e.service_id == service_id, _e.hash > after)
    hashes = list(tx.execute(of_it.order_by(_e.hash).limit(limit)).scalars())
    if not hashes:
        return None, 0
    last = str(hashes[-1])
    through = and_(_e.service_id == service_id, _e.hash > after, _e.hash <= last)
    tx.execute(delete(embeddings).where(through))
    return last, len(hashes)


def remove_service(tx: Tx, service_id: int) -> None:
    """Delete a service and the vectors it still has."""
    for key, found in ((_IN_USE, in_use(tx)), (_COMING, coming(tx))):
        if found == service_id:
            records.remove(tx, key)
    tx.execute(delete(services).where(_s.id == service_id))


def _service(row: Row[Any]) -> Service:
    return from_row(Service, row)


_e = embeddings.c
_PUT = """
    INSERT INTO embeddings (hash, service_id, embedding, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_OF_KIND = """
    SELECT p.id >> 2, e.embedding FROM passages p
    LEFT JOIN embeddings e ON e.hash = p.hash AND e.service_id = ?
    WHERE p.searched AND p.hash IS NOT NULL AND
"""
_OF_TURNS = """
    SELECT m.id, m.session_id, m.role = 'user', e.embedding
    FROM passages p JOIN messages m ON m.id = p.id >> 2
    LEFT JOIN embeddings e ON e.hash = p.hash AND e.service_id = ?
    WHERE p.hash IS NOT NULL AND p.id & 3 = 1 AND
"""
_AMONG = "id IN (SELECT value FROM json_each(?))"


class OwnerVectors(NamedTuple):
    """The owners of passages that have a vector, the vectors, shape (n, dimensions), and the
    owners of those that have none yet."""

    ids: list[int]
    vectors: Vectors
    waiting: list[int]


def query_hash(text: str) -> str:
    """The hash under which a query's vector is stored."""
    return hashlib.sha256(f"query\0{text}".encode()).hexdigest()


def exists(tx: Tx, service_id: int, hashed: str) -> bool:
    """Whether a text with this hash has a vector of this service."""
    sql = "SELECT 1 FROM embeddings WHERE hash = ? AND service_id = ?"
    return bool(tx.rows(sql, hashed, service_id))


def exist_for(tx: Tx, service_id: int) -> bool:
    """Whether the store has any vector of this service."""
    query = select(_e.hash).where(_e.service_id == service_id)
    return tx.execute(query.limit(1)).first() is not None


def put(tx: Tx, service_id: int, vectors: Iterable[tuple[str, Vectors]]) -> None:
    """Store vectors by their hash. Existing ones stay; nothing is stored for a service that was
    removed in the meantime."""
    # Without fractions of a second: with them one vector less would fit on a page.
    at = f"{utc_text(tx.now)[:19]}Z"
    rows = [(key, service_id, vector.astype("<f4").tobytes(), at) for key, vector in vectors]
    if rows and service_exists(tx, service_id):
        tx.run_many(_PUT, rows)


def get(tx: Tx, service_id: int, hashes: Sequence[str]) -> dict[str, Vectors]:
    """The stored vectors of these hashes; those without one are left out."""
    import numpy as np

    sql = (
        "SELECT hash, embedding FROM embeddings"
        " WHERE hash IN (SELECT value FROM json_each(?)) AND service_id = ?"
    )
    rows = tx.rows(sql, records.json_list(hashes), service_id)
    return {key: np.frombuffer(blob, "<f4") for key, blob in rows}


def of_kind(
    tx: Tx, service_id: int, kind: Kind, app_id: int, ids: Sequence[int] | None = None
) -> OwnerVectors:
    """The passages of a kind of a scope row, or only those of these owners, with their vectors."""
    if ids is None:
        which = f"{_OF_KIND} p.app_id = ? AND p.id & 3 = ?"
        return _held(tx.batches(which, service_id, app_id, KINDS.index(kind)))
    among = records.json_list(passage_id(kind, i) for i in ids)
    return _held([tx.rows(f"{_OF_KIND} +p.app_id = ? AND p.{_AMONG}", service_id, app_id, among)])


def _held(batches: Iterable[Sequence[tuple[int, bytes | None]]]) -> OwnerVectors:
    """The rows as one matrix, converted in parts so that they are not all in memory twice."""
    import numpy as np

    ids: list[int] = []
    parts: list[Vectors] = []
    waiting: list[int] = []
    for rows in batches:
        made = [(i, blob) for i, blob in rows if blob is not None]
        if len(made) < len(rows):
            waiting += [i for i, blob in rows if blob is None]
        if made:
            ids += [i for i, _ in made]
            part = np.frombuffer(b"".join(blob for _, blob in made), "<f4")
            parts.append(part.reshape(len(made), -1))
    if len(parts) == 1:
        return OwnerVectors(ids, parts[0], waiting)
    every = np.empty((len(ids), parts[0].shape[1] if parts else 0), np.float32)
    filled = len(ids)
    while parts:  # each part goes as soon as it is copied
        part = parts.pop()
        every[filled - len(part) : filled] = part
        filled -= len(part)
    return OwnerVectors(ids, every, waiting)


def of_turns(
    tx: Tx, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> list[tuple[int, int, bool, bytes | None]]:
    """(id, session id, whether the user said it, vector or None) of a scope row's turns, in the
    order they were said. With ``ids`` only those of the conversations that contain these."""
    order = "ORDER BY m.session_id, m.id"
    if ids is None:
        rows = tx.rows(f"{_OF_TURNS} p.app_id = ? {order}", service_id, app_id)
    else:
        said = f"SELECT session_id FROM messages WHERE {_AMONG}"
        asked = f"SELECT id << 2 | 1 FROM messages WHERE session_id IN ({said})"
        which = f"{_OF_TURNS} +p.app_id = ? AND p.id IN ({asked}) {order}"
        rows = tx.rows(which, service_id, app_id, records.json_list(ids))
    return [(row[0], row[1], bool(row[2]), row[3]) for row in rows]
