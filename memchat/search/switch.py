"""The embedding services of a store: listing, changing and removing them.

In a change the vectors of the coming service are made beside those in use, which go on to answer.
Each round of calls is a transaction of its own, so a killed run loses one round at most, and the
next run goes on from there. Notes with chunks that the coming service cannot read whole are cut
anew. The change itself is one row, in a transaction that has checked that no vector is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from memchat import processes, waiting
from memchat.config import Settings
from memchat.config.providers import embedding_name
from memchat.db import Tx, apps, records
from memchat.db.database import Database
from memchat.errors import (
    ConfigError,
    InputError,
    MemChatError,
    NotFound,
    ProviderError,
    StoreError,
)
from memchat.notes.index import NoteFitting
from memchat.providers import factory
from memchat.search import embeddings, passages
from memchat.search.embed import EmbeddingRounds, embed_documents
from memchat.search.keywords import passage_id
from memchat.search.passages import OWNERS
from memchat.types import OnProgress, ServiceInfo, Usage, timed

if TYPE_CHECKING:
    from memchat.providers import Embedder

log = logging.getLogger(__name__)

BATCH = 100
PASSES = 5
"""After so many passes over the rows, the few that are still new are left to the queue."""
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


class Migration:
    """One run of a change to the service of ``embedder``."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        service_id: int,
        fitting: NoteFitting,
        sleep: Callable[[float], None] = waiting.sleep,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._service_id = service_id
        self._fitting = fitting
        self._sleep = sleep
        self._owner = processes.new_owner()
        self._refused: set[str] = set()
        with database.read() as tx:
            before = embeddings.get_service(tx, embeddings.in_use(tx))
        self._done = MigrationResult(embedder.service.name, before.name if before else None)

    def run(self, tell: OnProgress | None) -> MigrationResult:
        """Embed what lacks a vector, again and again until nothing does, then change the service.

        Raises StoreError where another process runs or cancelled it, and the service's error where
        it refuses every text, or fails at each of several tries.
        """
        self._begin()
        idle = passes = 0
        try:
            while not self._done.switched and idle < 2:
                before = self._done.embedded
                self._fitting.run()
                self._pass(tell)
                passes += 1
                self._switch(last_pass=passes >= PASSES)
                idle = idle + 1 if self._done.embedded == before else 0
        finally:
            with self._database.write() as tx:
                embeddings.release_lease(tx, self._owner)
        return self._done

    def _begin(self) -> None:
        with self._database.write() as tx:
            held = embeddings.lease(tx)
            if held is not None and held[1] > tx.now and not processes.has_ended(held[0]):
                raise StoreError("another memchat is making these vectors now", see="services list")
            embeddings.set_coming(tx, self._service_id)
            embeddings.take_lease(tx, self._owner)

    def _pass(self, tell: OnProgress | None) -> None:
        """One pass over everything that lacks a vector."""
        with self._database.read() as tx:
            total = passages.count_wanting(tx)
            begun_at = total - passages.count_lacking(tx, self._service_id)
        report, done, last = timed(tell), begun_at, 0
        report(done, total, begun_at=begun_at)
        embed = partial(embed_documents, self._embedder)
        rounds = EmbeddingRounds(self._embedder.service, embed, BATCH, self._wait_to_retry)
        while True:
            with self._database.read() as tx:
                gaps = passages.next_lacking(tx, self._service_id, last, rounds.size)
            if not gaps:
                return
            last = passage_id(gaps[-1].kind, gaps[-1].id)
            texts = {gap.hash: gap.text for gap in gaps if gap.hash not in self._refused}
            answer = rounds.ask(texts)
            with self._database.write() as tx:
                self._still_wanted(tx)
                written, _ = passages.keep_vectors(tx, self._service_id, answer.vectors)
            self._done.embedded += written
            for usage in answer.spent:
                self._spent(usage)
            if answer.down is not None:
                raise answer.down
            for gap in gaps:
                if gap.hash in answer.faults:
                    self._refused.add(gap.hash)
                    why = str(answer.faults[gap.hash])
                    self._done.refused[f"{OWNERS[gap.kind]} {gap.id}"] = why
            done += len(gaps)
            report(min(done, total), total, begun_at=begun_at)

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

    def _switch(self, *, last_pass: bool) -> None:
        """Change the service where no vector is missing. After the last pass the few rows that are
        newer than it are queued instead, as they would be after the change."""
        with self._database.write() as tx:
            self._still_wanted(tx)
            left = passages.count_lacking(tx, self._service_id)
            if left and (not last_pass or self._refused or left > BATCH):
                return
            if not self._fitting.done(tx):
                return
            passages.queue_lacking(tx, self._service_id)
            embeddings.use_service(tx, self._service_id)
            self._done.switched = True

    def _still_wanted(self, tx: Tx) -> None:
        if embeddings.coming(tx) != self._service_id:
            raise StoreError(
                "another memchat called this change off; migrate again if it is wanted",
                see="services list",
            )
        embeddings.take_lease(tx, self._owner)

    def _spent(self, usage: Usage) -> None:
        self._done.tokens += usage.prompt_tokens
        so_far, more = self._done.cost_usd, usage.cost_usd
        self._done.cost_usd = None if so_far is None or more is None else so_far + more


