"""Records of looking after a store: audits, backups, imports, figures and embedding services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from memchat.errors import ServiceError
from memchat.types.conversations import counted
from memchat.types.memories import Memory

FindingKind = Literal[
    "secret",
    "contradiction",
    "duplicate",
    "stale",
    "missing evidence",
    "suspected junk",
    "expiring",
    "never recalled",
    "index drift",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of an audit. Its words are meant for the user alone."""

    kind: FindingKind
    memory_ids: tuple[int, ...]
    """The memories that it is about. If one of them is to stay, it comes first."""
    what: str
    fix: str | None
    """What fixing it would do; None if only a person can decide."""


@dataclass(frozen=True, slots=True)
class Audit:
    """An audit of an app's memories."""

    at: datetime
    active: int
    inactive: int
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the store: made on request, before an upgrade, or before a restore."""

    file: Path
    made_at: datetime
    size: int
    """Bytes."""
    schema: str | None
    """The revision of its tables; None where it cannot be read."""
    problem: str | None
    """Why it cannot be restored, or None."""
    holds_forgotten: bool | None
    """Whether it holds words that were forgotten or deleted in the store since; None where that
    cannot be told."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What restoring a backup would do. The counts are of rows that only the present store has."""

    backup: Backup
    memories: int = 0
    sessions: int = 0
    messages: int = 0
    inbox_items: int = 0
    notes: int = 0
    store_problem: str | None = None
    """Why the present store cannot be compared with the backup; the counts are 0 then."""


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that cannot be stored, and why. The reason holds no words of the record."""

    line: int
    """The line of the file, the first is 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do."""

    added: Mapping[str, int]
    """How many records are new here, by kind: app, session, message, memory, inbox_item …"""
    known: Mapping[str, int]
    """How many were here already, by kind. They stay as they are here."""
    forgotten: int
    """How many memories stay away since they were forgotten here."""
    refused: tuple[RefusedRecord, ...]
    unread: int = 0
    """How many of the new conversations wait to be read, as they did where they come from."""
    unembedded: int = 0
    """How many of the new memories, conversations and notes wait for their vectors."""
    changed_notes: int = 0
    """How many notes were changed later where they come from, and are now as they were there."""
    deleted_notes: int = 0
    """How many notes stay away since they were deleted here."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many were left out since no export has them any more, by kind."""
    dry_run: bool = False
    """Whether nothing was stored."""


@dataclass(frozen=True, slots=True)
class Insights:
    """Figures about the memories of an app. Days are in the user's time zone."""

    kept: dict[date, int]
    """How many memories were stored on each day."""
    said: dict[date, int]
    """How many messages the user sent on each day."""
    types: dict[str, int]
    keys: dict[str, int]
    """The keys with the most memories."""
    states: dict[str, int]
    """How many memories are in use, and how many are inactive for each reason."""
    most_used: tuple[tuple[Memory, int], ...]
    never_used: int
    queue: dict[str, int]


REFUSED_MOST = 20
"""Refused lines of a file that are listed, at most."""


def counted_records(records: Mapping[str, int], *, session: str = "session") -> str:
    """``3 memories, 1 session, 2 messages``, or ``nothing``. ``session`` is the word for one."""
    nouns = {"memory": "memory", "session": session} | {n: n for n in ("message", "note", "record")}
    told = [counted(records[kind], noun) for kind, noun in nouns.items() if records.get(kind)]
    return ", ".join(told) or "nothing"


CHUNK_TOKENS = 2_000
MOST_BATCH = 2048
"""Texts that any provider takes in one request."""


@dataclass(frozen=True, slots=True)
class Service:
    """An embedding service. Every vector belongs to one, and vectors of two are never compared.

    ``floor`` is the cosine below which a memory does not count as similar for this model,
    ``message_floor`` the same for messages. ``cosine_weight`` is the part of the cosine in a score;
    keywords have the rest. ``local`` means that a call needs no network. ``chunking_max_tokens`` is
    the size of the chunks of a long text, at most what the model reads (``max_tokens``).

    Raises ServiceError for impossible sizes.
    """

    provider: str
    model: str
    dimensions: int
    max_tokens: int
    version: str = ""
    floor: float = 0.3
    message_floor: float = 0.3
    cosine_weight: float = 0.7
    local: bool = False
    chunking_max_tokens: int = 0
    """0 for 2,000, or for what the model reads if that is less."""

    def __post_init__(self) -> None:
        if min(self.dimensions, self.max_tokens, self.chunking_max_tokens + 1) < 1:
            raise ServiceError(
                f"{self.name} cannot have {self.dimensions} dimensions, read {self.max_tokens} "
                f"tokens and chunks of {self.chunking_max_tokens}; give numbers above 0"
            )
        if self.chunking_max_tokens > self.max_tokens:
            raise ServiceError(
                f"chunking_max_tokens is {self.chunking_max_tokens}, but {self.name} reads "
                f"{self.max_tokens} tokens; give at most that"
            )
        if not self.chunking_max_tokens:
            object.__setattr__(self, "chunking_max_tokens", min(CHUNK_TOKENS, self.max_tokens))

    @property
    def name(self) -> str:
        """``provider/model``, as in settings and messages."""
        return f"{self.provider}/{self.model}"

    def same_space(self, other: Service | None) -> bool:
        """Whether vectors of the two services may be compared; never if ``other`` is None."""
        if other is None:
            return False
        mine = (self.provider, self.model, self.version, self.dimensions)
        return mine == (other.provider, other.model, other.version, other.dimensions)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service that a store knows, and how many of its vectors there are."""

    id: int
    name: str
    provider: str
    model: str
    version: str
    dimensions: int
    max_tokens: int
    state: str
    """in use, coming (its vectors are being made), or kept."""
    vectors: int
    lacking: int
    """How many texts have no vector of it yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An embedding provider of another package."""

    name: str
    package: str
    version: str
