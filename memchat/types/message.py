"""Messages, as they are stored and as a chat model is sent them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stored conversation. ``status`` is complete, partial (stopped) or failed.

    ``copied_from`` is the id of the message that this one is a copy of, while that is there.
    """

    id: int
    session_id: int
    role: Role
    content: str
    created_at: datetime
    status: str = "complete"
    copied_from: int | None = None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message as it is sent to a chat model."""

    role: Literal["system", "user", "assistant"]
    content: str
