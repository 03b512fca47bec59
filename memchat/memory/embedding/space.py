"""The store's embedding space: one embedding service and the index over its vectors."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memchat.errors import ConfigError, InputError, ProviderError
from memchat.memory.embedding.batch_split import (
    checked_vectors,
    embed_documents,
    embed_queries,
    provider_errors,
)
from memchat.store import embeddings
from memchat.store.database import Database
from memchat.store.new_memory import text_hash
from memchat.types import Usage

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from memchat.providers import Embedder, Vectors
    from memchat.vectors.vector_index import VectorIndex

log = logging.getLogger(__name__)

RECENT_QUERIES = 256
"""Questions whose vectors a process keeps in memory: a megabyte or two."""
QUESTION_LIMIT = 2_000
"""Characters of a message that search looks at: its beginning and its end."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text to search for, with its vector where vectors are searched."""

    text: str
    vector: Vectors | None = None
    degraded: str | None = None
    space: EmbeddingSpace | None = None
    """The space of the vector: it is compared with no other's."""
    stored: bool = False
    """Whether the vector is among the rows."""
    usage: Usage | None = None
    """Set where a provider was asked."""

    def with_vector(self) -> Question:
        """With its vector, which the service makes where it is not known yet.

        Where the service fails, or cannot embed the text, it has none and says why.
        """
        if self.space is None or self.vector is not None:
            return self
        return self.space.embed_query(self)


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Embedder and index, of one service."""

    database: Database
    embedder: Embedder
    index: VectorIndex
    service_id: int
    recent: OrderedDict[str, Vectors] = field(default_factory=OrderedDict, repr=False)
    """The latest questions' vectors, by hash: a search writes nothing to disk."""

    def cached(self, tx: Connection, text: str) -> Question:
        """The question with the vector that it had when it was asked before, if it was."""
        key = embeddings.query_hash(text)
        found = embeddings.get(tx, self.service_id, [key]).get(key)
        vector = self.recent.get(key) if found is None else found
        return Question(text, vector, space=self, stored=found is not None)

    def embed_query(self, question: Question) -> Question:
        """The question with a fresh vector of the service, or without and the reason."""
        text = question.text
        try:
            with provider_errors(self.embedder):
                vector, usage = self.embedder.embed_query(text)
            (vector,) = checked_vectors(self.embedder, [vector], 1)
        except (ProviderError, ConfigError, InputError) as error:
            return Question(text, degraded=f"searched by words only: {error}")
        self._keep(embeddings.query_hash(text), vector)
        return Question(text, vector, space=self, usage=usage)

    def questions(self, texts: Sequence[str]) -> tuple[dict[str, Vectors], list[Usage]]:
        """Vectors of questions by query hash: those known by now, the rest asked for together.

        Where the service fails, or cannot embed a text, that text has none.
        """
        wanted = {embeddings.query_hash(text): text for text in texts}
        with self.database.read() as tx:
            known = embeddings.get(tx, self.service_id, list(wanted))
        recent = {key: self.recent.get(key) for key in wanted.keys() - known.keys()}
        known |= {key: vector for key, vector in recent.items() if vector is not None}
        new = {key: text for key, text in wanted.items() if key not in known}
        if not new:
            return known, []
        answer = embed_queries(self.embedder, new)
        if answer.faults:
            why = answer.down or next(iter(answer.faults.values()))
            log.warning("%d messages are searched by words only: %s", len(answer.faults), why)
        for key, vector in answer.vectors.items():
            self._keep(key, vector)
        return known | answer.vectors, answer.spent

    def _keep(self, key: str, vector: Vectors) -> None:
        self.recent[key] = vector
        while len(self.recent) > RECENT_QUERIES:
            with suppress(KeyError):  # another thread removed it
                self.recent.popitem(last=False)

    def documents(self, texts: Sequence[str]) -> tuple[dict[str, Vectors], Usage | None]:
        """Vectors by text hash: those among the rows, the rest embedded in one batch."""
        wanted = {text_hash(text): text for text in texts}
        with self.database.read() as tx:
            known = embeddings.get(tx, self.service_id, list(wanted))
        new = {key: text for key, text in wanted.items() if key not in known}
        if not new:
            return known, None
        vectors, usage = self.embed(new)
        return known | vectors, usage

    def embed(self, texts: Mapping[str, str]) -> tuple[dict[str, Vectors], Usage]:
        """Vectors of texts by their hash, fresh from the service; see ``embed_documents``."""
        return embed_documents(self.embedder, texts)


def shortened(text: str) -> str:
    """A long message cut to its beginning and end."""
    if len(text) <= QUESTION_LIMIT:
        return text
    half = QUESTION_LIMIT // 2
    return f"{text[:half]} {text[-half:]}"
