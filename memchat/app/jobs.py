"""The queue of work of a store: readings, vectors, purges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memchat.app.arguments import check_count
from memchat.app.background import Background
from memchat.app.results import Changed
from memchat.assembly import Assembly
from memchat.errors import InputError
from memchat.store import job_holders, job_lists, jobs
from memchat.store.job_holders import DeadHolder
from memchat.types import CuePlan, Job, OnProgress, Scope, checked_timeout

if TYPE_CHECKING:
    from memchat.jobs.backfill import BackfillResult
    from memchat.jobs.jobs_done import JobsDone
    from memchat.memory.facts.cue_backfill import CueBackfill

MOST_BATCH = 2048
"""Texts that any provider takes in one request."""


class Jobs:
    """The queue of work of the whole store. ``user`` limits a verb to one person's jobs.

    ``run``, ``work``, ``backfill`` and the verbs on cues work in the caller's thread; ``stop``,
    from another thread or a signal handler, lets them end after what they are doing.
    """

    def __init__(self, assembly: Assembly, background: Background) -> None:
        self._assembly = assembly
        self._background = background
        self._database = assembly.database
        self._clock = assembly.clock

    def list(
        self,
        *,
        user: str | None = None,
        status: str | None = None,
        note_ids: Sequence[int] | None = None,
        limit: int = 100,
    ) -> Sequence[Job]:
        """The jobs, the latest first. ``status`` is pending, running, completed or failed;
        ``note_ids`` limits them to those of these notes."""
        if status is not None and status not in job_lists.STATUSES:
            raise InputError(f"{status!r} is no status; use {', '.join(job_lists.STATUSES)}")
        check_count(limit)
        with self._database.read() as tx:
            now = self._clock()
            return job_lists.listed(
                tx, user=user, status=status, note_ids=note_ids, now=now, limit=limit
            )

    def count(self, *, user: str | None = None) -> Mapping[str, int]:
        """How many jobs there are of each status."""
        with self._database.read() as tx:
            return job_lists.counted(tx, user=user, now=self._clock())

    def due(self, *, user: str) -> bool:
        """Whether the queue holds work of the person that could be done now."""
        with self._database.read() as tx:
            user = Scope(user).user
            return bool(
                jobs.due_kinds(tx, user, self._clock()) or job_holders.dead_holders(tx, user)
            )

    def dead_holders(self, *, user: str | None = None) -> Sequence[DeadHolder]:
        """The processes that have ended and still hold jobs; the next run takes these over."""
        with self._database.read() as tx:
            return job_holders.dead_holders(tx, user)

    def run(
        self,
        *,
        user: str | None = None,
        kinds: Sequence[str] | None = None,
        timeout: float | None = None,
        again: bool = False,
    ) -> JobsDone:
        """End abandoned sessions, then do all that is due, of these kinds or of any.

        With ``again`` also what failed: each job that waits for its next try or was given up gets
        one now, and is left as it was where that fails too.
        With ``timeout`` it returns after so many seconds with what was done by then, ``running`` is
        True, and the rest is done in the background. Raises InputError for a bad ``timeout``.
        """
        from memchat.jobs.jobs_done import JobsDone
        from memchat.jobs.worker import KINDS

        seconds = checked_timeout(timeout)
        worker, done = self._assembly.parts().worker, JobsDone()

        def work() -> JobsDone:
            worker.end_abandoned(user)
            if again:
                with self._database.write() as tx:
                    most = len(self._assembly.settings.retry_minutes)
                    jobs.retry(tx, self._clock(), user=user, attempts=most)
            return worker.run(user=user, kinds=KINDS if kinds is None else kinds, done=done)

        if seconds is None:
            return work()
        try:
            return self._background.run_within(seconds, work)
        except TimeoutError:
            return replace(done, learned=[*done.learned], failed=[*done.failed], running=True)

    def work(self, *, look: float | None = None) -> None:
        """Do what is due, for everybody, and wait for more, until ``stop``.

        ``look`` is how many seconds lie between two looks into the queue.
        """
        from memchat.jobs.worker_loop import POLL_SECONDS, run_loop

        run_loop(self._assembly.parts().worker, POLL_SECONDS if look is None else look)

    def stop(self) -> None:
        """Begin no more work, in ``run``, ``work``, ``backfill`` or in the background."""
        self._assembly.parts().worker.stopping.set()

    def embed(self, *, remote: bool = False) -> Changed:
        """Make the vectors of waiting memories with a service of this machine; with ``remote`` also
        with one on the network. How many were made."""
        meaning, _ = self._assembly.embedding_space()
        if meaning is None or not (meaning.embedder.service.local or remote):
            return Changed(0)
        return Changed(self._assembly.parts().worker.run(kinds=("embed",)).done)

    def backfill(self, *, batch: int = 100, progress: OnProgress | None = None) -> BackfillResult:
        """Make the vector of every fact, message, summary and chunk of a note that has none.

        It asks the embedding service for ``batch`` texts at a time. Raises ConfigError where no
        service is in use.
        """
        if not 1 <= batch <= MOST_BATCH:
            raise InputError(f"a batch of {batch} cannot be; use 1 to {MOST_BATCH}")
        return self._assembly.parts().worker.backfill(batch, progress or (lambda _: None))

    def cue_plan(self) -> CuePlan:
        """How many facts have no cues (words for situations to be found by), and what
        ``backfill_cues`` would send and cost, about."""
        return self._cue_backfill().plan()

    def backfill_cues(self) -> Changed:
        """Ask the extraction model for the cues of facts that have none; how many have some now.

        Their vectors follow as ``backfill`` makes them. Raises ProviderError where the model fails;
        what was done by then stays, and the next run goes on from there.
        """
        return Changed(self._cue_backfill().run())

    def retry(self, *, user: str, job_id: int | None = None, failed_only: bool = False) -> Changed:
        """Put failed and waiting jobs, or only the failed ones, first in line again; how many."""
        with self._database.write() as tx:
            count = jobs.retry(tx, self._clock(), user=user, job_id=job_id, failed_only=failed_only)
        return Changed(count)

    def clear(self, *, user: str) -> Changed:
        """Remove the person's completed jobs from the queue; how many. What they did stays."""
        with self._database.write() as tx:
            return Changed(jobs.remove_completed(tx, user=user))

    def _cue_backfill(self) -> CueBackfill:
        from memchat.memory.facts.cue_backfill import CueBackfill

        store = self._assembly
        model = store.extract_model()
        return CueBackfill(self._database, self._clock, store.settings.zone, store.prompts, model)
