"""What every call of a provider shares: litellm and its options, keys, cost and pace, and errors.

litellm takes seconds to import, so this is done at the first call. It
is kept from printing, loading ``.env`` files and calling the network by itself. litellm and
google-genai wrap an error in several exceptions, some with invented status codes and with
tracebacks or keys in their text: only the exception that holds a real response, or the transport's
own error, is read.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from memchat import waiting
from memchat.config.keys import FILE, Keys
from memchat.config.providers import ANY_SERVER, KEY_NAMES, KEYS, provider_of
from memchat.errors import ConfigError, MemChatError, ProviderError, bounded_wait
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

if TYPE_CHECKING:
    from memchat.providers.bounded_call import BoundedCall

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


@functools.cache
def gemini_client(timeout: float) -> Any:
    """A client that is kept, as litellm makes one for each stream from Gemini."""
    litellm()
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    return HTTPHandler(timeout=timeout)


@functools.cache
def call_errors() -> tuple[type[Exception], ...]:
    """The exceptions that a call through litellm may raise."""
    litellm()  # whole, also where ``preload`` is importing it just now
    import httpx
    import openai
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    return (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, BaseLLMException)


@functools.cache
def unknown_model_errors() -> tuple[type[Exception], ...]:
    """What litellm may raise where it is asked about a model that it does not know."""
    return (litellm().exceptions.ModelNotMappedError, ValueError, *call_errors())


def chat_usage(
    purpose: str, model: str, messages: Sequence[ChatMessage], text: str, seen: Any, seconds: float
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
    except unknown_model_errors():
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
    """The variable of the model's key: the first one that is set, else the first of all; None where
    it needs none."""
    names = key_names(model)
    needed = names and provider_of(model) != ANY_SERVER
    return keys.first(names) or (names[0] if needed else None)


def key_remedy(model: str) -> str:
    """What gives the model its key, or another one, as a command."""
    provider = provider_of(model)
    if provider not in KEYS:
        return "set the provider's API key in the environment"
    return f"run memchat keys set {provider}"


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
        wait: Callable[[float], None] = waiting.sleep,
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
                said = f"{self._name} asked to be left alone; try again in {math.ceil(pause)} s"
                raise PauseRequested(said, status=429, retryable=True, retry_after=pause)
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


@contextmanager
def limited(limiter: RateLimiter | None) -> Iterator[None]:
    """One request at the provider's pace. If its error asks for a pause, the next ones wait."""
    if limiter is None:
        yield
        return
    limiter.take()
    try:
        yield
    except ProviderError as error:
        limiter.pause_after(error)
        raise


@functools.lru_cache(maxsize=64)
def shared_limiter(name: str, address: str | None, per_minute: int) -> RateLimiter:
    """The limiter of a provider at an address; None is its usual address."""
    return RateLimiter(name, per_minute)


REASON_LIMIT = 140
_OVERFLOW = re.compile(
    r"context.{0,3}(length|window)|maximum number of tokens|prompt is too long|too many tokens",
    re.IGNORECASE,
)


class ContextOverflow(ProviderError):
    """The messages are longer than the model's window; fewer or shorter ones may fit."""


class RemoteModel:
    """A model that is asked over the network: its name, its address and its keys.

    ``timeout`` is in seconds, ``api_base`` the provider's address where it is not the usual one,
    ``keys`` are those of files. ``REMEDY`` says what else can be done where the key is missing.
    """

    REMEDY = ""
    PATIENCE = 1
    """So many times the usual timeout is waited."""

    def __init__(
        self, model: str, *, timeout: float, api_base: str | None = None, keys: Keys | None = None
    ) -> None:
        self.model, self.api_base, self.local = model, api_base, model.startswith(LOCAL)
        self.timeout = timeout * self.PATIENCE
        self.keys = keys or Keys()

    def find_key(self) -> str | None:
        """The model's key, or None where it needs none. Raises ConfigError where it is missing."""
        name = key_name(self.model, self.keys)
        if name is None:
            return None
        value = self.keys.value(name)
        if not value:
            names = " or ".join(key_names(self.model))
            how = f"{key_remedy(self.model)}, or {self.REMEDY}"
            raise ConfigError(f"{self.model} needs a key ({names}): {how}")
        _handed_out.add(value)
        return value

    def options(self) -> dict[str, Any]:
        """The options of a request through litellm beside its content."""
        options: dict[str, Any] = {
            "model": self.model,
            "timeout": self.timeout,
            "num_retries": 0,  # litellm and the SDK below it both have retries
            "max_retries": 0,
            "drop_params": True,
        }
        given = {"api_key": self.find_key(), "api_base": self.api_base}
        return options | {name: value for name, value in given.items() if value}

    @contextmanager
    def request(
        self, rules: BoundedCall | None = None, errors: tuple[type[Exception], ...] = ()
    ) -> Iterator[None]:
        """One request, in which the rules hold; what a library raises, ``errors`` or else those of
        litellm, becomes an error of memchat's."""
        from memchat.providers.bounded_call import BoundedCall

        expected = errors or call_errors()
        try:
            with rules or BoundedCall(self.model, self.timeout):
                yield
        except expected as error:
            raise translate(error, self) from error


def translate(error: BaseException, remote: RemoteModel) -> MemChatError:
    """The memchat error for an exception of a provider's library."""
    chain = list(_chain(error))
    text = " ".join(str(link) for link in chain)
    responses = list(_responses(chain))
    if responses:
        waits = [_wait(headers, text) for _, headers in responses]
        wait = next((seconds for seconds in waits if seconds is not None), None)
        return _from_status(responses[0][0], wait, text, remote)
    return _from_transport(chain, text, remote)


