"""One memory: a typed fact about a user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from memchat.types.record import to_json

MemoryType = Literal["preference", "profile", "fact", "other"]
MEMORY_TYPES: tuple[MemoryType, ...] = ("preference", "profile", "fact", "other")
CreatedBy = Literal["manual", "auto", "import", "mcp"]
LEARNED: tuple[CreatedBy, ...] = ("auto", "mcp")
"""What is no word of the person's own hand: a model read it out of a conversation, or a program
wrote it."""


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
    """``""`` (EVERY_APP) if the user has the memory in every app."""
    many: bool
    """Whether the key holds several values at once. A new value replaces an old one only if not."""
    created_by: CreatedBy
    said_at: datetime
    """When it was said: the time of the newest message that proves it, or of the manual entry."""
    updated_at: datetime
    inactive_reason: str | None = None
    """superseded, merged, expired or ended if ``active`` is false; forgotten while its purge is
    delayed."""
    replaced_by: int | None = None
    pinned: bool = False
    """Whether the user wants it in every chat."""
    starts_at: date | None = None
    """The first day on which it holds, if that was said. Before that day it is shown as coming."""
    cues: tuple[str, ...] = ()
    """Words for the situations in which it is needed. They are only searched, and never shown as a
    fact."""
    sensitive: bool = False
    """Whether a chat model gets it only if it fits the message, as with health or debts."""
    tags: tuple[str, ...] = ()
    """The words that a person or a program groups it by, sorted. No model sees them."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object: ISO 8601 times, ``active`` as a boolean."""
        return to_json(self)
