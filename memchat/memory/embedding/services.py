"""The embedding services of a store: listing them, changing between them, removing one."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.config.model_defaults import embedding_name
from memchat.errors import ConfigError, InputError, MemChatError, NotFound
from memchat.memory.embedding.migration import FitsNotes, Migration, MigrationResult
from memchat.providers import factory
from memchat.store import apps, embeddings, meta, services, unembedded
from memchat.store.database import Database
from memchat.types import OnProgress, ServiceInfo
from memchat.vectors import vector_index

if TYPE_CHECKING:
    from memchat.providers import Embedder

Fitting = Callable[["Embedder", "Embedder | None"], FitsNotes]
"""Makes what fits the notes of the store to a coming service; given that, and the one in use."""
REMOVED_AT_ONCE = 2_000
"""Vectors deleted in one transaction: other writers wait no longer than for these."""


class EmbeddingServices:
    """The verbs on the services of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        given: Embedder | None,
        fitting: Fitting,
    ) -> None:
        """``given`` is an embedder that the settings cannot name."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._given = given
        self._fitting = fitting

    def infos(self) -> list[ServiceInfo]:
        """Every service of the store, in the order they came."""
        with self._database.read() as tx:
            return services.infos(
                tx, {i: unembedded.count(tx, i) for i in services.all_services(tx)}
            )

    def use(self, name: str, *, force: bool) -> int:
        """Search a service's vectors from now on, in one transaction; how many texts lack one.

        Raises InputError where some do and ``force`` does not say to leave these to the queue.
        """
        with self._database.write() as tx:
            service_id = self._find(tx, name)
            lacking = unembedded.count(tx, service_id)
            if lacking and not force:
                raise InputError(
                    f"of {name} a vector is lacking for {lacking} of {unembedded.total(tx)} texts; "
                    f"run memchat services migrate {name}, or add --force to leave these to the "
                    "queue and to words"
                )
            if lacking:
                unembedded.enqueue_all(tx, service_id, self._clock())
            services.use(tx, service_id)
        return lacking

    def migrate(
        self,
        name: str | None,
        *,
        dimensions: int | None,
        max_tokens: int | None,
        tell: OnProgress,
        sleep: Callable[[float], None] = time.sleep,
    ) -> MigrationResult:
        """Make a service's vectors beside those in use, then change to it. See ``Migration``.

        Where it is in use already, nothing is done: the queue makes missing vectors.
        """
        embedder = self._embedder(name, dimensions, max_tokens)
        with self._database.write() as tx:
            service_id = services.register(tx, embedder.service, self._clock())
            if services.in_use(tx) == service_id:
                return MigrationResult(embedder.service.name, None, switched=True)
            self._unlink(tx, service_id)  # a saved index lacks the vectors that are made now
        common = (self._database, self._settings, self._clock)
        fitting = self._fitting(embedder, self._embedder_in_use())
        run = Migration(*common, embedder, service_id, fitting, sleep)
        try:
            return run.run(tell)
        except MemChatError:
            self._unless_begun(service_id)
            raise

    def _unless_begun(self, service_id: int) -> None:
        """Forget a service that made no vector before it failed: a missing key begins no change."""
        with self._database.write() as tx:
            if services.lease(tx) is None and not embeddings.exist_for(tx, service_id):
                services.remove(tx, service_id)

    def remove(self, name: str, *, force: bool) -> int:
        """Delete a service with its vectors; how many. What they were made of stays.

        Raises InputError for the one in use, or coming, unless ``force`` says so.
        """
        removed = 0
        last: str | None = ""
        with self._database.write() as tx:
            service_id = self._find(tx, name)
            state = next(i.state for i in services.infos(tx, {}) if i.id == service_id)
            if state == "in use" and not force:
                raise InputError(
                    f"{name} is in use; change to another with memchat services migrate, or add "
                    "--force to search by words only until there are vectors again"
                )
            if state == "coming" and not force:
                raise InputError(f"the store is changing to {name}; add --force to call that off")
            if state == "coming":
                services.clear_coming(tx)
        while last is not None:
            with self._database.write() as tx:
                last, count = services.remove_vectors(tx, service_id, last, REMOVED_AT_ONCE)
            removed += count
        with self._database.write() as tx:
            services.remove(tx, service_id)
            self._unlink(tx, service_id)
        return removed

    def _find(self, tx: Connection, name: str) -> int:
        """The service of this name or number."""
        known = services.all_services(tx)
        if name.isdecimal() and int(name) in known:
            return int(name)
        found = [i for i, service in known.items() if service.name == embedding_name(name)]
        if len(found) > 1:
            numbers = " or ".join(map(str, found))
            raise InputError(f"{name} stands for several services; give its number: {numbers}")
        if not found:
            raise NotFound(f"this store knows no service {name}; see memchat services list")
        return found[0]

    def _embedder(
        self, name: str | None, dimensions: int | None, max_tokens: int | None
    ) -> Embedder:
        """What makes the vectors of the named service; without a name of the one that is coming,
        else of the one that the settings name."""
        with self._database.read() as tx:
            stored = services.get(tx, services.coming(tx)) if name is None else None
            if name is not None and name.isdecimal():
                stored = services.get(tx, self._find(tx, name))
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
            stored = services.get(tx, services.in_use(tx))
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

    def _unlink(self, tx: Connection, service_id: int) -> None:
        store_id = meta.store_id(tx)
        for app_id in apps.all_ids(tx):
            vector_index.delete_files(self._settings.home, store_id, [service_id], app_id)
