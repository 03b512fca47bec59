"""The queue: one row a piece of work, claimed under a lease and finished behind a fence.

``status`` is -1 while it waits or runs, 0 when done, and the error's code (an HTTP status, or 1)
when it failed for good. One try and five retries, after 1, 2, 4, 8 and 16 minutes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, or_, select, update

from memchat.store import plain
from memchat.store.schema import apps, jobs, utc_text
from memchat.types import Job

RETRY_MINUTES = (1, 2, 4, 8, 16)
LEASE_SECONDS = 600.0
"""How long a worker holds a job before it must renew; a long reading renews at every window."""
_j = jobs.c
_WAITING = -1
_ENQUEUE = """
    INSERT INTO jobs (kind, app_id, source_type, source_id, text, run_at, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (kind, source_type, source_id) DO UPDATE SET
        status = -1, attempts = 0, run_at = excluded.run_at, text = excluded.text,
        app_id = excluded.app_id, error_message = NULL, lease_owner = NULL, lease_until = NULL,
        processed_at = NULL
    WHERE jobs.status != -1 OR jobs.lease_until IS NULL OR jobs.lease_until < ?
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A job in hand. ``holder`` is the fence: every claim has its own, however often renewed."""

    id: int
    kind: str
    app_id: int
    target_id: int
    attempt: int
    holder: str
    how: str | None = None


def enqueue(
    tx: Connection,
    kind: str,
    app_id: int,
    source: str,
    target_id: int,
    now: datetime,
    *,
    run_at: datetime | None = None,
    how: str | None = None,
) -> None:
    """Ask for work on a target, now or at ``run_at``; asking again starts its attempts anew.

    ``how`` is for the worker that does it. Work that is under way goes on: who does it looks, when
    finishing, whether more has come.
    """
    at = utc_text(now)
    due_at = utc_text(run_at or now)
    plain.rows(tx, _ENQUEUE, kind, app_id, source, target_id, how, due_at, at, at)


def claim(
    tx: Connection,
    kind: str,
    owner: str,
    now: datetime,
    lease_seconds: float,
    *,
    limit: int = 1,
    user: str | None = None,
    target_id: int | None = None,
) -> list[Claim]:
    """Take due jobs of a kind: waiting ones, and those whose worker's lease ran out."""
    query = select(_j.id).where(
        _j.status == _WAITING, _j.kind == kind, _j.run_at <= now, _free(now)
    )
    if user is not None:
        query = query.join(apps, apps.c.id == _j.app_id).where(apps.c.user == user)
    if target_id is not None:
        query = query.where(_j.source_id == target_id)
    ids = list(tx.execute(query.order_by(_j.run_at, _j.id).limit(limit)).scalars())
    until = now + timedelta(seconds=lease_seconds)
    holder = f"{owner}:{secrets.token_hex(4)}"
    rows = tx.execute(
        update(jobs)
        .where(_j.id.in_(ids))
        .values(lease_owner=holder, lease_until=until, attempts=_j.attempts + 1)
        .returning(_j.id, _j.kind, _j.app_id, _j.source_id, _j.attempts, _j.text)
    )
    claims = {r[0]: Claim(r[0], r[1], r[2], r[3], r[4], holder, r[5]) for r in rows}
    return [claims[i] for i in ids]  # RETURNING promises no order; the longest due comes first


def finish(tx: Connection, claimed: Claim, now: datetime) -> bool:
    """Mark done; False when the fence says that somebody else holds the job by now."""
    done = tx.execute(
        update(jobs)
        .where(*_fence(claimed))
        .values(status=0, processed_at=now, error_message=None, lease_owner=None, lease_until=None)
    )
    return bool(done.rowcount)


def holds(tx: Connection, claimed: Claim) -> bool:
    """Whether the claim still stands."""
    return tx.execute(select(_j.id).where(*_fence(claimed))).first() is not None


def fail(
    tx: Connection,
    claimed: Claim,
    now: datetime,
    reason: str,
    *,
    code: int = 1,
    retry_after: float | None = None,
) -> None:
    """Note the error and set the next try, or give up after the last."""
    values: dict[str, Any] = {"error_message": reason, "lease_owner": None, "lease_until": None}
    if claimed.attempt <= len(RETRY_MINUTES):
        wait = max(RETRY_MINUTES[claimed.attempt - 1] * 60, retry_after or 0)
        values["run_at"] = now + timedelta(seconds=wait)
    else:
        values.update(status=max(code, 1), processed_at=now)
    tx.execute(update(jobs).where(*_fence(claimed)).values(**values))


def give_up_on_killers(tx: Connection, now: datetime) -> None:
    """Fail jobs that took their worker down at every try."""
    tx.execute(
        update(jobs)
        .where(_j.status == _WAITING, _free(now), _j.attempts > len(RETRY_MINUTES))
        .values(
            status=1,
            processed_at=now,
            lease_owner=None,
            lease_until=None,
            error_message="every worker that took it ended before it was done",
        )
    )


def release(tx: Connection, claims: Sequence[Claim]) -> None:
    """Give back what a stopping worker still holds, without counting the try."""
    for claimed in claims:
        tx.execute(
            update(jobs)
            .where(*_fence(claimed))
            .values(lease_owner=None, lease_until=None, attempts=_j.attempts - 1)
        )


def renew(tx: Connection, claimed: Claim, until: datetime) -> bool:
    """Hold a job longer; False when the claim no longer stands."""
    done = tx.execute(update(jobs).where(*_fence(claimed)).values(lease_until=until))
    return bool(done.rowcount)


def under_way(tx: Connection, kind: str, target_id: int) -> bool:
    """Whether work on a target waits or runs."""
    query = select(_j.id).where(_j.kind == kind, _j.source_id == target_id, _j.status == _WAITING)
    return tx.execute(query).first() is not None


def targets(tx: Connection, kind: str, app_id: int) -> set[int]:
    """The targets in a scope row on which work waits or runs."""
    query = select(_j.source_id).where(_j.kind == kind, _j.app_id == app_id, _j.status == _WAITING)
    return set(tx.execute(query).scalars())


def how(tx: Connection, kind: str, target_id: int) -> str | None:
    """What was said of how the work on a target is to be done."""
    query = select(_j.text).where(_j.kind == kind, _j.source_id == target_id)
    return tx.execute(query).scalar()


def due(tx: Connection, user: str, now: datetime) -> set[str]:
    """The kinds of which some work of the user could be done now."""
    # By the index of what waits: somebody's jobs that are done may be many.
    sql = (
        "SELECT DISTINCT j.kind FROM jobs j INDEXED BY ix_jobs_due"
        " JOIN apps a ON a.id = j.app_id WHERE j.status = -1"
        " AND j.run_at <= ? AND (j.lease_until IS NULL OR j.lease_until < ?) AND a.user = ?"
    )
    at = utc_text(now)
    return {row[0] for row in plain.rows(tx, sql, at, at, user)}


def owners(tx: Connection) -> list[str]:
    """Who holds jobs now."""
    query = select(_j.lease_owner).where(_j.status == _WAITING, _j.lease_owner.is_not(None))
    return [str(owner) for owner in tx.execute(query.distinct()).scalars()]


def free(tx: Connection, owner: str) -> None:
    """Let others have what a dead worker held; its try counts."""
    tx.execute(
        update(jobs)
        .where(_j.status == _WAITING, _j.lease_owner == owner)
        .values(lease_owner=None, lease_until=None)
    )


def retry(tx: Connection, now: datetime, *, user: str, job_id: int | None = None) -> int:
    """Put failed jobs of the user, or waiting ones, first in line again; how many.

    One that is being worked on is left to its worker.
    """
    mine = select(apps.c.id).where(apps.c.user == user)
    waiting = and_(_j.status == _WAITING, _j.attempts > 0, _free(now))
    query = update(jobs).where(_j.app_id.in_(mine), or_(_j.status > 0, waiting))
    if job_id is not None:
        query = query.where(_j.id == job_id)
    done = tx.execute(
        query.values(status=_WAITING, attempts=0, run_at=now, processed_at=None, lease_until=None)
    )
    return int(done.rowcount)


def cancel(tx: Connection, kind: str, target_ids: Sequence[int]) -> None:
    """Drop the work on targets that are no more."""
    tx.execute(delete(jobs).where(_j.kind == kind, _j.source_id.in_(target_ids)))


STATUSES = ("pending", "running", "completed", "failed")


def listed(
    tx: Connection, *, user: str | None, status: str | None, now: datetime, limit: int
) -> list[Job]:
    """Jobs, newest first."""
    query = select(jobs, apps.c.user, apps.c.name.label("app")).join(apps, apps.c.id == _j.app_id)
    if user is not None:
        query = query.where(apps.c.user == user)
    conditions = {
        "pending": and_(_j.status == _WAITING, _free(now)),
        "running": and_(_j.status == _WAITING, _j.lease_until >= now),
        "completed": _j.status == 0,
        "failed": _j.status > 0,
    }
    if status is not None:
        query = query.where(conditions[status])
    return [_job(row, now) for row in tx.execute(query.order_by(_j.id.desc()).limit(limit))]


def by_ids(tx: Connection, ids: Sequence[int], now: datetime) -> list[Job]:
    """Jobs by id."""
    query = select(jobs, apps.c.user, apps.c.name.label("app")).join(apps, apps.c.id == _j.app_id)
    return [_job(row, now) for row in tx.execute(query.where(_j.id.in_(ids)))]


def _free(now: datetime) -> ColumnElement[bool]:
    return or_(_j.lease_until.is_(None), _j.lease_until < now)


def _fence(claimed: Claim) -> tuple[ColumnElement[bool], ...]:
    # Not the attempts: work that is asked for anew counts from the start again.
    return (
        _j.id == claimed.id,
        _j.status == _WAITING,
        _j.lease_owner == claimed.holder,
    )


def _job(row: Row[Any], now: datetime) -> Job:
    if row.status == _WAITING:
        held = row.lease_until is not None and row.lease_until >= now
        status = "running" if held else "pending"
    else:
        status = "completed" if row.status == 0 else "failed"
    return Job(
        id=row.id,
        kind=row.kind,
        user=row.user,
        app=row.app,
        target_id=row.source_id,
        status=status,
        attempts=row.attempts,
        run_at=row.run_at,
        error_message=row.error_message,
        created_at=row.created_at,
        processed_at=row.processed_at,
    )