def unusable_answer(model: str, what: str, *, retryable: bool = True) -> ProviderError:
    """The error for an answer that cannot be used."""
    return ProviderError(f"{model} {what}", retryable=retryable)


_FINAL = {
    "content_filter": "refused to answer (content filter); put it differently",
    "length": "used up its length before it said anything; name another model",
}
"""What an empty answer means by its finish reason, where another try would not help."""


def empty_answer(model: str, reason: str | None = None) -> ProviderError:
    """The error for an answer without text; the finish reason tells whether a retry may help."""
    final = _FINAL.get(reason or "")
    return unusable_answer(
        model, final or "sent an empty answer; try again", retryable=final is None
    )


def _from_status(status: int, wait: float | None, text: str, remote: RemoteModel) -> MemChatError:
    model = remote.model

    def error(said: str, *, retryable: bool = False) -> ProviderError:
        after = wait if retryable else None
        return ProviderError(
            f"{model}{said}", status=status, retryable=retryable, retry_after=after
        )

    if status in (401, 403) or "API_KEY_INVALID" in text:
        name = key_name(model, remote.keys)
        key = f"the key in {name}" if name else "its credentials"
        # A key that is set elsewhere comes before the one that the command keeps.
        elsewhere = name is not None and remote.keys.origin(name) not in (None, FILE)
        valid = "set a valid one there" if elsewhere else f"for a valid one {key_remedy(model)}"
        return error(f" refused {key} (status {status}); {valid}, or name another model")
    if status == 413 or (status == 400 and _OVERFLOW.search(text)):
        return _overflow(model, status)
    if status == 404 and model.startswith("ollama"):
        get = f"get it with: ollama pull {model.partition('/')[2]}"
        return error(f" is not among Ollama's models (status 404); {get}")
    if status == 404:
        return error(" is unknown to its provider (status 404); check the model's name and address")
    if status == 402 or (status == 429 and "insufficient_quota" in text):
        return error(
            f": the account has no credit left (status {status}); top it up with the provider, or "
            "name another model"
        )
    if status == 429:
        when = "later" if wait is None else f"in {wait:g} s"
        return error(
            f" is at its rate limit or quota (status 429); try again {when}", retryable=True
        )
    if status == 408 or status >= 500:
        return error(
            f" is failing at the provider (status {status}); try again later", retryable=True
        )
    return error(f" refused the request (status {status}{_reason(text)})")


def _from_transport(chain: list[BaseException], text: str, remote: RemoteModel) -> MemChatError:
    """No response came: an error of the connection, or of the library itself."""
    model = remote.model
    names = " ".join(type(link).__name__ for link in chain)
    said = "sent an answer that cannot be read; try again, or name another model"
    if "Timeout" in names:
        said = f"did not answer within {remote.timeout:g} s; try again or raise MEMCHAT_TIMEOUT"
    elif re.search(r"ConnectError|ConnectionRefused|gaierror", names):
        local = "start Ollama with: ollama serve" if model.startswith("ollama") else ""
        said = f"cannot be reached; {local or 'check the network and the address'}"
    elif re.search(r"ProtocolError|ReadError|WriteError|StreamClosed|ConnectionReset", names):
        said = "broke off before its answer was complete; try again"
    elif "ContextWindowExceeded" in names:
        return _overflow(model, None)
    elif "LLM Provider NOT provided" in text:
        return ConfigError(
            f"{model!r} names no provider that is known; write provider/model, for example "
            "ollama/llama3.2 or gemini/gemini-2.5-flash"
        )
    elif "AuthenticationError" in names:
        return ConfigError(f"{model} needs a key that is not set; {key_remedy(model)}")
    return ProviderError(f"{model} {said}", retryable=True)


def _overflow(model: str, status: int | None) -> ContextOverflow:
    return ContextOverflow(
        f"this is more text than {model} can read at once; send less, or name a model with a "
        "larger window",
        status=status,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those under it, litellm's ``original_exception`` included."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        inner = getattr(link, "original_exception", None)
        link = inner if isinstance(inner, BaseException) else link.__cause__ or link.__context__


def _responses(chain: list[BaseException]) -> Iterator[tuple[int, Any]]:
    """Status and headers of the real responses; those that litellm invents have no headers."""
    for link in chain:
        response = getattr(link, "response", None)
        headers = getattr(response, "headers", None)
        status = getattr(response, "status_code", None)
        if headers and isinstance(status, int) and status >= 400:
            yield status, headers


def _wait(headers: Any, text: str) -> float | None:
    """Seconds to wait, at most an hour: Retry-After as a number or date, or Gemini's retryDelay."""
    given = headers.get("retry-after")
    if given is not None:
        with suppress(ValueError):
            return bounded_wait(float(given))
        with suppress(ValueError, OverflowError):  # a year that datetime cannot hold
            return bounded_wait(parsedate_to_datetime(given).timestamp() - time.time())
    match = re.search(r"""retryDelay['"]:\s*['"](\d+(?:\.\d+)?)s""", text)
    return bounded_wait(float(match[1])) if match else None


def _reason(text: str) -> str:
    """The provider's own short reason, without keys and without longer quotations; may be empty."""
    match = re.search(r'"message":\s*("(?:[^"\\]|\\.)*")', text)
    if match is None:
        match = re.search(r"""'message':\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""", text)
    if match is None:
        return ""
    try:
        reason = str(json.loads(match[1]))
    except ValueError:
        reason = match[1][1:-1]
    reason = redact(" ".join(reason.split()))
    reason = re.sub(r"""(["'`]).{30,}?\1""", "…", reason)  # may quote a user
    return f": {reason[:REASON_LIMIT]}"
