"""Chat models and speech to text through litellm.

Each call makes one request and nothing is tried again, except that a request whose tools the
endpoint refuses is repeated without them. A reply that broke off is told from a finished one, and
text beyond the maximum length of a reply is cut off.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from memchat.config.providers import DEFAULT_WINDOW, provider_of
from memchat.providers import Completion, ToolCall, litellm_calls
from memchat.types import REPLY_LIMIT, ChatMessage, Usage, clean_text


class FinishDetector:
    """Whether the provider sent a finish reason for a streamed reply.

    litellm invents one where none came. Its own fields show that for most providers; for Gemini the
    lines are searched before litellm parses them.
    """

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._gemini_finished: bool | None = None
        call = getattr(wrapper, "make_call", None)
        if call is not None:
            wrapper.make_call = lambda **given: self._watched(call(**given))

    @property
    def finished(self) -> bool:
        """Whether a finish reason came, as far as the stream was read."""
        if self._gemini_finished is not None:
            return self._gemini_finished
        fields = ("received_finish_reason", "intermittent_finish_reason")
        return any(getattr(self._wrapper, name, None) for name in fields)

    def _watched(self, stream: Any) -> Any:
        if type(stream).__module__.startswith("litellm.llms.vertex_ai.gemini"):
            self._gemini_finished = False
            stream.streaming_response = self._lines(stream.streaming_response)
        return stream

    def _lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._gemini_finished = self._gemini_finished or '"finishReason"' in line
            yield line


class ToolCallBuilder:
    """Tool calls, built from the parts in which they are streamed."""

    def __init__(self) -> None:
        self._parts: list[tuple[object, object, list[str], list[str]]] = []
        self.size = 0
        """Characters of all arguments."""

    def add(self, part: Any) -> None:
        """Add a part to the call with the same index, or begin the next call."""
        called = part.function
        at, key = part.index, part.id
        known = next((p for p in reversed(self._parts) if p[0] == at), None)
        # Some endpoints give every call index 0: a new name and id then begin a new call.
        if known is None or (called.name and key and known[1] and key != known[1]):
            known = (at, key, [], [])
            self._parts.append(known)
        known[2].append(called.name or "")
        known[3].append(called.arguments or "")
        self.size += len(called.arguments or "")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in their order."""
        return tuple(
            ToolCall("".join(name), "".join(arguments)) for _, _, name, arguments in self._parts
        )


class LiteLLMStream:
    """A ``ChatStream`` over litellm. Leaving the iteration early closes it."""

    def __init__(
        self,
        remote: litellm_calls.RemoteModel,
        options: dict[str, Any],
        messages: Sequence[ChatMessage],
        tools_refused: Callable[[], None],
    ) -> None:
        self._remote, self._model = remote, remote.model
        self._options = options
        self._messages = messages
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
                raise litellm_calls.empty_answer(self._model, reason)
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
            with suppress(ValueError):  # a generator that another thread is running
                connection.close()

    @property
    def usage(self) -> Usage:
        """What the reply took: the provider's figures, or an estimate where it sent none."""
        seconds = (self._ended or time.perf_counter()) - self._started
        arguments = (call.arguments for call in self._tool_calls.calls)
        came = "".join((*self._pieces, *arguments))
        return litellm_calls.chat_usage(
            "chat", self._model, self._messages, came, self._seen, seconds
        )

    def _chunks(self) -> Iterator[Any]:
        if self._closed.is_set():
            return
        self._started = time.perf_counter()
        try:
            yield from self._with_or_without_tools()
        except litellm_calls.call_errors() as error:
            if not self._closed.is_set():  # reading from a closed stream is not a failure
                raise litellm_calls.translate(error, self._remote) from error

    def _with_or_without_tools(self) -> Iterator[Any]:
        """The chunks of the reply; if the tools are refused, of a second request without them."""
        begun = False
        try:
            for chunk in self._request():
                begun = True
                yield chunk
            return
        except litellm_calls.call_errors() as error:
            if begun or "tools" not in self._options or not _refuses_tools(error):
                raise
        log.info("%s takes no tools; the request is repeated without them", self._model)
        self._tools_refused()
        del self._options["tools"]
        yield from self._request()

    def _request(self) -> Iterator[Any]:
        module = litellm_calls.litellm()
        from memchat.providers.bounded_call import ANSWER_BYTES, STREAM_BYTES, BoundedCall

        call = BoundedCall(self._model, self._remote.timeout, most=STREAM_BYTES, line=ANSWER_BYTES)
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


log = logging.getLogger(__name__)


