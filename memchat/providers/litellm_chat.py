"""Any chat model that litellm knows, the offline stand-in included: one request a call."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memchat.config.keys import Keys
from memchat.config.names import provider_of
from memchat.errors import ProviderError
from memchat.providers import Completion, ToolCall
from memchat.providers.api_keys import find_key
from memchat.providers.litellm_setup import (
    LOCAL,
    FinishDetector,
    call_errors,
    cost_usd,
    gemini_client,
    litellm,
)
from memchat.providers.provider_errors import (
    CallContext,
    translate,
    unusable_answer,
)
from memchat.tokens import estimate_tokens
from memchat.types import REPLY_LIMIT, ChatMessage, Usage, clean_text

log = logging.getLogger(__name__)

DEFAULT_WINDOW = 8192
REMEDY = (
    "MEMCHAT_CHAT_MODEL=ollama/llama3.2 for a local model, or unset it for the offline stand-in"
)


class LiteLLMChat:
    """The ``ChatModel`` behind every litellm model name. Safe to use from several threads.

    ``timeout`` is in seconds, for the connection and for each silence of the provider.
    ``api_base`` is the provider's address where it is not the usual one (Gemini's with its
    version), ``keys`` those of files. ``context_tokens`` is the window of a model that litellm does
    not know.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        api_base: str | None = None,
        context_tokens: int | None = None,
        keys: Keys | None = None,
    ) -> None:
        self._model = model
        self._timeout = timeout
        self._api_base = api_base
        self._context_tokens = context_tokens
        self._keys = keys or Keys()
        self._tools_refused = False

    @property
    def name(self) -> str:
        """The litellm model name."""
        return self._model

    @property
    def stand_in(self) -> bool:
        """Whether this is the offline stand-in and no real model."""
        return self._model.startswith("offline/")

    @functools.cached_property
    def window(self) -> int:
        """The model's context window in tokens."""
        if not self._model.startswith(LOCAL):
            module = litellm()
            with contextlib.suppress(
                module.exceptions.ModelNotMappedError, ValueError, *call_errors()
            ):
                known = module.get_model_info(self._model).get("max_input_tokens")
                if known:
                    return int(known)
        return self._context_tokens or DEFAULT_WINDOW

    @functools.cached_property
    def schema_mode(self) -> bool:
        """Whether the provider enforces a schema, so that it need not stand in the prompt."""
        if self._model.startswith(LOCAL):
            return False
        return bool(litellm().supports_response_schema(self._model))

    @property
    def tools(self) -> bool:
        """Whether the model can call tools: litellm says so, and its endpoint refused none."""
        return self._takes_tools and not self._tools_refused

    @functools.cached_property
    def _takes_tools(self) -> bool:
        if self._model.startswith(LOCAL):
            return False
        return bool(litellm().supports_function_calling(self._model))

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> LiteLLMStream:
        """A reply; its one request goes out when the first piece is asked for.

        Raises ConfigError for a missing key; the iteration raises what goes wrong after. Where the
        endpoint refuses ``tools``, it is asked once more without them, and from then on always.
        """
        options = self._options(messages)
        options |= {"stream": True, "stream_options": {"include_usage": True}}
        if tools and self.tools:
            options["tools"] = list(tools)
            # Its gateway for MCP tools, looked for at each call with tools, needs a package more.
            options["_skip_mcp_handler"] = True
        call = CallContext(self._model, self._timeout, self._keys)
        return LiteLLMStream(self._model, options, messages, call, self._refuse_tools)

    def _refuse_tools(self) -> None:
        self._tools_refused = True

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """One whole answer from one request. Raises ProviderError or ConfigError.

        ``schema`` is sent where the provider enforces it and is left out where it does not.
        """
        options = self._options(messages)
        if schema is not None and self.schema_mode:
            named = {"name": "answer", "schema": schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        started = time.perf_counter()
        try:
            response = litellm().completion(**options)
        except call_errors() as error:
            raise translate(error, CallContext(self._model, self._timeout, self._keys)) from error
        if not response.choices:
            raise unusable_answer(self._model, "sent an empty answer; try again")
        choice = response.choices[0]
        text = clean_text((choice.message.content or "")[:REPLY_LIMIT])
        if not text:
            raise _silent(self._model, choice.finish_reason)
        seen = getattr(response, "usage", None)
        usage = _usage(purpose, self._model, messages, text, seen, time.perf_counter() - started)
        return Completion(text, usage)

    def _options(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "timeout": self._timeout,
            "num_retries": 0,  # litellm and the SDK below it each have retries of their own
            "max_retries": 0,
            "drop_params": True,
        }
        if key := find_key(self._model, self._keys, REMEDY):
            options["api_key"] = key
        if self._api_base:
            options["api_base"] = self._api_base
        provider = provider_of(self._model)
        if provider == "gemini":
            options["client"] = gemini_client(self._timeout)
        elif provider.startswith("ollama"):
            options["num_ctx"] = self.window  # Ollama cuts the beginning off silently without it
        return options


class LiteLLMStream:
    """A reply as it arrives. Leaving the iteration early cuts the connection, as ``close`` does."""

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
        self._building = _Calls()
        self._whole = False
        self._closed = threading.Event()
        self._wrapper: Any = None
        self._finish: FinishDetector | None = None
        self._pieces: list[str] = []
        self._seen: Any = None
        self._started = time.perf_counter()
        self._ended: float | None = None

    def __iter__(self) -> Iterator[str]:
        """The pieces, none of them empty. Raises ProviderError, also after pieces that came."""
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
                    self._building.add(part)
                if self._building.size > REPLY_LIMIT:
                    return  # no tool takes so much: it would go on for ever
                if piece := delta.content:
                    self._pieces.append(piece)
                    yield piece
            finished = reason is not None and self._finish is not None and self._finish.came
            self._whole = finished and not self._closed.is_set()
            if not (self._pieces or self.calls or self._closed.is_set()):
                raise _silent(self._model, reason)
        finally:
            self.close()

    @property
    def whole(self) -> bool:
        """Whether it came to the end that the provider gave it."""
        return self._whole

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tools called; none where the reply was cut before its end."""
        return self._building.made if self._whole else ()

    def close(self) -> None:
        """Cut the connection. May be called at any time, from any thread, also twice."""
        self._closed.set()
        self._ended = self._ended or time.perf_counter()
        connection: Any = getattr(self._wrapper, "completion_stream", None)
        if hasattr(connection, "close"):
            with contextlib.suppress(ValueError):  # a generator that another thread is inside of
                connection.close()

    @property
    def usage(self) -> Usage:
        """What the reply took: the provider's figures, or an estimate where they did not come."""
        seconds = (self._ended or time.perf_counter()) - self._started
        arguments = (call.arguments for call in self._building.made)
        came = "".join((*self._pieces, *arguments))
        return _usage("chat", self._model, self._messages, came, self._seen, seconds)

    def _chunks(self) -> Iterator[Any]:
        if self._closed.is_set():
            return
        self._started = time.perf_counter()
        try:
            yield from self._sent()
        except call_errors() as error:
            if not self._closed.is_set():  # reading on from a stream that was closed is no failure
                raise translate(error, self._call) from error

    def _sent(self) -> Iterator[Any]:
        """The chunks of the request; where its tools are refused, of one without them."""
        begun = False
        try:
            for chunk in self._request():
                begun = True
                yield chunk
            return
        except call_errors() as error:
            if begun or "tools" not in self._options or not _refuses_tools(error):
                raise
        log.info("%s takes no tools; it is asked again without them", self._model)
        self._tools_refused()
        del self._options["tools"]
        yield from self._request()

    def _request(self) -> Iterator[Any]:
        self._wrapper = litellm().completion(**self._options)
        self._finish = FinishDetector(self._wrapper)
        for chunk in self._wrapper:
            if self._closed.is_set():
                return
            yield chunk


class _Calls:
    """Tool calls put together from the parts they are streamed in."""

    def __init__(self) -> None:
        self._parts: list[tuple[object, object, list[str], list[str]]] = []
        self.size = 0
        """Characters of all arguments."""

    def add(self, part: Any) -> None:
        """One part: of the call with its place in the list, or the first of the next call."""
        called = part.function
        at, key = part.index, part.id
        known = next((p for p in reversed(self._parts) if p[0] == at), None)
        # Some endpoints count every call as the first; a name and an id of its own tell it apart.
        if known is None or (called.name and key and known[1] and key != known[1]):
            known = (at, key, [], [])
            self._parts.append(known)
        known[2].append(called.name or "")
        known[3].append(called.arguments or "")
        self.size += len(called.arguments or "")

    @property
    def made(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall("".join(name), "".join(arguments)) for _, _, name, arguments in self._parts
        )


def _refuses_tools(error: Exception) -> bool:
    """Whether an endpoint turned the request away for the tools in it."""
    status = getattr(error, "status_code", None)
    said = re.search(r"\btools?\b|function[ _-]?call", str(error), re.IGNORECASE)
    return status in (400, 404, 405, 422, 501) and said is not None


def _silent(model: str, reason: str | None) -> ProviderError:
    """No text came at all; the finish reason tells whether asking again helps."""
    if reason == "content_filter":
        return unusable_answer(
            model, "refused to answer (content filter); put it differently", retryable=False
        )
    if reason == "length":
        return unusable_answer(
            model, "used up its length before it said anything; name another model", retryable=False
        )
    return unusable_answer(model, "sent an empty answer; try again")


def _usage(
    purpose: str,
    model: str,
    messages: Sequence[ChatMessage],
    text: str,
    seen: Any,
    seconds: float,
) -> Usage:
    sent = int(getattr(seen, "prompt_tokens", 0) or 0)
    came = int(getattr(seen, "completion_tokens", 0) or 0)
    if not sent:
        sent = sum(estimate_tokens(message.content) for message in messages)
        came = estimate_tokens(text)
        seen = None
    return Usage(purpose, model, sent, came, cost_usd(model, sent, came, seen), seconds)
