"""The worker: runs the jobs of the queue and the upkeep of a store.

It is called directly by one-shot commands and session ends, in the background by a running chat,
and by ``run_loop`` in a process of its own. A job's outcome is written in the same transaction as
its effect, and only while the worker still holds the job, so that each job takes effect once.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from memchat import processes, waiting
from memchat.config import Settings
from memchat.db import Tx, apps, jobs, sessions
from memchat.db.database import Database
from memchat.db.jobs import EMBEDDING_KINDS, Claim, ClaimRequest
from memchat.errors import ConfigError, MemChatError, StoreError, origin
from memchat.facts import memories, proposals
from memchat.facts.in_force import apply_due_dates, as_of
from memchat.forget import mentions, purge
from memchat.jobs.embedding import BATCH, BackfillResult, EmbeddingResult, EmbeddingRun, fail_job
from memchat.learn.learner import Learner
from memchat.learn.model_calls import NOBODY_LOOKED
from memchat.notes import rows
from memchat.search import passages
from memchat.search.embed import EmbeddingSpace, at_once
from memchat.types import Job, Learned, OnProgress, Scope, Session, timed
from memchat.workflows import rows as workflows

if TYPE_CHECKING:
    from memchat.workflows.runs import Run


@dataclass(slots=True)
class JobsDone:
    """Counts and outcomes of one run of the worker."""

    learned: list[Learned] = field(default_factory=list)
    done: int = 0
    failed: list[Job] = field(default_factory=list)
    """Jobs that failed in this run; each waits for its next try or has no tries left."""

    running: bool = False
    """Whether the run goes on in the background, after the time it was given."""

    @property
    def errors(self) -> list[str]:
        """Why they failed."""
        return [job.error_message or "unknown" for job in self.failed]


def outcome(done: JobsDone, before: Learned) -> Learned:
    """What a run for one conversation taught, or why it still waits, beside what was known
    ``before``."""
    if not done.learned:
        why = done.errors[-1] if done.errors else "another worker reads it, or will"
        return replace(before, queued=why)
    first = done.learned[0]
    return replace(
        before,
        queued=done.errors[-1] if done.errors else None,
        changes=tuple(change for one in done.learned for change in one.changes),
        title=first.title,
        summary=first.summary,
        skipped=first.skipped,
        shortened=first.shortened,
    )


log = logging.getLogger(__name__)

PURGES = ("forget", rows.KIND)
"""The kinds that purge memories and notes."""
KINDS = (*PURGES, "extract", "verify", *EMBEDDING_KINDS, workflows.KIND, "expire", "topics")
"""The kinds of jobs in the order in which they run: memories and notes are purged before any
conversation is sent to a model."""
FORGET_BATCH = 100
"""The most memories purged in one transaction, as other writers wait until it ends."""
TOPICS_EVERY = timedelta(days=1)
READINGS_AT_ONCE = 8
"""Conversations that are read in turn."""


class Worker:
    """Runs the jobs of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        learner: Learner,
        embedding_space: Callable[[], tuple[EmbeddingSpace | None, str | None]],
        new_run: Callable[[Claim], Run],
    ) -> None:
        """``embedding_space`` gives the space in use, or None and why there is none."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._learner = learner
        self._embedding_space = embedding_space
        self._new_run = new_run
        self._owner = processes.new_owner()
        self.news: set[str] = set()
        """What was logged of an outage of the embedding service, since it last embedded a text."""
        self.stopping = waiting.Event()
        """Once it is set, no further job is started; running ones are finished."""

    def run(
        self,
        *,
        user: str | None = None,
        kinds: Sequence[str] = KINDS,
        target_id: int | None = None,
        done: JobsDone | None = None,
        on_progress: Callable[[EmbeddingResult], None] = lambda _: None,
        on_reading: OnProgress | None = None,
        parallel: int = 1,
    ) -> JobsDone:
        """Run the jobs that are due now, of one user or of all; their outcomes are added to
        ``done``. ``on_progress`` is called after each batch of vectors, ``on_reading`` after each
        part of a conversation. ``parallel`` conversations of different people are read at once."""
        done = JobsDone() if done is None else done
        self._release_dead_workers()
        if workflows.KIND in kinds:
            self._keep_up_workflows()
        purges = [kind for kind in PURGES if kind in kinds]
        self._purge_due(purges, user, target_id, done)
        if "extract" in kinds:
            readers = [self, *(self._another() for _ in range(parallel - 1))]
            each = [JobsDone(done.learned) for _ in readers[1:]]  # in the order of the readings
            calls = [
                partial(one._read, user, target_id, its, purges, on_reading)
                for one, its in zip(readers, [done, *each], strict=True)
            ]
            others = at_once("memchat-read", calls[1:], parallel)
            calls[0]()
            for its, other in zip(each, others, strict=True):
                waiting.result(other)
                done.done += its.done
                done.failed += its.failed
        if "verify" in kinds:
            while claimed := self._claim("verify", user, target_id):
                look = partial(self._learner.look_late, claimed[0])
                self._do(claimed[0], "look_late", look, done)
        if embedding := [kind for kind in EMBEDDING_KINDS if kind in kinds]:
            self._embed(embedding, done, user, target_id, on_progress)
        while workflows.KIND in kinds and (claimed := self._claim(workflows.KIND, user, target_id)):
            self._run_workflow(claimed[0], done)
        if "expire" in kinds:
            self.expire(user)
        if "topics" in kinds and target_id is None:
            self.find_topics(user)
        return done

    def begin_run(self, begin: Callable[[Tx], int]) -> Run:
        """A run of a workflow that ``begin`` makes, or makes go on. Raises StoreError where another
        process does it."""
        with self._database.write() as tx:
            run_id = begin(tx)
            claimed = self._claim_in(tx, [workflows.KIND], 1, 1, target_id=run_id)
        if not claimed:
            raise StoreError(f"another process does the run {run_id}; workflow runs shows it")
        return self._new_run(claimed[0])

    def _keep_up_workflows(self) -> None:
        with self._database.read() as tx:
            due = workflows.is_due(tx)
        if due:
            with self._database.write() as tx:
                workflows.upkeep(tx)

    def _run_workflow(self, claim: Claim, done: JobsDone) -> None:
        try:
            self._new_run(claim).go(unattended=True)
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, MemChatError):
                log.error("job %s failed: %s", claim.id, origin(error))
            self._failed([claim], error, done)
        else:
            done.done += 1
            log.info("workflow: run %d done", claim.target_id)

    def _another(self) -> Worker:
        """A worker beside this one, which stops with it."""
        other = copy(self)
        other._owner = processes.new_owner()
        return other

    def run_in_background(self, user: str) -> None:
        """``run`` for a background thread: an error is logged, and the jobs stay in the queue."""
        try:
            self.run(user=user)
        except MemChatError as error:
            log.warning("background work stopped: %s", error)

    def has_work(self) -> bool:
        """Whether a job is due, or is held by a process that has ended."""
        with self._database.read() as tx:
            due = jobs.due_kinds(tx, None, self._clock())
            left = bool(jobs.dead_holders(tx)) or workflows.is_due(tx)
        if due and due <= set(EMBEDDING_KINDS) and self._embedding_space()[0] is None:
            return left  # there is no embedding model to run them
        return bool(due) or left

    def backfill(self, batch: int = BATCH, on_progress: OnProgress | None = None) -> BackfillResult:
        """Queue every text that has no vector yet, and embed them by ``batch`` texts; each is
        tried once. Other workers may help, and a killed run goes on where it was.

        Raises ConfigError where there is no embedding model.
        """
        space, reason = self._embedding_space()
        if space is None:
            raise ConfigError(f"there is nothing to make vectors with: {reason}")
        self._release_dead_workers()
        report = timed(on_progress)
        with self._database.write() as tx:
            began = tx.now  # the jobs that are queued here are due then
            total = passages.count_lacking(tx, space.service_id)
            if total:
                passages.queue_lacking(tx, space.service_id)

        def claim(tx: Tx, limit: int, size: int) -> list[Claim]:
            return self._claim_in(tx, EMBEDDING_KINDS, limit, size, due_by=began)

        def tell(run: EmbeddingResult) -> None:
            report(run.embedded, total, failed=run.faulty, pause=run.pause)

        common = (self._database, self._settings, space, batch)
        run = EmbeddingRun(*common, tell, self.stopping.wait)
        tell(run.result)
        run.run(claim)
        with self._database.read() as tx:
            left = passages.count_lacking(tx, space.service_id)
            failed = jobs.by_claims(tx, run.result.failed, self._clock())
        # A text counts wherever it occurs, though it is embedded once.
        done = max(0, total - left)
        report(done, total, failed=run.result.faulty, pause=run.result.pause)
        stopped = None if run.result.down is None else str(run.result.down)
        return BackfillResult(total, done, left, tuple(failed), stopped)

    def end_abandoned(self, user: str | None = None) -> None:
        """End sessions whose process has ended or whose lease ran out, and queue their extraction.

        The jobs of such a process can be claimed again.
        """
        now = self._clock()
        with self._database.read() as tx:
            abandoned = [
                session
                for session, owner, until in sessions.open_sessions(tx, user)
                if is_abandoned(owner, until, now)
            ]
            dead = jobs.dead_holders(tx)
        if dead:
            self._release_dead_workers()
        for session in abandoned:
            with self._database.write() as tx:
                found = sessions.by_id(tx, session.id)
                # Another process may have ended, deleted or resumed it since it was listed.
                still_open = found is not None and found[0].ended_at is None
                if still_open and is_abandoned(*sessions.lease(tx, session.id), now):
                    close_session(tx, session)

    def _claim(
        self, kind: str, user: str | None, target_id: int | None, batch: int = 1
    ) -> list[Claim]:
        with self._database.write() as tx:
            return self._claim_in(tx, [kind], batch, batch, user=user, target_id=target_id)

    def _claim_in(
        self,
        tx: Tx,
        kinds: Sequence[str],
        limit: int,
        batch: int,
        *,
        user: str | None = None,
        target_id: int | None = None,
        due_by: datetime | None = None,
    ) -> list[Claim]:
        if self.stopping.is_set():
            return []
        lease, alone = jobs.LEASE_SECONDS, "extract" in kinds and target_id is None
        request = ClaimRequest(
            kinds, self._owner, lease, limit, batch, user, target_id, due_by, one_a_person=alone
        )

        def claimed() -> list[Claim]:
            return jobs.claim(tx, request, self._clock())

        # With nothing to claim, look for jobs of a process that ended in the meantime.
        return claimed() or (claimed() if jobs.release_dead(tx) else [])

    def _release_dead_workers(self) -> None:
        with self._database.write() as tx:
            jobs.release_dead(tx)
            jobs.fail_crashing_jobs(tx, self._clock(), self._settings.retry_minutes)
            proposals.give_up_looks(tx, NOBODY_LOOKED)

    def _purge_due(
        self, kinds: Sequence[str], user: str | None, target_id: int | None, done: JobsDone
    ) -> None:
        for kind in kinds:
            while claimed := self._claim(kind, user, target_id, FORGET_BATCH):
                self._purge(claimed, done)

    def _purge(self, claimed: Sequence[Claim], done: JobsDone) -> None:
        kind = claimed[0].kind
        try:
            (self._purge_notes if kind == rows.KIND else self._purge_memories)(claimed)
        except Exception as error:  # noqa: BLE001
            if len(claimed) > 1 and not isinstance(error, MemChatError):
                for one in claimed:  # so that one bad job does not stop the others
                    self._purge([one], done)
                return
            # A bug: what is to be purged stays hidden, and the jobs are tried again.
            log.error("job %s failed: %s", claimed[0].id, origin(error))
            self._failed(claimed, error, done)
        else:
            done.done += len(claimed)
            log.info("%s: %d done, from job %d", kind, len(claimed), claimed[0].id)

    def _purge_notes(self, claimed: Sequence[Claim]) -> None:
        """Delete what the deleted notes of these jobs left."""
        with self._database.write() as tx:
            # A job is gone where the deletion was undone since it was claimed.
            for claim in jobs.still_held(tx, claimed):
                rows.purge(tx, claim.target_id, claim.how or "")
            tx.forget_bytes(*{claim.app_id for claim in claimed})
            jobs.finish(tx, claimed, self._clock())

    def _purge_memories(self, claimed: Sequence[Claim]) -> None:
        """Purge the memories of these jobs, and redact the conversations they name, at once."""
        app_ids = sorted({claim.app_id for claim in claimed})
        with self._database.write() as tx:
            # Those whose transcript is redacted first: it decides for what was merged into them.
            for keep in (False, True):
                ids = {c.target_id for c in claimed if (c.how == purge.KEEP_TRANSCRIPT) == keep}
                due = [m for m in memories.hidden(tx, app_ids) if m.id in ids] if ids else []
                purge.forget(tx, due, keep_transcript=keep)
            for claim in claimed:
                if claim.how is not None and mentions.holds_mentions(claim.how):
                    mentions.blank(tx, claim.app_id, claim.how)
            jobs.finish(tx, claimed, tx.now)

    def _read(
        self,
        user: str | None,
        target_id: int | None,
        done: JobsDone,
        purges: Sequence[str],
        on_reading: OnProgress | None,
    ) -> None:
        """Read conversations. At each pause of a long one the next is read, so that it keeps no
        other waiting; what is to be purged by then, of the kinds ``purges``, is purged first."""
        under_way: deque[tuple[Claim, Generator[Learned | None, None, None]]] = deque()
        paused = False
        try:
            while True:
                if len(under_way) < READINGS_AT_ONCE:
                    claimed = self._claim("extract", user, target_id)
                    under_way += [(one, self._learner.learn(one, on_reading)) for one in claimed]
                if not under_way:
                    return
                if paused:
                    under_way.rotate(-1)
                claim, parts = under_way[0]
                paused = self._do(claim, "learn", partial(next, parts), done)
                if not paused:
                    under_way.popleft()
                else:
                    self._purge_due(purges, user, target_id, done)
                if left := [claim for claim, _ in under_way]:
                    until = self._clock() + timedelta(seconds=jobs.LEASE_SECONDS)
                    with self._database.write() as tx:
                        jobs.renew(tx, left, until)
        except BaseException:
            for _, parts in under_way:
                parts.close()
            with self._database.write() as tx:
                jobs.release(tx, [claim for claim, _ in under_way])
            raise

    def _do(
        self, claimed: Claim, name: str, work: Callable[[], Learned | None], done: JobsDone
    ) -> bool:
        """Do a part of a job that may teach something; whether more of it is to be done."""
        try:
            learned = work()
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, MemChatError):
                # A bug: recorded with the job, so that the session is tried again.
                log.error("job %s failed: %s", claimed.id, origin(error))
            self._failed([claimed], error, done)
            return False
        except BaseException:
            with self._database.write() as tx:
                jobs.release(tx, [claimed])
            raise
        if learned is None:
            return True
        done.learned.append(learned)
        done.done += 1
        said = "%s: job %d done, session %d: %d changes"
        log.info(said, name, claimed.id, claimed.target_id, len(learned.changes))
        return False

    def _embed(
        self,
        kinds: Sequence[str],
        done: JobsDone,
        user: str | None,
        target_id: int | None,
        on_progress: Callable[[EmbeddingResult], None],
    ) -> None:
        """Make the vectors that are due, if there is an embedding model."""

        def claim(tx: Tx, limit: int, batch: int) -> list[Claim]:
            return self._claim_in(tx, kinds, limit, batch, user=user, target_id=target_id)

        try:
            space, _ = self._embedding_space()
        except MemChatError as error:
            # What waits for the embedding model shows what is wrong with it.
            with self._database.write() as tx:
                claimed = claim(tx, BATCH, BATCH)
            self._failed(claimed, error, done, tell=False)
            if claimed and str(error) not in self.news:
                self.news.add(str(error))
                log.warning("the embedding model cannot be used, and jobs wait: %s", error)
            return
        if space is None:
            return
        common = (self._database, self._settings, space)
        run = EmbeddingRun(*common, on_progress=on_progress, news=self.news)
        found = run.run(claim)
        done.done += found.done
        with self._database.read() as tx:
            done.failed += jobs.by_claims(tx, found.failed, self._clock())

    def _failed(
        self, claimed: Sequence[Claim], error: Exception, done: JobsDone, *, tell: bool = True
    ) -> None:
        with self._database.write() as tx:
            for claim in claimed:
                fail_job(tx, claim, error, self._settings)
            proposals.give_up_looks(tx, NOBODY_LOOKED)
            failed = jobs.by_claims(tx, claimed, self._clock())
        done.failed += failed
        for job in failed if tell else ():
            # The error itself, so that a log may name it without its text.
            why = error if isinstance(error, MemChatError) else job.error_message
            log.warning("%s: job %d failed, try %d: %s", job.kind, job.id, job.attempts, why)

    def expire(self, user: str | None = None) -> None:
        """Apply the dates of memories: expire those whose last day is over, restore what they had
        replaced, activate those whose first day has come. Then finish what is left to purge."""
        with self._database.read() as tx:
            every = memories.scopes_with_due_dates(tx, tx.today, user)
            today = [(scope, as_of(tx, tx.within(*scope).ids)) for scope in every]
        for scope, standing in today:
            if standing.over or standing.displaced:
                with self._database.write() as tx:
                    apply_due_dates(tx.within(*scope))
        self._database.scrub()

    def find_topics(self, user: str | None = None) -> None:
        """Find the topics of the apps in which there is anything new since yesterday."""
        with self._database.read() as tx:
            due = apps.with_news(tx, tx.now - TOPICS_EVERY, user)
        if due:
            from memchat.notes import topics

            for scope in due:
                topics.find(self._database, scope)


POLL_SECONDS = 1.0
"""Between two queries of the queue."""
UPKEEP_SECONDS = 60.0
"""Between two runs of the upkeep: abandoned sessions and expired memories."""


def run_loop(worker: Worker, poll: float = POLL_SECONDS, parallel: int = 1) -> None:
    """Run jobs until the worker is stopped, with ``poll`` seconds between two queries of the queue
    and ``parallel`` conversations read at once.

    After an error such as a full disk it goes on trying.
    """
    upkeep_at = 0.0
    while not worker.stopping.is_set():
        try:
            upkeep = time.monotonic() >= upkeep_at
            if upkeep:
                upkeep_at = time.monotonic() + UPKEEP_SECONDS
                worker.end_abandoned()
            if upkeep or worker.has_work():
                log_result(worker.run(parallel=parallel))
        except MemChatError as error:
            log.error("the worker failed and tries again shortly: %s", error)
        worker.stopping.wait(poll)


def log_result(done: JobsDone) -> None:
    """Log how many jobs ran, if any did."""
    if done.done or done.failed:
        log.info("%d jobs done, %d failed", done.done, len({job.id for job in done.failed}))


def close_session(tx: Tx, session: Session, read_at: datetime | None = None) -> None:
    """End a session and, in the same transaction, queue the extraction of its unread messages: now,
    or at ``read_at``."""
    sessions.end(tx, session.id)
    own = apps.find(tx, Scope(session.user, session.app)).own
    if not own or not apps.memory_of(tx, session).on:
        return
    if sessions.has_unread_messages(tx, session.id):
        jobs.enqueue(tx, "extract", own, session.id, tx.now, run_at=read_at)
    elif proposals.awaiting_second_look(tx, session.id):
        jobs.enqueue(tx, "verify", own, session.id, tx.now)


def set_memory(tx: Tx, session: Session, *, on: bool) -> None:
    """Set a session's own switch. With that on, what an ended one was not read for is queued."""
    sessions.change(tx, session.id, memory=int(on))
    if on and session.ended_at is not None:
        close_session(tx, replace(session, memory=True))


def is_abandoned(owner: str | None, until: datetime | None, now: datetime) -> bool:
    """Whether the process that holds a session's lease has ended, or lost the lease."""
    if processes.is_renewed(owner):
        return False
    return until is None or until < now or processes.has_ended(owner)