class LiteLLMChat(litellm_calls.RemoteModel):
    """A ``ChatModel`` over litellm. Safe to use from several threads.

    ``timeout`` is in seconds: for a whole answer, and in a stream for each wait for words.
    ``context_tokens`` is the window of a model that litellm does not know.
    """

    REMEDY = "name a model that needs none, such as ollama/llama3.2"
    stand_in = False

    def __init__(self, model: str, *, context_tokens: int | None = None, **remote: Any) -> None:
        super().__init__(model, **remote)
        self._context_tokens = context_tokens
        self._tools_refused = False

    @property
    def name(self) -> str:
        """The litellm model name."""
        return self.model

    @functools.cached_property
    def window(self) -> int:
        """The model's context window in tokens."""
        if not self.local:
            with suppress(*litellm_calls.unknown_model_errors()):
                known = litellm_calls.litellm().get_model_info(self.model).get("max_input_tokens")
                if known:
                    return int(known)
        return self._context_tokens or DEFAULT_WINDOW

    @functools.cached_property
    def schema_mode(self) -> bool:
        """Whether the provider enforces a schema, so that it need not stand in the prompt."""
        if self.local:
            return False
        return bool(litellm_calls.litellm().supports_response_schema(self.model))

    @property
    def tools(self) -> bool:
        """Whether the model can call tools: litellm says so and the endpoint refused none."""
        return self._takes_tools and not self._tools_refused

    @functools.cached_property
    def _takes_tools(self) -> bool:
        if self.local:
            return False
        return bool(litellm_calls.litellm().supports_function_calling(self.model))

    @functools.cached_property
    def sees(self) -> bool:
        """Whether litellm knows that the model takes pictures."""
        return bool(litellm_calls.litellm().supports_vision(self.model))

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> LiteLLMStream:
        """A reply; its request is sent when the first piece is asked for.

        Raises ConfigError for a missing key; the iteration raises later errors. If the endpoint
        refuses ``tools``, the request is repeated without them, and later ones send none.
        """
        options = self._options(messages)
        options |= {"stream": True, "stream_options": {"include_usage": True}}
        if tools and self.tools:
            options["tools"] = list(tools)
            # Else each call with tools looks for its MCP gateway, which needs another package.
            options["_skip_mcp_handler"] = True
        return LiteLLMStream(self, options, messages, self._refuse_tools)

    def _refuse_tools(self) -> None:
        self._tools_refused = True

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """One whole answer from one request. Raises ProviderError or ConfigError.

        ``schema`` is sent only where the provider enforces it.
        """
        options = self._options(messages)
        if schema is not None and self.schema_mode:
            named = {"name": "answer", "schema": schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        module = litellm_calls.litellm()
        started = time.perf_counter()
        with self.request():
            response = module.completion(**options)
        if not response.choices:
            raise litellm_calls.unusable_answer(self.model, "sent an empty answer; try again")
        choice = response.choices[0]
        text = clean_text((choice.message.content or "")[:REPLY_LIMIT])
        if not text:
            raise litellm_calls.empty_answer(self.model, choice.finish_reason)
        seen = getattr(response, "usage", None)
        seconds = time.perf_counter() - started
        usage = litellm_calls.chat_usage(purpose, self.model, messages, text, seen, seconds)
        return Completion(text, usage)

    def _options(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        options = self.options()
        options["messages"] = [{"role": m.role, "content": _content(m)} for m in messages]
        provider = provider_of(self.model)
        if provider == "gemini":
            options["client"] = litellm_calls.gemini_client(self.timeout)
        elif provider.startswith("ollama"):
            options["num_ctx"] = self.window  # without it Ollama silently drops the beginning
        return options


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """What a message says, in OpenAI's form."""
    if not message.images:
        return message.content
    pictures = ({"type": "image_url", "image_url": {"url": one}} for one in message.images)
    return [{"type": "text", "text": message.content}, *pictures]


class LiteLLMTranscriber(litellm_calls.RemoteModel):
    """A ``Transcriber`` over ``litellm.transcription``. Safe to use from several threads."""

    REMEDY = "unset MEMCHAT_TRANSCRIBE_MODEL to leave audio out"
    PATIENCE = 10
    """An hour of speech takes minutes."""

    def transcribe(self, name: str, data: bytes) -> Completion:
        """The words of an audio file; ``name`` tells the provider its format by the ending. The
        text is empty where nothing is said.

        Makes one request. Raises ProviderError, ConfigError for a missing key.
        """
        options, module = self.options(), litellm_calls.litellm()
        started = time.perf_counter()
        with self.request():
            answer = module.transcription(file=(name, data), **options)
        spent = time.perf_counter() - started
        return Completion(clean_text(answer.text or "").strip(), self._usage(answer, spent))

    def _usage(self, answer: Any, seconds: float) -> Usage:
        seen = getattr(answer, "usage", None)
        sent, came = (
            int(getattr(seen, name, 0) or 0) for name in ("input_tokens", "output_tokens")
        )
        return Usage("transcribe", self.model, sent, came, self._cost(answer), seconds)

    def _cost(self, answer: Any) -> float | None:
        """What it cost in US dollars; None where neither its length nor its tokens are told."""
        if self.local:
            return 0.0
        module = litellm_calls.litellm()
        with suppress(*litellm_calls.unknown_model_errors()):
            return (
                module.completion_cost(answer, model=self.model, call_type="transcription") or None
            )
        return None
