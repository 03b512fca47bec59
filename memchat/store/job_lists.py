"""Lists of jobs, and counts by status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, select

from memchat.store import raw_sql
from memchat.store.jobs import UNFINISHED, is_free, unfinished
from memchat.store.records import from_row
from memchat.store.schema import apps, jobs
from memchat.types import Job

_j = jobs.c

STATUSES = ("pending", "running", "completed", "failed")


def listed(
    tx: Connection,
    *,
    user: str | None,
    status: str | None,
    note_ids: Sequence[int] | None = None,
    now: datetime,
    limit: int,
) -> list[Job]:
    """The jobs of a user, or of all, with a status, or with any, and of these notes where they are
    named; the newest first."""
    query = select(jobs, apps.c.user, apps.c.name.label("app")).join(apps, apps.c.id == _j.app_id)
    if user is not None:
        query = query.where(apps.c.user == user)
    if note_ids is not None:
        query = query.where(_j.kind == "note", _j.source_id.in_(raw_sql.id_list(note_ids)))
    conditions = {
        "pending": and_(unfinished, is_free(now)),
        "running": and_(unfinished, _j.lease_until >= now),
        "completed": _j.status == 0,
        "failed": _j.status > 0,
    }
    if status is not None:
        query = query.where(conditions[status])
    return [_job(row, now) for row in tx.execute(query.order_by(_j.id.desc()).limit(limit))]


def counted(tx: Connection, *, user: str | None, now: datetime) -> dict[str, int]:
    """How many jobs there are of each status."""
    code = case(
        (_j.status > 0, "failed"),
        (_j.status == 0, "completed"),
        (is_free(now), "pending"),
        else_="running",
    )
    query = select(code, func.count()).group_by(code)
    if user is not None:
        query = query.join(apps, apps.c.id == _j.app_id).where(apps.c.user == user)
    found = {row[0]: row[1] for row in tx.execute(query)}
    return {status: found.get(status, 0) for status in STATUSES}


def by_ids(tx: Connection, ids: Sequence[int], now: datetime) -> list[Job]:
    """Jobs by id."""
    query = select(jobs, apps.c.user, apps.c.name.label("app")).join(apps, apps.c.id == _j.app_id)
    return [_job(row, now) for row in tx.execute(query.where(_j.id.in_(ids)))]


def _job(row: Row[Any], now: datetime) -> Job:
    if row.status == UNFINISHED:
        held = row.lease_until is not None and row.lease_until >= now
        status = "running" if held else "pending"
    else:
        status = "completed" if row.status == 0 else "failed"
    return from_row(Job, row, target_id=row.source_id, status=status)
