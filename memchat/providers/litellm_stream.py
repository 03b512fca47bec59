"""A streamed reply of a chat model, over litellm."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memchat.providers import ToolCall
from memchat.providers.finish_detector import FinishDetector
from memchat.providers.litellm_setup import call_errors, litellm
from memchat.providers.litellm_usage import chat_usage
from memchat.providers.provider_errors import CallContext, empty_answer, translate
from memchat.providers.tool_call_builder import ToolCallBuilder
from memchat.types import REPLY_LIMIT, ChatMessage, Usage

log = logging.getLogger(__name__)


class LiteLLMStream:
    """A ``ChatStream`` over litellm. Leaving the iteration early closes it."""

    def __init__(
        self,
        model: str,
        options: dict[str, Any],
        messages: Sequence[ChatMessage],
        call: CallContext,
        tools_refused: Callable[[], None],
    ) -> None:
        self._model = model
        self._options = options
        self._messages = messages
        self._call = call
        self._tools_refused = tools_refused
        self._tool_calls = ToolCallBuilder()
        self._whole = False
        self._closed = threading.Event()
        self._wrapper: Any = None
        self._finish: FinishDetector | None = None
        self._pieces: list[str] = []
        self._seen: Any = None
        self._started = time.perf_counter()
        self._ended: float | None = None

    def __iter__(self) -> Iterator[str]:
        """The non-empty pieces of text. Raises ProviderError, possibly after some pieces."""
        reason: str | None = None
        try:
            for chunk in self._chunks():
                if seen := getattr(chunk, "usage", None):
                    self._seen = seen
                if not chunk.choices:
                    continue
                reason = chunk.choices[0].finish_reason or reason
                delta = chunk.choices[0].delta
                for part in getattr(delta, "tool_calls", None) or ():
                    self._tool_calls.add(part)
                if self._tool_calls.size > REPLY_LIMIT:
                    return  # no tool takes so much: the model would never stop
                if piece := delta.content:
                    self._pieces.append(piece)
                    yield piece
            finished = reason is not None and self._finish is not None and self._finish.finished
            self._whole = finished and not self._closed.is_set()
            if not (self._pieces or self.calls or self._closed.is_set()):
                raise empty_answer(self._model, reason)
        finally:
            self.close()

    @property
    def whole(self) -> bool:
        """Whether the provider sent the reply to its end."""
        return self._whole

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tools called; empty where the reply broke off."""
        return self._tool_calls.calls if self._whole else ()

    def close(self) -> None:
        """Close the connection. May be called at any time, from any thread, more than once."""
        self._closed.set()
        self._ended = self._ended or time.perf_counter()
        connection: Any = getattr(self._wrapper, "completion_stream", None)
        if hasattr(connection, "close"):
            with contextlib.suppress(ValueError):  # a generator that another thread is running
                connection.close()

    @property
    def usage(self) -> Usage:
        """What the reply took: the provider's figures, or an estimate where it sent none."""
        seconds = (self._ended or time.perf_counter()) - self._started
        arguments = (call.arguments for call in self._tool_calls.calls)
        came = "".join((*self._pieces, *arguments))
        return chat_usage("chat", self._model, self._messages, came, self._seen, seconds)

    def _chunks(self) -> Iterator[Any]:
        if self._closed.is_set():
            return
        self._started = time.perf_counter()
        try:
            yield from self._with_or_without_tools()
        except call_errors() as error:
            if not self._closed.is_set():  # reading from a closed stream is not a failure
                raise translate(error, self._call) from error

    def _with_or_without_tools(self) -> Iterator[Any]:
        """The chunks of the reply; if the tools are refused, of a second request without them."""
        begun = False
        try:
            for chunk in self._request():
                begun = True
                yield chunk
            return
        except call_errors() as error:
            if begun or "tools" not in self._options or not _refuses_tools(error):
                raise
        log.info("%s takes no tools; the request is repeated without them", self._model)
        self._tools_refused()
        del self._options["tools"]
        yield from self._request()

    def _request(self) -> Iterator[Any]:
        module = litellm()
        from memchat.providers.bounded_call import ANSWER_BYTES, STREAM_BYTES, BoundedCall

        call = BoundedCall(self._model, self._call.timeout, most=STREAM_BYTES, line=ANSWER_BYTES)
        with call:
            self._wrapper = module.completion(**self._options)
        self._finish = FinishDetector(self._wrapper)
        chunks = iter(self._wrapper)
        while True:
            with call:
                chunk = next(chunks, None)
            if chunk is None:
                return
            if self._closed.is_set():
                self.close()  # the connection was not there yet, or busy, when that was asked for
                return
            yield chunk
            if _has_words(chunk):
                call.feed()  # only now, as whoever reads may have taken their time


def _has_words(chunk: Any) -> bool:
    """Whether a chunk brings the reply on; an empty one only shows that somebody is there."""
    delta = chunk.choices[0].delta if chunk.choices else None
    return any(
        getattr(delta, name, None) for name in ("content", "tool_calls", "reasoning_content")
    )


def _refuses_tools(error: Exception) -> bool:
    """Whether an endpoint refused the request because of its tools."""
    status = getattr(error, "status_code", None)
    said = re.search(r"\btools?\b|function[ _-]?call", str(error), re.IGNORECASE)
    return status in (400, 404, 405, 422, 501) and said is not None
