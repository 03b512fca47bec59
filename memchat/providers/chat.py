"""Any chat model that litellm knows, the offline stand-in included: one request a call."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from memchat.errors import ProviderError
from memchat.providers import Completion
from memchat.providers.failures import Call, ContextOverflow, translate, unusable
from memchat.providers.keys import find_key, provider_of
from memchat.providers.lite import LOCAL, cost_usd, failures, gemini_client, litellm, warm
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

__all__ = ["ContextOverflow", "LiteLLMChat", "warm"]

DEFAULT_WINDOW = 8192
REMEDY = (
    "MEMCHAT_CHAT_MODEL=ollama/llama3.2 for a local model, or unset it for the offline stand-in"
)


class LiteLLMChat:
    """The ``ChatModel`` behind every litellm model name. Safe to use from several threads.

    ``timeout`` is in seconds, for the connection and for each silence of the provider.
    ``api_base`` is the provider's address where it is not the usual one (Gemini's with its
    version). ``context_tokens`` is the window of a model that litellm does not know.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        api_base: str | None = None,
        context_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._timeout = timeout
        self._api_base = api_base
        self._context_tokens = context_tokens

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
                module.exceptions.ModelNotMappedError, ValueError, *failures()
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

    def stream(self, messages: Sequence[ChatMessage]) -> LiteLLMStream:
        """A reply; its one request goes out when the first piece is asked for.

        Raises ConfigError for a missing key; the iteration raises what goes wrong after.
        """
        options = self._options(messages)
        options |= {"stream": True, "stream_options": {"include_usage": True}}
        return LiteLLMStream(self._model, options, messages, Call(self._model, self._timeout))

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
        except failures() as error:
            raise translate(error, Call(self._model, self._timeout)) from error
        if not response.choices:
            raise unusable(self._model, "sent an empty answer; try again")
        choice = response.choices[0]
        text = choice.message.content
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
        if key := find_key(self._model, REMEDY):
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
        self, model: str, options: dict[str, Any], messages: Sequence[ChatMessage], call: Call
    ) -> None:
        self._model = model
        self._options = options
        self._messages = messages
        self._call = call
        self._closed = threading.Event()
        self._wrapper: Any = None
        self._text = ""
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
                if piece := chunk.choices[0].delta.content:
                    self._text += piece
                    yield piece
            if not self._text and not self._closed.is_set():
                raise _silent(self._model, reason)
        finally:
            self.close()

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
        return _usage("chat", self._model, self._messages, self._text, self._seen, seconds)

    def _chunks(self) -> Iterator[Any]:
        if self._closed.is_set():
            return
        self._started = time.perf_counter()
        try:
            self._wrapper = litellm().completion(**self._options)
            for chunk in self._wrapper:
                if self._closed.is_set():
                    return
                yield chunk
        except failures() as error:
            if not self._closed.is_set():  # reading on from a stream that was closed is no failure
                raise translate(error, self._call) from error


def _silent(model: str, reason: str | None) -> ProviderError:
    """No text came at all; the finish reason tells whether asking again helps."""
    if reason == "content_filter":
        return unusable(
            model, "refused to answer (content filter); put it differently", retryable=False
        )
    if reason == "length":
        return unusable(
            model, "used up its length before it said anything; name another model", retryable=False
        )
    return unusable(model, "sent an empty answer; try again")


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
