"""The queue: rows of work, which a worker claims under a lease.

Most are rows of the table ``jobs``; a passage that waits for its vector is itself one. ``status``
is -1 while work waits or runs, 0 when it is done, and the code of the error (an HTTP status, or 1)
when it failed for good. It is tried once and retried after 1, 2, 4, 8 and 16 minutes, or as the
settings say. What failed is claimed in smaller and smaller batches, so that work that crashes its
worker ends up alone. What an ended process holds can be freed before its lease runs out.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from memchat import processes
from memchat.config.settings import RETRY_MINUTES
from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among, from_row, upsert
from memchat.types import Job, JobStatus

LEASE_SECONDS = 600.0
"""How long a claim lasts unless it is renewed. A long extraction renews it at every window."""
FULL_TRIES = 2
"""Tries in batches of the full size. After them each batch is a quarter of the one before."""
EMBEDDING_KINDS = ("embed", "index", "note")
"""The kinds of work that make vectors: of facts, of turns and summaries, of chunks of notes."""
NOT_LEASED: dict[str, None] = {"lease_owner": None, "lease_until": None}
UNFINISHED = -1
"""The status of work that waits or runs."""
_j, _p = t.jobs.c, t.passages.c


@dataclass(frozen=True, slots=True)
class _Queue:
    """A table whose rows are work."""

    table: sa.Table
    kind: sa.ColumnElement[Any]
    target_id: sa.ColumnElement[Any]
    job_id: sa.ColumnElement[Any]
    """The number by which people know the work on a target."""
    text: sa.ColumnElement[Any]
    done_at: sa.ColumnElement[Any]
    when_done: Mapping[str, None]
    """What a row is blanked of when it is done."""

    @property
    def unfinished(self) -> sa.ColumnElement[bool]:
        """A condition: the work waits or runs."""
        # Literals, since SQLite does not use the partial indexes for a bound value.
        status = self.table.c.status
        return sa.and_(
            status == sa.literal_column(str(UNFINISHED)), status != sa.literal_column("0")
        )

    def is_free(self, now: Any) -> sa.ColumnElement[bool]:
        """A condition: no worker holds the work."""
        until = self.table.c.lease_until
        return sa.or_(until.is_(None), until < now)


_JOBS = _Queue(t.jobs, _j.kind, _j.source_id, _j.id, _j.text, _j.processed_at, {"text": None})
_part, _owner = _p.id.op("&")(sa.literal_column("3")), _p.id.op(">>")(sa.literal_column("2"))
_session = sa.select(t.messages.c.session_id).where(t.messages.c.id == _owner).scalar_subquery()
_note = sa.select(t.chunks.c.source_id).where(t.chunks.c.id == _owner).scalar_subquery()
# A passage may have lost its owner where the store was damaged; its target is 0 until a repair.
_target = sa.func.coalesce(sa.case((_part == 1, _session), (_part == 3, _note), else_=_owner), 0)
_made = sa.select(sa.func.max(t.embeddings.c.created_at)).where(t.embeddings.c.hash == _p.hash)
_PASSAGES = _Queue(
    t.passages,
    sa.case((_part == 0, "embed"), (_part == 3, "note"), else_="index"),
    _target,
    # An odd number, as those of jobs are even.
    _target * 8 + sa.case((_part == 0, 1), (_part == 3, 7), else_=3),
    sa.null(),
    sa.func.coalesce(_p.processed_at, _made.scalar_subquery(), t.apps.c.created_at),
    # There are very many that are done, so they keep no time; the vector has it.
    {"run_at": None, "created_at": None, "processed_at": None},
)
_QUEUES = (_JOBS, _PASSAGES)
_TARGETS = {"forget": "memory", "delete": "note", "workflow": "run"}
"""The kinds of jobs whose target is a memory, a note or a run; that of the others is a session."""


class _NextId(FunctionElement[int]):
    """The next number of a job, an even one."""

    inherit_cache = True
    type = sa.Integer()


@compiles(_NextId)
def _after_the_last(_element: _NextId, _compiler: Any, **_how: Any) -> str:
    return "(SELECT coalesce(max(jobs.id), 0) + 2 FROM jobs)"


@compiles(_NextId, "postgresql")
def _of_the_sequence(_element: _NextId, _compiler: Any, **_how: Any) -> str:
    return "2 * nextval('jobs_id_seq')"  # others may be writing at the same time


_NEXT_ID = _NextId()
_ENQUEUE = upsert(
    t.jobs,
    *("status", "attempts", "run_at", "text", "app_id", "error_message"),
    *("lease_owner", "lease_until", "processed_at"),
    key=("kind", "source_type", "source_id"),
    where=sa.or_(_JOBS.is_free(sa.bindparam("at")), _j.status != UNFINISHED),
    id=_NEXT_ID,
    status=UNFINISHED,
).returning(_j.id)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed row of work. ``holder`` is unique to one call of ``claim``: a claim whose holder is
    no longer the row's has been lost."""

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
    about = {"source_type": _TARGETS.get(kind, "session"), "source_id": target_id, "text": how}
    when = {"run_at": run_at or now, "created_at": now, "at": now}
    return bool(tx.rows(_ENQUEUE, kind=kind, app_id=app_id, **about, **when))


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a worker wants to claim."""

    kinds: Sequence[str]
    """Either of embedding, or of jobs."""
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
    one_a_person: bool = False
    """Leaves out the work of persons of whom another worker does some of these kinds."""


def claim(tx: Tx, request: ClaimRequest, now: datetime) -> list[Claim]:
    """Claim due work of some kinds: what waits, and what has a lease that ran out.

    What was tried often is claimed one small batch at a time.
    """
    queue = _queue(request.kinds[0])
    c, kinds = queue.table.c, request.kinds
    query = sa.select(c.id, c.attempts).where(
        queue.unfinished, c.run_at <= (request.due_by or now), queue.is_free(now)
    )
    if queue is _JOBS or len(kinds) < len(EMBEDDING_KINDS):
        query = query.where(queue.kind.in_(kinds))
    if request.user is not None:
        query = query.join(t.apps, t.apps.c.id == c.app_id).where(t.apps.c.user == request.user)
    if request.target_id is not None:
        query = query.where(queue.target_id == request.target_id)
    if request.one_a_person:
        theirs = sa.select(t.apps.c.user).join(t.jobs, t.apps.c.id == _j.app_id)
        others = ~_j.lease_owner.startswith(f"{request.owner}:", autoescape=True)
        theirs = theirs.where(_JOBS.unfinished, ~_JOBS.is_free(now), _j.kind.in_(kinds), others)
        mine = sa.select(t.apps.c.id).where(t.apps.c.user.not_in(theirs))
        query = query.where(c.app_id.in_(mine))
    query = query.order_by(c.run_at, c.id)
    longest_due = tx.execute(query.limit(1)).first()
    if longest_due is None:
        return []
    if longest_due.attempts < FULL_TRIES:
        query = query.where(c.attempts < FULL_TRIES).limit(request.limit)
    else:
        size = batch_size(request.batch, longest_due.attempts)
        query = query.where(c.attempts == longest_due.attempts).limit(min(size, request.limit))
    these = among(c.id, tx.execute(query.with_only_columns(c.id)).scalars())
    until = now + timedelta(seconds=request.lease_seconds)
    holder = f"{request.owner}:{secrets.token_hex(4)}"
    taken = {"lease_owner": holder, "lease_until": until, "attempts": c.attempts + 1}
    tx.execute(sa.update(queue.table).where(these).values(**taken))
    found = sa.select(c.id, queue.kind, c.app_id, queue.target_id, c.attempts, sa.literal(holder))
    rows = tx.execute(found.add_columns(queue.text).where(these).order_by(c.run_at, c.id))
    return [Claim(*row) for row in rows]


def _queue(kind: str) -> _Queue:
    return _PASSAGES if kind in EMBEDDING_KINDS else _JOBS


def batch_size(limit: int, attempts: int) -> int:
    """How many jobs with this number of attempts are claimed together, if a full batch has
    ``limit``."""
    return max(1, limit >> 2 * max(0, attempts - FULL_TRIES + 1))


def finish(tx: Tx, claims: Sequence[Claim], now: datetime) -> list[Claim]:
    """Mark the work as done whose claims are still valid; returns these claims."""
    done = {"status": 0, "processed_at": now, "error_message": None, **NOT_LEASED}
    return _change_held(tx, claims, done, done=True)


def still_held(tx: Tx, claims: Sequence[Claim]) -> list[Claim]:
    """Those of these claims that are still valid."""
    # The attempts are not compared: queueing the work again sets them back.
    held = {
        (row.id, row.lease_owner)
        for queue, these in _by_queue(claims)
        for row in tx.execute(
            sa.select(queue.table.c.id, queue.table.c.lease_owner).where(these, queue.unfinished)
        )
    }
    return [claimed for claimed in claims if (claimed.id, claimed.holder) in held]


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
    """Store the error and the time of the next try; after the last one the work has failed for
    good."""
    values: dict[str, Any] = {"error_message": reason, **NOT_LEASED}
    if claimed.attempt <= len(retry_minutes):
        wait = max(retry_minutes[claimed.attempt - 1] * 60, retry_after or 0)
        values["run_at"] = now + timedelta(seconds=wait)
    else:
        values.update(status=max(code, 1), processed_at=now)
    _change_held(tx, [claimed], values)


def fail_crashing_jobs(
    tx: Tx, now: datetime, retry_minutes: Sequence[float] = RETRY_MINUTES
) -> None:
    """Mark work as failed whose workers ended at every try."""
    why = "every worker that took it ended before it was done"
    values = {"status": 1, "processed_at": now, "error_message": why, **NOT_LEASED}
    for queue in _QUEUES:
        tried = queue.table.c.attempts > len(retry_minutes)
        theirs = sa.update(queue.table).where(queue.unfinished, queue.is_free(now), tried)
        tx.execute(theirs.values(**values))


def release(tx: Tx, claims: Sequence[Claim]) -> None:
    """Free what a stopping worker holds, without counting the attempt."""
    _change_held(tx, claims, {"attempts": sa.literal_column("attempts - 1"), **NOT_LEASED})


def renew(tx: Tx, claims: Sequence[Claim], until: datetime) -> list[Claim]:
    """Extend the leases of the claims that are still valid; returns these claims."""
    return _change_held(tx, claims, {"lease_until": until})


def _change_held(
    tx: Tx, claims: Sequence[Claim], values: Mapping[str, Any], *, done: bool = False
) -> list[Claim]:
    """Change the rows of those of these claims that are still valid; returns these claims."""
    held = still_held(tx, claims)
    for queue, these in _by_queue(held):
        new = {**values, **(queue.when_done if done else {})}
        tx.execute(sa.update(queue.table).where(these).values(**new))
    return held


def _by_queue(claims: Sequence[Claim]) -> list[tuple[_Queue, Any]]:
    """Each queue that has one of these claims' rows, and the condition for these rows."""
    every = ((queue, [c.id for c in claims if _queue(c.kind) is queue]) for queue in _QUEUES)
    return [(queue, among(queue.table.c.id, ids)) for queue, ids in every if ids]


