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
from memchat.jobs.embed import Embedded, Embedding, Kind, Take
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.store import job_lists, unembedded
from memchat.store.database import Database
from memchat.types import Job, Progress

KINDS: tuple[Kind, ...] = ("embed", "index")


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What came of it."""

    total: int
    """Texts that had no vector at the start."""
    done: int
    left: int
    """Texts that have none now: they failed, or another worker is at them."""
    failed: tuple[Job, ...]
    """The jobs that did not succeed; they have their reason, and when they are tried again."""
    stopped: str | None
    """Why the service was asked no more, where it was not done."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """One run over a whole store."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    meaning: EmbeddingSpace
    taking: Callable[[Kind, datetime], Take]
    """Gives what claims jobs of a kind that were due at a moment."""
    wait: Callable[[float], bool]
    """Waits so many seconds and says whether that was broken off."""

    def run(self, batch: int, seen: Callable[[Progress], None]) -> Backfilled:
        """Embed all that is lacking, by ``batch`` texts; each is tried once."""
        began, started = self.clock(), time.monotonic()
        with self.database.write() as tx:
            total = unembedded.count(tx, self.meaning.service_id)
            if total:
                unembedded.enqueue_all(tx, self.meaning.service_id, began)
        runs: list[Embedded] = []

        def tell(*now: Embedded) -> None:
            seen(_progress(total, [*runs, *now], time.monotonic() - started))

        tell()
        for kind in KINDS:
            embedding = Embedding(
                self.database,
                self.settings,
                self.clock,
                self.meaning,
                kind,
                batch=batch,
                seen=tell,
                wait=self.wait,
            )
            found = embedding.run(self.taking(kind, began))
            runs.append(found)
            if found.down is not None:
                break
        with self.database.read() as tx:
            left = unembedded.count(tx, self.meaning.service_id)
            failed = job_lists.by_ids(tx, [i for one in runs for i in one.failed], self.clock())
        # The same words count wherever they occur, though they are made once.
        done, down = max(0, total - left), runs[-1].down
        faulty = sum(one.faulty for one in runs)
        seen(Progress(done, total, time.monotonic() - started, failed=faulty))
        return Backfilled(total, done, left, tuple(failed), None if down is None else str(down))


def _progress(total: int, runs: list[Embedded], seconds: float) -> Progress:
    made, faulty = sum(run.made for run in runs), sum(run.faulty for run in runs)
    pause = runs[-1].pause if runs else None
    return Progress(made, total, seconds, failed=faulty, pause=pause)
