"""Everything that talks to a model, behind two small ports.

``ChatModel`` streams a reply and gives one structured answer; ``Embedder`` turns texts into unit
vectors of one service. Adapters translate their library's errors into ProviderError or ConfigError;
nothing else leaves this room, and no provider's library is imported before its first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memchat.types import ChatMessage, Service, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer and what it took."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model calls. Its arguments are JSON as the model wrote it, broken perhaps."""

    name: str
    arguments: str


class ChatStream(Protocol):
    """A reply as it arrives: iterate for non-empty pieces of text.

    A broken stream raises ProviderError after the pieces that came. ``close`` cuts the connection
    and may be called at any time, also twice. ``usage`` is complete once the iteration ended; after
    an early ``close`` it holds an estimate. ``whole`` tells whether the reply came to an end that
    the provider gave it. ``calls`` are the tools called, in their order; there are none before that
    end.
    """

    def __iter__(self) -> Iterator[str]: ...
    def close(self) -> None: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def whole(self) -> bool: ...
    @property
    def calls(self) -> Sequence[ToolCall]: ...


class ChatModel(Protocol):
    """A model that answers."""

    @property
    def name(self) -> str:
        """The litellm model name."""
        ...

    @property
    def stand_in(self) -> bool:
        """Whether this is the offline stand-in and no real model."""
        ...

    @property
    def window(self) -> int:
        """The model's context window in tokens."""
        ...

    @property
    def tools(self) -> bool:
        """Whether the model can call tools."""
        ...

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ChatStream:
        """Start a reply. One request, no retry: a person is waiting and can ask again.

        ``tools`` are function schemas in OpenAI's form that the model may call.
        """
        ...

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """One whole answer; with ``schema``, in the provider's JSON schema mode where it has one.

        Makes exactly one request; who calls decides about repair and retries.
        """
        ...

    @property
    def schema_mode(self) -> bool:
        """Whether the provider enforces a schema, so that it need not stand in the prompt."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors, all of one service."""

    @property
    def service(self) -> Service: ...

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector a text, in the order given, shape (n, dimensions).

        Splits at the provider's batch limit; refuses wrong lengths, NaN, Inf and zero vectors.
        """
        ...

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector, shape (dimensions,)."""
        ...


@runtime_checkable
class AsksTogether(Protocol):
    """An ``Embedder`` that takes many questions in one call; others are asked for each alone.

    Not documents: many services embed the two differently.
    """

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` of each, in the order given, shape (n, dimensions)."""
        ...
