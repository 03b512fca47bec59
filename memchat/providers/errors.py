"""Translating errors of provider libraries into memchat's own, with what to do about them.

litellm and google-genai wrap an error in several exceptions, some with invented status codes and
with tracebacks or keys in their text. Only the exception in the chain that holds a real response,
or the transport's own error, is read here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from memchat.config.keys import FILE, Keys
from memchat.errors import ConfigError, MemChatError, ProviderError, bounded_wait
from memchat.providers.litellm_setup import how_to_set_key, key_name, redact

REASON_LIMIT = 140
_OVERFLOW = re.compile(
    r"context.{0,3}(length|window)|maximum number of tokens|prompt is too long|too many tokens",
    re.IGNORECASE,
)


class ContextOverflow(ProviderError):
    """The messages are longer than the model's window; fewer or shorter ones may fit."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The model that was called, its timeout in seconds, and the keys that may have been used."""

    model: str
    timeout: float
    keys: Keys = field(default_factory=Keys)


def translate(error: BaseException, call: CallContext) -> MemChatError:
    """The memchat error for an exception of a provider's library."""
    chain = list(_chain(error))
    text = " ".join(str(link) for link in chain)
    responses = list(_responses(chain))
    if responses:
        waits = [_wait(headers, text) for _, headers in responses]
        wait = next((seconds for seconds in waits if seconds is not None), None)
        return _from_status(responses[0][0], wait, text, call)
    return _from_transport(chain, text, call)


def unusable_answer(model: str, what: str, *, retryable: bool = True) -> ProviderError:
    """The error for an answer that cannot be used."""
    return ProviderError(f"{model} {what}", retryable=retryable)


def empty_answer(model: str, reason: str | None) -> ProviderError:
    """The error for an answer without text; the finish reason tells whether a retry may help."""
    if reason == "content_filter":
        return unusable_answer(
            model, "refused to answer (content filter); put it differently", retryable=False
        )
    if reason == "length":
        return unusable_answer(
            model, "used up its length before it said anything; name another model", retryable=False
        )
    return unusable_answer(model, "sent an empty answer; try again")


@contextmanager
def plugin_errors(make: Callable[[str], MemChatError]) -> Iterator[None]:
    """Turn any error of code outside memchat, such as a plug-in's, into one of memchat's own.

    ``make`` gets the name of the error's class; its text may hold what a user wrote.
    """
    try:
        yield
    except MemChatError:
        raise
    except Exception as error:
        raise make(type(error).__name__) from error


def _from_status(status: int, wait: float | None, text: str, call: CallContext) -> MemChatError:
    model = call.model
    if status in (401, 403) or "API_KEY_INVALID" in text:
        name = key_name(model, call.keys)
        key = f"the key in {name}" if name else "its credentials"
        # A key that is set elsewhere comes before the one that the command keeps.
        elsewhere = name is not None and call.keys.origin(name) not in (None, FILE)
        valid = "set a valid one there" if elsewhere else f"for a valid one {how_to_set_key(model)}"
        return ProviderError(
            f"{model} refused {key} (status {status}); {valid}, or name another model",
            status=status,
        )
    if status == 413 or (status == 400 and _OVERFLOW.search(text)):
        return _overflow(model, status)
    if status == 404 and model.startswith("ollama"):
        name = model.partition("/")[2]
        return ProviderError(
            f"{model} is not among Ollama's models (status 404); get it with: ollama pull {name}",
            status=status,
        )
    if status == 404:
        return ProviderError(
            f"{model} is unknown to its provider (status 404); check the model's name and address",
            status=status,
        )
    if status == 402 or (status == 429 and "insufficient_quota" in text):
        return ProviderError(
            f"{model}: the account has no credit left (status {status}); top it up with the "
            "provider, or name another model",
            status=status,
        )
    if status == 429:
        when = "later" if wait is None else f"in {wait:g} s"
        return ProviderError(
            f"{model} is at its rate limit or quota (status 429); try again {when}",
            status=status,
            retryable=True,
            retry_after=wait,
        )
    if status == 408 or status >= 500:
        return ProviderError(
            f"{model} is failing at the provider (status {status}); try again later",
            status=status,
            retryable=True,
            retry_after=wait,
        )
    return ProviderError(
        f"{model} refused the request (status {status}{_reason(text)})", status=status
    )


def _from_transport(chain: list[BaseException], text: str, call: CallContext) -> MemChatError:
    """No response came: an error of the connection, or of the library itself."""
    model = call.model
    names = " ".join(type(link).__name__ for link in chain)
    if "Timeout" in names:
        return ProviderError(
            f"{model} did not answer within {call.timeout:g} s; try again or raise MEMCHAT_TIMEOUT",
            retryable=True,
        )
    if re.search(r"ConnectError|ConnectionRefused|gaierror", names):
        local = "start Ollama with: ollama serve" if model.startswith("ollama") else ""
        return ProviderError(
            f"{model} cannot be reached; {local or 'check the network and the address'}",
            retryable=True,
        )
    if re.search(r"ProtocolError|ReadError|WriteError|StreamClosed|ConnectionReset", names):
        return ProviderError(
            f"{model} broke off before its answer was complete; try again", retryable=True
        )
    if "ContextWindowExceeded" in names:
        return _overflow(model, None)
    if "LLM Provider NOT provided" in text:
        return ConfigError(
            f"{model!r} names no provider that is known; write provider/model, for example "
            "ollama/llama3.2 or gemini/gemini-2.5-flash"
        )
    if "AuthenticationError" in names:
        return ConfigError(f"{model} needs a key that is not set; {how_to_set_key(model)}")
    return ProviderError(
        f"{model} sent an answer that cannot be read; try again, or name another model",
        retryable=True,
    )


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
