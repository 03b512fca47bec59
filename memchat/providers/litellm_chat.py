"""Chat models through litellm, including the offline stand-in. Each call makes one request."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Sequence
from typing import Any

from memchat.config.keys import Keys
from memchat.config.names import provider_of
from memchat.providers import Completion
from memchat.providers.api_keys import find_key
from memchat.providers.litellm_setup import (
    LOCAL,
    call_errors,
    gemini_client,
    litellm,
    register_stand_in,
    request_options,
)
from memchat.providers.litellm_stream import LiteLLMStream
from memchat.providers.litellm_usage import chat_usage
from memchat.providers.provider_errors import (
    CallContext,
    empty_answer,
    translate,
    unusable_answer,
)
from memchat.types import REPLY_LIMIT, ChatMessage, clean_text

log = logging.getLogger(__name__)

DEFAULT_WINDOW = 8192
REMEDY = "name a model that needs none, such as ollama/llama3.2"


class LiteLLMChat:
    """A ``ChatModel`` over litellm. Safe to use from several threads.

    ``timeout`` is in seconds: for a whole answer, and in a stream for each wait for words.
    ``api_base`` is the provider's address where it is not the usual one (Gemini's with its
    version), ``keys`` the keys of files, ``context_tokens`` the window of a model that litellm does
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
        """Whether the model can call tools: litellm says so and the endpoint refused none."""
        return self._takes_tools and not self._tools_refused

    @functools.cached_property
    def _takes_tools(self) -> bool:
        if self._model.startswith(LOCAL):
            return False
        return bool(litellm().supports_function_calling(self._model))

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
        call = CallContext(self._model, self._timeout, self._keys)
        return LiteLLMStream(self._model, options, messages, call, self._refuse_tools)

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
        module = litellm()
        from memchat.providers.bounded_call import BoundedCall

        started = time.perf_counter()
        try:
            with BoundedCall(self._model, self._timeout):
                response = module.completion(**options)
        except call_errors() as error:
            raise translate(error, CallContext(self._model, self._timeout, self._keys)) from error
        if not response.choices:
            raise unusable_answer(self._model, "sent an empty answer; try again")
        choice = response.choices[0]
        text = clean_text((choice.message.content or "")[:REPLY_LIMIT])
        if not text:
            raise empty_answer(self._model, choice.finish_reason)
        seen = getattr(response, "usage", None)
        seconds = time.perf_counter() - started
        usage = chat_usage(purpose, self._model, messages, text, seen, seconds)
        return Completion(text, usage)

    def _options(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        if self.stand_in:
            register_stand_in()
        key = find_key(self._model, self._keys, REMEDY)
        options = request_options(self._model, self._timeout, key, self._api_base)
        options["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        provider = provider_of(self._model)
        if provider == "gemini":
            options["client"] = gemini_client(self._timeout)
        elif provider.startswith("ollama"):
            options["num_ctx"] = self.window  # without it Ollama silently drops the beginning
        return options
