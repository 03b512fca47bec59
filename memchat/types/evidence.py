"""The words of a message that prove a memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.types.message import Role


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words that prove a memory: a verbatim span of one stored message."""

    memory_id: int
    session_id: int
    message_id: int
    role: Role
    quote: str
    start: int
    """Offset of the quote in the message, in characters."""
    said_at: datetime
    session_title: str | None = None
