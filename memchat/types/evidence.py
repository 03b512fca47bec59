"""The words of a message that prove a memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.types.message import Role


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of a memory: a verbatim span of one stored message."""

    memory_id: int
    session_id: int
    message_id: int
    role: Role
    quote: str
    start: int
    """Where the quote begins in the message, in characters."""
    said_at: datetime
    session_title: str | None = None
    client: str | None = None
    """The program that sent these words over MCP; None for words of a conversation."""
