"""Vectors for what waits for one: facts by the hundred, conversations by the handful.

A turn of the pipeline writes what is finished and claims the next jobs, in one transaction.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import MemChatError, ProviderError, origin
from memchat.memory.embedding.batch_split import BatchSplitter, EmbeddingAnswer, Made, asked_pause
from memchat.memory.embedding.pipeline import Finished, Pipeline
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.recall import turn_texts
from memchat.providers.failures import foreign
from memchat.providers.limits import Paused
from memchat.store import embeddings, jobs, memory_changes, services, usage
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
from memchat.types import Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

Kind = Literal["embed", "index"]
BATCH = 100
"""Texts that are sent together."""
CONVERSATIONS = 5
"""Conversations that are taken together; one holds some dozens of texts."""
PAUSES = 4
LONGEST_PAUSE = 120.0
"""Seconds; all pauses that are waited for in a row end before the jobs' lease does."""

Take = Callable[[Connection, int, int], list[Claim]]
"""Claims so many jobs at most, of a batch of so many."""


@dataclass(slots=True)
class EmbeddingBatch:
    """Jobs in hand, with the texts that they lack the vectors of, by hash, under their targets."""

    claims: list[Claim]
    lacking: dict[int, dict[str, str]]
    more: bool = False
    """Whether others may wait behind what was taken with it."""
    alone: bool = False
    """Whether it was tried in vain so often that nothing is taken beside it."""

    @property
    def texts(self) -> dict[str, str]:
        """Each text once, by hash."""
        return {key: text for texts in self.lacking.values() for key, text in texts.items()}


@dataclass(slots=True)
class Embedded:
    """What came of a run: jobs done, and those that failed this time; texts that were made, and
    those that could not be."""

    done: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    made: int = 0
    faulty: int = 0
    down: Exception | None = None
    """Why the service was asked no more."""
    pause: float | None = None
    """Seconds that are being waited, as the service asked."""


