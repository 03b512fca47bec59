"""Asks the store's embedding service: for the vectors of questions, and of many texts in batches.

A failing batch is split until the texts at fault stand alone. A service on the network is sent
several batches at once, as soon as it has answered once. Where it fails for a question, or takes
too long, only words are searched, and the question says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from memchat import waiting
from memchat.db import Tx
from memchat.db.database import Database
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError
from memchat.providers import QueryBatchEmbedder
from memchat.search import embeddings
from memchat.search.passages import text_hash
from memchat.types import Usage, clean_text

if TYPE_CHECKING:
    from memchat.db.database import VectorSearch
    from memchat.providers import Embedder, Vectors
    from memchat.types import Service


FAILURES_BEFORE_PROBE = 32
"""After so many failing calls in a row a plain word is sent: is it the texts, or the service?"""
PROBE = {"": "hello"}
ABOUT_THE_TEXTS = (400, 413, 422)
"""Statuses by which a service refuses the texts, and not the caller or the rate."""
QUERIES = 100
"""Questions in one call at most."""
USUAL_PAUSE = 20.0
"""Seconds to wait where a service at its limit does not say how long."""

Made = tuple[dict[str, "Vectors"], Usage]
T = TypeVar("T")


@dataclass(slots=True)
class EmbeddingAnswer:
    """What the service made of a batch: vectors and failures by the hash of their text."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    faults: dict[str, MemChatError] = field(default_factory=dict)
    spent: list[Usage] = field(default_factory=list)
    down: MemChatError | None = None
    """Why the service itself failed, where it did."""

    def add(self, other: EmbeddingAnswer) -> None:
        """Add the answer for other texts."""
        self.vectors |= other.vectors
        self.faults |= other.faults
        self.spent += other.spent
        self.down = self.down or other.down


def embed_documents(embedder: Embedder, texts: Mapping[str, str]) -> Made:
    """Vectors of texts by their hash, fresh from the service.

    Raises ProviderError for any that cannot be stored, whatever the embedder lets pass.
    """
    vectors, usage = _asked(embedder, lambda: embedder.embed_documents(list(texts.values())))
    return dict(zip(texts, checked_vectors(embedder, vectors, len(texts)), strict=True)), usage


def embed_queries(embedder: Embedder, texts: Mapping[str, str]) -> EmbeddingAnswer:
    """Vectors of questions by their hash, fresh from the service, together where it can do that.

    A question at fault costs no other its vector.
    """
    together = isinstance(embedder, QueryBatchEmbedder)

    def ask(some: Mapping[str, str]) -> Made:
        if isinstance(embedder, QueryBatchEmbedder):
            every = partial(embedder.embed_queries, list(some.values()))
            vectors, usage = _asked(embedder, every)
        else:
            (text,) = some.values()
            vector, usage = _asked(embedder, lambda: embedder.embed_query(text))
            vectors = vector[None]
        return dict(zip(some, checked_vectors(embedder, vectors, len(some)), strict=True)), usage

    return BatchSplitter(ask, QUERIES if together else 1).ask(texts)


def _asked(embedder: Embedder, call: Callable[[], T]) -> T:
    """What a call of an embedder gives: any error of another package becomes a ProviderError that
    names its class alone. It may be due to one text, so the batch is split as for a refusal."""
    from memchat.providers.embedders import plugin_errors
    from memchat.providers.litellm_calls import RemoteModel

    name = embedder.service.name
    with plugin_errors(
        lambda kind: ProviderError(
            f"{name} failed ({kind}); look at what makes its vectors, or name another model with "
            "MEMCHAT_EMBED_MODEL"
        )
    ):
        return call() if isinstance(embedder, RemoteModel) else waiting.in_executor(call)


