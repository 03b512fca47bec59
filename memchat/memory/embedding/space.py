"""The store's sense of meaning: one embedding service and the index over its vectors."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memchat.errors import ConfigError, InputError, ProviderError
from memchat.memory.embedding.batch_split import checked, embedded, foreign_to, questioned
from memchat.store import embeddings
from memchat.store.database import Database
from memchat.store.new_memory import text_hash
from memchat.types import Usage

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from memchat.providers import Embedder, Vectors
    from memchat.vectors.index import VectorIndex

log = logging.getLogger(__name__)

ASKED = 256
"""Questions whose vectors a process has at hand: a megabyte or two."""
QUESTION_LIMIT = 2_000
"""Characters of a message that search looks at: its beginning and its end."""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, with its vector where meaning takes part."""

    text: str
    vector: Vectors | None = None
    degraded: str | None = None
    meaning: EmbeddingSpace | None = None
    """Whose vector it is: it is compared with no other's."""
    kept: bool = False
    """Whether the vector is among the rows."""
    usage: Usage | None = None
    """Set where a provider was asked."""

    def answered(self) -> Question:
        """With its vector, for which the service is asked where it is not known yet.

        A failing service, or a text it can make nothing of, gives one without, which says why.
        """
        if self.meaning is None or self.vector is not None:
            return self
        return self.meaning.asked_for(self)


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Embedder and index, of one service."""

    database: Database
    embedder: Embedder
    index: VectorIndex
    service_id: int
    asked: OrderedDict[str, Vectors] = field(default_factory=OrderedDict, repr=False)
    """The latest questions' vectors, by hash: a search keeps nothing on disk."""

    def known(self, tx: Connection, text: str) -> Question:
        """The question with the vector that it had when it was asked before, if it was."""
        key = embeddings.query_hash(text)
        found = embeddings.get(tx, self.service_id, [key]).get(key)
        vector = self.asked.get(key) if found is None else found
        return Question(text, vector, meaning=self, kept=found is not None)

    def asked_for(self, question: Question) -> Question:
        """The question with a fresh vector of the service, or without and the reason."""
        text = question.text
        try:
            with foreign_to(self.embedder):
                vector, usage = self.embedder.embed_query(text)
            (vector,) = checked(self.embedder, [vector], 1)
        except (ProviderError, ConfigError, InputError) as error:
            return Question(text, degraded=f"searched by words only: {error}")
        self._keep(embeddings.query_hash(text), vector)
        return Question(text, vector, meaning=self, usage=usage)

    def questions(self, texts: Sequence[str]) -> tuple[dict[str, Vectors], list[Usage]]:
        """Vectors of questions by query hash: those known by now, the rest asked for together.

        A failing service, or a text it can make nothing of, leaves that text without one.
        """
        wanted = {embeddings.query_hash(text): text for text in texts}
        with self.database.read() as tx:
            known = embeddings.get(tx, self.service_id, list(wanted))
        at_hand = {key: self.asked.get(key) for key in wanted.keys() - known.keys()}
        known |= {key: vector for key, vector in at_hand.items() if vector is not None}
        new = {key: text for key, text in wanted.items() if key not in known}
        if not new:
            return known, []
        answer = questioned(self.embedder, new)
        if answer.faults:
            why = answer.down or next(iter(answer.faults.values()))
            log.warning("%d messages are searched by words only: %s", len(answer.faults), why)
        for key, vector in answer.vectors.items():
            self._keep(key, vector)
        return known | answer.vectors, answer.spent

    def _keep(self, key: str, vector: Vectors) -> None:
        self.asked[key] = vector
        while len(self.asked) > ASKED:
            with suppress(KeyError):  # another thread was quicker
                self.asked.popitem(last=False)

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
        """Vectors of texts by their hash, fresh from the service; see ``embedded``."""
        return embedded(self.embedder, texts)


def shortened(text: str) -> str:
    """A long message cut to its beginning and end."""
    if len(text) <= QUESTION_LIMIT:
        return text
    half = QUESTION_LIMIT // 2
    return f"{text[:half]} {text[-half:]}"
