"""The job queue: one row for each job, which a worker claims under a lease.

``status`` is -1 while a job waits or runs, 0 when it is done, and the code of the error (an HTTP
status, or 1) when it failed for good. A job is tried once and retried after 1, 2, 4, 8 and 16
minutes, or as the settings say. Jobs that failed are claimed in smaller and smaller batches, so
that a job that crashes its worker ends up alone. The jobs of a process that has ended can be freed
before their lease runs out.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)

from memchat import processes
from memchat.config.settings import RETRY_MINUTES
from memchat.db import Tx, database
from memchat.db.records import from_row
from memchat.db.schema import apps, jobs, utc_text
from memchat.types import Job, JobStatus

LEASE_SECONDS = 600.0
"""How long a claim lasts unless it is renewed. A long extraction renews it at every window."""
FULL_TRIES = 2
"""Tries in batches of the full size. After them each batch is a quarter of the one before."""
_j = jobs.c
NOT_LEASED: dict[str, None] = {"lease_owner": None, "lease_until": None}
UNFINISHED = -1
"""The status of a job that waits or runs."""
unfinished = _j.status == literal_column(str(UNFINISHED))
"""A literal, since SQLite does not use the partial index for a bound value."""
_TARGETS = {"embed": "memory", "forget": "memory", "note": "note", "delete": "note"}
"""The kinds of jobs whose target is a memory or a note; the target of the others is a session."""
_ENQUEUE = """
    INSERT INTO jobs (kind, app_id, source_type, source_id, text, run_at, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (kind, source_type, source_id) DO UPDATE SET
        status = -1, attempts = 0, run_at = excluded.run_at, text = excluded.text,
        app_id = excluded.app_id, error_message = NULL, lease_owner = NULL, lease_until = NULL,
        processed_at = NULL
    WHERE jobs.status != -1 OR jobs.lease_until IS NULL OR jobs.lease_until < ?
    RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed job. ``holder`` is unique to one call of ``claim``: a claim whose holder is no
    longer the row's has been lost."""

    id: int
    kind: str
    app_id: int
    target_id: int
    attempt: int
    holder: str
    how: str | None = None


def enqueue(
    tx: Tx,
    kind: str,
    app_id: int,
    target_id: int,
    now: datetime,
    *,
    run_at: datetime | None = None,
    how: str | None = None,
) -> bool:
    """Queue a job for a target, due now or at ``run_at``. An existing job starts its attempts
    again.

    ``how`` is passed to the worker. A job that is running goes on, and False is returned: before it
    finishes, its worker looks for new input itself.
    """
    at = utc_text(now)
    due_at = utc_text(run_at or now)
    return bool(
        tx.rows(
            _ENQUEUE,
            kind,
            app_id,
            _TARGETS.get(kind, "session"),
            target_id,
            how,
            due_at,
            at,
            at,
        )
    )


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a worker wants to claim."""

    kind: str
    owner: str
    """The worker's name, by which others see whether its process is still alive."""
    lease_seconds: float
    limit: int = 1
    """Jobs at most."""
    batch: int = 1
    """Jobs of a full batch; of those that were tried often fewer are taken with each try."""
    user: str | None = None
    target_id: int | None = None
    due_by: datetime | None = None
    """Leaves out what became due later; None for now."""


def claim(tx: Tx, request: ClaimRequest, now: datetime) -> list[Claim]:
    """Claim due jobs of a kind: waiting ones, and those whose lease ran out.

    Jobs that were tried often are claimed one small batch at a time.
    """
    query = select(_j.id, _j.attempts).where(
        unfinished, _j.kind == request.kind, _j.run_at <= (request.due_by or now), is_free(now)
    )
    if request.user is not None:
        query = query.join(apps, apps.c.id == _j.app_id).where(apps.c.user == request.user)
    if request.target_id is not None:
        query = query.where(_j.source_id == request.target_id)
    query = query.order_by(_j.run_at, _j.id)
    longest_due = tx.execute(query.limit(1)).first()
    if longest_due is None:
        return []
    if longest_due.attempts < FULL_TRIES:
        query = query.where(_j.attempts < FULL_TRIES).limit(request.limit)
    else:
        size = batch_size(request.batch, longest_due.attempts)
        query = query.where(_j.attempts == longest_due.attempts).limit(min(size, request.limit))
    until = now + timedelta(seconds=request.lease_seconds)
    holder = f"{request.owner}:{secrets.token_hex(4)}"
    rows = tx.execute(
        update(jobs)
        .where(_j.id.in_(query.with_only_columns(_j.id).scalar_subquery()))
        .values(lease_owner=holder, lease_until=until, attempts=_j.attempts + 1)
        .returning(_j.run_at, _j.id, _j.kind, _j.app_id, _j.source_id, _j.attempts, _j.text)
    )
    # RETURNING has no order; the job that has been due longest comes first.
    taken = sorted(rows, key=lambda row: (row[0], row[1]))
    return [Claim(row[1], row[2], row[3], row[4], row[5], holder, row[6]) for row in taken]


def batch_size(limit: int, attempts: int) -> int:
    """How many jobs with this number of attempts are claimed together, if a full batch has
    ``limit``."""
    return max(1, limit >> 2 * max(0, attempts - FULL_TRIES + 1))


def finish(tx: Tx, claimed: Claim, now: datetime) -> bool:
    """Mark a job as done; False if the claim was lost to another worker."""
    return bool(finish_all(tx, [claimed], now))


def finish_all(tx: Tx, claims: Sequence[Claim], now: datetime) -> list[Claim]:
    """Mark the jobs as done whose claims are still valid; returns these claims."""
    done = update(jobs).values(
        status=0, processed_at=now, error_message=None, text=None, **NOT_LEASED
    )
    return _matched(tx, claims, done.returning(_j.id))


def is_held(tx: Tx, claimed: Claim) -> bool:
    """Whether the claim is still valid."""
    return bool(still_held(tx, [claimed]))


def still_held(tx: Tx, claims: Sequence[Claim]) -> list[Claim]:
    """Those of these claims that are still valid."""
    return _matched(tx, claims, select(_j.id))


def fail(
    tx: Tx,
    claimed: Claim,
    now: datetime,
    reason: str,
    *,
    code: int = 1,
    retry_after: float | None = None,
    retry_minutes: Sequence[float] = RETRY_MINUTES,
) -> None:
    """Store the error and the time of the next try; after the last one the job has failed for
    good."""
    values: dict[str, Any] = {"error_message": reason, **NOT_LEASED}
    if claimed.attempt <= len(retry_minutes):
        wait = max(retry_minutes[claimed.attempt - 1] * 60, retry_after or 0)
        values["run_at"] = now + timedelta(seconds=wait)
    else:
        values.update(status=max(code, 1), processed_at=now)
    tx.execute(update(jobs).where(*_fences([claimed])).values(**values))


def fail_crashing_jobs(
    tx: Tx, now: datetime, retry_minutes: Sequence[float] = RETRY_MINUTES
) -> None:
    """Mark jobs as failed whose workers ended at every try."""
    tx.execute(
        update(jobs)
        .where(unfinished, is_free(now), _j.attempts > len(retry_minutes))
        .values(
            status=1,
            processed_at=now,
            error_message="every worker that took it ended before it was done",
            **NOT_LEASED,
        )
    )


def release(tx: Tx, claims: Sequence[Claim]) -> None:
    """Free the jobs that a stopping worker holds, without counting the attempt."""
    back = update(jobs).values(attempts=_j.attempts - 1, **NOT_LEASED)
    for some in _by_holder(claims):
        tx.execute(back.where(*_fences(some)))


def renew(tx: Tx, claimed: Claim, until: datetime) -> bool:
    """Extend the lease of a job; False if the claim was lost."""
    return bool(renew_all(tx, [claimed], until))


def renew_all(tx: Tx, claims: Sequence[Claim], until: datetime) -> int:
    """Extend the leases of the claims that are still valid; how many there are."""
    longer = update(jobs).values(lease_until=until)
    return sum(tx.execute(longer.where(*_fences(some))).rowcount for some in _by_holder(claims))


def is_unfinished(tx: Tx, kind: str, target_id: int) -> bool:
    """Whether a job for a target waits or runs."""
    query = select(_j.id).where(_j.kind == kind, _j.source_id == target_id, unfinished)
    return tx.execute(query).first() is not None


def unfinished_targets(tx: Tx, kind: str, app_id: int) -> set[int]:
    """The targets in a scope row whose jobs wait or run."""
    query = select(_j.source_id).where(_j.kind == kind, _j.app_id == app_id, unfinished)
    return set(tx.execute(query).scalars())


def instructions(tx: Tx, kind: str, target_id: int) -> str | None:
    """What ``enqueue`` was given as ``how`` for a target."""
    query = select(_j.text).where(_j.kind == kind, _j.source_id == target_id)
    return tx.execute(query).scalar()


def due_kinds(tx: Tx, user: str | None, now: datetime) -> set[str]:
    """The kinds of which the user, or anybody, has a job that is due and not held."""
    # The index of unfinished jobs is forced, since a user may have very many finished ones.
    sql = (
        "SELECT DISTINCT j.kind FROM jobs j INDEXED BY ix_jobs_due"
        " JOIN apps a ON a.id = j.app_id WHERE j.status = -1"
        " AND j.run_at <= ?1 AND (j.lease_until IS NULL OR j.lease_until < ?1)"
        " AND (?2 IS NULL OR a.user = ?2)"
    )
    return {row[0] for row in tx.rows(sql, utc_text(now), user)}


def lease_owners(tx: Tx) -> list[str]:
    """The owners of all current leases."""
    query = select(_j.lease_owner).where(unfinished, _j.lease_owner.is_not(None))
    return [str(owner) for owner in tx.execute(query.distinct()).scalars()]


def release_owner(tx: Tx, owner: str) -> None:
    """Free the jobs of a worker that ended; the attempt counts."""
    theirs = update(jobs).where(unfinished, _j.lease_owner == owner)
    tx.execute(theirs.values(**NOT_LEASED))


def retry(
    tx: Tx,
    now: datetime,
    *,
    user: str | None,
    job_id: int | None = None,
    failed_only: bool = False,
    attempts: int = 0,
) -> int:
    """Make failed jobs, of a user or of all, and the waiting ones that failed before, due now; how
    many. A job that is running is left alone.

    A job keeps ``attempts`` of its tries at most. One that crashes its worker is not to lose all of
    them, since they keep it in a batch of its own.
    """
    # A second look that is put off has not been tried; what is held until it is purged has not
    # either, and waits for its day.
    waiting = and_(unfinished, or_(_j.attempts > 0, _j.kind == "verify"), is_free(now))
    which = _j.status > 0 if failed_only else or_(_j.status > 0, waiting)
    query = update(jobs).where(which)
    if user is not None:
        query = query.where(_j.app_id.in_(select(apps.c.id).where(apps.c.user == user)))
    if job_id is not None:
        query = query.where(_j.id == job_id)
    kept = func.min(_j.attempts, attempts)
    again = {"status": UNFINISHED, "attempts": kept, "run_at": now, "processed_at": None}
    return int(tx.execute(query.values(**again, lease_until=None)).rowcount)


def cancel(tx: Tx, kind: str, target_ids: Sequence[int]) -> None:
    """Delete the jobs for these targets."""
    tx.execute(delete(jobs).where(_j.kind == kind, _j.source_id.in_(target_ids)))


def remove_completed(tx: Tx, *, user: str) -> int:
    """Delete a user's completed jobs; how many. Those of extractions stay, since they tell the
    state of a conversation."""
    mine = select(apps.c.id).where(apps.c.user == user)
    done = delete(jobs).where(_j.app_id.in_(mine), _j.status == 0, _j.kind != "extract")
    return int(tx.execute(done).rowcount)


def is_free(now: datetime) -> ColumnElement[bool]:
    """A condition: no worker holds the job."""
    return or_(_j.lease_until.is_(None), _j.lease_until < now)


def _fences(claims: Sequence[Claim]) -> tuple[ColumnElement[bool], ...]:
    """The conditions under which these claims, all of one holder, are still valid."""
    # The attempts are not compared: queueing the job again sets them back.
    return (
        _j.id.in_([claimed.id for claimed in claims]),
        unfinished,
        _j.lease_owner == claims[0].holder,
    )


def _matched(tx: Tx, claims: Sequence[Claim], statement: Any) -> list[Claim]:
    """The claims that still hold their job, for which a statement was run that tells their ids."""
    found = (tx.execute(statement.where(*_fences(some))) for some in _by_holder(claims))
    ids = {row.id for rows in found for row in rows}
    return [claimed for claimed in claims if claimed.id in ids]


def _by_holder(claims: Sequence[Claim]) -> list[list[Claim]]:
    """The claims in groups of one holder."""
    found: dict[str, list[Claim]] = {}
    for claimed in claims:
        found.setdefault(claimed.holder, []).append(claimed)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class DeadHolder:
    """A process that ended, and how many jobs it still holds."""

    process: int
    jobs: int

    @property
    def message(self) -> str:
        """One line for people."""
        theirs = "its job is" if self.jobs == 1 else f"its {self.jobs} jobs are"
        return f"process {self.process} is gone; {theirs} taken over at the next run"


def dead_holders(tx: Tx, user: str | None = None) -> list[DeadHolder]:
    """The processes of this machine that ended and still hold jobs, of one user or of all."""
    query = select(_j.lease_owner, func.count()).where(unfinished, _j.lease_owner.is_not(None))
    if user is not None:
        query = query.join(apps, apps.c.id == _j.app_id).where(apps.c.user == user)
    held: Counter[int] = Counter()
    for owner, count in tx.execute(query.group_by(_j.lease_owner)):
        if processes.has_ended(owner):
            held[processes.pid_of(owner)] += count
    return [DeadHolder(process, count) for process, count in sorted(held.items())]


def any_dead(tx: Tx) -> bool:
    """Whether any job is held by a process that ended."""
    return any(processes.has_ended(owner) for owner in lease_owners(tx))


def release_dead(tx: Tx, kind: str | None = None) -> bool:
    """Free the jobs, of a kind or of all, that ended processes hold; whether there were any."""
    query = select(_j.lease_owner).where(unfinished, _j.lease_owner.is_not(None)).distinct()
    if kind is not None:
        query = query.where(_j.kind == kind)
    left = [owner for owner in tx.execute(query).scalars() if processes.has_ended(owner)]
    for owner in left:
        release_owner(tx, owner)
    return bool(left)


def finish_unheld(tx: Tx, kind: str, target_ids: Sequence[int], now: datetime) -> None:
    """Mark the jobs of these targets as done, failed ones too.

    A job that a living process holds is left to it; it will find nothing left to do.
    """
    theirs = (_j.kind == kind, _j.source_id.in_(target_ids), _j.status != 0)
    held = select(_j.lease_owner).where(*theirs, _j.lease_owner.is_not(None)).distinct()
    for owner in list(tx.execute(held).scalars()):
        if processes.has_ended(owner):
            release_owner(tx, owner)
    done = {"status": 0, "processed_at": now, "error_message": None}
    free = update(jobs).where(*theirs, is_free(now))
    tx.execute(free.values(**done, **NOT_LEASED))


STATUSES = get_args(JobStatus)


def listed(
    tx: Tx,
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
        query = query.where(_j.kind == "note", _j.source_id.in_(database.id_list(note_ids)))
    conditions = {
        "pending": and_(unfinished, is_free(now)),
        "running": and_(unfinished, _j.lease_until >= now),
        "completed": _j.status == 0,
        "failed": _j.status > 0,
    }
    if status is not None:
        query = query.where(conditions[status])
    return [_job(row, now) for row in tx.execute(query.order_by(_j.id.desc()).limit(limit))]


def counted(tx: Tx, *, user: str | None, now: datetime) -> dict[str, int]:
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


def by_ids(tx: Tx, ids: Sequence[int], now: datetime) -> list[Job]:
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