def due_at(tx: Tx, kind: str, target_id: int) -> datetime | None:
    """When a job for a target that waits or runs is, or was, due; None where there is none."""
    query = sa.select(_j.run_at).where(_j.kind == kind, _j.source_id == target_id, _JOBS.unfinished)
    return tx.execute(query).scalar()


def unfinished_targets(tx: Tx, kind: str, app_id: int) -> set[int]:
    """The targets in a scope row whose jobs wait or run."""
    query = sa.select(_j.source_id).where(_j.kind == kind, _j.app_id == app_id, _JOBS.unfinished)
    return set(tx.execute(query).scalars())


def instructions(tx: Tx, kind: str, target_id: int) -> str | None:
    """What ``enqueue`` was given as ``how`` for a target."""
    query = sa.select(_j.text).where(_j.kind == kind, _j.source_id == target_id)
    return tx.execute(query).scalar()


def due_kinds(tx: Tx, user: str | None, now: datetime) -> set[str]:
    """The kinds of which the user, or anybody, has work that is due and not held; of embedding one
    at most."""
    found: set[str] = set()
    for queue in _QUEUES:
        c = queue.table.c
        query = sa.select(queue.kind).where(queue.unfinished, c.run_at <= now, queue.is_free(now))
        if user is not None:
            query = query.join(t.apps, t.apps.c.id == c.app_id).where(t.apps.c.user == user)
        query = query.distinct() if queue is _JOBS else query.limit(1)
        found.update(tx.execute(query).scalars())
    return found


