"""Changing the embedding service: its vectors are made first, beside those in use.

Search goes on with the old vectors meanwhile, also for what is written now; those new rows are
embedded before the change. Notes with chunks that the new service cannot read whole are cut anew.
Each batch is a transaction of its own, so a killed run loses at most two batches, and the next run
goes on from there. The change itself is one row, in a transaction that has checked that no vector
is missing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection

from memchat import processes
from memchat.config import Settings
from memchat.errors import InputError, MemChatError, ProviderError, StoreError
from memchat.memory.context import WHOLE_STORE, Context
from memchat.memory.embedding.batch_split import BatchSplitter, EmbeddingAnswer, embed_documents
from memchat.memory.embedding.pipeline import Finished, Pipeline
from memchat.memory.embedding.space import shortened
from memchat.memory.recall import turn_texts
from memchat.store import embeddings, messages, services, sessions, unembedded
from memchat.store.database import Database
from memchat.store.unembedded import KINDS, Kind, UnembeddedText
from memchat.types import OnProgress, Progress, Usage

if TYPE_CHECKING:
    from memchat.providers import Embedder

log = logging.getLogger(__name__)

BATCH = 100
PASSES = 5
"""After so many passes over the rows, the few that are still new are left to the queue."""
LEASE_SECONDS = 300.0
WAITS = (1, 2, 4, 8, 16)
"""Seconds before the next try where a provider is busy or fails; longer where it asks for that."""
LONGEST_WAIT = 120.0
"""Seconds; a provider that asks for more ends the run, and the next run goes on from there."""


@dataclass(slots=True)
class MigrationResult:
    """What a migration to a service did."""

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


class FitsNotes(Protocol):
    """Fits the notes of the store to the coming service."""

    def run(self) -> None:
        """Cut the notes anew whose chunks it cannot read whole."""
        ...

    def done(self, tx: Connection) -> bool:
        """Whether it reads every chunk of the store whole."""
        ...


@dataclass(frozen=True, slots=True)
class MigrationBatch:
    """Rows without a vector that are embedded together, and their texts by hash."""

    gaps: list[UnembeddedText]
    texts: dict[str, str]
    more: bool = True
    alone: bool = False


class Migration:
    """One run of a change to the service of ``embedder``."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        embedder: Embedder,
        service_id: int,
        fitting: FitsNotes,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._embedder = embedder
        self._service_id = service_id
        self._fitting = fitting
        self._sleep = sleep
        self._owner = processes.new_owner()
        self._refused: set[str] = set()
        with database.read() as tx:
            in_use = services.in_use(tx)
            before = services.get(tx, in_use) if in_use not in (None, service_id) else None
        self._done = MigrationResult(embedder.service.name, before.name if before else None)

    def run(self, tell: OnProgress) -> MigrationResult:
        """Embed what lacks a vector, again and again until nothing does, then change the service.

        Raises StoreError where another process runs or cancelled it, and the service's error where
        it refuses every text, or fails at each of several tries.
        """
        self._begin()
        idle = passes = 0
        try:
            self._index()
            while not self._done.switched and idle < 2:
                before = self._done.embedded
                self._fitting.run()
                self._pass(tell)
                self._questions()
                passes += 1
                self._switch(last_pass=passes >= PASSES)
                idle = idle + 1 if self._done.embedded == before else 0
        finally:
            with self._database.write() as tx:
                services.release_lease(tx, self._owner)
        return self._done

    def _begin(self) -> None:
        with self._database.write() as tx:
            held = services.lease(tx)
            if held is not None and held[1] > self._clock() and not processes.has_ended(held[0]):
                raise StoreError(
                    "another memchat is making these vectors now; see memchat services list"
                )
            services.set_coming(tx, self._service_id)
            services.take_lease(tx, self._owner, self._clock(), LEASE_SECONDS)

    def _index(self) -> None:
        """Index the conversations that an older version read without doing so."""
        with self._database.read() as tx:
            found = unembedded.sessions_to_index(tx)
        for session_id in found:
            with self._database.write() as tx:
                ctx = Context(tx, WHOLE_STORE, self._clock(), self._settings.zone)
                turn_texts.write(ctx, session_id, None, {})

    def _pass(self, tell: OnProgress) -> None:
        """One pass over everything that lacks a vector."""
        with self._database.read() as tx:
            total = unembedded.total(tx)
            begun_at = total - unembedded.count(tx, self._service_id)
        begun, done = time.monotonic(), begun_at
        tell(Progress(done, total, 0.0, begun_at))
        places = dict.fromkeys(KINDS, 0)

        def write_and_take(finished: Finished[MigrationBatch], wanted: int) -> list[MigrationBatch]:
            nonlocal done
            if not finished and wanted <= 0:
                return []
            with self._database.write() as tx:
                self._still_wanted(tx)
                written = self._write(tx, [answer for _, answer in finished])
                taken = self._take(tx, places, wanted * BATCH)
            self._note(finished, written)
            done += sum(len(batch.gaps) for batch, _ in finished)
            tell(Progress(min(done, total), total, time.monotonic() - begun, begun_at))
            return taken

        splitter = BatchSplitter(partial(embed_documents, self._embedder), BATCH)
        service = self._embedder.service
        down = Pipeline(service, splitter, write_and_take, self._wait_to_retry).run()
        if down is not None:
            raise down

    def _take(self, tx: Connection, places: dict[Kind, int], limit: int) -> list[MigrationBatch]:
        """The next batches, from where the last ones ended."""
        for kind in KINDS:
            found = (
                unembedded.next_after(tx, self._service_id, kind, places[kind], limit)
                if limit
                else []
            )
            if found:
                places[kind] = found[-1].id
                cut = (found[i : i + BATCH] for i in range(0, len(found), BATCH))
                return [MigrationBatch(some, self._texts(tx, some)) for some in cut]
        return []

    def _texts(self, tx: Connection, found: Sequence[UnembeddedText]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for gap in found:
            words = gap.text
            if gap.kind == "session":
                session = sessions.by_id(tx, gap.id)
                zone = self._settings.zone
                words = turn_texts.summary_text(session[0], gap.hash, zone) if session else None
            if words is None:
                self._refuse(gap, "its words are not kept as they were embedded")
            elif gap.hash not in self._refused:
                texts[gap.hash] = words
        return texts

    def _write(self, tx: Connection, answers: Sequence[EmbeddingAnswer]) -> int:
        """Write the vectors; gives how many."""
        made = {key: vector for answer in answers for key, vector in answer.vectors.items()}
        embeddings.put(tx, self._service_id, made.items(), self._clock())
        embeddings.remove_unused(tx, list(made))  # of words that went meanwhile
        return len(made)

    def _note(self, finished: Finished[MigrationBatch], written: int) -> None:
        self._done.embedded += written
        for batch, answer in finished:
            for usage in answer.spent:
                self._spent(usage)
            if answer.down is None:
                for gap in batch.gaps:
                    if gap.hash in answer.faults:
                        self._refuse(gap, str(answer.faults[gap.hash]))

    def _refuse(self, gap: UnembeddedText, reason: str) -> None:
        self._refused.add(gap.hash)
        self._done.refused[f"{gap.kind} {gap.id}"] = reason

    def _wait_to_retry(self, error: MemChatError, times: int) -> bool:
        """Wait where the service may answer later; whether that was so."""
        if not isinstance(error, ProviderError) or not error.retryable or times >= len(WAITS):
            return False
        wait = max(WAITS[times], error.retry_after or 0)
        if wait > LONGEST_WAIT:
            return False
        log.warning("trying again in a while: %s", error)
        self._sleep(wait)
        return True

    def _questions(self) -> None:
        """The query vectors of messages not read yet: their reading finds known facts by them."""
        with self._database.read() as tx:
            in_use = services.in_use(tx)
            texts = {embeddings.query_hash(w): w for w in map(shortened, messages.unread_texts(tx))}
            have = embeddings.get(tx, in_use, list(texts)) if in_use is not None else {}
            have = {h: v for h, v in have.items() if h in texts}
            lacking = have.keys() - embeddings.get(tx, self._service_id, list(have)).keys()
        for hashed in sorted(lacking):
            try:
                vector, usage = self._embedder.embed_query(texts[hashed])
            except (ProviderError, InputError) as error:
                log.warning("a question has no vector: %s", error)  # words will do
                continue
            self._spent(usage)
            with self._database.write() as tx:
                self._still_wanted(tx)
                embeddings.put(tx, self._service_id, [(hashed, vector)], self._clock())

    def _switch(self, *, last_pass: bool) -> None:
        """Change the service where no vector is missing. After the last pass the few rows that are
        newer than it are queued instead, as they would be after the change."""
        with self._database.write() as tx:
            self._still_wanted(tx)
            left = unembedded.count(tx, self._service_id)
            if left and (not last_pass or self._refused or left > BATCH):
                return
            if not self._fitting.done(tx):
                return
            unembedded.enqueue_all(tx, self._service_id, self._clock())
            services.use(tx, self._service_id)
            self._done.switched = True

    def _still_wanted(self, tx: Connection) -> None:
        if services.coming(tx) != self._service_id:
            raise StoreError(
                "another memchat called this change off; see memchat services list, then migrate"
            )
        services.take_lease(tx, self._owner, self._clock(), LEASE_SECONDS)

    def _spent(self, usage: Usage) -> None:
        self._done.tokens += usage.prompt_tokens
        so_far, more = self._done.cost_usd, usage.cost_usd
        self._done.cost_usd = None if so_far is None or more is None else so_far + more
