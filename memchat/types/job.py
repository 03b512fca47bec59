"""Queued work, and the state of a memory's vector."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of queued work and how it stands."""

    id: int
    kind: str
    user: str
    app: str
    target_id: int
    status: str
    """pending, running, completed or failed."""
    attempts: int
    run_at: datetime
    error_message: str | None
    created_at: datetime
    processed_at: datetime | None


EmbeddingStatus = Literal["pending", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """How it stands with the vector of one memory."""

    memory_id: int
    status: EmbeddingStatus | None
    """None where none is asked for, as without an embedding service."""
    code: int | None
    """The same as a number: -1 pending, 0 completed, the error's HTTP status or 1 where failed."""
    model: str | None
    """The service that made it."""
    error: str | None
    """Why the last try failed; gone when one succeeds."""
    attempts: int
    processed_at: datetime | None
    """When it was made, or given up."""
