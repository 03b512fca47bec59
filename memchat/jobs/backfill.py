"""Vectors for all that has none: what was kept before there was a service, or while it was away.

It goes through the queue like all other work, so workers may help, a killed run goes on where it
was, and what fails has its reason there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memchat.config import Settings
from memchat.jobs.embedding_run import (
    EMBEDDING_KINDS,
    ClaimJobs,
    EmbeddingResult,
    EmbeddingRun,
    Kind,
)
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.store import job_lists, unembedded
from memchat.store.database import Database
from memchat.types import Job, OnProgress, Progress


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """Counts of one backfill."""

    total: int
    """Texts that had no vector at the start."""
    done: int
    left: int
    """Texts that still have none: they failed, or another worker has claimed them."""
    failed: tuple[Job, ...]
    """The jobs that failed, with the reason and the time of the next try."""
    stopped: str | None
    """Why the run ended early, or None."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """One backfill of a whole store."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    space: EmbeddingSpace
    claims: Callable[[Kind, datetime], ClaimJobs]
    """Gives a function that claims jobs of a kind that were due by a time."""
    wait: Callable[[float], bool]
    """Waits a number of seconds; true where the wait was interrupted."""

    def run(self, batch: int, on_progress: OnProgress) -> BackfillResult:
        """Embed every text without a vector, by ``batch`` texts; each is tried once."""
        began, started = self.clock(), time.monotonic()
        with self.database.write() as tx:
            total = unembedded.count(tx, self.space.service_id)
            if total:
                unembedded.enqueue_all(tx, self.space.service_id, began)
        runs: list[EmbeddingResult] = []

        def report(*now: EmbeddingResult) -> None:
            on_progress(_progress(total, [*runs, *now], time.monotonic() - started))

        report()
        for kind in EMBEDDING_KINDS:
            embedding = EmbeddingRun(
                self.database,
                self.settings,
                self.clock,
                self.space,
                kind,
                batch=batch,
                on_progress=report,
                wait=self.wait,
            )
            found = embedding.run(self.claims(kind, began))
            runs.append(found)
            if found.down is not None:
                break
        with self.database.read() as tx:
            left = unembedded.count(tx, self.space.service_id)
            failed = job_lists.by_ids(tx, [i for one in runs for i in one.failed], self.clock())
        # A text counts wherever it occurs, though it is embedded once.
        done, down = max(0, total - left), runs[-1].down
        faulty = sum(one.faulty for one in runs)
        on_progress(Progress(done, total, time.monotonic() - started, failed=faulty))
        return BackfillResult(total, done, left, tuple(failed), None if down is None else str(down))


def _progress(total: int, runs: list[EmbeddingResult], seconds: float) -> Progress:
    embedded, faulty = sum(run.embedded for run in runs), sum(run.faulty for run in runs)
    pause = runs[-1].pause if runs else None
    return Progress(embedded, total, seconds, failed=faulty, pause=pause)
