"""Asking a service for vectors: a failing batch is split until the texts at fault stand alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from memchat.errors import InputError, MemChatError, ProviderError
from memchat.providers import QueryBatchEmbedder
from memchat.types import Usage

if TYPE_CHECKING:
    from memchat.providers import Embedder, Vectors

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


@dataclass(slots=True)
class EmbeddingAnswer:
    """What the service made of a batch: vectors and failures by the hash of their text."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    faults: dict[str, MemChatError] = field(default_factory=dict)
    spent: list[Usage] = field(default_factory=list)
    down: MemChatError | None = None
    """Why the service itself failed, where it did."""

    @property
    def keys(self) -> set[str]:
        """The hashes of all that was asked."""
        return self.vectors.keys() | self.faults.keys()

    def add(self, later: EmbeddingAnswer) -> None:
        """Add the answer for the rest of the batch, which was sent again."""
        self.vectors |= later.vectors
        self.faults = later.faults
        self.spent += later.spent
        self.down = later.down


def embed_documents(embedder: Embedder, texts: Mapping[str, str]) -> Made:
    """Vectors of texts by their hash, fresh from the service.

    Raises ProviderError for any that cannot be stored, whatever the embedder lets pass.
    """
    with provider_errors(embedder):
        vectors, usage = embedder.embed_documents(list(texts.values()))
    return dict(zip(texts, checked_vectors(embedder, vectors, len(texts)), strict=True)), usage


def embed_queries(embedder: Embedder, texts: Mapping[str, str]) -> EmbeddingAnswer:
    """Vectors of questions by their hash, fresh from the service, together where it can do that.

    A question at fault costs no other its vector.
    """
    together = isinstance(embedder, QueryBatchEmbedder)

    def ask(some: Mapping[str, str]) -> Made:
        with provider_errors(embedder):
            if isinstance(embedder, QueryBatchEmbedder):
                vectors, usage = embedder.embed_queries(list(some.values()))
            else:
                (text,) = some.values()
                vector, usage = embedder.embed_query(text)
                vectors = vector[None]
        return dict(zip(some, checked_vectors(embedder, vectors, len(some)), strict=True)), usage

    return BatchSplitter(ask, QUERIES if together else 1).ask(texts)


def provider_errors(embedder: Embedder) -> AbstractContextManager[None]:
    """Around a call of an embedder: any error of another package becomes a ProviderError that names
    its class alone. It may be due to one text, so the batch is split as for a refusal."""
    from memchat.providers.provider_errors import plugin_errors

    name = embedder.service.name
    return plugin_errors(
        lambda kind: ProviderError(
            f"{name} failed ({kind}); look at what makes its vectors, or name another model with "
            "MEMCHAT_EMBED_MODEL"
        )
    )


def checked_vectors(
    embedder: Embedder, vectors: Vectors | Sequence[Vectors], count: int
) -> Vectors:
    """The vectors with unit length, so many. Raises ProviderError where they are not usable."""
    from memchat.providers.embedding_batches import unit_vectors

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
