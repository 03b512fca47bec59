"""The store's embedding service with the index over its vectors, and the vectors of questions.

Where the service fails or takes too long, only words are searched, and the question says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memchat.db import Tx
from memchat.db.database import Database
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError
from memchat.search import embeddings
from memchat.search.batches import checked_vectors, embed_documents, embed_queries, provider_errors
from memchat.search.passages import text_hash
from memchat.types import Usage, clean_text

if TYPE_CHECKING:
    from memchat.providers import Embedder, Vectors
    from memchat.search.vector_index import VectorIndex

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

    def cached(self, tx: Tx, text: str) -> Question:
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


STRETCH = 4
"""A service whose last answer took up to so many times the limit is waited for so long; one that
takes longer is said to hang."""
LOADING = 10.0
"""Seconds that the first question waits for a model that is being loaded."""
LOST = 60.0
"""Seconds after which a question is given up, and a service that hung is tried again."""


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A question whose vector is being made."""

    text: str
    future: Future[Question]

    def arrived(self) -> Question | None:
        """The question with its vector, where that is there by now; None also after a failure."""
        if not self.future.done() or self.future.exception() is not None:
            return None
        return self.future.result()


class QueryTimeout:
    """Makes a question's vector in a thread of its own, and waits for it no longer than a limit.

    The service goes on meanwhile, and a late vector is kept for the next time. A service whose
    last answer took a little longer than the limit, as one on the network may, is given that time;
    one that hangs or has not answered yet is not, and while it hangs no new question is sent. A
    model that this machine has to load first is waited for once, for ``LOADING`` seconds at most.
    Safe in several threads.
    """

    def __init__(
        self, seconds: float, embed: Callable[[str], Question], *, loads: bool = False
    ) -> None:
        """``embed`` gives the question with its vector, however long that takes; ``loads`` says
        that its first answer waits for a model to be loaded."""
        self._seconds = seconds
        self._embed = embed
        self._loading = LOADING if loads else 0.0
        """Seconds to wait for the loading; 0 once it is done, or took too long."""
        self._last: float | None = None
        self._open: dict[Future[Question], float] = {}
        """When each question without an answer was sent."""
        self._lock = threading.Lock()

    def start(self, text: str) -> PendingQuery:
        """Begin to make the vector, unless the service hangs: then only words are searched."""
        query = PendingQuery(text, Future())
        with self._lock:
            hangs = self._hangs()
            if not hangs:
                self._open[query.future] = time.monotonic()
        if hangs:
            why = "the embedding service still owes an earlier answer"
            query.future.set_result(_without_vector(text, why))
            return query
        threading.Thread(
            target=self._run, args=(query,), name="memchat-question", daemon=True
        ).start()
        return query

    def wait(self, query: PendingQuery, seconds: float | None = None) -> Question:
        """The question with its vector, or without where that takes too long, or ``seconds``.

        Raises what making it raised, e.g. SchemaError for the vectors of another service.
        """
        limit = self._limit() if seconds is None else seconds
        try:
            return query.future.result(timeout=limit)
        except NotYet:
            if seconds is None:
                self._last = None  # the time it took before says nothing about the next
                self._loading = 0.0
            return _without_vector(
                query.text,
                f"the embedding service did not answer within {limit:g} s; "
                "MEMCHAT_EMBED_PATIENCE gives it longer",
            )

    def _hangs(self) -> bool:
        """Whether an earlier question has waited longer than the longest limit."""
        now = time.monotonic()
        self._open = {
            future: begun
            for future, begun in self._open.items()
            if not future.done() and now - begun < LOST
        }
        limit = max(STRETCH * self._seconds, self._loading)
        return any(now - begun > limit for begun in self._open.values())

    def _limit(self) -> float:
        late = self._last is not None and self._seconds < self._last <= STRETCH * self._seconds
        return max(self._seconds * (STRETCH if late else 1), self._loading)

    def _run(self, query: PendingQuery) -> None:
        started = time.monotonic()
        try:
            question = self._embed(query.text)
        except MemChatError as error:
            query.future.set_exception(error)
            return
        if question.usage is not None:
            # The time that loading took says nothing about the next answer.
            self._last = None if self._loading else time.monotonic() - started
            self._loading = 0.0
        query.future.set_result(question)


def _without_vector(text: str, why: str) -> Question:
    return Question(shortened(clean_text(text)), degraded=f"searched by words only: {why}")
