"""What an extraction proposed and the gate refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from memchat.types.memory import MemoryType

ONLY_REPEATS = "it only repeats"
"""The beginning of the reason for refusals that would have taught nothing new."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an extraction proposed and what was not stored, and why.

    Only ``reason`` is set where the words may not be kept: for a secret, for what the user asked
    not to keep, and for what was forgotten.
    """

    id: int
    session_id: int
    reason: str
    created_at: datetime
    message_id: int | None = None
    start: int | None = None
    """Where the words are in the message: from ``start`` up to ``end``, in characters."""
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
        """Whether it would have taught nothing new, being known already or only recited."""
        return self.reason.startswith(ONLY_REPEATS)

    @property
    def proposes(self) -> str:
        """What was proposed, on one line; empty if only the reason was kept."""
        if self.key is None:
            return ""
        words = f"{self.key}: {self.value}" if self.value else self.key
        return f"end of {words}" if self.relation == "ends" else words