def overdue(tx: Tx, since: datetime) -> int:
    """How many conversations should have been read before then, and nobody has tried."""
    query = sa.select(sa.func.count()).where(_j.kind == "extract", _JOBS.unfinished)
    query = query.where(_j.run_at < since, _j.lease_until.is_(None), _j.attempts == 0)
    return int(tx.execute(query).scalar_one())


def holders(tx: Tx, user: str | None = None) -> Counter[str]:
    """How much each owner of a lease holds, of one user's work or of all."""
    held: Counter[str] = Counter()
    for queue in _QUEUES:
        c = queue.table.c
        query = sa.select(c.lease_owner, sa.func.count()).where(c.lease_owner.is_not(None))
        if user is not None:
            query = query.join(t.apps, t.apps.c.id == c.app_id).where(t.apps.c.user == user)
        held.update({row[0]: row[1] for row in tx.execute(query.group_by(c.lease_owner))})
    return held


def release_owner(tx: Tx, owner: str) -> None:
    """Free what a worker held that ended; the attempt counts."""
    for queue in _QUEUES:
        theirs = sa.update(queue.table).where(queue.table.c.lease_owner == owner)
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
    """Make failed work, of a user or of all, and what waits and failed before, due now; how many
    rows. What is running is left alone.

    ``attempts`` of the tries are kept at most. What crashes its worker is not to lose all of them,
    since they keep it in a batch of its own.
    """
    count = 0
    for queue in _QUEUES:
        c = queue.table.c
        # A second look that is put off has not been tried; what is held until it is purged has not
        # either, and waits for its day.
        tried = sa.or_(c.attempts > 0, queue.kind == "verify")
        waiting = sa.and_(queue.unfinished, tried, queue.is_free(now))
        failed = sa.and_(c.status > 0, c.status != sa.literal_column("0"))
        query = sa.update(queue.table).where(failed if failed_only else sa.or_(failed, waiting))
        if user is not None:
            query = query.where(c.app_id.in_(sa.select(t.apps.c.id).where(t.apps.c.user == user)))
        if job_id is not None:
            query = query.where(queue.job_id == job_id)
        again = {"status": UNFINISHED, "run_at": now, "processed_at": None, "lease_until": None}
        kept = sa.func.min(c.attempts, attempts)
        count += int(tx.execute(query.values(**again, attempts=kept)).rowcount)
    return count


