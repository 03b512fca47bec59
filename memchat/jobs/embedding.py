"""Makes the vectors of passages that wait in the queue, in batches of about a hundred texts.

Each step of the pipeline writes the finished batches and claims the next passages in one
transaction. A backfill queues all that lacks a vector and goes through the same queue, so that
workers may help, a killed run goes on where it was, and what fails has its reason there.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

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
    BatchSplitter,
    EmbeddingAnswer,
    EmbeddingSpace,
    Finished,
    Made,
    Pipeline,
    requested_pause,
)
from memchat.types import Job, OnProgress, Progress, Usage

if TYPE_CHECKING:
    pass


class FailureNews:
    """The reasons for which texts could not be embedded since the last one that could."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def is_new(self, reason: str) -> bool:
        """Whether this reason was not given before; from now on it was."""
        new = reason not in self._known
        self._known.add(reason)
        return new

    def end(self) -> None:
        """A text was embedded: the next failure is new again."""
        self._known.clear()


def fail_job(tx: Tx, claimed: Claim, error: Exception, now: datetime, settings: Settings) -> str:
    """Record a failed try and give its reason: the message of one of memchat's own errors, else the
    error's class alone, as its text may hold what a user wrote."""
    reason = str(error) if isinstance(error, MemChatError) else type(error).__name__
    provider = error if isinstance(error, ProviderError) else None
    jobs.fail(
        tx,
        claimed,
        now,
        reason,
        code=(provider.status or 1) if provider else 1,
        retry_after=provider.retry_after if provider else None,
        retry_minutes=settings.retry_minutes,
    )
    return reason


log = logging.getLogger(__name__)

BATCH = 100
"""Texts in one batch."""
PAUSES = 4
LONGEST_PAUSE = 120.0
"""Seconds; ``PAUSES`` of them in a row end before the lease of the passages does."""

ClaimJobs = Callable[[Tx, int, int], list[Claim]]
"""Claims passages in a transaction: at most so many, in batches of so many."""


@dataclass(slots=True)
class EmbeddingBatch:
    """Claimed passages, with the hash of each by its id, and the texts without a vector by hash."""

    claims: list[Claim]
    hashes: dict[int, str]
    texts: dict[str, str]
    more: bool = False
    """Whether more may be due after these."""
    alone: bool = False
    """Whether it failed so often that it runs without other batches beside it."""


@dataclass(slots=True)
class EmbeddingResult:
    """Outcome of a run: what is done and what failed, and how many texts were embedded and
    failed."""

    done: int = 0
    failed: list[Claim] = field(default_factory=list)
    embedded: int = 0
    faulty: int = 0
    lengths: dict[int, int] = field(default_factory=dict)
    """The characters of each note that is done, by its id; for the log."""
    reasons: dict[int, MemChatError] = field(default_factory=dict)
    """Why notes failed, by their ids."""
    down: Exception | None = None
    """The error that ended the run early."""
    pause: float | None = None
    """Seconds of the pause that the service asked for, while it lasts."""


