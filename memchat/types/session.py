"""One conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. ``extracted_to`` is the id of the last message that an extraction read."""

    id: int
    user: str
    app: str
    title: str | None
    summary: str | None
    started_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    extracted_to: int
    message_count: int
    status: str
    """open, pending (ended, waits for its extraction), extracted, failed, or off (nothing to
    learn)."""
    copied_from: int | None = None
    """The conversation whose beginning this one was made with, while that is there."""
