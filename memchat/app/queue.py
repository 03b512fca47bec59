"""The queue and its worker, and what was used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memchat.app.opened import Opened
from memchat.errors import InputError
from memchat.store import embedding_states, job_holders, job_lists, jobs, usage
from memchat.store.job_holders import DeadHolder
from memchat.types import CuePlan, Job, Progress, Scope, UsageTotal

if TYPE_CHECKING:
    from memchat.jobs import JobsDone
    from memchat.jobs.backfill import Backfilled
    from memchat.memory.facts.cue_backfill import CueBackfill

MOST_BATCH = 2048
"""Texts that any provider takes in one request."""
STATUSES = ("active", "inactive", "expired", "expiring", "all", *embedding_states.STATUSES)


class Queue(Opened):
    """The verbs on queued work."""

    def jobs(
        self, *, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Queued work, newest first."""
        if status is not None and status not in job_lists.STATUSES:
            raise InputError(f"{status!r} is no status; use {', '.join(job_lists.STATUSES)}")
        with self._database.read() as tx:
            return job_lists.listed(tx, user=user, status=status, now=self._clock(), limit=limit)

    def count_jobs(self, *, user: str | None = None) -> dict[str, int]:
        """How many jobs of a user, or of everybody, are of each status."""
        with self._database.read() as tx:
            return job_lists.counted(tx, user=user, now=self._clock())

    def gone_holders(self, *, user: str | None = None) -> list[DeadHolder]:
        """The processes that have ended and still hold jobs of a user, or of anybody."""
        with self._database.read() as tx:
            return job_holders.dead_holders(tx, user)

    def clear_jobs(self, *, user: str) -> int:
        """Take the user's completed jobs out of the queue; how many. What they did stays."""
        with self._database.write() as tx:
            return jobs.remove_completed(tx, user=user)

    def run_jobs(self, *, user: str | None = None, kinds: Sequence[str] | None = None) -> JobsDone:
        """End abandoned sessions, then do all that is due, of these kinds or of any."""
        from memchat.jobs import KINDS

        worker = self._parts().worker
        worker.end_abandoned(user)
        return worker.run(user=user, kinds=KINDS if kinds is None else kinds)

    def work(self, *, look: float | None = None) -> None:
        """Do what is due, for everybody, and wait for more, until ``stop_work``.

        ``look`` is how many seconds lie between two looks into the queue.
        """
        from memchat.jobs import serve

        serve.serve(self._parts().worker, serve.LOOK_SECONDS if look is None else look)

    def backfill(
        self, *, batch: int = 100, seen: Callable[[Progress], None] | None = None
    ) -> Backfilled:
        """Give every fact, turn and summary of the store that lacks a vector its own.

        It asks the embedding service for ``batch`` texts at a time and tells ``seen`` how far it
        is. Raises ConfigError where no service is in use.
        """
        if not 1 <= batch <= MOST_BATCH:
            raise InputError(f"a batch of {batch} cannot be; use 1 to {MOST_BATCH}")
        return self._parts().worker.backfill(batch, seen or (lambda _: None))

    def cue_plan(self) -> CuePlan:
        """How many facts have no words for situations to be found by, and what ``backfill_cues``
        would send and cost, about."""
        return self._cue_filling().plan()

    def backfill_cues(self) -> int:
        """Ask the extraction model for the cues of facts that have none; how many have some now.

        Their vectors follow as ``backfill`` makes them. Raises ProviderError where the model fails;
        what was done by then stays, and the next run goes on from there.
        """
        return self._cue_filling().run()

    def _cue_filling(self) -> CueBackfill:
        from memchat.memory.facts.cue_backfill import CueBackfill

        parts, model = self._assembly, self._assembly.extract_model()
        return CueBackfill(self._database, self._clock, parts.settings.zone, parts.prompts, model)

    def embed_pending(self, *, remote: bool = False) -> int:
        """Give waiting memories their vectors with a local service; a remote one only if asked."""
        meaning, _ = self._meaning()
        if meaning is None or not (meaning.embedder.service.local or remote):
            return 0
        return self._parts().worker.run(kinds=("embed",)).done

    def retry_jobs(self, *, user: str, job_id: int | None = None, failed_only: bool = False) -> int:
        """Put failed and waiting jobs, or only the failed ones, first in line again; how many."""
        with self._database.write() as tx:
            return jobs.retry(tx, self._clock(), user=user, job_id=job_id, failed_only=failed_only)

    def work_is_due(self, *, user: str) -> bool:
        """Whether the queue holds work of the user that could be done now."""
        with self._database.read() as tx:
            user = Scope(user).user
            return bool(
                jobs.due_kinds(tx, user, self._clock()) or job_holders.dead_holders(tx, user)
            )

    def usage(self, *, user: str, session_id: int | None = None) -> list[UsageTotal]:
        """Tokens and cost by purpose and model."""
        with self._database.read() as tx:
            return usage.totals(tx, Scope(user).user, session_id)
