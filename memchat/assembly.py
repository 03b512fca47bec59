"""Putting memchat together: models, the sense of meaning, the worker, what a chat is made of.

Each is made at its first need, and once: opening a store costs no model.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.config import Settings, loaded_here
from memchat.errors import MemChatError, SchemaError
from memchat.prompts import Prompts
from memchat.store import embeddings, meta, services
from memchat.store.database import Database
from memchat.types import Service

if TYPE_CHECKING:
    from memchat.chat import Parts
    from memchat.memory.embedding.space import EmbeddingSpace
    from memchat.memory.embedding.timeout import QueryTimeout
    from memchat.memory.recall.search import Recall
    from memchat.providers import ChatModel, Embedder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sense:
    """The sense of meaning as it was made, for the service that was in use then."""

    state: services.State
    meaning: EmbeddingSpace | None
    why_not: str | None


class Assembly:
    """One store's parts. Models that are given win over those the settings name."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        chat_model: ChatModel | None,
        extract_model: ChatModel | None,
        embedder: Embedder | None,
    ) -> None:
        """Raises StoreError when the folder or file cannot be used, SchemaError for a newer one."""
        self.settings = settings
        self.clock = clock
        self.database = Database(settings.home)
        self.prompts = Prompts(settings.home / "prompts")
        self._given = (chat_model, extract_model)
        self.embedder = embedder
        self._lock = threading.RLock()
        self._sense: _Sense | None = None
        self._goes_along = False
        self._recall: Recall | None = None
        self._patience: QueryTimeout | None = None
        self._assembled: Parts | None = None

    @property
    def chat_model_known(self) -> bool:
        """Whether the chat model was given or made already."""
        return self._given[0] is not None

    def close(self) -> None:
        """Save the index of large scopes and let go of the files."""
        sense = self._sense
        if sense is not None and sense.meaning is not None and sense.meaning.index.unsaved:
            with self.database.write() as tx:
                if services.state(tx) == sense.state:
                    sense.meaning.index.save(tx)
        self.database.close()

    def recall(self) -> Recall:
        """The search, which is made without all else: a question waits for nothing that reads."""
        with self._lock:
            if self._recall is None:
                from memchat.memory.recall.search import Recall

                common = (self.database, self.settings, self.clock)
                self._recall = Recall(*common, self.meaning, self.meaning_at_hand)
            return self._recall

    def patience(self) -> QueryTimeout:
        """How long an answer waits for a question's vector."""
        with self._lock:
            if self._patience is None:
                from memchat.memory.embedding.timeout import QueryTimeout

                loads = self.embedder is None and loaded_here(self.settings.embed_model)
                find = self.recall().question
                self._patience = QueryTimeout(self.settings.embed_patience, find, loads=loads)
            return self._patience

    def parts(self) -> Parts:
        """What every chat of this store is made of."""
        with self._lock:
            if self._assembled is None:
                self._assembled = self._put_together()
            return self._assembled

    def _put_together(self) -> Parts:
        from memchat.chat import Parts
        from memchat.jobs import Worker
        from memchat.memory.commands.execute import Commands
        from memchat.memory.extraction.learner import Learner
        from memchat.memory.recall.model_filter import ModelFilter
        from memchat.memory.recall.prompt_block import Block

        common = (self.database, self.settings)
        learner = Learner(*common, self.prompts, self.clock, self.extract_model, self.meaning)
        return Parts(
            database=self.database,
            settings=self.settings,
            prompts=self.prompts,
            clock=self.clock,
            model=self.chat_model,
            recall=self.recall(),
            block=Block(*common, self.prompts, self.recall()),
            patience=self.patience(),
            drop_vectors=self.drop_vectors,
            relevance=(
                ModelFilter(self.prompts, self.extract_model)
                if self.settings.filter_pinned
                else None
            ),
            worker=Worker(*common, self.clock, learner, self.meaning, self.drop_vectors),
            commands=Commands(
                *common,
                self.prompts,
                self.clock,
                self.recall(),
                self.patience(),
                self.drop_vectors,
                self.embeds,
            ),
        )

    def chat_model(self) -> ChatModel:
        """The model that answers."""
        with self._lock:
            if self._given[0] is None:
                from memchat.providers import choose

                self._given = (choose.chat_model(self.settings), self._given[1])
            model = self._given[0]
        assert model is not None
        return model

    def extract_model(self) -> ChatModel:
        """The cheaper model that reads ended conversations."""
        with self._lock:
            if self._given[1] is None:
                from memchat.providers import choose

                self._given = (self._given[0], choose.extract_model(self.settings))
            model = self._given[1]
        assert model is not None
        return model

    def meaning(self) -> tuple[EmbeddingSpace | None, str | None]:
        """The store's sense of meaning, or None and why there is none; made at first need, and
        again when another process has changed the service."""
        with self._lock:
            with self.database.read() as tx:
                state = services.state(tx)
            if self._sense is None or self._sense.state != state:
                self._sense = self._make_meaning(opening=not self._goes_along)
                self._goes_along = True
            return self._sense.meaning, self._sense.why_not

    def meaning_at_hand(self, tx: Connection) -> tuple[EmbeddingSpace | None, str | None] | None:
        """The same in a caller's transaction, or None where it must be made first: that may ask a
        provider, which no transaction waits for."""
        sense = self._sense
        if sense is None or sense.state != services.state(tx):
            return None
        return sense.meaning, sense.why_not

    def go_along(self) -> None:
        """Take the store's service whatever the settings name: a person just changed it here."""
        self._goes_along = True

    def warm(self) -> None:
        """Load the embedding model of this machine, where one was chosen, before it is asked."""
        if self.embedder is not None:
            return
        try:
            meaning, _ = self.meaning()
            if meaning is not None and meaning.embedder.service.local:
                meaning.embedder.embed_query("warm")
        except MemChatError as error:
            log.warning("the embedding model was not loaded: %s", error)  # the question says it too

    def _make_meaning(self, *, opening: bool) -> _Sense:
        """The sense of meaning of the service in use; of one to begin with in a new store."""
        from memchat.memory.embedding.space import EmbeddingSpace
        from memchat.vectors.index import VectorIndex

        with self.database.read() as tx:
            state = services.state(tx)
            stored = services.get(tx, state[0]) if state[0] is not None else None
            filled = state[0] is not None and embeddings.any_of(tx, state[0])
            coming_id = services.coming(tx)
            coming = services.get(tx, coming_id) if coming_id is not None else None
            store_id = meta.get(tx, "store_id")
        if stored is not None and filled:
            embedder, why_not = self._embedder_of(stored, coming, opening=opening)
        else:
            embedder, why_not = self._first_embedder(stored)
        if embedder is None:
            return _Sense(state, None, why_not)
        if state[0] is None or store_id is None or not embedder.service.same_space(stored):
            self._begin_with(embedder.service, state)
            return self._make_meaning(opening=opening)
        index = VectorIndex(self.settings.home, store_id, state[0], embedder.service)
        return _Sense(state, EmbeddingSpace(self.database, embedder, index, state[0]), None)

    def _begin_with(self, service: Service, state: services.State) -> None:
        """Make it the store's, unless another process was quicker."""
        with self.database.write() as tx:
            meta.store_id(tx)
            if services.state(tx) == state:
                services.use(tx, services.register(tx, service, self.clock()))

    def _first_embedder(self, stored: Service | None) -> tuple[Embedder | None, str | None]:
        """The one for a store without vectors: the one given, the one named, or the one that it
        was begun with."""
        from memchat.providers import choose

        if self.embedder is not None:
            return self.embedder, None
        if stored is not None and not choose.asked_for(self.settings):
            return choose.embedder_of(self.settings, stored)
        return choose.embedder_or_why(self.settings)

    def _embedder_of(
        self, stored: Service, coming: Service | None, *, opening: bool
    ) -> tuple[Embedder | None, str | None]:
        """The one whose vectors the store has.

        Raises SchemaError where, on opening, a person named another that the store is not changing
        to. A running process goes along with a change.
        """
        from memchat.providers import choose

        wanted, why_not = self.embedder, None
        if wanted is None and choose.asked_for(self.settings):
            wanted, why_not = choose.embedder_or_why(self.settings)
            if wanted is None:
                return None, why_not
        if wanted is not None and wanted.service.same_space(stored):
            return wanted, None
        if wanted is not None and opening and not wanted.service.same_space(coming):
            raise SchemaError(_foreign(stored, wanted.service))
        return choose.embedder_of(self.settings, stored)

    def embeds(self) -> bool:
        """Whether there is something to make vectors with. Loads nothing and asks nobody."""
        if self.embedder is not None:
            return True
        from memchat.providers import choose

        return choose.possible(self.in_force())

    def in_force(self) -> Settings:
        """The settings with the embedding model that counts in this store."""
        from memchat.providers import choose

        with self.database.read() as tx:
            in_use = services.in_use(tx)
            stored = services.get(tx, in_use) if in_use is not None else None
        return choose.for_store(self.settings, stored.name if stored is not None else None)

    def drop_vectors(self, tx: Connection, app_ids: Iterable[int]) -> None:
        """Drop the saved vectors of scope rows, loaded or not, before the forgetting is committed:
        they can always be made again."""
        from memchat.vectors import index

        store_id, known = meta.get(tx, "store_id"), services.ids(tx)
        for app_id in app_ids:
            if self._sense is not None and self._sense.meaning is not None:
                self._sense.meaning.index.forget(app_id)
            if store_id is not None:
                index.unlink(self.settings.home, store_id, known, app_id)


def _foreign(stored: Service, named: Service) -> str:
    version = stored.version != named.version and stored.name == named.name
    held, other = (
        f"{one.name}{f' ({one.version})' if version else ''} with {one.dimensions} numbers"
        for one in (stored, named)
    )
    return (
        f"the vectors of this store are of {held}, not of {other}: run memchat services migrate "
        f"{named.name}, or unset MEMCHAT_EMBED_MODEL to stay with {stored.name}"
    )
