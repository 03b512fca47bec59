"""For tests of programs built on memchat: a scripted chat model, a fixed clock, a simple embedder.

    model = ScriptedModel(["Hello!", ProviderError("down")])
    with MemChat(chat_model=model, clock=FakeClock()) as mc: ...

``HashEmbedder`` needs neither weights nor a network, and finds only texts with equal words.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memchat.providers import Completion, ToolCall
from memchat.providers.embedders import HashEmbedder
from memchat.providers.litellm_calls import empty_answer
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

__all__ = [
    "Broken",
    "Calls",
    "FakeClock",
    "HashEmbedder",
    "Request",
    "ScriptedModel",
    "ScriptedStream",
    "all_hold",
    "same_answer",
]


@dataclass(frozen=True, slots=True)
class Broken:
    """A reply that breaks off after this text; ``complete`` raises the error at once.

    Without an error its stream just ends, as if the provider had forgotten to say that it is over.
    """

    text: str
    error: Exception | None = None


class Calls:
    """A reply that calls tools, after the text where there is one.

    Calls(("forget", {"what": "my city"}))
    Calls(("remember", '{"quote": '), text="Certainly.")  # arguments that are no JSON
    """

    def __init__(self, *made: tuple[str, dict[str, Any] | str], text: str = "") -> None:
        self.text = text
        self.made = tuple(
            ToolCall(name, given if isinstance(given, str) else json.dumps(given))
            for name, given in made
        )


Reply = str | Exception | Broken | Calls | Callable[[Sequence[ChatMessage]], str]


@dataclass(frozen=True, slots=True)
class Request:
    """One call a scripted model got."""

    messages: tuple[ChatMessage, ...]
    purpose: str
    schema: dict[str, Any] | None = None
    tools: tuple[str, ...] = ()
    """The names of the tools it was offered."""


class ScriptedModel:
    """A ``ChatModel`` that gives the replies of a queue, in order, and records what it was sent.

    A reply is a text, an exception to raise, ``Broken``, ``Calls``, or a function of the messages.
    An empty queue raises AssertionError: the test made more calls than it said. With ``tools`` it
    is a model that can call them.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        window: int = 8192,
        name: str = "scripted/model",
        schema_mode: bool = False,
        tools: bool = False,
        sees: bool = False,
    ) -> None:
        self.replies: deque[Reply] = deque(replies)
        self.requests: list[Request] = []
        self.streams: list[ScriptedStream] = []
        self.name = name
        self.window = window
        self.stand_in = False
        self.schema_mode = schema_mode
        self.tools = tools
        self.sees = sees
        self.second_look: Callable[[Request], str] = all_hold
        """What it answers when it is asked to look again at proposals: that all of them hold."""

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ScriptedStream:
        """The next reply, word by word; what it raises is raised from the iteration."""
        names = tuple(tool["function"]["name"] for tool in tools)
        reply = self._next(Request(tuple(messages), "chat", tools=names))
        stream = ScriptedStream(self, messages, reply)
        self.streams.append(stream)
        return stream

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """The next reply, whole. A second look is not in the script: ``second_look`` answers it."""
        if purpose == "verify":
            request = Request(tuple(messages), purpose, schema)
            self.requests.append(request)
            text = self.second_look(request)
            return Completion(text, _usage(purpose, self.name, messages, text))
        reply = self._next(Request(tuple(messages), purpose, schema))
        if isinstance(reply, Broken):
            raise reply.error or empty_answer(self.name)
        text = _text(reply, messages)
        if not text:
            raise empty_answer(self.name)
        return Completion(text, _usage(purpose, self.name, messages, text))

    def _next(self, request: Request) -> Reply:
        self.requests.append(request)
        if not self.replies:
            raise AssertionError(
                f"no reply is left in the script for this call ({request.purpose})"
            )
        return self.replies.popleft()


class ScriptedStream:
    """A scripted reply as it arrives; ``closed`` tells whether it was closed or read to its end."""

    def __init__(self, model: ScriptedModel, messages: Sequence[ChatMessage], reply: Reply) -> None:
        self._model = model
        self._messages = messages
        self._reply = reply
        self._said: list[str] = []
        self._whole = False
        self.closed = False

    def __iter__(self) -> Iterator[str]:
        """Words with the white space behind them, then the error of a ``Broken`` reply."""
        broken = self._reply if isinstance(self._reply, Broken) else None
        text = broken.text if broken else _text(self._reply, self._messages)
        try:
            for piece in re.findall(r"\s*\S+\s*", text) or ([text] if text else []):
                if self.closed:
                    return
                self._said.append(piece)
                yield piece
            if broken and broken.error:
                raise broken.error
            self._whole = not (broken or self.closed)
            if not text and not self.calls:
                raise empty_answer(self._model.name)
        finally:
            self.closed = True

    def close(self) -> None:
        """Stop the reply."""
        self.closed = True

    @property
    def whole(self) -> bool:
        """Whether it was read to an end of its own."""
        return self._whole

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools the reply calls; none before its end."""
        return self._reply.made if isinstance(self._reply, Calls) and self._whole else ()

    @property
    def usage(self) -> Usage:
        """Estimated tokens; a scripted model costs nothing."""
        return _usage("chat", self._model.name, self._messages, "".join(self._said))


def all_hold(request: Request) -> str:
    """The answer to a second look by a model that believes every proposal."""
    return same_answer(request, {"answer": "holds", "tells": True})


def same_answer(request: Request, answer: dict[str, Any]) -> str:
    """The answer to a second look that says the same of every proposal."""
    sent = request.messages[1].content.partition("\n")[2].rpartition("\n")[0]
    verdicts = [{"id": item["id"], **answer} for item in json.loads(sent)["candidates"]]
    return json.dumps({"verdicts": verdicts})


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
    if isinstance(reply, Calls):
        return reply.text
    return reply if isinstance(reply, str) else reply(messages)


def _usage(purpose: str, name: str, messages: Sequence[ChatMessage], text: str) -> Usage:
    sent = sum(estimate_tokens(message.content) for message in messages)
    return Usage(purpose, name, sent, estimate_tokens(text), 0.0, 0.0)
