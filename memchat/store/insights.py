"""Figures about the memories of a scope, each one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Integer, Select, cast, func, literal_column, select

from memchat.store.memories import visible
from memchat.store.memory_rows import memory_of, with_scope
from memchat.store.schema import jobs, memories, messages, sessions
from memchat.types import Memory

QUARTER = 900
"""Seconds. Every time zone differs from UTC by a multiple of this."""
_m = memories.c


def memories_by_day(tx: Connection, app_ids: Sequence[int], zone: ZoneInfo) -> dict[date, int]:
    """How many memories were stored on each day, in the user's time zone."""
    quarter = _quarter(_m.created_at)
    query = select(quarter, func.count()).where(_m.app_id.in_(app_ids), visible)
    return _by_day(tx, query.group_by(quarter), zone)


def messages_by_day(tx: Connection, app_id: int, zone: ZoneInfo) -> dict[date, int]:
    """How many messages the user sent on each day, in the user's time zone."""
    quarter = _quarter(messages.c.created_at)
    query = select(quarter, func.count()).join(sessions, sessions.c.id == messages.c.session_id)
    said = (messages.c.role == "user") & messages.c.copied_from.is_(None)
    query = query.where(sessions.c.app_id == app_id, said)
    return _by_day(tx, query.group_by(quarter), zone)


def by_type(tx: Connection, app_ids: Sequence[int]) -> dict[str, int]:
    """How many active memories each type has."""
    return _counted(tx, select(_m.memory_type, func.count()), _m.memory_type, app_ids)


def by_key(tx: Connection, app_ids: Sequence[int], limit: int) -> dict[str, int]:
    """The keys with the most active memories, and how many they have."""
    query = select(_m.key, func.count()).limit(limit)
    return _counted(tx, query, _m.key, app_ids)


def by_state(tx: Connection, app_ids: Sequence[int]) -> dict[str, int]:
    """How many memories are in use, and how many are inactive for each reason."""
    state = func.coalesce(_m.inactive_reason, "in use")
    query = select(state, func.count()).where(_m.app_id.in_(app_ids), visible).group_by(state)
    return {row[0]: row[1] for row in tx.execute(query)}


def most_used(tx: Connection, app_ids: Sequence[int], limit: int) -> list[tuple[Memory, int]]:
    """The active memories that were sent to a model most often, and how often."""
    query = with_scope.where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count > 0)
    query = query.order_by(_m.read_count.desc(), _m.id).limit(limit)
    return [(memory_of(row), row.read_count) for row in tx.execute(query)]


def never_used(tx: Connection, app_ids: Sequence[int]) -> int:
    """How many active memories were never sent to a model."""
    query = select(func.count()).where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count == 0)
    return int(tx.execute(query).scalar_one())


def jobs_by_status(tx: Connection, app_ids: Sequence[int]) -> dict[str, int]:
    """How many jobs are waiting, done, and failed for good."""
    query = select(jobs.c.status, func.count()).where(jobs.c.app_id.in_(app_ids))
    found = {"waiting": 0, "done": 0, "failed": 0}
    for status, count in tx.execute(query.group_by(jobs.c.status)):
        found["waiting" if status < 0 else "failed" if status else "done"] += count
    return found


def _quarter(at: Any) -> Any:
    """A time as the number of its quarter of an hour since 1970: no day of any zone begins
    within."""
    return cast(func.strftime("%s", at), Integer) // literal_column(str(QUARTER), Integer)


def _by_day(tx: Connection, query: Select[Any], zone: ZoneInfo) -> dict[date, int]:
    days: Counter[date] = Counter()
    for quarter, count in tx.execute(query):
        days[datetime.fromtimestamp(quarter * QUARTER, zone).date()] += count
    return dict(sorted(days.items()))


def _counted(
    tx: Connection, query: Select[Any], column: Any, app_ids: Sequence[int]
) -> dict[str, int]:
    query = query.where(_m.app_id.in_(app_ids), _m.active == 1).group_by(column)
    return {row[0]: row[1] for row in tx.execute(query.order_by(func.count().desc(), column))}
