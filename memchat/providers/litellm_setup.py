"""Shared by all calls through litellm: its import, API keys, tokens and cost, and rate limits.

litellm takes seconds to import, so this is done at the first call, or before it by ``preload``. It
is kept from printing, loading ``.env`` files and calling the network by itself.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from memchat.config.keys import KEY_NAMES, KEYS, Keys, provider_of
from memchat.errors import ConfigError, ProviderError
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

LOCAL = ("offline/", "ollama/", "ollama_chat/")
"""Local models: they are free, and litellm would call Ollama for information about them."""


def litellm() -> Any:
    """The litellm module: without downloads at import and without printing."""
    with _loading:  # or a second thread may get a half-imported module
        module = _load()
    # Set again at each call, since a test runner resets filters. The user can do nothing about
    # litellm's deprecations and pydantic's warnings.
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic)\b")
    return module


_loading = threading.Lock()


@functools.cache
def _load() -> Any:
    # Otherwise it loads the .env of the working folder or of one above it.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # may contain what users wrote
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm as imported

    module: Any = imported
    module.suppress_debug_info = True
    module.turn_off_message_logging = True
    module.telemetry = False
    module.disable_streaming_logging = True  # else it starts a thread for each chunk
    # Else counting the tokens of a reply asks a model hub for the tokenizer of a Llama.
    module.disable_hf_tokenizer_download = True
    module.DEFAULT_MAX_RETRIES = 0  # its embeddings read max_retries=0 as "not given"
    return module


def request_options(
    model: str, timeout: float, key: str | None, api_base: str | None
) -> dict[str, Any]:
    """The options of a request beside its content; ``timeout`` is in seconds."""
    options: dict[str, Any] = {
        "model": model,
        "timeout": timeout,
        "num_retries": 0,  # litellm and the SDK below it both have retries
        "max_retries": 0,
        "drop_params": True,
    }
    given = {"api_key": key, "api_base": api_base}
    return options | {name: value for name, value in given.items() if value}


@functools.cache
def register_stand_in() -> None:
    """Make the offline stand-in callable through litellm."""
    from memchat.providers.offline import register

    register(litellm())


@functools.cache
def gemini_client(timeout: float) -> Any:
    """A client that is kept, as litellm makes one for each stream from Gemini."""
    litellm()
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    return HTTPHandler(timeout=timeout)


def preload() -> None:
    """Import litellm in a daemon thread, so that the first reply need not wait for it."""
    threading.Thread(target=litellm, name="memchat-warm", daemon=True).start()


@functools.cache
def call_errors() -> tuple[type[Exception], ...]:
    """The exceptions that a call through litellm may raise."""
    litellm()  # whole, also where ``preload`` is importing it just now
    import httpx
    import openai
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    return (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, BaseLLMException)


def chat_usage(
    purpose: str,
    model: str,
    messages: Sequence[ChatMessage],
    text: str,
    seen: Any,
    seconds: float,
) -> Usage:
    """The usage of a chat call; where ``seen``, litellm's record, has no figures, an estimate from
    the messages and the answer."""
    sent = int(getattr(seen, "prompt_tokens", 0) or 0)
    came = int(getattr(seen, "completion_tokens", 0) or 0)
    if not sent:
        sent = sum(estimate_tokens(message.content) for message in messages)
        came = estimate_tokens(text)
        seen = None
    return Usage(purpose, model, sent, came, cost_usd(model, sent, came, seen), seconds)


def cost_usd(
    model: str, prompt_tokens: int, completion_tokens: int, seen: Any = None
) -> float | None:
    """What a call cost in US dollars by litellm's bundled price list, None where it has no price.

    ``seen`` is litellm's own usage record where there is one: it counts cached tokens separately.
    """
    if model.startswith(LOCAL):
        return 0.0
    module = litellm()
    total = prompt_tokens + completion_tokens
    usage = seen or module.Usage(prompt_tokens, completion_tokens, total)
    try:
        info = module.get_model_info(model)
        spent = sum(module.cost_per_token(model=model, usage_object=usage))
    except (module.exceptions.ModelNotMappedError, ValueError, *call_errors()):
        return None
    free = not info.get("input_cost_per_token") and not info.get("output_cost_per_token")
    return None if free else float(spent)  # a price of zero means "not listed"


_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk-|gsk_|xai-|pa-|AIza|Bearer\s+)[\w*.\-]{6,}")


_handed_out: set[str] = set()
"""Keys that were given to a library, as its errors may contain them."""


def key_names(model: str) -> tuple[str, ...]:
    """The variables that may hold the model's key; empty where it needs none."""
    return KEYS.get(provider_of(model), ())


