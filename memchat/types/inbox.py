"""What waits for a person's decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from memchat.types.memory import MemoryType


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something that waits for a person's decision.

    Either a proposal (``memory_type``, ``key``, ``value`` and ``quote`` with its ``message_id``),
    or two memories: ``memory_id`` may replace ``related_id``, or one memory, ``memory_id``.
    """

    id: int
    status: str
    """pending or rejected. An accepted item becomes a memory and is deleted."""
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
    """Whether a secret is masked in value and quote. Only the message has the words."""
    memory_id: int | None
    related_id: int | None
    relation: str = "new"
    """What accepting it does: new, updates (it replaces ``target_id``), ends, same or beside; for
    one memory also forget (delete it for good) or promote (keep it for every app)."""
    target_id: int | None = None
    """The memory to which ``relation`` refers."""
    starts_at: date | None = None
    sentence: str | None = None
    """The sentence that contains ``quote``."""
    cues: tuple[str, ...] = ()
    sensitive: bool = False
    tags: tuple[str, ...] = ()
    """The tags that the memory gets with a yes."""
