"""The vectors of texts, and the embedding services that made them: the one in use, one that the
store is changing to, and former ones.

A vector is a float32 row under the sha256 of its text and its service, so the same text is embedded
once, wherever it occurs. A query's vector has another hash than a document with the same words,
since some services embed the two differently. Vectors of two services are never compared. The
service in use is one row of ``meta``, so a change is one transaction, which every process sees at
its next search. Ids are never used again: a removed service is not mistaken for a new one.

What is here of the saved indexes needs no FAISS, which takes long to load.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from memchat.db import Tx, records
from memchat.db import schema as t
from memchat.db.records import among, from_row, upsert, utc_text
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import Service, ServiceInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


_s = t.services.c
_e = t.embeddings.c
_IN_USE = "service_id"
_COMING = "coming_service_id"
_LEASE = "coming_lease"
LEASE = timedelta(minutes=5)
_NEWEST = "newest_service_id"
_CHANGES = "service_changes"
_IDENTITY = ("provider", "model", "version", "dimensions")
ServiceState = tuple[int | None, int]


def register_service(tx: Tx, service: Service) -> int:
    """The id of a service, which is stored if it is new."""
    same = [_s[name] == getattr(service, name) for name in _IDENTITY]
    found = tx.execute(sa.select(_s.id).where(*same)).scalar()
    if found is not None:
        return int(found)
    newest = tx.execute(sa.select(sa.func.max(_s.id))).scalar() or 0
    new_id = max(newest, int(records.get(tx, _NEWEST) or 0)) + 1
    records.put(tx, _NEWEST, str(new_id))
    values = {name: getattr(service, name) for name in (*_IDENTITY, "max_tokens")}
    tx.execute(sa.insert(t.services).values(id=new_id, created_at=tx.now, **values))
    return new_id


def get_service(tx: Tx, service_id: int | None) -> Service | None:
    """A registered service, or None. Its floor and whether it is local are not stored; the adapter
    has them."""
    row = tx.execute(sa.select(t.services).where(_s.id == service_id)).first()
    return None if row is None else _service(row)


def service_exists(tx: Tx, service_id: int) -> bool:
    """Whether a service is still registered; checked before each search."""
    return bool(tx.rows(_EXISTS, service=service_id))


def all_services(tx: Tx) -> dict[int, Service]:
    """All services by id."""
    return {row.id: _service(row) for row in tx.execute(sa.select(t.services).order_by(_s.id))}


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
    if tx.on_postgres:
        from memchat.search import pgvector

        pgvector.make_index(tx, service_id, service.dimensions)
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


def take_lease(tx: Tx, owner: str) -> None:
    """Note that ``owner`` makes them, for a while from now."""
    records.put(tx, _LEASE, f"{owner} {(tx.now + LEASE).isoformat()}")


def release_lease(tx: Tx, owner: str) -> None:
    """Note that ``owner`` no longer makes them."""
    held = lease(tx)
    if held is not None and held[0] == owner:
        records.remove(tx, _LEASE)


def service_infos(tx: Tx, lacking: dict[int, int]) -> list[ServiceInfo]:
    """Every service and its number of vectors; ``lacking`` is the number of texts without one, by
    id."""
    counts = sa.select(_e.service_id, sa.func.count()).group_by(_e.service_id)
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
        for row in tx.execute(sa.select(t.services).order_by(_s.id))
    ]


def remove_vectors(tx: Tx, service_id: int, limit: int) -> int:
    """Delete up to ``limit`` vectors of a service; how many."""
    some = sa.select(_e.hash).where(_e.service_id == service_id).limit(limit)
    gone = sa.delete(t.embeddings).where(_e.service_id == service_id, _e.hash.in_(some))
    return tx.execute(gone).rowcount


def remove_service(tx: Tx, service_id: int) -> None:
    """Delete a service and the vectors it still has."""
    for key, found in ((_IN_USE, in_use(tx)), (_COMING, coming(tx))):
        if found == service_id:
            records.remove(tx, key)
    if tx.on_postgres:
        from memchat.search import pgvector

        pgvector.drop_index(tx, service_id)
    tx.execute(sa.delete(t.services).where(_s.id == service_id))


def _service(row: sa.Row[Any]) -> Service:
    return from_row(Service, row)


_p, _m = t.passages.c, t.messages.c
# Without fractions of a second: with them one vector less would fit on a page.
_PUT = upsert(t.embeddings, created_at=sa.bindparam("made_at", type_=sa.String))
_EXISTS = sa.select(_s.id).where(_s.id == sa.bindparam("service"))
_THIS_SERVICE = _e.service_id == sa.bindparam("service")
_HELD = sa.select(_e.hash).where(_THIS_SERVICE, _e.hash == sa.bindparam("hashed"))
_GET = sa.select(_e.hash, _e.embedding).where(_THIS_SERVICE, among(_e.hash, "hashes"))
_with_vector = sa.and_(_e.hash == _p.hash, _THIS_SERVICE)
_OF_KIND = (
    sa.select(_p.owner_id, _e.embedding)
    .outerjoin_from(t.passages, t.embeddings, _with_vector)
    .where(_p.searched == 1, _p.hash.is_not(None))
)
_IN_APP = _p.app_id == sa.bindparam("app")
_IN_APP_AND_KIND = _OF_KIND.where(_IN_APP, _p.kind == sa.bindparam("part"))
_OWN = _p.app_id + 0 == sa.bindparam("app")
"""The same as ``_IN_APP``, where the index of the scope is not to be used."""
_THESE = _OF_KIND.where(_OWN, among(_p.id, "ids"))
_OF_TURNS = (
    sa.select(_m.id, _m.session_id, _m.role == "user", _e.embedding)
    .join_from(t.passages, t.messages, _m.id == _p.owner_id)
    .outerjoin(t.embeddings, _with_vector)
    .where(_p.hash.is_not(None), _p.kind == "turn")
    .order_by(_m.session_id, _m.id)
)
_TURNS_OF_APP = _OF_TURNS.where(_IN_APP)
_asked = t.messages.alias().c
_same = t.messages.alias().c
_CHATS = sa.select(passage_id("turn", _same.id)).where(
    _same.session_id.in_(sa.select(_asked.session_id).where(among(_asked.id, "ids")))
)
_TURNS_BESIDE = _OF_TURNS.where(_OWN, _p.id.in_(_CHATS))


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
    return bool(tx.rows(_HELD, hashed=hashed, service=service_id))


def exist_for(tx: Tx, service_id: int) -> bool:
    """Whether the store has any vector of this service."""
    query = sa.select(_e.hash).where(_e.service_id == service_id)
    return tx.execute(query.limit(1)).first() is not None


def put(tx: Tx, service_id: int, vectors: Iterable[tuple[str, Vectors]]) -> None:
    """Store vectors by their hash. Existing ones stay; nothing is stored for a service that was
    removed in the meantime."""
    made = {"service_id": service_id, "made_at": f"{utc_text(tx.now)[:19]}Z"}
    rows = [made | {"hash": key, "embedding": v.astype("<f4").tobytes()} for key, v in vectors]
    if rows and service_exists(tx, service_id):
        tx.run_many(_PUT, rows)


def get(tx: Tx, service_id: int, hashes: Sequence[str]) -> dict[str, Vectors]:
    """The stored vectors of these hashes; those without one are left out."""
    import numpy as np

    rows = tx.rows(_GET, hashes=hashes, service=service_id)
    return {key: np.frombuffer(blob, "<f4") for key, blob in rows}


def of_kind(
    tx: Tx, service_id: int, kind: Kind, app_id: int, ids: Sequence[int] | None = None
) -> OwnerVectors:
    """The passages of a kind of a scope row, or only those of these owners, with their vectors."""
    if ids is None:
        return _held(tx.batches(_IN_APP_AND_KIND, service=service_id, app=app_id, part=kind))
    these = [passage_id(kind, i) for i in ids]
    return _held([tx.rows(_THESE, service=service_id, app=app_id, ids=these)])


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
    if ids is None:
        return tx.rows(_TURNS_OF_APP, service=service_id, app=app_id)
    return tx.rows(_TURNS_BESIDE, service=service_id, app=app_id, ids=ids)


@dataclass(frozen=True, slots=True)
class Selection:
    """All rows, or those of ``only``, and never one of ``without``."""

    only: Collection[int] | None = None
    without: Collection[int] = ()


EVERYTHING = Selection()
SHARE = 0.25
"""The weight of the turns right before and after; the turn itself has 1."""


def best_first(found: Collection[tuple[int, float]]) -> list[tuple[int, float]]:
    """By score, of equal ones the oldest first."""
    return sorted(found, key=lambda hit: (-round(hit[1], 6), hit[0]))


FOLDER = "mem.index"


def index_file(home: Path, store_id: str, service_id: int, kind: Kind, app_id: int) -> Path:
    """Where the index of a service, a kind and a scope row is saved."""
    # The name depends on the store's id, so that files copied from another store are not used.
    scope = f"{store_id}/{service_id}/{kind}/{app_id}"
    return home / FOLDER / f"{hashlib.sha256(scope.encode()).hexdigest()[:32]}.faiss"


def index_files(
    home: Path, store_id: str, service_ids: Iterable[int], app_ids: Iterable[int]
) -> set[Path]:
    """Where the indexes of these services and scope rows are saved."""
    where = product(service_ids, KINDS, app_ids)
    return {index_file(home, store_id, *one) for one in where}


def delete_files(
    home: Path, store_id: str, service_ids: Iterable[int], app_ids: Iterable[int]
) -> None:
    """Delete the saved indexes of scope rows, without loading them."""
    if not (found := [*(home / FOLDER).glob("*")]):
        return
    ours = {path.stem for path in index_files(home, store_id, service_ids, app_ids)}
    for path in found:
        # A process that was killed while saving leaves a partial file with a longer name.
        if path.name.partition(".")[0] in ours:
            path.unlink(missing_ok=True)
