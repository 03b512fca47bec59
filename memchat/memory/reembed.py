"""Making a second service's vectors beside those in use, and changing to it when all are there.

Search goes on in the old service's vectors meanwhile, also for what is written now; that is caught
up with before the change. Each batch is a transaction of its own, so a killed run loses at most the
two in hand, and the next goes on behind it. The change itself is one row, in a transaction that
has seen that nothing is lacking.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat import processes
from memchat.config import Settings
from memchat.errors import InputError, ProviderError, StoreError
from memchat.memory import moments
from memchat.memory.meaning import shortened
from memchat.store import embeddings, gaps, messages, services, sessions
from memchat.store.database import Database
from memchat.store.gaps import KINDS, Gap, Kind
from memchat.types import Progress, Usage

if TYPE_CHECKING:
    from memchat.providers import Embedder, Vectors

log = logging.getLogger(__name__)

BATCH = 100
PASSES = 5
"""After so many times through the rows, the few that are still new are left to the queue."""
LEASE_SECONDS = 300.0
WAITS = (1, 2, 4, 8, 16)
"""Seconds before the next try where a provider is busy or fails; its own wish, where longer."""
REFUSED_IN_A_ROW = 32
"""From so many refusals without one vector between, it is not the texts."""
_NOT_THE_TEXT = (401, 402, 403, 404)
"""Refusals that mean every text."""


@dataclass(slots=True)
class Reembedded:
    """What a run towards a service did."""

    service: str
    before: str | None
    """The service that was in use when it began."""
    embedded: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """What the service refused, as ``memory 7``, and why."""
    switched: bool = False
    tokens: int = 0
    cost_usd: float | None = 0.0
    """None where a price is not known."""


class Reembedding:
    """One run towards one service, which ``embedder`` makes the vectors of."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        embedder: Embedder,
        service_id: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._embedder = embedder
        self._service_id = service_id
        self._sleep = sleep
        self._owner = processes.new_owner()
        self._refused: set[str] = set()
        self._refusals = 0
        with database.read() as tx:
            in_use = services.in_use(tx)
            before = services.get(tx, in_use) if in_use not in (None, service_id) else None
        self._done = Reembedded(embedder.service.name, before.name if before else None)

    def run(self, tell: Callable[[Progress], None]) -> Reembedded:
        """Embed what lacks a vector, again and again until nothing does, then change the service.

        Raises StoreError where another process is at it or has called it off, and what the service
        raises when it refuses every text, or fails at each of several tries.
        """
        self._begin()
        idle = passes = 0
        try:
            while not self._done.switched and idle < 2:
                before = self._done.embedded
                self._pass(tell)
                self._questions()
                passes += 1
                self._switch(patient=passes < PASSES)
                idle = idle + 1 if self._done.embedded == before else 0
        finally:
            with self._database.write() as tx:
                services.let_go(tx, self._owner)
        return self._done

    def _begin(self) -> None:
        with self._database.write() as tx:
            held = services.lease(tx)
            if held is not None and held[1] > self._clock() and not processes.is_gone(held[0]):
                raise StoreError(
                    "another memchat is making these vectors now; see memchat services list"
                )
            services.expect(tx, self._service_id)
            services.hold(tx, self._owner, self._clock(), LEASE_SECONDS)

    def _pass(self, tell: Callable[[Progress], None]) -> None:
        """Once through everything that lacks a vector."""
        with self._database.read() as tx:
            total = gaps.total(tx)
            begun_at = total - gaps.count(tx, self._service_id)
        begun, done = time.monotonic(), begun_at
        tell(Progress(done, total, 0.0, begun_at))
        batches = self._batches()
        made: dict[str, Vectors] = {}
        # While the service makes one batch, the one before is written and the next one read.
        with ThreadPoolExecutor(1, "memchat-reembed") as aside:
            ahead = aside.submit(next, batches, None)
            while found := ahead.result():
                ahead = aside.submit(self._turn, made, batches)
                made = self._made(found, without=made)
                done += len(found)
                tell(Progress(min(done, total), total, time.monotonic() - begun, begun_at))
        self._write(made)

    def _batches(self) -> Iterator[list[Gap]]:
        for kind in KINDS:
            last_id = 0
            while found := self._next(kind, last_id):
                last_id = found[-1].id
                yield found

    def _next(self, kind: Kind, last_id: int) -> list[Gap]:
        with self._database.read() as tx:
            return gaps.after(tx, self._service_id, kind, last_id, BATCH)

    def _turn(self, made: dict[str, Vectors], batches: Iterator[list[Gap]]) -> list[Gap] | None:
        self._write(made)
        return next(batches, None)

    def _made(self, found: Sequence[Gap], without: Collection[str]) -> dict[str, Vectors]:
        """The vectors of these, by hash; not again of what is being written."""
        texts: dict[str, str] = {}
        for gap in found:
            words = gap.text if gap.text is not None else self._summary(gap)
            if words is None:
                self._refuse(gap, "its words are not kept as they were embedded")
            elif gap.hash not in self._refused and gap.hash not in without:
                texts[gap.hash] = words
        return self._vectors(texts, {gap.hash: gap for gap in found})

    def _write(self, made: dict[str, Vectors]) -> None:
        with self._database.write() as tx:
            self._still_wanted(tx)
            embeddings.put(tx, self._service_id, made.items(), self._clock())
            embeddings.drop_unused(tx, list(made))  # of words that went meanwhile
        self._done.embedded += len(made)

    def _summary(self, gap: Gap) -> str | None:
        with self._database.read() as tx:
            found = sessions.by_id(tx, gap.id)
        return found and moments.summary_text(found[0], gap.hash, self._settings.zone)

    def _vectors(self, texts: dict[str, str], whose: dict[str, Gap]) -> dict[str, Vectors]:
        """Vectors by hash. Where a text is refused, that one alone is left out."""
        if not texts:
            return {}
        try:
            vectors, usage = self._patiently(list(texts.values()))
        except (ProviderError, InputError) as error:
            self._refusals += 1
            if not _may_be_the_text(error) or self._refusals >= REFUSED_IN_A_ROW:
                raise
            if len(texts) > 1:
                halves = list(texts)
                middle = len(halves) // 2
                parts = ({h: texts[h] for h in part} for part in (halves[:middle], halves[middle:]))
                return {h: v for part in parts for h, v in self._vectors(part, whose).items()}
            (refused,) = texts
            self._refuse(whose[refused], str(error))
            return {}
        self._refusals = 0
        self._spent(usage)
        return dict(zip(texts, vectors, strict=True))

    def _refuse(self, gap: Gap, reason: str) -> None:
        self._refused.add(gap.hash)
        self._done.refused[f"{gap.kind} {gap.id}"] = reason

    def _patiently(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        for wait in WAITS:
            try:
                return self._asked(texts)
            except ProviderError as error:
                if not error.retryable:
                    raise
                log.warning("trying again in a while: %s", error)
                self._sleep(max(wait, error.retry_after or 0))
        return self._asked(texts)

    def _asked(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """What the embedder makes of these, refused where it cannot be kept."""
        from memchat.providers.batches import unit_vectors

        service = self._embedder.service
        vectors, usage = self._embedder.embed_documents(texts)
        size = {"count": len(texts), "dimensions": service.dimensions}
        return unit_vectors(vectors, model=service.name, **size), usage

    def _questions(self) -> None:
        """The vectors of messages not read yet: by them their reading finds what is known."""
        with self._database.read() as tx:
            in_use = services.in_use(tx)
            asked = {embeddings.query_hash(w): w for w in map(shortened, messages.unread(tx))}
            have = embeddings.get(tx, in_use, list(asked)) if in_use is not None else {}
            have = {h: v for h, v in have.items() if h in asked}
            lacking = have.keys() - embeddings.get(tx, self._service_id, list(have)).keys()
        for hashed in sorted(lacking):
            try:
                vector, usage = self._embedder.embed_query(asked[hashed])
            except (ProviderError, InputError) as error:
                log.warning("a question has no vector: %s", error)  # words will do
                continue
            self._spent(usage)
            with self._database.write() as tx:
                self._still_wanted(tx)
                embeddings.put(tx, self._service_id, [(hashed, vector)], self._clock())

    def _switch(self, *, patient: bool) -> None:
        """Change the service where nothing is lacking. Where people write all the time, what they
        wrote in the last moments is queued instead, as it would be after the change."""
        with self._database.write() as tx:
            self._still_wanted(tx)
            left = gaps.count(tx, self._service_id)
            if left and (patient or self._refused or left > BATCH):
                return
            gaps.queue(tx, self._service_id, self._clock())
            services.use(tx, self._service_id)
            self._done.switched = True

    def _still_wanted(self, tx: Connection) -> None:
        if services.coming(tx) != self._service_id:
            raise StoreError(
                "another memchat called this change off; see memchat services list, then migrate"
            )
        services.hold(tx, self._owner, self._clock(), LEASE_SECONDS)

    def _spent(self, usage: Usage) -> None:
        self._done.tokens += usage.prompt_tokens
        so_far, more = self._done.cost_usd, usage.cost_usd
        self._done.cost_usd = None if so_far is None or more is None else so_far + more


def _may_be_the_text(error: ProviderError | InputError) -> bool:
    if isinstance(error, InputError):
        return True
    return not error.retryable and error.status not in _NOT_THE_TEXT
