"""The embedding services a store knows: the one in use, one it is changing to, and former ones.

Every vector belongs to one service, and vectors of two services are never compared. The service in
use is one row of ``meta``, so a change is one transaction, which every process sees at its next
search. Ids are never used again, so a removed service is not mistaken for a new one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, and_, delete, func, insert, select

from memchat.db import Tx, records
from memchat.db.records import from_row
from memchat.db.schema import embeddings, services
from memchat.types import Service, ServiceInfo

_s = services.c
_e = embeddings.c
_IN_USE = "service_id"
_COMING = "coming_service_id"
_LEASE = "coming_lease"
_NEWEST = "newest_service_id"
_CHANGES = "service_changes"
_IDENTITY = ("provider", "model", "version", "dimensions")
State = tuple[int | None, int]


def register(tx: Tx, service: Service) -> int:
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


def get(tx: Tx, service_id: int | None) -> Service | None:
    """A registered service, or None. Its floor and whether it is local are not stored; the adapter
    has them."""
    row = tx.execute(select(services).where(_s.id == service_id)).first()
    return None if row is None else _service(row)


def exists(tx: Tx, service_id: int) -> bool:
    """Whether a service is still registered; checked before each search."""
    return bool(tx.rows("SELECT 1 FROM services WHERE id = ?", service_id))


def ids(tx: Tx) -> list[int]:
    """The ids of all services."""
    return [row[0] for row in tx.rows("SELECT id FROM services")]


def all_services(tx: Tx) -> dict[int, Service]:
    """All services by id."""
    return {row.id: _service(row) for row in tx.execute(select(services).order_by(_s.id))}


def in_use(tx: Tx) -> int | None:
    """The id of the service whose vectors are searched; None in a store without vectors."""
    found = records.get(tx, _IN_USE)
    return int(found) if found else None


def state(tx: Tx) -> State:
    """The id of the service in use, and how often it was changed.

    Between two changes every new vector of the service in use has an event, by which an index stays
    current. Vectors of a coming service have none.
    """
    return in_use(tx), int(records.get(tx, _CHANGES) or 0)


def coming(tx: Tx) -> int | None:
    """The id of the service that the store is changing to, or None."""
    found = records.get(tx, _COMING)
    return int(found) if found else None


def use(tx: Tx, service_id: int) -> None:
    """Search the vectors of this service from now on."""
    service = get(tx, service_id)
    assert service is not None, service_id
    if in_use(tx) not in (None, service_id):
        records.put(tx, _CHANGES, str(state(tx)[1] + 1))
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


def infos(tx: Tx, lacking: dict[int, int]) -> list[ServiceInfo]:
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


def remove(tx: Tx, service_id: int) -> None:
    """Delete a service and the vectors it still has."""
    for key, found in ((_IN_USE, in_use(tx)), (_COMING, coming(tx))):
        if found == service_id:
            records.remove(tx, key)
    tx.execute(delete(services).where(_s.id == service_id))


def _service(row: Row[Any]) -> Service:
    return from_row(Service, row)
