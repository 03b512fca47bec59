"""Asking a service for vectors, where single texts may be at fault, or the service itself."""

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

IN_VAIN = 32
"""After so many failing calls in a row a plain word is asked for, to tell texts from service."""
PLAIN = {"": "hello"}
ABOUT_THE_TEXTS = (400, 413, 422)
"""Statuses by which a service refuses what it was sent, and not who sends or how much."""
QUESTIONS = 100
"""Questions in one call at most."""
USUAL_PAUSE = 20.0
"""Seconds, where a service at its limit does not say how long."""

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
        """What came of the rest of the batch, asked for again."""
        self.vectors |= later.vectors
        self.faults = later.faults
        self.spent += later.spent
        self.down = later.down


def embedded(embedder: Embedder, texts: Mapping[str, str]) -> Made:
    """Vectors of texts by their hash, fresh from the service.

    Raises ProviderError for any that cannot be stored, whatever the embedder lets pass.
    """
    with foreign_to(embedder):
        vectors, usage = embedder.embed_documents(list(texts.values()))
    return dict(zip(texts, checked(embedder, vectors, len(texts)), strict=True)), usage


def questioned(embedder: Embedder, texts: Mapping[str, str]) -> EmbeddingAnswer:
    """Vectors of questions by their hash, fresh from the service, together where it can do that.

    A question at fault costs no other its vector.
    """
    together = isinstance(embedder, QueryBatchEmbedder)

    def ask(some: Mapping[str, str]) -> Made:
        with foreign_to(embedder):
            if isinstance(embedder, QueryBatchEmbedder):
                vectors, usage = embedder.embed_queries(list(some.values()))
            else:
                (text,) = some.values()
                vector, usage = embedder.embed_query(text)
                vectors = vector[None]
        return dict(zip(some, checked(embedder, vectors, len(some)), strict=True)), usage

    return BatchSplitter(ask, QUESTIONS if together else 1).ask(texts)


def foreign_to(embedder: Embedder) -> AbstractContextManager[None]:
    """Around a call of an embedder: whatever is raised there that is no error of ours becomes a
    ProviderError, by its class alone. A text may be at fault: it keeps no other from its vector."""
    from memchat.providers.provider_errors import plugin_errors

    name = embedder.service.name
    return plugin_errors(
        lambda kind: ProviderError(
            f"{name} failed ({kind}); look at what makes its vectors, or name another model with "
            "MEMCHAT_EMBED_MODEL"
        )
    )


def checked(embedder: Embedder, vectors: Vectors | Sequence[Vectors], count: int) -> Vectors:
    """So many vectors of the service. Raises ProviderError where they cannot be that."""
    from memchat.providers.embedding_batches import unit_vectors

    service = embedder.service
    return unit_vectors(vectors, model=service.name, count=count, dimensions=service.dimensions)


class BatchSplitter:
    """One run of questions to a service, which may be asked in several threads."""

    def __init__(self, embed: Callable[[Mapping[str, str]], Made], batch: int) -> None:
        """``embed`` makes one call, of at most ``batch`` texts."""
        self._embed = embed
        self._batch = batch
        self._in_vain = 0

    def ask(self, texts: Mapping[str, str]) -> EmbeddingAnswer:
        """The vectors of these texts, by hash.

        A call that fails for what it was sent is halved, until the texts at fault stand alone.
        Where the service fails, it is asked no more, and all that is left fails with it.
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
                self._in_vain = 0
                answer.vectors |= vectors
                answer.spent.append(spent)
        return answer

    def _refuses_everything(self) -> bool:
        """Whether this failing call is one of many in a row, and a plain word fails as well."""
        self._in_vain += 1
        if self._in_vain < IN_VAIN:
            return False
        self._in_vain = 0
        try:
            self._embed(PLAIN)
        except MemChatError:
            return True
        return False


def asked_pause(error: MemChatError) -> float | None:
    """Seconds for which the service wants to be left alone, where it is that and not a failure."""
    if isinstance(error, ProviderError) and error.status == 429 and error.retryable:
        return USUAL_PAUSE if error.retry_after is None else error.retry_after
    return None


def _about_the_texts(error: MemChatError) -> bool:
    """Whether a text is at fault, or may be: then others of its batch can do without it."""
    if isinstance(error, ProviderError):
        unusable = error.status is None and not error.retryable
        return unusable or error.status in ABOUT_THE_TEXTS
    return isinstance(error, InputError)


def _cut(texts: Mapping[str, str], size: int) -> Iterator[Mapping[str, str]]:
    items = iter(texts.items())
    while some := dict(islice(items, size)):
        yield some
