"""Embedding jobs, run in batches of about a hundred texts, of facts, conversations or notes alike.

Each step of the pipeline writes the finished batches and claims the next jobs in one transaction. A
backfill queues all that lacks a vector and goes through the same queue, so that workers may help, a
killed run goes on where it was, and what fails has its reason there.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, get_args

from memchat.config import Settings
from memchat.db import Tx, jobs, usage
from memchat.db.database import Database
from memchat.db.jobs import Claim
from memchat.errors import MemChatError, ProviderError, origin
from memchat.notes import rows
from memchat.notes.index import Cutter, fit
from memchat.providers.embedders import plugin_errors
from memchat.providers.litellm_calls import PauseRequested
from memchat.search import passages, services, turns
from memchat.search.batches import (
    BatchSplitter,
    EmbeddingAnswer,
    Finished,
    Made,
    Pipeline,
    requested_pause,
)
from memchat.search.embed import EmbeddingSpace
from memchat.search.passages import JobKind
from memchat.types import Job, OnProgress, Progress, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors


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

EMBEDDING_KINDS: tuple[JobKind, ...] = get_args(JobKind)
BATCH = 100
"""Texts in one batch."""
CONVERSATIONS = 5
"""Conversations claimed for one batch; each has some dozens of texts."""
PAUSES = 4
LONGEST_PAUSE = 120.0
"""Seconds; ``PAUSES`` of them in a row end before the lease of the jobs does."""

ClaimJobs = Callable[[Tx, int, int], list[Claim]]
"""Claims jobs in a transaction: at most so many, in batches of so many."""


@dataclass(slots=True)
class EmbeddingBatch:
    """Claimed jobs, and for each target the texts without a vector, by their hash."""

    claims: list[Claim]
    lacking: dict[int, dict[str, str]]
    more: bool = False
    """Whether more jobs may be due after these."""
    alone: bool = False
    """Whether it failed so often that it runs without other batches beside it."""

    @property
    def texts(self) -> dict[str, str]:
        """Each text once, by hash."""
        return {key: text for texts in self.lacking.values() for key, text in texts.items()}


@dataclass(slots=True)
class EmbeddingResult:
    """Outcome of a run: jobs done and failed by id, and how many texts were embedded and failed."""

    done: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
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
    """One run over the due jobs of a kind: ``embed`` for facts, ``index`` for conversations,
    ``note`` for notes."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    space: EmbeddingSpace
    kind: JobKind
    batch: int = BATCH
    on_progress: Callable[[EmbeddingResult], None] = lambda _: None
    """Called after each batch, in the thread that wrote it."""
    wait: Callable[[float], bool] | None = None
    """Waits a number of seconds where the service asks for a pause; true where the wait was
    interrupted. Without it the run ends there, and its jobs are tried again later."""
    news: FailureNews = field(default_factory=FailureNews)
    """What was logged by the runs before."""
    claimed_jobs: dict[int, Claim] = field(default_factory=dict)
    result: EmbeddingResult = field(default_factory=EmbeddingResult)
    _lease_renewed_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._lease_renewed_at = self.clock()

    def run(self, claim: ClaimJobs) -> EmbeddingResult:
        """Embed until ``claim`` gives no more jobs or the service fails.

        Jobs that are claimed when this is interrupted are released, and the try is not counted.
        """
        splitter = BatchSplitter(self._embed, self.batch)
        service = self.space.embedder.service
        step = partial(self._step, claim)
        try:
            self.result.down = Pipeline(service, splitter, step, self._pause_granted).run()
        finally:
            if self.claimed_jobs:
                with self.database.write() as tx:
                    jobs.release(tx, list(self.claimed_jobs.values()))
        return self.result

    def _embed(self, texts: Mapping[str, str]) -> Made:
        def as_provider_error(kind: str) -> ProviderError:
            # A bug: recorded with the jobs by its class, as the worker does with all others.
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
            changed = services.in_use(tx) != self.space.service_id
            self._renew_leases(tx)
            if wanted > 0 and not changed:  # else the next run embeds for the new service
                claims = claim(tx, wanted * self._size, self._size)
                taken = self._look_up(tx, claims, wanted * self._size)
        # Only now that the transaction is committed.
        for claimed in whole.claims:
            if self.claimed_jobs.get(claimed.id) == claimed:  # else it was lost and claimed again
                del self.claimed_jobs[claimed.id]
        self.claimed_jobs.update({claimed.id: claimed for claimed in claims})
        if finished:
            self._count(outcome)
        return taken

    def _renew_leases(self, tx: Tx) -> None:
        """Renew the leases of the claimed jobs in time, as a model may be slow: a job whose lease
        ran out can be claimed again, also by this run."""
        now, lease = self.clock(), timedelta(seconds=jobs.LEASE_SECONDS)
        if now - self._lease_renewed_at >= lease / 4:
            jobs.renew_all(tx, list(self.claimed_jobs.values()), now + lease)
            self._lease_renewed_at = now

    @property
    def _size(self) -> int:
        return CONVERSATIONS if self.kind == "index" else self.batch

    def _look_up(self, tx: Tx, claims: list[Claim], asked: int) -> list[EmbeddingBatch]:
        """The claimed jobs in batches, with the texts they need embedded."""
        if not claims:
            return []
        targets = [claimed.target_id for claimed in claims]
        if self.kind == "note":
            self._fit_notes(tx, targets)
        if self.kind == "index":
            for session_id in turns.unwritten(tx, targets):
                turns.write(tx, session_id)
        lacking = passages.lacking(tx, self.space.service_id, self.kind, targets)
        alone = claims[0].attempt > jobs.FULL_TRIES
        more = alone or len(claims) == asked
        batches: list[EmbeddingBatch] = []
        room = 0
        for claimed in claims:
            texts = lacking.get(claimed.target_id, {})
            if not batches or len(texts) > room:
                batches.append(EmbeddingBatch([], {}, more, alone))
                room = self.batch
            batches[-1].claims.append(claimed)
            batches[-1].lacking[claimed.target_id] = texts
            room -= max(1, len(texts))
        return batches

    def _fit_notes(self, tx: Tx, note_ids: Sequence[int]) -> None:
        """Cut notes anew of which the model cannot read a chunk whole."""
        cutter = Cutter(self.space.embedder)
        for note_id in passages.lacking(tx, self.space.service_id, "note", note_ids):
            # A tokenizer that cannot be read fails the texts too, when they are sent.
            with suppress(MemChatError):
                fit(tx, note_id, cutter, self.clock())

    def _write(self, tx: Tx, batch: EmbeddingBatch, answer: EmbeddingAnswer) -> EmbeddingResult:
        now = self.clock()
        faults = {
            target: next(answer.faults[key] for key in texts if key in answer.faults)
            for target, texts in batch.lacking.items()
            if answer.faults.keys() & texts.keys()
        }
        good = [c for c in batch.claims if c.target_id not in faults]
        bad = [c for c in batch.claims if c.target_id in faults]
        done = jobs.finish_all(tx, good, now)
        bad = jobs.still_held(tx, bad)
        keys = [key for c in [*done, *bad] for key in batch.lacking.get(c.target_id, ())]
        self._keep(tx, done, {k: answer.vectors[k] for k in keys if k in answer.vectors}, now)
        reasons: dict[str, tuple[MemChatError, list[int]]] = {}
        for claimed in bad:
            if isinstance(faults[claimed.target_id], PauseRequested):
                jobs.release(tx, [claimed])  # the texts were not sent
            else:
                reason = fail_job(tx, claimed, faults[claimed.target_id], now, self.settings)
                reasons.setdefault(reason, (faults[claimed.target_id], []))[1].append(claimed.id)
        for error, ids in reasons.values():
            log.info("%s: jobs failed %s: %s", self.kind, _ids(ids), error)
        self._record_usage(tx, batch, answer, now)
        made = sum(key in answer.vectors for key in keys)
        faulty = sum(key in answer.faults for key in keys)
        result = EmbeddingResult([c.id for c in done], [c.id for c in bad], made, faulty)
        if self.kind == "note":
            result.lengths = rows.lengths(tx, [c.target_id for c in done])
            result.reasons = {c.target_id: faults[c.target_id] for c in bad}
        return result

    def _keep(
        self, tx: Tx, done: Sequence[Claim], vectors: Mapping[str, Vectors], now: datetime
    ) -> None:
        """Store the vectors, also those of texts whose job failed by another one. What is done and
        lacks one still is queued again: a text, or the service in use, was changed meanwhile."""
        service_id, in_use = self.space.service_id, services.in_use(tx)
        if in_use == service_id:
            passages.keep_vectors(tx, service_id, vectors, now)
        targets = {claimed.target_id: claimed.app_id for claimed in done}
        for target in passages.lacking(tx, in_use or service_id, self.kind, targets):
            jobs.enqueue(tx, self.kind, targets[target], target, now)

    def _record_usage(
        self, tx: Tx, batch: EmbeddingBatch, answer: EmbeddingAnswer, now: datetime
    ) -> None:
        """Divide the cost among the apps by the length of their texts."""
        sizes: dict[int, int] = {}
        for claimed in batch.claims:
            texts = batch.lacking.get(claimed.target_id, {})
            size = sum(len(text) for key, text in texts.items() if key in answer.vectors)
            sizes[claimed.app_id] = sizes.get(claimed.app_id, 0) + size
        total = sum(sizes.values())
        for spent in answer.spent:
            for app_id, size in sizes.items():
                if size:
                    usage.add(tx, app_id, None, _part(spent, size / total), now)

    def _count(self, before: EmbeddingResult) -> None:
        result = self.result
        result.done += before.done
        result.failed += before.failed
        result.embedded += before.embedded
        result.faulty += before.faulty
        said = "%s: jobs done %s; failed %s; texts %d"
        log.info(said, self.kind, _ids(before.done), _ids(before.failed), before.embedded)
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
    whole, answers = EmbeddingBatch([], {}), EmbeddingAnswer()
    for batch, answer in finished:
        whole.claims += batch.claims
        whole.lacking |= batch.lacking
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


