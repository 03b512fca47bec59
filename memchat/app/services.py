"""The embedding services, changing between them, and whether all is well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memchat.app.opened import Opened
from memchat.types import PluginInfo, Progress, ServiceInfo

if TYPE_CHECKING:
    from memchat.doctor import Check
    from memchat.memory.embedding.migration import MigrationResult
    from memchat.memory.embedding.services import EmbeddingServices


class Services(Opened):
    """The verbs on embedding services and repair."""

    def services(self) -> list[ServiceInfo]:
        """The embedding services that the store knows, and how much it has of their vectors."""
        return self._switch().infos()

    def embedding_plugins(self) -> list[PluginInfo]:
        """The embedding providers that other packages bring; see ``memchat.providers.plugins``."""
        return self._switch().plugins()

    def use_service(self, name: str, *, force: bool = False) -> int:
        """Search the vectors of this service from now on; how many texts have none of it yet.

        Raises InputError where some have none, unless ``force`` leaves these to the queue.
        """
        lacking = self._switch().use(name, force=force)
        self._assembly.accept_stored_service()
        return lacking

    def migrate(
        self,
        name: str | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        tell: Callable[[Progress], None] = lambda progress: None,
    ) -> MigrationResult:
        """Embed everything with another service, while the one in use answers; then change to it.

        The store changes in one transaction, when nothing lacks its vector. May be killed and run
        again at any time. Without ``name``: the change begun before, else what the settings name.
        ``dimensions`` and ``max_tokens`` are for a model that memchat does not know.
        """
        done = self._switch().migrate(name, dimensions=dimensions, max_tokens=max_tokens, tell=tell)
        if done.switched:
            self._assembly.accept_stored_service()
        return done

    def fetch_model(
        self, name: str, *, tell: Callable[[Progress], None] = lambda progress: None
    ) -> tuple[Path, int]:
        """Download a model that fastembed runs on this machine; its folder, and how many bytes
        came: 0 where it is there. Nothing else ever downloads one."""
        return self._switch().fetch(name, tell)

    def remove_service(self, name: str, *, force: bool = False) -> int:
        """Delete a service with its vectors; how many. Raises InputError for the one in use."""
        return self._switch().remove(name, force=force)

    def doctor(self) -> list[Check]:
        """What is in use and why, and what is wrong, each with its remedy."""
        from memchat import doctor

        there = self._database, self.settings, self._meaning, self._clock()
        return doctor.examine(*there, self.foreign_addresses())

    def foreign_addresses(self) -> list[str]:
        """A sentence for each address that words are sent to and that is not the provider's own."""
        return self._assembly.in_force().redirect_warnings()

    def repair(self) -> list[str]:
        """Put keyword rows, vectors and index back in step with the rows; what was done.

        Asks no provider: what lacks a vector is queued.
        """
        from memchat.memory.embedding.repair import Repair

        return Repair(self._database, self._clock, self._drop_vectors).run()

    def _switch(self) -> EmbeddingServices:
        from memchat.memory.embedding.services import EmbeddingServices

        return EmbeddingServices(
            self._database, self.settings, self._clock, self._assembly.embedder
        )
