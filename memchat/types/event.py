"""One entry in the history of a memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one memory. Events are ordered by ``id``."""

    id: int
    memory_id: int
    kind: str
    at: datetime
    actor: str
    cause: str
    session_id: int | None
    message_id: int | None
    related_id: int | None
    """The other memory of the change, for example the one that replaced this one."""
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    detail: dict[str, Any] | None = None
    """The second look's ``verdict``, ``reason`` and ``model``, where there was one."""
