"""Records and checks that the others build on: scopes, texts, messages, jobs, usage, progress."""

from __future__ import annotations

import dataclasses
import inspect
import re
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from memchat.errors import InputError, ScopeError

NAME_LIMIT = 200
EVERY_APP = ""
"""The app name of the memories that a user has in every app."""


def clean_name(name: str, what: str) -> str:
    """A user or app name in NFC, without white space around it. Raises ScopeError for one that
    cannot be used."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ScopeError(f"the {what} name holds half a character; type it again") from None
    name = unicodedata.normalize("NFC", name).strip()
    if not name:
        raise ScopeError(f"the {what} name is empty; give one with --{what}")
    if len(name) > NAME_LIMIT:
        raise ScopeError(f"the {what} name is longer than {NAME_LIMIT} characters")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ScopeError(f"the {what} name holds a control character; use plain text")
    return name


@dataclass(frozen=True, slots=True)
class Scope:
    """A user and one of their apps. The names are checked and normalised."""

    user: str
    app: str = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "user", clean_name(self.user, "user"))
        object.__setattr__(self, "app", clean_name(self.app, "app"))


@dataclass(frozen=True, slots=True)
class AppInfo:
    """One app of a user, whether its memory is on, and how much it holds."""

    name: str
    memory: bool
    memories: int
    sessions: int
    notes: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Whether memory is on for a conversation, and the reason if not."""

    on: bool
    reason: str


REPLY_LIMIT = 200_000
"""The most characters of a model's answer. A longer one is cut off."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Text as it may be stored: NUL and lone surrogates become U+FFFD, and nothing else changes.

    Two surrogates that form a pair become one character.
    """
    text = text.replace("\0", "\ufffd")
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def counted(number: int, noun: str) -> str:
    """``1 text``, ``1,200 texts``, ``2 memories``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def documented(work: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """The docstring of a function without the lines ``:param NAME: …`` at its end, and what each of
    these says."""
    text, *said = re.split(r"^:param (\w+):", inspect.getdoc(work) or "", flags=re.M)
    helps = (" ".join(one.split()) for one in said[1::2])
    return text.strip(), dict(zip(said[::2], helps, strict=True))


def one_line(text: str, what: str, limit: int) -> str:
    """A short field on one line with single spaces. Raises InputError if it is empty or too
    long."""
    folded = " ".join(clean_text(text).split())
    if not folded:
        raise InputError(f"the {what} is empty")
    if len(folded) > limit:
        raise InputError(f"the {what} is {len(folded)} characters long; at most {limit} are kept")
    return folded


Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stored conversation. ``status`` is complete, partial (stopped) or failed.

    ``copied_from`` is the id of the message that this one is a copy of, while that is there.
    """

    id: int
    session_id: int
    role: Role
    content: str
    created_at: datetime
    status: str = "complete"
    copied_from: int | None = None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message as it is sent to a chat model."""

    role: Literal["system", "user", "assistant"]
    content: str


def effort(calls: int, tokens: int, cost_usd: float | None) -> str:
    """Calls and their price: "62 calls, about $0.12". Where the price is not known (None) their
    tokens stand in its place."""
    price = f"about ${cost_usd:.2f}" if cost_usd else "free"
    if cost_usd is None:
        price = f"about {tokens:,} tokens"
    elif 0 < cost_usd < 0.01:
        price = "less than $0.01"
    return f"{calls:,} {'call' if calls == 1 else 'calls'}, {price}"


JobStatus = Literal["pending", "running", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """One queued job and its state."""

    id: int
    kind: str
    user: str
    app: str
    target_id: int
    status: JobStatus
    attempts: int
    run_at: datetime
    error_message: str | None
    created_at: datetime
    processed_at: datetime | None


EmbeddingStatus = Literal["pending", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The state of the vector of one memory."""

    memory_id: int
    status: EmbeddingStatus | None
    """None if no vector is wanted, for example without an embedding service."""
    code: int | None
    """The status as a number: -1 pending, 0 completed, and if it failed the HTTP status of the
    error or 1."""
    model: str | None
    """The service that made it."""
    error: str | None
    """Why the last try failed; None once a try succeeds."""
    attempts: int
    processed_at: datetime | None
    """When it was made or finally failed."""


def to_json(record: Any) -> dict[str, Any]:
    """A record of this package as a JSON-ready dict, with nested records, dates, times and
    paths."""
    return {f.name: _plain(getattr(record, f.name)) for f in dataclasses.fields(record)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def checked_timeout(seconds: object) -> float | None:
    """How long to wait, None for as long as it takes. Raises InputError for what is no time."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= threading.TIMEOUT_MAX:
        most = f"{threading.TIMEOUT_MAX:.0f}"
        raise InputError(f"{seconds!r} is no timeout; give seconds, more than 0 and up to {most}")
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens, cost and time of one call to a provider. ``cost_usd`` is None if the price is not
    known."""

    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The sum over calls with the same purpose and model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None if no call's price is known."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long task has come."""

    done: int
    total: int
    seconds: float
    """Seconds since it began."""
    begun_at: int = 0
    """How much an earlier run had done already."""
    failed: int = 0
    pause: float | None = None
    """Seconds of the current wait, as a service asked for."""
    unit: str = ""
    """What is counted, if it is not texts: MB."""
    name: str = ""
    """What is being done now, where it has a name: a file."""

    @property
    def past(self) -> int:
        """How much is finished: done or failed."""
        return self.done + self.failed

    @property
    def rate(self) -> float:
        """How much is finished each second; 0 before the first."""
        return (self.past - self.begun_at) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate, or None if that cannot be told yet."""
        return (self.total - self.past) / self.rate if self.rate > 0 else None


OnProgress = Callable[[Progress], None]
"""Told now and then how far a task has come."""