REMOVED_AT_ONCE = 2_000
"""Vectors deleted in one transaction: other writers wait no longer than for these."""


class EmbeddingServices:
    """The verbs on the services of one store."""

    def __init__(self, database: Database, settings: Settings, given: Embedder | None) -> None:
        """``given`` is an embedder that the settings cannot name."""
        self._database = database
        self._settings = settings
        self._given = given

    def infos(self) -> list[ServiceInfo]:
        """Every service of the store, in the order they came."""
        with self._database.read() as tx:
            return embeddings.service_infos(
                tx, {i: passages.count_lacking(tx, i) for i in embeddings.all_services(tx)}
            )

    def use(self, name: str, *, force: bool) -> int:
        """Search a service's vectors from now on, in one transaction; how many texts lack one.

        Raises InputError where some do and ``force`` does not say to leave these to the queue.
        """
        with self._database.write() as tx:
            service_id = self._find(tx, name)
            lacking = passages.count_lacking(tx, service_id)
            if lacking and not force:
                total = passages.count_wanting(tx)
                raise InputError(
                    f"of {name} a vector is lacking for {lacking} of {total} texts; "
                    "migrate to it, or force it to leave these to the queue and to words",
                    see=f"services migrate {name}",
                )
            if lacking:
                passages.queue_lacking(tx, service_id)
            embeddings.use_service(tx, service_id)
        return lacking

    def migrate(
        self,
        name: str | None,
        *,
        dimensions: int | None,
        max_tokens: int | None,
        tell: OnProgress | None,
        sleep: Callable[[float], None] = waiting.sleep,
    ) -> MigrationResult:
        """Make a service's vectors beside those in use, then change to it. See ``Migration``.

        Where it is in use already, nothing is done: the queue makes missing vectors.
        """
        embedder = self._embedder(name, dimensions, max_tokens)
        with self._database.write() as tx:
            service_id = embeddings.register_service(tx, embedder.service)
            if embeddings.in_use(tx) == service_id:
                return MigrationResult(embedder.service.name, None, switched=True)
            self._unlink(tx, service_id)  # a saved index lacks the vectors that are made now
        fitting = NoteFitting(self._database, embedder, self._embedder_in_use())
        try:
            return Migration(self._database, embedder, service_id, fitting, sleep).run(tell)
        except MemChatError:
            self._unless_begun(service_id)
            raise

    def _unless_begun(self, service_id: int) -> None:
        """Forget a service that made no vector before it failed: a missing key begins no change."""
        with self._database.write() as tx:
            if embeddings.lease(tx) is None and not embeddings.exist_for(tx, service_id):
                embeddings.remove_service(tx, service_id)

    def remove(self, name: str, *, force: bool) -> int:
        """Delete a service with its vectors; how many. What they were made of stays.

        Raises InputError for the one in use, or coming, unless ``force`` says so.
        """
        with self._database.write() as tx:
            service_id = self._find(tx, name)
            state = next(i.state for i in embeddings.service_infos(tx, {}) if i.id == service_id)
            if state == "in use" and not force:
                raise InputError(
                    f"{name} is in use; migrate to another, or force it to search by words only "
                    "until there are vectors again",
                    see="services migrate",
                )
            if state == "coming" and not force:
                raise InputError(f"the store is changing to {name}; force it to call that off")
            if state == "coming":
                embeddings.clear_coming(tx)
        removed, count = 0, REMOVED_AT_ONCE
        while count == REMOVED_AT_ONCE:
            with self._database.write() as tx:
                count = embeddings.remove_vectors(tx, service_id, REMOVED_AT_ONCE)
            removed += count
        with self._database.write() as tx:
            embeddings.remove_service(tx, service_id)
            self._unlink(tx, service_id)
        return removed

    def _find(self, tx: Tx, name: str) -> int:
        """The service of this name or number."""
        known = embeddings.all_services(tx)
        if name.isdecimal() and int(name) in known:
            return int(name)
        found = [i for i, service in known.items() if service.name == embedding_name(name)]
        if len(found) > 1:
            numbers = " or ".join(map(str, found))
            raise InputError(f"{name} stands for several services; give its number: {numbers}")
        if not found:
            raise NotFound(f"this store knows no service {name}", see="services list")
        return found[0]

    def _embedder(
        self, name: str | None, dimensions: int | None, max_tokens: int | None
    ) -> Embedder:
        """What makes the vectors of the named service; without a name of the one that is coming,
        else of the one that the settings name."""
        with self._database.read() as tx:
            stored = embeddings.get_service(tx, embeddings.coming(tx)) if name is None else None
            if name is not None and name.isdecimal():
                stored = embeddings.get_service(tx, self._find(tx, name))
        given = self._given
        if given is not None and (
            given.service.same_space(stored)
            if stored is not None
            else name in (None, given.service.name)
        ):
            return given
        if stored is not None:
            found, why_not = factory.embedder_for(self._settings, stored)
        else:
            found, why_not = factory.embedder_or_why(self._named(name, dimensions, max_tokens))
        if found is None:
            raise ConfigError(f"there is nothing to change to: {why_not}")
        return found

    def _embedder_in_use(self) -> Embedder | None:
        """What makes the vectors of the service in use; None where there is none, or it cannot be
        asked."""
        with self._database.read() as tx:
            stored = embeddings.get_service(tx, embeddings.in_use(tx))
        if stored is None:
            return None
        if self._given is not None and self._given.service.same_space(stored):
            return self._given
        return factory.embedder_for(self._settings, stored)[0]

    def _named(self, name: str | None, dimensions: int | None, max_tokens: int | None) -> Settings:
        """The settings with this model; their sizes are for the model that they name."""
        named = embedding_name(name) if name is not None else self._settings.embed_model
        if named != self._settings.embed_model:
            unsaid = {"embed_dimensions": dimensions, "embed_max_tokens": max_tokens}
            return self._settings.with_(embed_model=named, **unsaid)
        return self._settings.with_(
            embed_dimensions=dimensions or self._settings.embed_dimensions,
            embed_max_tokens=max_tokens or self._settings.embed_max_tokens,
        )

    def _unlink(self, tx: Tx, service_id: int) -> None:
        store_id = records.store_id(tx)
        embeddings.delete_files(self._settings.home, store_id, [service_id], apps.all_ids(tx))