def key_name(model: str, keys: Keys) -> str | None:
    """The variable of the model's key: the first one that is set, else the first of all."""
    names = key_names(model)
    return keys.first(names) or (names[0] if names else None)


def how_to_set_key(model: str) -> str:
    """What gives the model its key, or another one, as a command."""
    provider = provider_of(model)
    if provider not in KEYS:
        return "set the provider's API key in the environment"
    return f"run memchat keys set {provider}"


def find_key(model: str, keys: Keys, remedy: str) -> str | None:
    """The model's key, or None where it needs none. Raises ConfigError where it is missing.

    ``remedy`` says what else can be done, after the word "or".
    """
    name = key_name(model, keys)
    if name is None:
        return None
    value = keys.value(name)
    if not value:
        names = " or ".join(key_names(model))
        raise ConfigError(f"{model} needs a key ({names}): {how_to_set_key(model)}, or {remedy}")
    _handed_out.add(value)
    return value


def redact(text: str) -> str:
    """The text without any provider's key that is set, or anything that looks like one."""
    environment = {os.environ.get(name) for name in KEY_NAMES}
    for value in sorted(filter(None, _handed_out | environment), key=len, reverse=True):
        if len(value) >= 4:
            text = text.replace(value, "(key)")
    return _LOOKS_LIKE_A_KEY.sub("(key)", text)


PER_MINUTE = 3_000
SHORT_PAUSE = 1.0
"""Seconds: a request waits for a pause of this length; during a longer one it is refused."""


class PauseRequested(ProviderError):
    """The request was not sent, as the provider asked for a pause that is not over."""


class RateLimiter:
    """A token bucket for the requests to one provider. Safe in several threads.

    The requests of one second may go at once, further ones are spread, so that no minute has more
    than the limit. None is sent during a pause that the provider asked for.
    """

    def __init__(
        self,
        name: str,
        per_minute: int,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """``now`` and ``wait`` are in seconds."""
        self._name = name
        self._capacity = float(max(1, per_minute // 60))
        self._per_second = (per_minute - self._capacity + 1) / 60
        self._now = now
        self._wait = wait
        self._lock = threading.Lock()
        self._tokens = self._capacity
        self._filled = -math.inf
        self._paused_until = -math.inf

    def take(self) -> None:
        """Wait until the next request may be sent. Raises PauseRequested in a long pause."""
        with self._lock:
            now = self._now()
            pause = self._paused_until - now
            if pause > SHORT_PAUSE:
                raise PauseRequested(
                    f"{self._name} asked to be left alone; try again in {math.ceil(pause)} s",
                    status=429,
                    retryable=True,
                    retry_after=pause,
                )
            grown = self._tokens + (now - self._filled) * self._per_second
            self._tokens = min(self._capacity, grown) - 1
            self._filled = now
            seconds = max(pause, -self._tokens / self._per_second)
        if seconds > 0:
            self._wait(seconds)

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds, as the provider asked."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._now() + seconds)

    def pause_after(self, error: Exception) -> None:
        """Pause if the error says that the provider asks for it."""
        if isinstance(error, ProviderError) and error.status == 429 and error.retry_after:
            self.pause(error.retry_after)


@functools.lru_cache(maxsize=64)
def shared_limiter(name: str, address: str | None, per_minute: int) -> RateLimiter:
    """The limiter of a provider at an address; None is its usual address."""
    return RateLimiter(name, per_minute)
