"""Makes the vectors of passages that wait in the queue, in batches of about a hundred texts.

Each round claims passages, asks the service, and writes what it answered.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from memchat.config import Settings
from memchat.db import Tx, jobs, usage
from memchat.db.database import Database
from memchat.db.jobs import Claim
from memchat.errors import MemChatError, ProviderError, origin
from memchat.notes import rows
from memchat.notes.index import Cutter, fit
from memchat.providers.embedders import plugin_errors
from memchat.providers.litellm_calls import PauseRequested
from memchat.search import embeddings, passages
from memchat.search.embed import (
    EmbeddingAnswer,
    EmbeddingRounds,
    EmbeddingSpace,
    Made,
    embed_documents,
    requested_pause,
)
from memchat.types import Job, Usage


def fail_job(tx: Tx, claimed: Claim, error: Exception, settings: Settings) -> None:
    """Record a failed try and its reason: the message of one of memchat's own errors, else the
    error's class alone, as its text may hold what a user wrote."""
    reason = str(error) if isinstance(error, MemChatError) else type(error).__name__
    provider = error if isinstance(error, ProviderError) else None
    jobs.fail(
        tx,
        claimed,
        tx.now,
        reason,
        code=(provider.status or 1) if provider else 1,
        retry_after=provider.retry_after if provider else None,
        retry_minutes=settings.retry_minutes,
    )


log = logging.getLogger(__name__)

BATCH = 100
"""Texts in one batch."""
PAUSES = 4
LONGEST_PAUSE = 120.0
"""Seconds; ``PAUSES`` of them in a row end before the lease of the passages does."""