def _ids(ids: Sequence[int]) -> str:
    """Numbers for a log line: the first and last of many."""
    if not ids:
        return "none"
    return str(ids[0]) if len(ids) == 1 else f"{min(ids)}–{max(ids)} ({len(ids)})"


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
    claims: Callable[[JobKind, datetime], ClaimJobs]
    """Gives a function that claims jobs of a kind that were due by a time."""
    wait: Callable[[float], bool]
    """Waits a number of seconds; true where the wait was interrupted."""

    def run(self, batch: int, on_progress: OnProgress) -> BackfillResult:
        """Embed every text without a vector, by ``batch`` texts; each is tried once."""
        began, started = self.clock(), time.monotonic()
        with self.database.write() as tx:
            total = passages.count_lacking(tx, self.space.service_id)
            if total:
                passages.queue_lacking(tx, self.space.service_id, began)
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
            left = passages.count_lacking(tx, self.space.service_id)
            failed = jobs.by_ids(tx, [i for one in runs for i in one.failed], self.clock())
        # A text counts wherever it occurs, though it is embedded once.
        done, down = max(0, total - left), runs[-1].down
        faulty = sum(one.faulty for one in runs)
        on_progress(Progress(done, total, time.monotonic() - started, failed=faulty))
        return BackfillResult(total, done, left, tuple(failed), None if down is None else str(down))


def _progress(total: int, runs: list[EmbeddingResult], seconds: float) -> Progress:
    embedded, faulty = sum(run.embedded for run in runs), sum(run.faulty for run in runs)
    pause = runs[-1].pause if runs else None
    return Progress(embedded, total, seconds, failed=faulty, pause=pause)
