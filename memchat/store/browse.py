"""Looking through memories by hand: search, filter, sort, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from memchat.store import job_lists
from memchat.store.memories import FORGOTTEN
from memchat.store.memory_rows import memory_of, with_scope
from memchat.store.schema import jobs, memories
from memchat.store.values_in_force import ValuesInForce
from memchat.types import Job, Memory, Wanted

_m = memories.c
_ORDERS: dict[str, tuple[ColumnElement[Any], ...]] = {
    "newest": (_m.said_at.desc(),),
    "oldest": (_m.said_at,),
    "key": (_m.key, _m.value),
    "most used": (_m.read_count.desc(), _m.match_count.desc()),
    "least used": (_m.read_count, _m.match_count),
    "ending first": (_m.expires_at.is_(None), _m.expires_at),
}
SORTS = tuple(_ORDERS)


def page(
    tx: Connection,
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    by: date,
    limit: int,
    offset: int,
) -> list[Memory]:
    """So many of them, in the order that is wanted."""
    query = _filtered(with_scope, app_ids, wanted, now, by)
    query = query.order_by(*_ORDERS[wanted.sort], _m.id.desc()).limit(limit).offset(offset)
    return [now.seen(memory_of(row)) for row in tx.execute(query)]


def count(
    tx: Connection, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date
) -> int:
    """How many there are."""
    query = select(func.count()).select_from(memories)
    return int(tx.execute(_filtered(query, app_ids, wanted, now, by)).scalar_one())


def ids(
    tx: Connection, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date
) -> list[int]:
    """All of them, by number."""
    return list(tx.execute(_filtered(select(_m.id), app_ids, wanted, now, by)).scalars())


def embedding_jobs(tx: Connection, memory_ids: Sequence[int], now: datetime) -> dict[int, Job]:
    """Those of these memories that have no vector yet, each with the work that makes it."""
    query = select(jobs.c.id).where(
        jobs.c.kind == "embed",
        jobs.c.source_type == "memory",
        jobs.c.source_id.in_(memory_ids),
        jobs.c.status != 0,
    )
    found = job_lists.by_ids(tx, list(tx.execute(query).scalars()), now)
    return {job.target_id: job for job in found}


def counts(tx: Connection, memory_id: int) -> tuple[int, int]:
    """How often a memory was found for a message, and how often it was given to a model."""
    row = tx.execute(select(_m.match_count, _m.read_count).where(_m.id == memory_id)).one()
    return row.match_count, row.read_count


def _filtered(
    query: Select[Any], app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date
) -> Select[Any]:
    holds = now.in_use()
    over = and_(_m.active == 1, _m.expires_at < now.today)
    states: dict[str, list[ColumnElement[bool]]] = {
        "active": [holds],
        "pinned": [holds, _m.pinned == 1],
        "inactive": [or_(now.out_of_use(), over)],
        "expiring": [and_(holds, _m.expires_at.between(now.today, by))],
        "never used": [holds, _m.read_count == 0],
        "not embedded": [_unembedded()],
        "all": [],
    }
    query = query.where(
        _m.app_id.in_(app_ids),
        or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN),
        *states[wanted.status],
    )
    for word in wanted.search.split():
        found = (_m.key, _m.value)
        query = query.where(or_(*(column.icontains(word, autoescape=True) for column in found)))
    if wanted.memory_types:
        query = query.where(_m.memory_type.in_(wanted.memory_types))
    if wanted.created_by:
        query = query.where(_m.created_by.in_(wanted.created_by))
    return query


def _unembedded() -> ColumnElement[bool]:
    waiting = select(jobs.c.id).where(
        jobs.c.kind == "embed", jobs.c.source_id == _m.id, jobs.c.status != 0
    )
    return waiting.exists()
