"""What waits for a person's decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from memchat.types.memory import MemoryType


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something that waits for a person's yes.

    Either a proposal (``memory_type``, ``key``, ``value``, ``quote`` with its ``message_id``), or a
    pair of memories: ``memory_id`` may take the place of ``related_id``.
    """

    id: int
    status: str
    """pending or rejected; what is accepted becomes a memory and leaves."""
    reason: str
    created_at: datetime
    memory_type: MemoryType | None
    key: str | None
    value: str | None
    quote: str | None
    message_id: int | None
    start: int | None
    expires_at: date | None
    many: bool
    masked: bool
    """Whether a secret was hidden in value and quote; the words stand in the message alone."""
    memory_id: int | None
    related_id: int | None
    relation: str = "new"
    """What a yes does: new, updates (it takes the place of ``target_id``), ends, same or beside."""
    target_id: int | None = None
    """The memory that ``relation`` speaks of."""
    starts_at: date | None = None
    sentence: str | None = None
    """The sentence that ``quote`` stands in."""
    cues: tuple[str, ...] = ()
    sensitive: bool = False
