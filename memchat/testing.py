"""Doubles for tests of what is built on memchat: a scripted chat model, a clock that stands still.

    model = ScriptedModel(["Hello!", ProviderError("down")])
    with MemChat(chat_model=model, clock=FakeClock()) as mc: ...

``HashEmbedder`` is here too: an embedder without weights or network that knows equal words only.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from memchat.errors import ProviderError
from memchat.providers import Completion
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

if TYPE_CHECKING:
    from memchat.providers.hashing import HashEmbedder

__all__ = ["Broken", "FakeClock", "HashEmbedder", "Request", "ScriptedModel", "ScriptedStream"]


@dataclass(frozen=True, slots=True)
class Broken:
    """A reply that breaks off after this text; ``complete`` raises the error at once."""

    text: str
    error: Exception


Reply = str | Exception | Broken | Callable[[Sequence[ChatMessage]], str]


@dataclass(frozen=True, slots=True)
class Request:
    """One call a scripted model got."""

    messages: tuple[ChatMessage, ...]
    purpose: str
    schema: dict[str, Any] | None = None


class ScriptedModel:
    """A ``ChatModel`` that gives the replies of a queue, in order, and records what it was sent.

    A reply is a text, an exception to raise, ``Broken``, or a function of the messages. An empty
    queue raises AssertionError: the test made more calls than it said.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        window: int = 8192,
        name: str = "scripted/model",
        schema_mode: bool = False,
    ) -> None:
        self.replies: deque[Reply] = deque(replies)
        self.requests: list[Request] = []
        self.streams: list[ScriptedStream] = []
        self.name = name
        self.window = window
        self.stand_in = False
        self.schema_mode = schema_mode

    def stream(self, messages: Sequence[ChatMessage]) -> ScriptedStream:
        """The next reply, word by word; what it raises is raised from the iteration."""
        stream = ScriptedStream(self, messages, self._next(messages, "chat", None))
        self.streams.append(stream)
        return stream

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """The next reply, whole."""
        reply = self._next(messages, purpose, schema)
        if isinstance(reply, Broken):
            raise reply.error
        text = _text(reply, messages)
        if not text:
            raise _silent(self.name)
        return Completion(text, _usage(purpose, self.name, messages, text))

    def _next(
        self, messages: Sequence[ChatMessage], purpose: str, schema: dict[str, Any] | None
    ) -> Reply:
        self.requests.append(Request(tuple(messages), purpose, schema))
        if not self.replies:
            raise AssertionError(f"no reply is left in the script for this call ({purpose})")
        return self.replies.popleft()


class ScriptedStream:
    """A scripted reply as it arrives; ``closed`` tells whether it was closed or read to its end."""

    def __init__(self, model: ScriptedModel, messages: Sequence[ChatMessage], reply: Reply) -> None:
        self._model = model
        self._messages = messages
        self._reply = reply
        self._text = ""
        self.closed = False

    def __iter__(self) -> Iterator[str]:
        """Words with the white space behind them, then the error of a ``Broken`` reply."""
        broken = self._reply if isinstance(self._reply, Broken) else None
        text = broken.text if broken else _text(self._reply, self._messages)
        try:
            for piece in re.findall(r"\s*\S+\s*", text) or ([text] if text else []):
                if self.closed:
                    return
                self._text += piece
                yield piece
            if broken:
                raise broken.error
            if not text:
                raise _silent(self._model.name)
        finally:
            self.closed = True

    def close(self) -> None:
        """Stop the reply."""
        self.closed = True

    @property
    def usage(self) -> Usage:
        """Estimated tokens; a scripted model costs nothing."""
        return _usage("chat", self._model.name, self._messages, self._text)


class FakeClock:
    """A clock that moves only when it is told to: call it for an aware UTC time."""

    def __init__(self, start: datetime = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock starts at an aware time")
        self.now = start.astimezone(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, *, seconds: float = 0, days: float = 0) -> datetime:
        """Move on by so much; the new time."""
        self.now += timedelta(seconds=seconds, days=days)
        return self.now


def _text(reply: Reply, messages: Sequence[ChatMessage]) -> str:
    if isinstance(reply, Exception):
        raise reply
    assert not isinstance(reply, Broken)
    return reply if isinstance(reply, str) else reply(messages)


def _silent(name: str) -> ProviderError:
    return ProviderError(f"{name} sent an empty answer; try again", retryable=True)


def _usage(purpose: str, name: str, messages: Sequence[ChatMessage], text: str) -> Usage:
    sent = sum(estimate_tokens(message.content) for message in messages)
    return Usage(purpose, name, sent, estimate_tokens(text), 0.0, 0.0)


def __getattr__(name: str) -> Any:
    if name == "HashEmbedder":
        from memchat.providers import hashing

        return hashing.HashEmbedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