def checked_vectors(
    embedder: Embedder, vectors: Vectors | Sequence[Vectors], count: int
) -> Vectors:
    """The vectors with unit length, so many. Raises ProviderError where they are not usable."""
    from memchat.providers.embedders import unit_vectors

    service = embedder.service
    return unit_vectors(vectors, model=service.name, count=count, dimensions=service.dimensions)


class BatchSplitter:
    """One run of calls to a service, which may be made in several threads."""

    def __init__(self, embed: Callable[[Mapping[str, str]], Made], batch: int) -> None:
        """``embed`` makes one call, of at most ``batch`` texts."""
        self._embed = embed
        self._batch = batch
        self._failures = 0

    def ask(self, texts: Mapping[str, str]) -> EmbeddingAnswer:
        """The vectors of these texts, by hash.

        A call that fails for what it was sent is halved, until the texts at fault stand alone.
        Where the service fails, no more calls are made, and all that is left fails with it.
        """
        answer = EmbeddingAnswer()
        todo = [dict(some) for some in _cut(texts, self._batch)][::-1]
        while todo:
            some = todo.pop()
            try:
                vectors, spent = self._embed(some)
            except MemChatError as error:
                if not _about_the_texts(error) or self._refuses_everything():
                    answer.down = error
                    for left in [some, *todo]:
                        answer.faults |= dict.fromkeys(left, error)
                    break
                if len(some) == 1:
                    answer.faults |= dict.fromkeys(some, error)
                else:
                    todo += [dict(half) for half in _cut(some, (len(some) + 1) // 2)][::-1]
            else:
                self._failures = 0
                answer.vectors |= vectors
                answer.spent.append(spent)
        return answer

    def _refuses_everything(self) -> bool:
        """Whether this failing call is one of many in a row, and the probe fails as well."""
        self._failures += 1
        if self._failures < FAILURES_BEFORE_PROBE:
            return False
        self._failures = 0
        try:
            self._embed(PROBE)
        except MemChatError:
            return True
        return False


def requested_pause(error: MemChatError) -> float | None:
    """Seconds that the service asks to wait, where it is at its rate limit; else None."""
    if isinstance(error, ProviderError) and error.status == 429 and error.retryable:
        return USUAL_PAUSE if error.retry_after is None else error.retry_after
    return None


def _about_the_texts(error: MemChatError) -> bool:
    """Whether a text is at fault, or may be: then the others of its batch are sent without it."""
    if isinstance(error, ProviderError):
        unusable = error.status is None and not error.retryable
        return unusable or error.status in ABOUT_THE_TEXTS
    return isinstance(error, InputError)


def _cut(texts: Mapping[str, str], size: int) -> Iterator[Mapping[str, str]]:
    items = iter(texts.items())
    while some := dict(islice(items, size)):
        yield some


def at_once(name: str, calls: Sequence[Callable[[], T]], most: int) -> list[Future[T]]:
    """Begin these calls, so many of them at once. A program that ends does not wait for them."""
    futures = [Future[T]() for _ in calls]
    todo: SimpleQueue[tuple[Callable[[], T], Future[T]]] = SimpleQueue()
    for pair in zip(calls, futures, strict=True):
        todo.put(pair)

    def work() -> None:
        with suppress(Empty):
            while True:
                call, future = todo.get_nowait()
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                    future.set_exception(error)

    for _ in range(min(most, len(calls))):
        waiting.beside(name, work)
    return futures


CALLS = 4
"""Concurrent calls to a service on the network; a model on this machine gets one at a time."""


class EmbeddingRounds:
    """Asks a service for many texts, some batches a round: the first alone, so that a service that
    answers nobody is asked once."""

    def __init__(
        self,
        service: Service,
        embed: Callable[[Mapping[str, str]], Made],
        batch: int,
        wait_to_retry: Callable[[MemChatError, int], bool],
    ) -> None:
        """``embed`` makes one call, of at most ``batch`` texts. ``wait_to_retry`` waits where a
        service that failed may answer later, and gives whether to ask again; its second argument is
        the number of retries before in the round.
        """
        self._most = 1 if service.local else CALLS
        self._batch = batch
        self._splitter = BatchSplitter(embed, batch)
        self._wait_to_retry = wait_to_retry
        self.size = batch
        """Texts for the next round."""

    def ask(self, texts: Mapping[str, str]) -> EmbeddingAnswer:
        """One round: the vectors of these texts, by hash. What a failing service did not answer is
        asked again, as often as ``wait_to_retry`` says."""
        answer, retries = self._ask(texts), 0
        while answer.down is not None and self._wait_to_retry(answer.down, retries):
            retries += 1
            answer.down = None
            answer.faults.clear()
            answer.add(self._ask({k: t for k, t in texts.items() if k not in answer.vectors}))
        if answer.vectors:
            self.size = self._most * self._batch
        return answer

    def _ask(self, texts: Mapping[str, str]) -> EmbeddingAnswer:
        answer = EmbeddingAnswer()
        calls = [partial(self._splitter.ask, some) for some in _cut(texts, self._batch)]
        for future in at_once("memchat-embed", calls, self._most):
            answer.add(waiting.result(future))
        return answer


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


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Embedder and index, of one service."""

    database: Database
    embedder: Embedder
    service: Service
    index: VectorSearch
    service_id: int
    recent: OrderedDict[str, Vectors] = field(default_factory=OrderedDict, repr=False)
    """The latest questions' vectors, by hash: a search writes nothing to disk."""

    def cached(self, tx: Tx, text: str) -> Question:
        """The question with the vector that it had when it was asked before, if it was."""
        key = embeddings.query_hash(text)
        found = embeddings.get(tx, self.service_id, [key]).get(key)
        vector = self.recent.get(key) if found is None else found
        return Question(text, vector, space=self, stored=found is not None)

    def embed_query(self, text: str) -> Question:
        """The question with a fresh vector of the service. Where the service fails, or cannot embed
        the text, it has none and says why."""
        try:
            vector, usage = _asked(self.embedder, lambda: self.embedder.embed_query(text))
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
        vectors, usage = embed_documents(self.embedder, new)
        return known | vectors, usage


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
BUSY = 1.0
"""Seconds that a model on this machine gets, which is late only where the machine is busy."""
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
    """Makes a question's vector beside, and waits for it no longer than a limit.

    The service goes on meanwhile, and a late vector is kept for the next time. A service whose
    last answer took a little longer than the limit, as one on the network may, is given that time;
    one that hangs or has not answered yet is not, and while it hangs no new question is sent. A
    model on this machine gets ``BUSY`` seconds, and ``LOADING`` seconds once, to be loaded. Safe in
    several threads.
    """

    def __init__(
        self, seconds: float, embed: Callable[[str], Question], *, local: bool = False
    ) -> None:
        """``embed`` gives the question with its vector, however long that takes; ``local`` says
        that a model on this machine makes it, which is loaded first. With no ``seconds`` at all
        that is given none either, once it is loaded."""
        self._seconds = seconds
        self._embed = embed
        self._busy = BUSY if local and seconds else 0.0
        self._loading = LOADING if local else 0.0
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
        waiting.beside("memchat-question", partial(self._run, query))
        return query

    def wait(self, query: PendingQuery, seconds: float | None = None) -> Question:
        """The question with its vector, or without where that takes too long, or ``seconds``.

        Raises what making it raised, e.g. SchemaError for the vectors of another service.
        """
        limit = self._limit() if seconds is None else seconds
        try:
            return waiting.result(query.future, limit)
        except TimeoutError:
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
        limit = max(STRETCH * self._seconds, self._busy, self._loading)
        return any(now - begun > limit for begun in self._open.values())

    def _limit(self) -> float:
        late = self._last is not None and self._seconds < self._last <= STRETCH * self._seconds
        return max(self._seconds * (STRETCH if late else 1), self._busy, self._loading)

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