@dataclass(slots=True)
class Embedding:
    """One run over the waiting jobs of a kind: "embed" for facts, "index" for conversations."""

    database: Database
    settings: Settings
    clock: Callable[[], datetime]
    meaning: EmbeddingSpace
    kind: Kind
    batch: int = BATCH
    seen: Callable[[Embedded], None] = lambda _: None
    """Told after each batch how far the run is, in whatever thread wrote it."""
    wait: Callable[[float], bool] | None = None
    """Waits for a service that wants a pause, so many seconds, and says whether that was broken
    off; without it the run ends there, and what was tried is tried again later."""
    in_hand: dict[int, Claim] = field(default_factory=dict)
    result: Embedded = field(default_factory=Embedded)
    _held_since: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._held_since = self.clock()

    def run(self, take: Take) -> Embedded:
        """Embed until ``take`` gives no more jobs, or the service fails.

        What is in hand when this is broken off is given back, without counting the try.
        """
        asking = BatchSplitter(self._embed, self.batch)
        service = self.meaning.embedder.service
        turn = partial(self._turn, take)
        try:
            self.result.down = Pipeline(service, asking, turn, self._waited).run()
        finally:
            if self.in_hand:
                with self.database.write() as tx:
                    jobs.release(tx, list(self.in_hand.values()))
        return self.result

    def _embed(self, texts: Mapping[str, str]) -> Made:
        def told(kind: str) -> ProviderError:
            # A fault of ours: kept with the jobs, by its class alone, as the worker does with all.
            error = sys.exception()
            why = origin(error) if error is not None else kind
            log.error("%d texts were not embedded: %s", len(texts), why)
            return ProviderError(kind)

        with foreign(told):
            return self.meaning.embed(texts)

    def _waited(self, error: MemChatError, times: int) -> bool:
        """Whether the service wanted a pause, and it was given one."""
        pause = asked_pause(error)
        if self.wait is None or times >= PAUSES or pause is None or pause > LONGEST_PAUSE:
            return False
        self.result.pause = pause
        self.seen(self.result)
        broken_off = self.wait(pause)
        self.result.pause = None
        return not broken_off

    def _turn(
        self, take: Take, finished: Finished[EmbeddingBatch], wanted: int
    ) -> list[EmbeddingBatch]:
        """Write what is finished and take so many batches, in one transaction."""
        if not finished and wanted <= 0:
            return []
        whole, answer = _together(finished)
        outcome, claims, taken = Embedded(), [], []
        with self.database.write() as tx:
            if finished:
                outcome = self._write(tx, whole, answer)
            changed = services.in_use(tx) != self.meaning.service_id
            self._hold(tx)
            if wanted > 0 and not changed:  # else the next run makes the other service's vectors
                claims = take(tx, wanted * self._size, self._size)
                taken = self._look_up(tx, claims, wanted * self._size)
        # Only now, when it is committed.
        for claimed in whole.claims:
            if self.in_hand.get(claimed.id) == claimed:  # else it was lost, and taken again
                del self.in_hand[claimed.id]
        self.in_hand.update({claimed.id: claimed for claimed in claims})
        if finished:
            self._count(outcome)
        return taken

    def _hold(self, tx: Connection) -> None:
        """Hold on to what is in hand where a model is slow, or the machine slept: a lease that ran
        out would give it to others, and to this run again."""
        now, lease = self.clock(), timedelta(seconds=jobs.LEASE_SECONDS)
        if now - self._held_since >= lease / 4:
            jobs.renew_all(tx, list(self.in_hand.values()), now + lease)
            self._held_since = now

    @property
    def _size(self) -> int:
        return self.batch if self.kind == "embed" else CONVERSATIONS

    def _look_up(self, tx: Connection, claims: list[Claim], asked: int) -> list[EmbeddingBatch]:
        """The claims in batches, with what they lack."""
        if not claims:
            return []
        targets = [claimed.target_id for claimed in claims]
        zone, service_id = self.settings.zone, self.meaning.service_id
        if self.kind == "embed":
            missing = embeddings.missing(tx, service_id, targets)
            lacking = {target: {key: text} for target, _, text, key in missing}
        else:
            lacking = {
                target: turn_texts.lacking(tx, target, zone, service_id) for target in targets
            }
        alone = claims[0].attempt > jobs.FULL_TRIES
        more = alone or len(claims) == asked
        batches = []
        for i in range(0, len(claims), self._size):
            some = claims[i : i + self._size]
            theirs = {c.target_id: lacking[c.target_id] for c in some if c.target_id in lacking}
            batches.append(EmbeddingBatch(some, theirs, more, alone))
        return batches

    def _write(self, tx: Connection, batch: EmbeddingBatch, answer: EmbeddingAnswer) -> Embedded:
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
        if self.kind == "embed":
            self._write_facts(tx, done, answer.vectors, now)
        else:
            zone, service_id = self.settings.zone, self.meaning.service_id
            for claimed in [*done, *bad]:
                turn_texts.write(tx, claimed.target_id, zone, service_id, answer.vectors, now)
        reasons: dict[str, list[int]] = {}
        for claimed in bad:
            if isinstance(faults[claimed.target_id], Paused):
                jobs.release(tx, [claimed])  # nothing was tried
            else:
                reason = fail(tx, claimed, faults[claimed.target_id], now, self.settings)
                reasons.setdefault(reason, []).append(claimed.id)
        for reason, ids in reasons.items():
            log.info("%s: jobs failed %s: %s", self.kind, _ids(ids), reason)
        self._keep_usage(tx, batch, answer, now)
        keys = [key for c in [*done, *bad] for key in batch.lacking.get(c.target_id, ())]
        made = sum(key in answer.vectors for key in keys)
        faulty = sum(key in answer.faults for key in keys)
        return Embedded([c.id for c in done], [c.id for c in bad], made, faulty)

    def _write_facts(
        self, tx: Connection, done: Sequence[Claim], vectors: Mapping[str, Vectors], now: datetime
    ) -> None:
        service_id = self.meaning.service_id
        in_use = services.in_use(tx)
        still = embeddings.missing(
            tx, in_use or service_id, [claimed.target_id for claimed in done]
        )
        made = {key: vectors[key] for _, _, _, key in still if key in vectors}
        if in_use != service_id:
            made = {}  # the service was changed or removed while they were made
        embeddings.put(tx, service_id, made.items(), now)
        changed = {memory_id for memory_id, _, _, key in still if key not in made}
        # Also one whose text had its vector already: its shard has yet to hear of it.
        written = [c.target_id for c in done if c.target_id not in changed]
        memory_changes.mark_embedded(tx, written, Cause(now, "system"))
        for memory_id, app_id, _, _ in still:
            if memory_id in changed:
                # Its words, or the service in use, changed while their vector was made.
                jobs.enqueue(tx, "embed", app_id, memory_id, now)

    def _keep_usage(
        self, tx: Connection, batch: EmbeddingBatch, answer: EmbeddingAnswer, now: datetime
    ) -> None:
        """Each app bears the part of the cost that its part of the texts is."""
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

    def _count(self, before: Embedded) -> None:
        result = self.result
        result.done += before.done
        result.failed += before.failed
        result.made += before.made
        result.faulty += before.faulty
        log.info(
            "%s: jobs done %s; failed %s; texts %d",
            self.kind,
            _ids(before.done),
            _ids(before.failed),
            before.made,
        )
        self.seen(result)


def _together(finished: Finished[EmbeddingBatch]) -> tuple[EmbeddingBatch, EmbeddingAnswer]:
    """Several batches as one: it costs half to write them so."""
    whole, all_of_it = EmbeddingBatch([], {}), EmbeddingAnswer()
    for batch, answer in finished:
        whole.claims += batch.claims
        whole.lacking |= batch.lacking
        all_of_it.vectors |= answer.vectors
        all_of_it.faults |= answer.faults
        all_of_it.spent += answer.spent
    return whole, all_of_it


def fail(
    tx: Connection, claimed: Claim, error: Exception, now: datetime, settings: Settings
) -> str:
    """Note why a job failed, in a person's words or, for a fault of ours, by its class alone."""
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
