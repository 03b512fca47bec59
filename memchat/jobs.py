"""The queue's worker: extractions, embeddings, purges, expiry, the end of abandoned sessions.

Used inline by one-shot commands and session ends, and in the background by a running chat. A job's
outcome is written in the same transaction as its effect, behind a fence, so that it is done once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat import processes
from memchat.config import Settings
from memchat.errors import MemChatError, ProviderError
from memchat.memory import forget, moments
from memchat.memory.consolidate import bring_back
from memchat.memory.learn import Learner
from memchat.memory.meaning import Meaning
from memchat.store import apps, embeddings, hidden, jobs, memories, sessions
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
from memchat.types import Job, Learned, Scope, Session

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

EMBED_BATCH = 100
KINDS = ("forget", "extract", "embed", "index", "expire")
"""What a worker does, in this order: what is to be forgotten is gone before anything is read."""


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
        meaning: Callable[[], tuple[Meaning | None, str | None]],
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
            while claimed := self._claim("forget", 1, user, target_id):
                self._forget(claimed[0], done)
        if "extract" in kinds:
            while claimed := self._claim("extract", 1, user, target_id):
                self._extract(claimed[0], done)
        if "embed" in kinds:
            while claimed := self._claim("embed", EMBED_BATCH, user, target_id):
                if not self._embed(claimed, done):
                    break
        if "index" in kinds:
            while claimed := self._claim("index", 1, user, target_id):
                if not self._index(claimed[0], done):
                    break
        if "expire" in kinds:
            self.expire(user)
        return done

    def run_behind(self, user: str) -> None:
        """``run`` for a background thread: what cannot be done now is logged and waits."""
        try:
            self.run(user=user)
        except MemChatError as error:
            log.warning("background work stopped: %s", error)

    def end_abandoned(self, user: str | None = None) -> None:
        """End sessions whose process is gone or whose lease ran out, and queue their reading.

        The jobs of such a process are free again.
        """
        self._free_abandoned()
        now = self._clock()
        with self._database.read() as tx:
            left = [
                s for s, owner, until in sessions.open_ones(tx, user) if _left(owner, until, now)
            ]
        for session in left:
            with self._database.write() as tx:
                found = sessions.by_id(tx, session.id)
                # Another process may have ended or deleted it, or gone on with it, meanwhile.
                still_open = found is not None and found[0].ended_at is None
                if still_open and _left(*sessions.lease(tx, session.id), now):
                    close_session(tx, session, now)

    def _claim(self, kind: str, limit: int, user: str | None, target_id: int | None) -> list[Claim]:
        with self._database.write() as tx:
            return jobs.claim(
                tx,
                kind,
                self._owner,
                self._clock(),
                jobs.LEASE_SECONDS,
                limit=limit,
                user=user,
                target_id=target_id,
            )

    def _free_abandoned(self) -> None:
        with self._database.read() as tx:
            gone = [owner for owner in jobs.owners(tx) if processes.is_gone(owner)]
        with self._database.write() as tx:
            for owner in gone:
                jobs.free(tx, owner)
            jobs.give_up_on_killers(tx, self._clock())

    def _forget(self, claimed: Claim, done: JobsDone) -> None:
        try:
            self._purge(claimed)
            done.done += 1
        except Exception as error:
            # A fault of ours: what is to be forgotten stays out of sight, and is tried again.
            log.exception("job %s failed", claimed.id)
            self._failed([claimed], error, done)
        forget.scrub(self._database)

    def _purge(self, claimed: Claim) -> None:
        now = self._clock()
        with self._database.write() as tx:
            due = [m for m in hidden.listed(tx, [claimed.app_id]) if m.id == claimed.target_id]
            stale = forget.forget(
                tx,
                due,
                self._settings.zone,
                now,
                keep_transcript=claimed.how == forget.KEEP_TRANSCRIPT,
            )
            self._drop_vectors(tx, stale)
            jobs.finish(tx, claimed, now)

    def _extract(self, claimed: Claim, done: JobsDone) -> None:
        try:
            done.learned.append(self._learner.learn(claimed))
            done.done += 1
        except MemChatError as error:
            self._failed([claimed], error, done)
        except Exception as error:
            # A fault of ours: kept with the job, so that the session is not lost with it.
            log.exception("job %s failed", claimed.id)
            self._failed([claimed], error, done)
        except BaseException:
            with self._database.write() as tx:
                jobs.release(tx, [claimed])
            raise

    def _embed(self, claimed: list[Claim], done: JobsDone) -> bool:
        try:
            meaning, _ = self._meaning()
            if meaning is None:
                with self._database.write() as tx:
                    jobs.release(tx, claimed)
                return False
            with self._database.read() as tx:
                rows = embeddings.missing(tx, meaning.service_id, [c.target_id for c in claimed])
            vectors, _ = meaning.documents([text for _, _, text, _ in rows])
        except MemChatError as error:
            self._failed(claimed, error, done)
            return False
        now = self._clock()
        with self._database.write() as tx:
            embeddings.put(tx, meaning.service_id, vectors.items(), now)
            embeddings.drop_unused(tx, list(vectors))  # of words that went meanwhile
            standing = [c for c in claimed if jobs.finish(tx, c, now)]
            still = embeddings.missing(tx, meaning.service_id, [c.target_id for c in standing])
            changed = {memory_id for memory_id, _, _, _ in still}
            # Also one whose text had its vector already: its shard has yet to hear of it.
            written = [c.target_id for c in standing if c.target_id not in changed]
            memories.mark_embedded(tx, written, Cause(now, "system"))
            for memory_id, app_id, _, _ in still:
                # Its words changed while their vector was made.
                jobs.enqueue(tx, "embed", app_id, "memory", memory_id, now)
        done.done += len(standing)
        return True

    def _index(self, claimed: Claim, done: JobsDone) -> bool:
        """Embed what was said in a conversation, where that did not come with its reading."""
        try:
            meaning, _ = self._meaning()
            with self._database.read() as tx:
                stored = moments.stored(tx, claimed.target_id, self._settings.zone)
            if meaning is None and stored is not None:
                with self._database.write() as tx:
                    jobs.release(tx, [claimed])
                return False
            vectors: dict[str, Vectors] = {}
            if meaning is not None and stored is not None:
                vectors, _ = meaning.documents(stored[2].every)
        except MemChatError as error:
            self._failed([claimed], error, done)
            return False
        now = self._clock()
        with self._database.write() as tx:
            done.done += jobs.finish(tx, claimed, now)
            if meaning is not None:
                zone, service_id = self._settings.zone, meaning.service_id
                moments.write(tx, claimed.target_id, zone, service_id, vectors, now)
                embeddings.drop_unused(tx, list(vectors))  # of words that went meanwhile
        return True

    def _failed(self, claimed: Sequence[Claim], error: Exception, done: JobsDone) -> None:
        reason = str(error) if isinstance(error, MemChatError) else f"{type(error).__name__}"
        provider = error if isinstance(error, ProviderError) else None
        with self._database.write() as tx:
            for claim in claimed:
                jobs.fail(
                    tx,
                    claim,
                    self._clock(),
                    reason,
                    code=(provider.status or 1) if provider else 1,
                    retry_after=provider.retry_after if provider else None,
                )
            done.failed += jobs.by_ids(tx, [claim.id for claim in claimed], self._clock())

    def expire(self, user: str | None = None) -> None:
        """Retire what is over, bring back what that had replaced, and finish forgetting."""
        now = self._clock()
        today = now.astimezone(self._settings.zone).date()
        with self._database.read() as tx:
            due = memories.expired_anywhere(tx, today, user)
        for app_id, memory_id in due:
            with self._database.write() as tx:
                memory = memories.get(tx, [app_id], memory_id)
                if memory is not None and memory.active and (memory.expires_at or today) < today:
                    over = Cause(now, "system", "its day is over")
                    memories.deactivate(tx, memory, app_id, "expired", over)
                    bring_back(tx, memory, app_id, today, over)
        forget.scrub(self._database)


def close_session(tx: Connection, session: Session, now: datetime) -> None:
    """End a session and, in the same transaction, queue the reading of what is unread in it."""
    sessions.end(tx, session.id, now)
    scope = Scope(session.user, session.app)
    own = apps.find(tx, scope).own
    if own is not None and apps.memory_switch(tx, scope).on and sessions.has_unread(tx, session.id):
        jobs.enqueue(tx, "extract", own, "session", session.id, now)


def _left(owner: str | None, until: datetime | None, now: datetime) -> bool:
    return until is None or until < now or processes.is_gone(owner)
