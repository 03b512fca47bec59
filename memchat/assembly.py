"""Putting memchat together: models, the sense of meaning, the worker, what a chat is made of.

Each is made at its first need, and once: opening a store costs no model.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import MemChatError, SchemaError
from memchat.prompts import Prompts
from memchat.store import embeddings, meta
from memchat.store.database import Database

if TYPE_CHECKING:
    from memchat.chat import Parts
    from memchat.memory.meaning import Meaning
    from memchat.providers import ChatModel, Embedder

log = logging.getLogger(__name__)


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
        self._embedder = embedder
        self._lock = threading.RLock()
        self._sense: tuple[Meaning | None, str | None] | None = None
        self._assembled: Parts | None = None

    @property
    def chat_model_known(self) -> bool:
        """Whether the chat model was given or made already."""
        return self._given[0] is not None

    def close(self) -> None:
        """Save the index of large scopes and let go of the files."""
        if self._sense is not None and self._sense[0] is not None:
            with self.database.read() as tx:
                self._sense[0].index.save(tx)
        self.database.close()

    def parts(self) -> Parts:
        """What every chat of this store is made of."""
        from memchat.chat import Parts
        from memchat.jobs import Worker
        from memchat.memory.commands import Commands
        from memchat.memory.learn import Learner
        from memchat.memory.patience import Patience
        from memchat.memory.recall import Recall
        from memchat.memory.relevance import Relevance

        with self._lock:
            if self._assembled is None:
                common = (self.database, self.settings)
                learner = Learner(
                    *common, self.prompts, self.clock, self.extract_model, self.meaning
                )
                recall = Recall(*common, self.prompts, self.clock, self.meaning)
                patience = Patience(self.settings.embed_patience, recall.question)
                self._assembled = Parts(
                    database=self.database,
                    settings=self.settings,
                    prompts=self.prompts,
                    clock=self.clock,
                    model=self.chat_model,
                    recall=recall,
                    patience=patience,
                    relevance=(
                        Relevance(self.prompts, self.extract_model)
                        if self.settings.filter_pinned
                        else None
                    ),
                    worker=Worker(*common, self.clock, learner, self.meaning, self.drop_vectors),
                    commands=Commands(
                        *common,
                        self.prompts,
                        self.clock,
                        recall,
                        patience,
                        self.drop_vectors,
                        self.embeds,
                    ),
                )
            return self._assembled

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

    def meaning(self) -> tuple[Meaning | None, str | None]:
        """The store's sense of meaning, or None and why there is none; made at first need."""
        with self._lock:
            if self._sense is None:
                self._sense = self._make_meaning()
            return self._sense

    def warm(self) -> None:
        """Load the embedding model of this machine, where one was chosen, before it is asked."""
        if self._embedder is not None:
            return
        try:
            meaning, _ = self.meaning()
            if meaning is not None and meaning.embedder.service.local:
                meaning.embedder.embed_query("warm")
        except MemChatError as error:
            log.warning("the embedding model was not loaded: %s", error)  # the question says it too

    def _make_meaning(self) -> tuple[Meaning | None, str | None]:
        from memchat.memory.meaning import Meaning
        from memchat.providers import choose
        from memchat.vectors.index import VectorIndex

        embedder, why_not = self._embedder, None
        if embedder is None:
            embedder, why_not = choose.embedder_for(self.settings, self._stored_service())
        if embedder is None:
            return None, why_not
        service = embedder.service
        with self.database.write() as tx:
            stored = meta.get(tx, "service_id")
            service_id = embeddings.register(tx, service, self.clock())
            if stored is not None and not embeddings.any_of(tx, int(stored)):
                stored = None  # chosen once, but nothing was ever embedded with it
            if stored is not None and int(stored) != service_id:
                known = embeddings.service(tx, int(stored))
                held = known.name if known else "another service"
                sizes = f"{known.dimensions if known else '?'} and {service.dimensions} numbers"
                raise SchemaError(
                    f"the vectors of this store are {held}'s and not {service.name}'s ({sizes} "
                    f"each); set MEMCHAT_EMBED_MODEL={held}, or begin a new store with MEMCHAT_HOME"
                )
            if stored is None:
                meta.put(tx, "service_id", str(service_id))
                meta.put(tx, "embed_dim", str(service.dimensions))
            store_id = meta.store_id(tx)
        index = VectorIndex(self.settings.home, store_id, service_id, service)
        return Meaning(self.database, embedder, index, service_id), None

    def _stored_service(self) -> str | None:
        with self.database.read() as tx:
            stored = meta.get(tx, "service_id")
            known = embeddings.service(tx, int(stored)) if stored else None
        return known.name if known else None

    def embeds(self) -> bool:
        """Whether there is something to make vectors with. Loads nothing and asks nobody."""
        if self._embedder is not None:
            return True
        from memchat.providers import choose

        return choose.possible(self.settings, self._stored_service())

    def drop_vectors(self, tx: Connection, app_ids: Iterable[int]) -> None:
        """Drop the saved vectors of scope rows, loaded or not, before the forgetting is committed:
        they can always be made again."""
        from memchat.vectors import index

        store_id, service_id = meta.get(tx, "store_id"), meta.get(tx, "service_id")
        for app_id in app_ids:
            if self._sense is not None and self._sense[0] is not None:
                self._sense[0].index.forget(app_id)
            elif store_id is not None and service_id is not None:
                index.unlink(self.settings.home, store_id, int(service_id), app_id)
