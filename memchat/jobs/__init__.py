"""The queue's worker: extractions, embeddings, purges, expiry, the end of abandoned sessions.

Used inline by one-shot commands and session ends, and in the background by a running chat. A job's
outcome is written in the same transaction as its effect, behind a fence, so that it is done once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from memchat import processes
from memchat.config import Settings
from memchat.errors import ConfigError, MemChatError, origin
from memchat.jobs.backfill import Backfill, Backfilled
from memchat.jobs.embed import BATCH, Embedding, Kind, Take, fail
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.extraction.learner import Learner
from memchat.memory.facts.in_force import settle, to_settle
from memchat.memory.forgetting import other_mentions, purge
from memchat.memory.forgetting.other_mentions import MentionsToBlank
from memchat.store import (
    apps,
    hidden_memories,
    inbox,
    job_holders,
    job_lists,
    jobs,
    memory_lists,
    sessions,
)
from memchat.store.database import Database
from memchat.store.jobs import Claim, ClaimRequest
from memchat.types import Job, Learned, Progress, Scope, Session

log = logging.getLogger(__name__)

KINDS = ("forget", "extract", "verify", "embed", "index", "expire")
"""What a worker does, in this order: what is to be forgotten is gone before anything is read."""
_EMBEDDED = {"embed", "index"}
FORGET_BATCH = 100
"""Memories purged in one transaction: other writers wait for no more than that."""


@dataclass(slots=True)
class JobsDone:
    """What one run of the worker did."""

    learned: list[Learned] = field(default_factory=list)
    done: int = 0
    failed: list[Job] = field(default_factory=list)
    """Jobs that did not succeed this time; they wait for their next try, or gave up."""

    @property
    def errors(self) -> list[str]:
        """Why they failed."""
        return [job.error_message or "unknown" for job in self.failed]


class Worker:
    """Works through the jobs of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        learner: Learner,
        meaning: Callable[[], tuple[EmbeddingSpace | None, str | None]],
        drop_vectors: Callable[[Connection, Iterable[int]], None],
    ) -> None:
        """``drop_vectors`` takes the saved vectors of scope rows from memory and disk."""
        self._drop_vectors = drop_vectors
        self._database = database
        self._settings = settings
        self._clock = clock
        self._learner = learner
        self._meaning = meaning
        self._owner = processes.new_owner()
        self.stopping = threading.Event()
        """Set it, and no more work is begun; what is in hand is brought to its end."""

    def run(
        self,
        *,
        user: str | None = None,
        kinds: Sequence[str] = KINDS,
        target_id: int | None = None,
    ) -> JobsDone:
        """Do all that is due now, of a user or of everybody, and say what came of it."""
        done = JobsDone()
        self._free_abandoned()
        if "forget" in kinds:
            while claimed := self._claim("forget", user, target_id, FORGET_BATCH):
                self._forget(claimed, done)
                purge.scrub(self._database)
        if "extract" in kinds:
            while claimed := self._claim("extract", user, target_id):
                self._read(claimed[0], self._learner.learn, done)
        if "verify" in kinds:
            while claimed := self._claim("verify", user, target_id):
                self._read(claimed[0], self._learner.look_late, done)
        if "embed" in kinds:
            self._embed("embed", done, user, target_id)
        if "index" in kinds:
            self._embed("index", done, user, target_id)
        if "expire" in kinds:
            self.expire(user)
        return done

    def run_behind(self, user: str) -> None:
        """``run`` for a background thread: what cannot be done now is logged and waits."""
        try:
            self.run(user=user)
        except MemChatError as error:
            log.warning("background work stopped: %s", error)

    def has_work(self) -> bool:
        """Whether anything is due, or in the hands of a process that is no more."""
        with self._database.read() as tx:
            due = jobs.due_kinds(tx, None, self._clock())
            left = job_holders.any_dead(tx)
        if due and due <= _EMBEDDED and self._meaning()[0] is None:
            return left  # they wait for a service
        return bool(due) or left

    def backfill(
        self, batch: int = BATCH, seen: Callable[[Progress], None] = lambda _: None
    ) -> Backfilled:
        """Give all that lacks a vector its own; ``seen`` is told how far it is.

        Raises ConfigError where there is no service to make them.
        """
        meaning, why_not = self._meaning()
        if meaning is None:
            raise ConfigError(f"there is nothing to make vectors with: {why_not}")
        self._free_abandoned()

        def take(kind: Kind, due_by: datetime) -> Take:
            return lambda tx, limit, size: self._take(tx, kind, limit, size, due_by=due_by)

        wait = self.stopping.wait
        backfill = Backfill(self._database, self._settings, self._clock, meaning, take, wait)
        return backfill.run(batch, seen)

    def end_abandoned(self, user: str | None = None) -> None:
        """End sessions whose process is gone or whose lease ran out, and queue their reading.

        The jobs of such a process are free again.
        """
        self._free_abandoned()
        now = self._clock()
        with self._database.read() as tx:
            left = [
                s
                for s, owner, until in sessions.open_sessions(tx, user)
                if _left(owner, until, now)
            ]
        for session in left:
            with self._database.write() as tx:
                found = sessions.by_id(tx, session.id)
                # Another process may have ended or deleted it, or gone on with it, meanwhile.
                still_open = found is not None and found[0].ended_at is None
                if still_open and _left(*sessions.lease(tx, session.id), now):
                    close_session(tx, session, now)

    def _claim(
        self, kind: str, user: str | None, target_id: int | None, batch: int = 1
    ) -> list[Claim]:
        with self._database.write() as tx:
            return self._take(tx, kind, batch, batch, user=user, target_id=target_id)

    def _take(
        self,
        tx: Connection,
        kind: str,
        limit: int,
        batch: int,
        *,
        user: str | None = None,
        target_id: int | None = None,
        due_by: datetime | None = None,
    ) -> list[Claim]:
        if self.stopping.is_set():
            return []

        lease = jobs.LEASE_SECONDS
        request = ClaimRequest(kind, self._owner, lease, limit, batch, user, target_id, due_by)

        def claimed() -> list[Claim]:
            return jobs.claim(tx, request, self._clock())

        # Before it ends without work: a process that ended meanwhile may have left some.
        return claimed() or (claimed() if job_holders.release_dead(tx, kind) else [])

    def _free_abandoned(self) -> None:
        with self._database.write() as tx:
            job_holders.release_dead(tx)
            jobs.fail_crashing_jobs(tx, self._clock(), self._settings.retry_minutes)

    def _forget(self, claimed: Sequence[Claim], done: JobsDone) -> None:
        try:
            self._purge(claimed)
        except Exception as error:  # noqa: BLE001
            if len(claimed) > 1 and not isinstance(error, MemChatError):
                for one in claimed:  # what is at fault keeps nothing else from being forgotten
                    self._forget([one], done)
                return
            # A fault of ours: what is to be forgotten stays out of sight, and is tried again.
            log.error("job %s failed: %s", claimed[0].id, origin(error))
            self._failed(claimed, error, done)
        else:
            done.done += len(claimed)
            log.info("forget: %d done, from job %d", len(claimed), claimed[0].id)

    def _purge(self, claimed: Sequence[Claim]) -> None:
        """Forget what was claimed: all that leaves the same conversations blanked at one go."""
        now, zone = self._clock(), self._settings.zone
        app_ids = sorted({claim.app_id for claim in claimed})
        with self._database.write() as tx:
            # The words first: what was merged into a memory goes with it, in that one's way.
            for keep in (False, True):
                in_this_way = (c for c in claimed if (c.how == purge.KEEP_TRANSCRIPT) == keep)
                ids = {claim.target_id for claim in in_this_way}
                due = [m for m in hidden_memories.listed(tx, app_ids) if m.id in ids] if ids else []
                self._drop_vectors(tx, purge.forget(tx, due, zone, now, keep_transcript=keep))
            for claim in claimed:
                if (chosen := MentionsToBlank.load(claim.how)) is not None:
                    self._drop_vectors(
                        tx, other_mentions.blank(tx, claim.app_id, chosen, zone, now)
                    )
            jobs.finish_all(tx, claimed, now)

    def _read(self, claimed: Claim, read: Callable[[Claim], Learned], done: JobsDone) -> None:
        """Read a conversation, or have its second look made."""
        try:
            learned = read(claimed)
            done.learned.append(learned)
            done.done += 1
            changes = len(learned.changes)
            log.info(
                "%s: job %d done, session %d: %d changes",
                read.__name__,
                claimed.id,
                claimed.target_id,
                changes,
            )
        except MemChatError as error:
            self._failed([claimed], error, done)
        except Exception as error:  # noqa: BLE001
            # A fault of ours: kept with the job, so that the session is not lost with it.
            log.error("job %s failed: %s", claimed.id, origin(error))
            self._failed([claimed], error, done)
        except BaseException:
            with self._database.write() as tx:
                jobs.release(tx, [claimed])
            raise

    def _embed(self, kind: Kind, done: JobsDone, user: str | None, target_id: int | None) -> None:
        """Make the vectors that are due, where there is something to make them with."""

        def take(tx: Connection, limit: int, batch: int) -> list[Claim]:
            return self._take(tx, kind, limit, batch, user=user, target_id=target_id)

        try:
            meaning, _ = self._meaning()
        except MemChatError as error:
            # What is wrong with the service is told on the jobs that wait for it.
            with self._database.write() as tx:
                claimed = take(tx, BATCH, BATCH)
            self._failed(claimed, error, done)
            return
        if meaning is None:
            return
        found = Embedding(self._database, self._settings, self._clock, meaning, kind).run(take)
        done.done += len(found.done)
        with self._database.read() as tx:
            done.failed += job_lists.by_ids(tx, found.failed, self._clock())

    def _failed(self, claimed: Sequence[Claim], error: Exception, done: JobsDone) -> None:
        with self._database.write() as tx:
            for claim in claimed:
                fail(tx, claim, error, self._clock(), self._settings)
            failed = job_lists.by_ids(tx, [claim.id for claim in claimed], self._clock())
        done.failed += failed
        for job in failed:
            log.warning(
                "%s: job %d failed, try %d: %s", job.kind, job.id, job.attempts, job.error_message
            )

    def expire(self, user: str | None = None) -> None:
        """Write down what the days did: retire what is over, bring back what that had replaced, let
        begin what was to come. And finish forgetting."""
        now = self._clock()
        zone = self._settings.zone
        today = now.astimezone(zone).date()
        with self._database.read() as tx:
            scopes = memory_lists.scopes_with_due_dates(tx, today, user)
            due = [app_ids for app_ids in scopes if to_settle(tx, app_ids, today)]
        for app_ids in due:
            with self._database.write() as tx:
                settle(tx, app_ids, zone, now)
        purge.scrub(self._database)


def close_session(tx: Connection, session: Session, now: datetime) -> None:
    """End a session and, in the same transaction, queue the reading of what is unread in it."""
    sessions.end(tx, session.id, now)
    scope = Scope(session.user, session.app)
    own = apps.find(tx, scope).own
    if own is None or not apps.memory_switch(tx, scope).on:
        return
    if sessions.has_unread_messages(tx, session.id):
        jobs.enqueue(tx, "extract", own, session.id, now)
    elif inbox.awaiting_second_look(tx, session.id):
        jobs.enqueue(tx, "verify", own, session.id, now)


def _left(owner: str | None, until: datetime | None, now: datetime) -> bool:
    if processes.is_renewed(owner):
        return False
    return until is None or until < now or processes.has_ended(owner)