@dataclass(slots=True)
class EmbeddingRun:
    """One run over the passages that are due."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    space: EmbeddingSpace
    batch: int = BATCH
    on_progress: Callable[[EmbeddingResult], None] = lambda _: None
    """Called after each batch, in the thread that wrote it."""
    wait: Callable[[float], bool] | None = None
    """Waits a number of seconds where the service asks for a pause; true where the wait was
    interrupted. Without it the run ends there, and what it claimed is tried again later."""
    news: FailureNews = field(default_factory=FailureNews)
    """What was logged by the runs before."""
    claimed: dict[int, Claim] = field(default_factory=dict)
    result: EmbeddingResult = field(default_factory=EmbeddingResult)
    _lease_renewed_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._lease_renewed_at = self.clock()

    def run(self, claim: ClaimJobs) -> EmbeddingResult:
        """Embed until ``claim`` gives no more passages or the service fails.

        Those that are claimed when this is interrupted are released, and the try is not counted.
        """
        splitter = BatchSplitter(self._embed, self.batch)
        service = self.space.embedder.service
        step = partial(self._step, claim)
        try:
            self.result.down = Pipeline(service, splitter, step, self._pause_granted).run()
        finally:
            if self.claimed:
                with self.database.write() as tx:
                    jobs.release(tx, list(self.claimed.values()))
        return self.result

    def _embed(self, texts: Mapping[str, str]) -> Made:
        def as_provider_error(kind: str) -> ProviderError:
            # A bug: recorded with the texts by its class, as the worker does with jobs.
            error = sys.exception()
            why = origin(error) if error is not None else kind
            log.error("%d texts were not embedded: %s", len(texts), why)
            return ProviderError(kind)

        with plugin_errors(as_provider_error):
            return self.space.embed(texts)

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

    def _step(
        self, claim: ClaimJobs, finished: Finished[EmbeddingBatch], wanted: int
    ) -> list[EmbeddingBatch]:
        """Write the finished batches and claim ``wanted`` new ones, in one transaction."""
        if not finished and wanted <= 0:
            return []
        whole, answer = _merged(finished)
        outcome, claims, taken = EmbeddingResult(), [], []
        with self.database.write() as tx:
            if finished:
                outcome = self._write(tx, whole, answer)
            changed = embeddings.in_use(tx) != self.space.service_id
            self._renew_leases(tx)
            if wanted > 0 and not changed:  # else the next run embeds for the new service
                claims = claim(tx, wanted * self.batch, self.batch)
                taken = self._look_up(tx, claims, wanted * self.batch)
        # Only now that the transaction is committed.
        for claimed in whole.claims:
            if self.claimed.get(claimed.id) == claimed:  # else it was lost and claimed again
                del self.claimed[claimed.id]
        self.claimed.update({c.id: c for batch in taken for c in batch.claims})
        if finished:
            self._count(outcome)
        return taken

    def _renew_leases(self, tx: Tx) -> None:
        """Renew the leases in time, as a model may be slow: a passage whose lease ran out can be
        claimed again, also by this run."""
        now, lease = self.clock(), timedelta(seconds=jobs.LEASE_SECONDS)
        if now - self._lease_renewed_at >= lease / 4:
            jobs.renew_all(tx, list(self.claimed.values()), now + lease)
            self._lease_renewed_at = now

    def _look_up(self, tx: Tx, claims: list[Claim], asked: int) -> list[EmbeddingBatch]:
        """The claimed passages in batches, with the texts that lack a vector."""
        if not claims:
            return []
        self._fit_notes(tx, {c.target_id for c in claims if c.kind == "note"})
        found = passages.to_embed(tx, self.space.service_id, [c.id for c in claims])
        alone = claims[0].attempt > jobs.FULL_TRIES
        # Those of a note that was cut anew are gone, and others came.
        more = alone or len(claims) == asked or len(found) < len(claims)
        there = [c for c in claims if c.id in found]
        batches = []
        for start in range(0, len(there) or 1, self.batch):
            some = there[start : start + self.batch]
            hashes = {c.id: found[c.id][0] for c in some}
            texts = {key: text for key, text in (found[c.id] for c in some) if text is not None}
            batches.append(EmbeddingBatch(some, hashes, texts, more, alone))
        return batches

    def _fit_notes(self, tx: Tx, note_ids: Iterable[int]) -> None:
        """Cut notes anew of which the model cannot read a chunk whole."""
        cutter = Cutter(self.space.embedder)
        for note_id in sorted(note_ids):
            # A tokenizer that cannot be read fails the texts too, when they are sent.
            with suppress(MemChatError):
                fit(tx, note_id, cutter)

    def _write(self, tx: Tx, batch: EmbeddingBatch, answer: EmbeddingAnswer) -> EmbeddingResult:
        """Store the vectors, and what became of each passage."""
        now, result = self.clock(), EmbeddingResult()
        self._record_usage(tx, batch, answer)
        if embeddings.in_use(tx) != self.space.service_id:
            jobs.release(tx, batch.claims)  # the next run embeds them for the other one
            return result
        held = jobs.still_held(tx, batch.claims)
        keys = {c: batch.hashes[c.id] for c in held}
        faults = {c: answer.faults[key] for c, key in keys.items() if key in answer.faults}
        vectors = {k: answer.vectors[k] for k in keys.values() if k in answer.vectors}
        _, result.done = passages.keep_vectors(tx, self.space.service_id, vectors)
        good = [c for c, key in keys.items() if key in vectors or key not in batch.texts]
        result.done += len(jobs.finish_all(tx, good, now))  # those that had their vector before
        # The same text was sent for another passage, which is not written yet, or failed.
        jobs.release(tx, [c for c in held if c not in good and c not in faults])
        result.embedded, result.faulty = len(vectors), len({keys[c] for c in faults})
        reasons: dict[str, tuple[MemChatError, list[int]]] = {}
        for claimed, error in faults.items():
            if isinstance(error, PauseRequested):
                jobs.release(tx, [claimed])  # the text was not sent
                continue
            result.failed.append(claimed)
            reason = fail_job(tx, claimed, error, now, self.settings)
            reasons.setdefault(reason, (error, []))[1].append(claimed.target_id)
        for error, ids in reasons.values():
            log.info("embedding failed %s: %s", _ids(ids), error)
        for kind in sorted({c.kind for c in held}):
            done = {c.target_id for c in good if c.kind == kind}
            failed = {c.target_id for c in result.failed if c.kind == kind}
            texts = {key for c, key in keys.items() if c.kind == kind and key in vectors}
            said = "%s: jobs done %s; failed %s; texts %d"
            log.info(said, kind, _ids(done), _ids(failed), len(texts))
        notes = {c.target_id for c in good if c.kind == "note"}
        result.lengths = rows.indexed(tx, notes) if notes else {}
        result.reasons = {c.target_id: faults[c] for c in result.failed if c.kind == "note"}
        return result

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

    def _count(self, before: EmbeddingResult) -> None:
        result = self.result
        result.done += before.done
        result.failed += before.failed
        result.embedded += before.embedded
        result.faulty += before.faulty
        result.lengths |= before.lengths
        result.reasons |= before.reasons
        for note_id, length in before.lengths.items():
            log.info("Indexed memo %d: %d characters", note_id, length)
        self._log_failures(before)
        self.on_progress(result)

    def _log_failures(self, before: EmbeddingResult) -> None:
        """A line for each reason why notes failed that is new."""
        if before.done:
            self.news.end()
        by_reason: dict[str, list[int]] = {}
        for note_id, error in before.reasons.items():
            by_reason.setdefault(str(error), []).append(note_id)
        for reason, (first, *others) in by_reason.items():
            if self.news.is_new(reason):
                more = f" and {len(others)} more" if others else ""
                # The error itself, so that a log may name it without its text.
                log.warning("Failed to index memo %d%s: %s", first, more, before.reasons[first])


def _merged(finished: Finished[EmbeddingBatch]) -> tuple[EmbeddingBatch, EmbeddingAnswer]:
    """Several batches as one, as one write of all takes half the time."""
    whole, answers = EmbeddingBatch([], {}, {}), EmbeddingAnswer()
    for batch, answer in finished:
        whole.claims += batch.claims
        whole.hashes |= batch.hashes
        whole.texts |= batch.texts
        answers.vectors |= answer.vectors
        answers.faults |= answer.faults
        answers.spent += answer.spent
    return whole, answers


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


@dataclass(frozen=True, slots=True)
class Backfill:
    """One backfill of a whole store."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    space: EmbeddingSpace
    claims: Callable[[datetime], ClaimJobs]
    """Gives a function that claims what was due by a time."""
    wait: Callable[[float], bool]
    """Waits a number of seconds; true where the wait was interrupted."""

    def run(self, batch: int, on_progress: OnProgress) -> BackfillResult:
        """Embed every text without a vector, by ``batch`` texts; each is tried once."""
        started = time.monotonic()
        with self.database.write() as tx:
            began = tx.now  # the jobs that are queued here are due then
            total = passages.count_lacking(tx, self.space.service_id)
            if total:
                passages.queue_lacking(tx, self.space.service_id)

        def report(now: EmbeddingResult) -> None:
            on_progress(_progress(total, now, time.monotonic() - started))

        report(EmbeddingResult())
        common = (self.database, self.settings, self.clock, self.space, batch, report, self.wait)
        run = EmbeddingRun(*common).run(self.claims(began))
        with self.database.read() as tx:
            left = passages.count_lacking(tx, self.space.service_id)
            failed = jobs.by_claims(tx, run.failed, self.clock())
        # A text counts wherever it occurs, though it is embedded once.
        done = max(0, total - left)
        on_progress(Progress(done, total, time.monotonic() - started, failed=run.faulty))
        stopped = None if run.down is None else str(run.down)
        return BackfillResult(total, done, left, tuple(failed), stopped)


def _progress(total: int, run: EmbeddingResult, seconds: float) -> Progress:
    return Progress(run.embedded, total, seconds, failed=run.faulty, pause=run.pause)