def cancel(tx: Tx, kind: str, target_ids: Sequence[int]) -> None:
    """Delete the jobs for these targets."""
    tx.execute(sa.delete(t.jobs).where(_j.kind == kind, _j.source_id.in_(target_ids)))


def remove_completed(tx: Tx, *, user: str) -> int:
    """Take a user's completed work off the list; how many rows. That of extractions stays, since it
    tells the state of a conversation."""
    mine = sa.select(t.apps.c.id).where(t.apps.c.user == user)
    done = sa.delete(t.jobs).where(_j.app_id.in_(mine), _j.status == 0, _j.kind != "extract")
    made = sa.update(t.passages).where(_p.app_id.in_(mine), _p.status == 0).values(status=None)
    return int(tx.execute(done).rowcount) + int(tx.execute(made).rowcount)


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
    held: Counter[int] = Counter()
    for owner, count in holders(tx, user).items():
        if processes.has_ended(owner):
            held[processes.pid_of(owner)] += count
    return [DeadHolder(process, count) for process, count in sorted(held.items())]


def release_dead(tx: Tx) -> bool:
    """Free what ended processes hold; whether there was anything."""
    left = [owner for owner in holders(tx) if processes.has_ended(owner)]
    for owner in left:
        release_owner(tx, owner)
    return bool(left)


STATUSES = get_args(JobStatus)
_RUNNING, _DONE = -2, 1_000_000
_STATES: dict[str, tuple[int, int]] = {
    "pending": (UNFINISHED, UNFINISHED),
    "running": (_RUNNING, _RUNNING),
    "completed": (_DONE, _DONE),
    "failed": (1, _DONE - 1),
}
"""The first and last number of each status, in the order in which one of many passages decides how
the work on their conversation or note stands."""


