"""Processes that ended while they held jobs, and how their jobs become free again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from memchat import processes
from memchat.store import jobs
from memchat.store.schema import apps
from memchat.store.schema import jobs as table

_j = table.c


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


def dead_holders(tx: Connection, user: str | None = None) -> list[DeadHolder]:
    """The processes of this machine that ended and still hold jobs, of one user or of all."""
    query = select(_j.lease_owner, func.count()).where(jobs.unfinished, _j.lease_owner.is_not(None))
    if user is not None:
        query = query.join(apps, apps.c.id == _j.app_id).where(apps.c.user == user)
    held: Counter[int] = Counter()
    for owner, count in tx.execute(query.group_by(_j.lease_owner)):
        if processes.has_ended(owner):
            held[processes.pid_of(owner)] += count
    return [DeadHolder(process, count) for process, count in sorted(held.items())]


def any_dead(tx: Connection) -> bool:
    """Whether any job is held by a process that ended."""
    return any(processes.has_ended(owner) for owner in jobs.lease_owners(tx))


def release_dead(tx: Connection, kind: str | None = None) -> bool:
    """Free the jobs, of a kind or of all, that ended processes hold; whether there were any."""
    query = select(_j.lease_owner).where(jobs.unfinished, _j.lease_owner.is_not(None)).distinct()
    if kind is not None:
        query = query.where(_j.kind == kind)
    left = [owner for owner in tx.execute(query).scalars() if processes.has_ended(owner)]
    for owner in left:
        jobs.release_owner(tx, owner)
    return bool(left)


def finish_unheld(tx: Connection, kind: str, target_ids: Sequence[int], now: datetime) -> None:
    """Mark the jobs of these targets as done, failed ones too.

    A job that a living process holds is left to it; it will find nothing left to do.
    """
    theirs = (_j.kind == kind, _j.source_id.in_(target_ids), _j.status != 0)
    held = select(_j.lease_owner).where(*theirs, _j.lease_owner.is_not(None)).distinct()
    for owner in list(tx.execute(held).scalars()):
        if processes.has_ended(owner):
            jobs.release_owner(tx, owner)
    done = {"status": 0, "processed_at": now, "error_message": None}
    free = update(table).where(*theirs, jobs.is_free(now))
    tx.execute(free.values(**done, **jobs.NOT_LEASED))