ClaimJobs = Callable[[Tx, int, int], list[Claim]]
"""Claims passages in a transaction: at most so many, in batches of so many."""


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Claimed passages, with the hash of each by its id, and the texts without a vector by hash."""

    claims: list[Claim]
    hashes: dict[int, str]
    texts: dict[str, str]


@dataclass(slots=True)
class EmbeddingResult:
    """Outcome of a run: what is done and what failed, and how many texts were embedded and
    failed."""

    done: int = 0
    failed: list[Claim] = field(default_factory=list)
    embedded: int = 0
    faulty: int = 0
    notes: set[int] = field(default_factory=set)
    """The ids of notes that are done or failed."""
    down: Exception | None = None
    """The error that ended the run early."""
    pause: float | None = None
    """Seconds of the pause that the service asked for, while it lasts."""


@dataclass(slots=True)
class EmbeddingRun:
    """One run over the passages that are due."""

    database: Database
    settings: Settings
    space: EmbeddingSpace
    batch: int = BATCH
    on_progress: Callable[[EmbeddingResult], None] = lambda _: None
    """Called after each batch, in the thread that wrote it."""
    wait: Callable[[float], bool] | None = None
    """Waits a number of seconds where the service asks for a pause; true where the wait was
    interrupted. Without it the run ends there, and what it claimed is tried again later."""
    news: set[str] = field(default_factory=set)
    """The reasons that were logged since a text was last embedded, by the runs before too."""
    result: EmbeddingResult = field(default_factory=EmbeddingResult)

    def run(self, claim: ClaimJobs) -> EmbeddingResult:
        """Embed until ``claim`` gives no more passages or the service fails.

        Those that are claimed when this is interrupted are released, and the try is not counted.
        """
        service = self.space.embedder.service
        rounds = EmbeddingRounds(service, self._embed, self.batch, self._pause_granted)
        while self.result.down is None and (batch := self._claimed(claim, rounds.size)):
            try:
                answer = rounds.ask(batch.texts)
                self._write(batch, answer)
            except BaseException:
                with self.database.write() as tx:
                    jobs.release(tx, batch.claims)
                raise
            self.result.down = answer.down
        return self.result

    def _embed(self, texts: Mapping[str, str]) -> Made:
        def as_provider_error(kind: str) -> ProviderError:
            # A bug: recorded with the texts by its class, as the worker does with jobs.
            error = sys.exception()
            why = origin(error) if error is not None else kind
            log.error("%d texts were not embedded: %s", len(texts), why)
            return ProviderError(kind)

        with plugin_errors(as_provider_error):
            return embed_documents(self.space.embedder, texts)

    def _pause_granted(self, error: MemChatError, times: int) -> bool:
        """Wait if the service asked for a pause; true once the pause is over."""
        pause = requested_pause(error)
        if self.wait is None or times >= PAUSES or pause is None or pause > LONGEST_PAUSE:
            return False
        self.result.pause = pause
        self.on_progress(self.result)
        interrupted = self.wait(pause)
        self.result.pause = None
        return not interrupted

    def _claimed(self, claim: ClaimJobs, limit: int) -> EmbeddingBatch | None:
        """So many passages, with the texts that lack a vector; None once nothing is due."""
        with self.database.write() as tx:
            if embeddings.in_use(tx) != self.space.service_id:
                return None  # the next run embeds for the other one
            claims = claim(tx, limit, self.batch)
            self._fit_notes(tx, {c.target_id for c in claims if c.kind == "note"})
            found = passages.to_embed(tx, self.space.service_id, [c.id for c in claims])
        if not claims:
            return None
        # Those of a note that was cut anew are gone, and others came.
        there = [c for c in claims if c.id in found]
        hashes = {i: hashed for i, (hashed, _) in found.items()}
        texts = {hashed: text for hashed, text in found.values() if text is not None}
        return EmbeddingBatch(there, hashes, texts)

    def _fit_notes(self, tx: Tx, note_ids: Iterable[int]) -> None:
        """Cut notes anew of which the model cannot read a chunk whole."""
        cutter = Cutter(self.space.embedder)
        for note_id in sorted(note_ids):
            # A tokenizer that cannot be read fails the texts too, when they are sent.
            with suppress(MemChatError):
                fit(tx, note_id, cutter)

    def _write(self, batch: EmbeddingBatch, answer: EmbeddingAnswer) -> None:
        """Store the vectors, and what became of each passage."""
        with self.database.write() as tx:
            self._record_usage(tx, batch, answer)
            if embeddings.in_use(tx) != self.space.service_id:
                jobs.release(tx, batch.claims)  # the next run embeds them for the other one
                return
            held = {c: batch.hashes[c.id] for c in jobs.still_held(tx, batch.claims)}
            vectors = {k: answer.vectors[k] for k in held.values() if k in answer.vectors}
            _, done = passages.keep_vectors(tx, self.space.service_id, vectors)
            faults = {c: answer.faults[key] for c, key in held.items() if key in answer.faults}
            good = [c for c in held if c not in faults]
            done += len(jobs.finish(tx, good, tx.now))  # those that had their vector
            unsent = [c for c, error in faults.items() if isinstance(error, PauseRequested)]
            jobs.release(tx, unsent)
            failed = {c: error for c, error in faults.items() if c not in unsent}
            for claimed, error in failed.items():
                fail_job(tx, claimed, error, self.settings)
            lengths = rows.indexed(tx, {c.target_id for c in good if c.kind == "note"})
        self.result.done += done
        self.result.failed += failed
        self.result.embedded += len(vectors)
        self.result.faulty += len({held[c] for c in faults})
        self.result.notes |= lengths.keys() | {c.target_id for c in failed if c.kind == "note"}
        if done:
            self.news.clear()
        self._log_failures(failed)
        for kind in sorted({c.kind for c in held}):
            ids = [{c.target_id for c in some if c.kind == kind} for some in (good, failed)]
            texts = {key for c, key in held.items() if c.kind == kind and key in vectors}
            said = "%s: jobs done %s; failed %s; texts %d"
            log.info(said, kind, *map(_ids, ids), len(texts))
        for note_id, length in lengths.items():
            log.info("Indexed memo %d: %d characters", note_id, length)
        self.on_progress(self.result)

    def _record_usage(self, tx: Tx, batch: EmbeddingBatch, answer: EmbeddingAnswer) -> None:
        """Divide the cost among the apps by the length of their texts."""
        sizes: dict[int, int] = {}
        for claimed in batch.claims:
            key = batch.hashes[claimed.id]
            size = len(batch.texts.get(key, "")) if key in answer.vectors else 0
            sizes[claimed.app_id] = sizes.get(claimed.app_id, 0) + size
        total = sum(sizes.values())
        for spent in answer.spent:
            for app_id, size in sizes.items():
                if size:
                    usage.add(tx, app_id, None, _part(spent, size / total))

    def _log_failures(self, failed: Mapping[Claim, MemChatError]) -> None:
        """A line for each reason, and a warning for one that is new, where it hit notes."""
        by_reason: dict[str, list[Claim]] = {}
        for claimed, error in failed.items():
            by_reason.setdefault(str(error), []).append(claimed)
        for reason, claims in by_reason.items():
            # The error itself, so that a log may name it without its text.
            error = failed[claims[0]]
            log.info("embedding failed %s: %s", _ids([c.target_id for c in claims]), error)
            notes = dict.fromkeys(c.target_id for c in claims if c.kind == "note")
            if notes and reason not in self.news:
                self.news.add(reason)
                first, *others = notes
                more = f" and {len(others)} more" if others else ""
                log.warning("Failed to index memo %d%s: %s", first, more, error)


def _part(spent: Usage, share: float) -> Usage:
    return replace(
        spent,
        prompt_tokens=round(spent.prompt_tokens * share),
        cost_usd=None if spent.cost_usd is None else spent.cost_usd * share,
        seconds=spent.seconds * share,
    )


def _ids(ids: Collection[int]) -> str:
    """Numbers for a log line: the first and last of many."""
    if not ids:
        return "none"
    return str(*ids) if len(ids) == 1 else f"{min(ids)}–{max(ids)} ({len(ids)})"


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """Counts of one backfill."""

    total: int
    """Texts that had no vector at the start."""
    done: int
    left: int
    """Texts that still have none: they failed, or another worker has claimed them."""
    failed: tuple[Job, ...]
    """The work that failed, with the reason and the time of the next try."""
    stopped: str | None
    """Why the run ended early, or None."""