def listed(
    tx: Tx,
    *,
    user: str | None,
    status: str | None,
    note_ids: Sequence[int] | None = None,
    now: datetime,
    limit: int,
) -> list[Job]:
    """The work of a user, or of all, with a status, or with any, and on these notes where they are
    named; the newest first."""
    found = []
    for queue in _QUEUES:
        query = _work(queue, now, user=user, status=status)
        if note_ids is not None:
            parts = sa.select(t.chunks.c.id * 4 + 3)
            parts = parts.where(among(t.chunks.c.source_id, note_ids))
            query = query.where(queue.table.c.id.in_(parts), sa.literal(queue is _PASSAGES))
        newest = sa.func.max(queue.table.c.id).desc()
        found += [_job(row) for row in tx.execute(query.order_by(newest).limit(limit))]
    return sorted(found, key=lambda job: (job.created_at, job.id), reverse=True)[:limit]


def counted(tx: Tx, *, user: str | None, now: datetime) -> dict[str, int]:
    """How much work there is of each status."""
    found: Counter[str] = Counter()
    for queue in _QUEUES:
        work = _work(queue, now, user=user).subquery()
        query = sa.select(work.c.state, sa.func.count()).group_by(work.c.state)
        for state, count in tx.execute(query):
            found[_status(state)] += count
    return {status: found[status] for status in STATUSES}


def in_apps(tx: Tx, app_ids: Sequence[int]) -> dict[str, int]:
    """How much work of these scope rows is waiting, done, and failed for good; each text that is
    embedded counts."""
    found = {"waiting": 0, "done": 0, "failed": 0}
    for queue in _QUEUES:
        c = queue.table.c
        query = sa.select(c.status, sa.func.count()).where(
            c.app_id.in_(app_ids), c.status.is_not(None)
        )
        for status, count in tx.execute(query.group_by(c.status)):
            found["waiting" if status < 0 else "failed" if status else "done"] += count
    return found


def by_claims(tx: Tx, claims: Collection[Claim], now: datetime) -> list[Job]:
    """How the claimed work stands."""
    return [
        _job(row)
        for queue, these in _by_queue([*claims])
        for row in tx.execute(_work(queue, now).where(these))
    ]


def of_memories(tx: Tx, memory_ids: Sequence[int], now: datetime) -> dict[int, Job]:
    """Those of these memories that have no vector yet, each with the work that makes it."""
    facts = among(_p.id, [memory_id * 4 for memory_id in memory_ids])
    query = _work(_PASSAGES, now).where(facts, _p.status != sa.literal_column("0"))
    return {job.target_id: job for job in map(_job, tx.execute(query))}


def _work(
    queue: _Queue, now: datetime, *, user: str | None = None, status: str | None = None
) -> sa.Select[Any]:
    """The work of a queue: each job, and of passages all of one target as one."""
    c = queue.table.c
    held = sa.and_(c.status == UNFINISHED, c.lease_until >= now)
    state = sa.func.min(sa.case((held, _RUNNING), (c.status == 0, _DONE), else_=c.status))
    query = (
        sa.select(
            queue.job_id.label("id"),
            queue.kind.label("kind"),
            queue.target_id.label("target_id"),
            t.apps.c.user,
            t.apps.c.name.label("app"),
            state.label("state"),
            sa.func.max(c.attempts).label("attempts"),
            sa.func.max(sa.func.coalesce(c.run_at, queue.done_at)).label("run_at"),
            sa.func.max(c.error_message).label("error_message"),
            sa.func.max(sa.func.coalesce(c.created_at, queue.done_at)).label("created_at"),
            sa.func.max(sa.case((c.status >= 0, queue.done_at))).label("processed_at"),
        )
        .join(t.apps, t.apps.c.id == c.app_id)
        .where(c.status.is_not(None))
        # By place: PostgreSQL does not see that two of these expressions are the same.
        .group_by(sa.text("1, 2, 3, 4, 5"))
    )
    if user is not None:
        query = query.where(t.apps.c.user == user)
    if status is not None:
        query = query.having(state.between(*_STATES[status]))
        if status != "completed":
            query = query.where(c.status != sa.literal_column("0"))
    return query


def _status(state: int) -> str:
    return next(s for s, (first, last) in _STATES.items() if first <= state <= last)


def _job(row: sa.Row[Any]) -> Job:
    return from_row(Job, row, status=_status(row.state))
