"""Chat, embedding and transcription models, behind three small interfaces.

``ChatModel`` streams a reply or gives one whole answer; ``Embedder`` turns texts into unit vectors;
``Transcriber`` turns speech into text.
Their implementations turn the errors of a provider's library into ProviderError or ConfigError, and
import that library at the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memchat.errors import ProviderError
from memchat.types import REPLY_LIMIT, ChatMessage, Service, Usage, clean_text

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
    """A call of a tool. ``arguments`` is the JSON that the model wrote, which may be invalid."""

    name: str
    arguments: str


class ChatStream(Protocol):
    """A reply as it arrives: iterate for non-empty pieces of text.

    A broken stream raises ProviderError after the pieces that came. ``close`` closes the connection
    and may be called at any time, more than once. ``usage`` is complete when the iteration has
    ended; after an early ``close`` it is an estimate. ``whole`` tells whether the provider sent the
    reply to its end. ``calls`` are the tools called, in their order; empty before that end.
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

    @property
    def stand_in(self) -> bool:
        """Whether this is the offline stand-in and no real model."""

    @property
    def window(self) -> int:
        """The model's context window in tokens."""

    @property
    def tools(self) -> bool:
        """Whether the model can call tools."""

    @property
    def sees(self) -> bool:
        """Whether the model is known to take pictures."""

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ChatStream:
        """Start a reply, with one request and no retry, as the user is waiting and can ask again.

        ``tools`` are function schemas in OpenAI's form that the model may call.
        """

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """One whole answer; with ``schema``, in the provider's JSON schema mode where it has one.

        Makes exactly one request; the caller decides about repair and retries.
        """

    @property
    def schema_mode(self) -> bool:
        """Whether the provider enforces a schema, so that the prompt need not contain it."""


class Embedder(Protocol):
    """Turns texts into unit vectors of one service."""

    @property
    def service(self) -> Service:
        """Whose vectors these are, and of which length."""

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, dimensions).

        Splits at the provider's batch limit. Raises ProviderError for vectors of a wrong size, with
        NaN or Inf, or of length zero.
        """

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector, shape (dimensions,)."""


class Transcriber(Protocol):
    """A model that writes down what is said."""

    def transcribe(self, name: str, data: bytes) -> Completion:
        """The words of an audio file; the ending of ``name`` tells its format."""


@runtime_checkable
class QueryBatchEmbedder(Protocol):
    """An ``Embedder`` that embeds many questions in one call; others need one call for each.

    Documents are not questions: many services embed the two differently.
    """

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` of each, in the order given, shape (n, dimensions)."""


TOO_LONG = f"The reply was ended at {REPLY_LIMIT:,} characters."
BROKEN_OFF = "The reply was cut off: the provider ended it without saying that it was complete."


class ReplyText:
    """The pieces of a stream as clean text, none of them empty.

    A character that arrives in two halves is joined again. ``cut`` says in one line why the reply
    ended early, or is None; at the limit the stream is closed.
    """

    def __init__(self, stream: ChatStream) -> None:
        self.cut: str | None = None
        self._stream = stream
        self._room = REPLY_LIMIT
        self._half = ""

    def __iter__(self) -> Iterator[str]:
        try:
            for piece in self._stream:
                clean = self._clean(piece)
                if fits := clean[: self._room]:
                    yield fits
                self._room -= len(clean)
                if self._room < 0:
                    self.cut = TOO_LONG
                    self._stream.close()
                    return
        except ProviderError:
            yield from self._left()
            raise
        yield from self._left()
        if not self._stream.whole:
            self.cut = BROKEN_OFF

    def _clean(self, piece: str) -> str:
        """A piece with the half character that was left before it, without the one it ends in."""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean_text(piece)

    def _left(self) -> Iterator[str]:
        """The half character at the end, if its other half never came."""
        if self._half and self._room:
            yield clean_text(self._half)
