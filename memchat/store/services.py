"""The embedding services that a store knows: the one in use, one that is coming, those kept.

Every vector belongs to one of them, and vectors of two are never compared. Which one is in use is
one row of ``meta``, so a change of it is one row's transaction, seen by every process at its next
search. An id is never given twice: who knew a removed service cannot take another for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, select

from memchat.store import meta, raw_sql
from memchat.store.records import from_row
from memchat.store.schema import embeddings, services
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


def register(tx: Connection, service: Service, now: datetime) -> int:
    """The id of the service, which is made where it is new."""
    same = [_s[name] == getattr(service, name) for name in _IDENTITY]
    found = tx.execute(select(_s.id).where(*same)).scalar()
    if found is not None:
        return int(found)
    newest = tx.execute(select(func.max(_s.id))).scalar() or 0
    new_id = max(newest, int(meta.get(tx, _NEWEST) or 0)) + 1
    meta.put(tx, _NEWEST, str(new_id))
    values = {name: getattr(service, name) for name in (*_IDENTITY, "max_tokens")}
    tx.execute(insert(services).values(id=new_id, created_at=now, **values))
    return new_id


def get(tx: Connection, service_id: int) -> Service | None:
    """A registered service; its floor and locality are the adapter's to know."""
    row = tx.execute(select(services).where(_s.id == service_id)).first()
    return None if row is None else _service(row)


def exists(tx: Connection, service_id: int) -> bool:
    """Whether it is still registered: asked before each search."""
    return bool(raw_sql.rows(tx, "SELECT 1 FROM services WHERE id = ?", service_id))


def ids(tx: Connection) -> list[int]:
    """The ids of all of them."""
    return [row[0] for row in raw_sql.rows(tx, "SELECT id FROM services")]


def all_services(tx: Connection) -> dict[int, Service]:
    """All of them, by id."""
    return {row.id: _service(row) for row in tx.execute(select(services).order_by(_s.id))}


def in_use(tx: Connection) -> int | None:
    """The id of the service whose vectors are searched; None in a store without vectors."""
    found = meta.get(tx, _IN_USE)
    return int(found) if found else None


def state(tx: Connection) -> State:
    """The one in use, and how often that was changed.

    Between two changes every new vector leaves an event, from which an index reads on; those made
    for a service that is coming leave none.
    """
    return in_use(tx), int(meta.get(tx, _CHANGES) or 0)


def coming(tx: Connection) -> int | None:
    """The id of the service that the store is changing to, if it is changing."""
    found = meta.get(tx, _COMING)
    return int(found) if found else None


def use(tx: Connection, service_id: int) -> None:
    """Search the vectors of this service from now on."""
    service = get(tx, service_id)
    assert service is not None, service_id
    if in_use(tx) not in (None, service_id):
        meta.put(tx, _CHANGES, str(state(tx)[1] + 1))
    meta.put(tx, _IN_USE, str(service_id))
    meta.put(tx, "embed_dim", str(service.dimensions))
    if coming(tx) == service_id:
        clear_coming(tx)


def set_coming(tx: Connection, service_id: int) -> None:
    """Say that vectors of this service are being made, to be used when all are there."""
    meta.put(tx, _COMING, str(service_id))


def clear_coming(tx: Connection) -> None:
    """The store changes to no other service any more; what was made for it stays."""
    meta.drop(tx, _COMING)
    meta.drop(tx, _LEASE)


def lease(tx: Connection) -> tuple[str, datetime] | None:
    """Who makes the vectors of the coming service, and until when that was said."""
    owner, _, until = (meta.get(tx, _LEASE) or "").rpartition(" ")
    return (owner, datetime.fromisoformat(until)) if owner else None


def take_lease(tx: Connection, owner: str, now: datetime, seconds: float) -> None:
    """Say that ``owner`` makes them, for so many seconds from now."""
    meta.put(tx, _LEASE, f"{owner} {(now + timedelta(seconds=seconds)).isoformat()}")


def release_lease(tx: Connection, owner: str) -> None:
    """``owner`` makes them no more."""
    held = lease(tx)
    if held is not None and held[0] == owner:
        meta.drop(tx, _LEASE)


def infos(tx: Connection, lacking: dict[int, int]) -> list[ServiceInfo]:
    """Every service with its vectors; ``lacking`` says by id how many texts wait for one."""
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


def drop_vectors(tx: Connection, service_id: int, after: str, limit: int) -> tuple[str | None, int]:
    """Delete so many vectors of a service whose hash comes after one; the last such hash, None
    where there was none, and how many."""
    of_it = select(_e.hash).where(_e.service_id == service_id, _e.hash > after)
    hashes = list(tx.execute(of_it.order_by(_e.hash).limit(limit)).scalars())
    if not hashes:
        return None, 0
    last = str(hashes[-1])
    through = and_(_e.service_id == service_id, _e.hash > after, _e.hash <= last)
    tx.execute(delete(embeddings).where(through))
    return last, len(hashes)


def remove(tx: Connection, service_id: int) -> None:
    """Forget a service, with the vectors that it still has."""
    for key, found in ((_IN_USE, in_use(tx)), (_COMING, coming(tx))):
        if found == service_id:
            meta.drop(tx, key)
    tx.execute(delete(services).where(_s.id == service_id))


def _service(row: Row[Any]) -> Service:
    return from_row(Service, row)
