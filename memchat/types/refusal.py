"""What an extraction proposed and the gate refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from memchat.types.memory import MemoryType

ONLY_REPEATS = "it only repeats"
"""How the reason begins of a refusal that would have taught nothing."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a conversation's reading proposed and did not keep, and why.

    Only ``reason`` is there where the words may not be kept: a secret, what the person asked not
    to keep, and what was forgotten.
    """

    id: int
    session_id: int
    reason: str
    created_at: datetime
    message_id: int | None = None
    start: int | None = None
    """Where the words stand in the message, from ``start`` up to ``end``, in characters."""
    end: int | None = None
    memory_type: MemoryType | None = None
    key: str | None = None
    value: str | None = None
    relation: str = "new"
    target_id: int | None = None
    expires_at: date | None = None
    starts_at: date | None = None
    many: bool = True
    cues: tuple[str, ...] = ()
    sensitive: bool = False

    @property
    def repeats(self) -> bool:
        """Whether it would have taught nothing: it is known already, or was only recited."""
        return self.reason.startswith(ONLY_REPEATS)

    @property
    def proposes(self) -> str:
        """What it would have remembered, on one line; nothing where only the reason was noted."""
        if self.key is None:
            return ""
        words = f"{self.key}: {self.value}" if self.value else self.key
        return f"end of {words}" if self.relation == "ends" else words
