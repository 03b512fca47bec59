"""One memory: a typed fact about a user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from memchat.types.record import to_json

MemoryType = Literal["preference", "profile", "fact", "other"]
MEMORY_TYPES: tuple[MemoryType, ...] = ("preference", "profile", "fact", "other")
CreatedBy = Literal["manual", "auto", "import", "mcp"]


@dataclass(frozen=True, slots=True)
class Memory:
    """One typed fact about a user. The first ten fields are the founding table's columns."""

    id: int
    created_at: datetime
    memory_type: MemoryType
    key: str
    value: str
    sha1: str
    expires_at: date | None
    seen_count: int
    last_seen_at: datetime
    active: bool
    user: str
    app: str
    """``""`` (EVERY_APP) where the memory is the user's in every app."""
    many: bool
    """Whether the key holds several values side by side; only a key of one value supersedes."""
    created_by: CreatedBy
    said_at: datetime
    """When it was said: the time of the newest message that proves it, or of the manual entry."""
    updated_at: datetime
    inactive_reason: str | None = None
    """superseded, merged, expired or ended, where ``active`` is false; forgotten while its purge
    is held back."""
    replaced_by: int | None = None
    pinned: bool = False
    """Whether the person wants it at hand in every chat."""
    starts_at: date | None = None
    """The first day it holds, where it was said to come; before that day it is told as coming."""
    cues: tuple[str, ...] = ()
    """Plain words for the situations that need it. For search alone: never shown as a fact."""
    sensitive: bool = False
    """Whether a chat model is given it only where it fits the message, as with health or debts."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object: ISO 8601 times, ``active`` as a boolean."""
        return to_json(self)
