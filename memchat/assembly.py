"""Building the parts of a store: its models, its embedding space, the worker, the parts of a chat.

Each part is built once, when it is first needed, so that opening a store loads no model.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from memchat.config import Settings
from memchat.config.providers import runs_locally
from memchat.db import Tx, records
from memchat.db.database import Database, utc_now
from memchat.errors import ConfigError, MemChatError, SchemaError
from memchat.prompts import Prompts
from memchat.providers import factory
from memchat.search import embeddings
from memchat.search.embed import EmbeddingSpace, QueryTimeout
from memchat.search.facts import ModelFilter
from memchat.types import Service

if TYPE_CHECKING:
    from memchat.chat import Parts
    from memchat.providers import ChatModel, Embedder, Transcriber
    from memchat.search.search import Recall

log = logging.getLogger(__name__)
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class _Space:
    """The embedding space of the service that was in use when it was built."""

    state: embeddings.ServiceState
    space: EmbeddingSpace | None
    reason: str | None
    """Why there is none."""


def open_database(settings: Settings, clock: Callable[[], datetime] = utc_now) -> Database:
    """The rows of the store that the settings name."""
    if settings.database_url is None:
        return Database(settings.home, clock, settings.zone)
    try:
        from memchat.db.postgres import Postgres
    except ImportError as error:
        raise ConfigError("a store in PostgreSQL needs pip install 'memchat[postgres]'") from error
    return Postgres(settings.database_url, settings.home, clock, settings.zone)


class Assembly:
    """The parts of one store. Models that are given are used instead of those of the settings."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        chat_model: ChatModel | None,
        extract_model: ChatModel | None,
        embedder: Embedder | None,
    ) -> None:
        """Raises StoreError if the folder or file cannot be used, SchemaError for a file of
        another version."""
        self.settings = settings
        self.clock = clock
        self.database = open_database(settings, clock)
        self.database.embeds = self.embeds
        self.database.types = settings.types
        given = {"chat_model": chat_model, "extract_model": extract_model}
        self._built: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
        self.embedder = embedder
        self._lock = threading.RLock()
        self._space: _Space | None = None
        self._accepts_stored_service = False

    @cached_property
    def prompts(self) -> Prompts:
        """The built-in prompts, or those of the data folder in their place."""
        return Prompts(self.settings.home / "prompts")

    @property
    def chat_model_known(self) -> bool:
        """Whether the chat model was given or made already."""
        return "chat_model" in self._built

    def _once(self, name: str, build: Callable[[], Part]) -> Part:
        """The part of this name, built when it is first needed."""
        with self._lock:
            if name not in self._built:
                self._built[name] = build()
            part: Part = self._built[name]
            return part

    def close(self) -> None:
        """Save the index of large scopes and close the database."""
        built = self._space
        if built is not None and built.space is not None and built.space.index.unsaved:
            with self.database.write() as tx:
                if embeddings.service_state(tx) == built.state:
                    built.space.index.save(tx)
        self.database.close()

    def recall(self) -> Recall:
        """The search. It needs no chat or extraction model."""
        from memchat.search.search import Recall

        given = self.database, self.settings, self.embedding_space, self.ready_embedding_space
        return self._once("recall", lambda: Recall(*given))

    def query_timeout(self) -> QueryTimeout:
        """Embeds questions, waiting no longer than the settings say."""
        find, patience = self.recall().question, self.settings.embed_patience
        local = self.embedder is None and runs_locally(self.settings.embed_model)
        return self._once("query_timeout", lambda: QueryTimeout(patience, find, local=local))

    def parts(self) -> Parts:
        """The parts that all chats of this store share."""
        self.database.check_open()
        return self._once("parts", self._build_parts)

    def _build_parts(self) -> Parts:
        from memchat.chat import Parts
        from memchat.jobs.worker import Worker
        from memchat.learn.learner import Learner
        from memchat.notes.search import NotesBlock
        from memchat.search.prompt_block import PromptBlock
        from memchat.workflows.runs import Run

        common = (self.database, self.settings)
        new_run = partial(Run, *common, self.recall, self.tier_model, self.usable_embedder)
        learner = Learner(*common, self.prompts, self.extract_model, self.embedding_space)
        chooser = ModelFilter(self.prompts, self.extract_model)
        return Parts(
            database=self.database,
            settings=self.settings,
            prompts=self.prompts,
            clock=self.clock,
            model=self.chat_model,
            recall=self.recall(),
            block=PromptBlock(*common, self.prompts, self.recall()),
            notes=NotesBlock(*common, self.prompts, self.recall()),
            query_timeout=self.query_timeout(),
            model_filter=chooser if self.settings.filter_pinned else None,
            worker=Worker(*common, self.clock, learner, self.embedding_space, new_run),
        )

    def chat_model(self, name: str | None = None) -> ChatModel:
        """The model that answers, or the one of this name. Raises ConfigError where that one cannot
        be used."""
        if name is not None:
            settings = self.settings.with_(chat_model=name)
            chosen, _, _ = factory.explain(settings)
            if chosen.problem is not None:
                raise ConfigError(f"{name} cannot be used: {chosen.problem}; {chosen.remedy}")
            return factory.chat_model(settings)
        return self._once("chat_model", lambda: factory.chat_model(self.settings))

    def tier_model(self, tier: str) -> ChatModel:
        """The model of a tier of workflows: fast, balanced (the model that answers) or high."""
        named = {"fast": self.settings.fast_model, "high": self.settings.high_model}
        return self.chat_model(named.get(tier))

    def extract_model(self, name: str | None = None) -> ChatModel:
        """The cheaper model that extracts memories from ended conversations, or the one of this
        name."""
        if name is not None:
            return factory.extract_model(self.settings.with_(extract_model=name))
        return self._once("extract_model", lambda: factory.extract_model(self.settings))

    def transcriber(self) -> Transcriber | None:
        """The model that writes down what is said in audio files; None where none is named."""
        return factory.transcriber(self.settings)

    def embedding_space(self) -> tuple[EmbeddingSpace | None, str | None]:
        """The store's embedding space, or None and the reason. It is built at the first call, and
        again after another process has changed the service."""
        with self._lock:
            with self.database.read() as tx:
                state = embeddings.service_state(tx)
            if self._space is None or self._space.state != state:
                self._space = self._build_space(opening=not self._accepts_stored_service)
                self._accepts_stored_service = True
            return self._space.space, self._space.reason

    def usable_embedder(self) -> Embedder | None:
        """What makes the vectors of this store; None where there is nothing, or it cannot be used
        now. Not to be called in a transaction."""
        try:
            space, _ = self.embedding_space()
        except MemChatError as error:
            log.warning("the embedding model cannot be used: %s", error)
            return None
        return None if space is None else space.embedder

    def ready_embedding_space(self, tx: Tx) -> tuple[EmbeddingSpace | None, str | None] | None:
        """The same in a caller's transaction, or None where it is not built yet: building may call
        a provider, and no transaction may wait for one."""
        built = self._space
        if built is None or built.state != embeddings.service_state(tx):
            return None
        return built.space, built.reason

    def accept_stored_service(self) -> None:
        """Use the store's service whatever the settings name, as it was just changed here."""
        self._accepts_stored_service = True

    def warm(self) -> None:
        """Load a local embedding model, where one is used, before the first question."""
        if self.embedder is not None:
            return
        try:
            space, _ = self.embedding_space()
            if space is not None and space.embedder.service.local:
                space.embedder.embed_query("warm")
        except MemChatError as error:
            # The next question shows it, too.
            log.warning("the embedding model was not loaded: %s", error)

    def _build_space(self, *, opening: bool) -> _Space:
        """The space of the service in use, or of a first service for a new store."""
        with self.database.read() as tx:
            state = embeddings.service_state(tx)
            stored = embeddings.get_service(tx, state[0])
            filled = state[0] is not None and embeddings.exist_for(tx, state[0])
            coming = embeddings.get_service(tx, embeddings.coming(tx))
            store_id = records.get(tx, "store_id")
        if stored is not None and filled:
            embedder, reason = self._embedder_of(stored, coming, opening=opening)
        else:
            embedder, reason = self._first_embedder(stored)
        if embedder is None:
            return _Space(state, None, reason)
        if state[0] is None or store_id is None or not embedder.service.same_space(stored):
            self._register_first(embedder.service, state)
            return self._build_space(opening=opening)
        service = embedder.service
        index = self.database.vector_index(store_id, state[0], service)
        space = EmbeddingSpace(self.database, embedder, service, index, state[0])
        return _Space(state, space, None)

    def _register_first(self, service: Service, state: embeddings.ServiceState) -> None:
        """Make it the store's service, unless another process has set one in the meantime."""
        with self.database.write() as tx:
            records.store_id(tx)
            if embeddings.service_state(tx) == state:
                embeddings.use_service(tx, embeddings.register_service(tx, service))

    def _first_embedder(self, stored: Service | None) -> tuple[Embedder | None, str | None]:
        """The embedder for a store without vectors: the one given, the one named, or that of the
        service the store was created with."""
        if self.embedder is not None:
            return self.embedder, None
        if stored is not None and not factory.embedding_model_named(self.settings):
            return factory.embedder_for(self.settings, stored)
        return factory.embedder_or_why(self.settings)

    def _embedder_of(
        self, stored: Service, coming: Service | None, *, opening: bool
    ) -> tuple[Embedder | None, str | None]:
        """The embedder of the service whose vectors the store has.

        Raises SchemaError where, on opening, the settings name another and the store is not being
        migrated to that. A running process accepts a change of the service.
        """
        wanted, reason = self.embedder, None
        if wanted is None and factory.embedding_model_named(self.settings):
            wanted, reason = factory.embedder_or_why(self.settings)
            if wanted is None:
                return None, reason
        if wanted is not None and wanted.service.same_space(stored):
            return wanted, None
        if wanted is not None and opening and not wanted.service.same_space(coming):
            raise SchemaError(_other_service(stored, wanted.service))
        return factory.embedder_for(self.settings, stored)

    def embeds(self) -> bool:
        """Whether there is an embedding model. Loads nothing and calls no provider."""
        if self.embedder is not None:
            return True
        return factory.can_embed(self.in_force())

    def in_force(self) -> Settings:
        """The settings with the embedding model that is used in this store."""
        with self.database.read() as tx:
            stored = embeddings.get_service(tx, embeddings.in_use(tx))
        return factory.for_store(self.settings, stored.name if stored is not None else None)


def _other_service(stored: Service, named: Service) -> str:
    version = stored.version != named.version and stored.name == named.name
    held, other = (
        f"{one.name}{f' ({one.version})' if version else ''} with {one.dimensions} numbers"
        for one in (stored, named)
    )
    return (
        f"the vectors of this store are of {held}, not of {other}: run memchat services migrate "
        f"{named.name}, or unset MEMCHAT_EMBED_MODEL to stay with {stored.name}"
    )
