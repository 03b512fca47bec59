"""Queued work, and the state of a memory's vector."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Job:
    """One queued job and its state."""

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
    """The state of the vector of one memory."""

    memory_id: int
    status: EmbeddingStatus | None
    """None if no vector is wanted, for example without an embedding service."""
    code: int | None
    """The status as a number: -1 pending, 0 completed, and if it failed the HTTP status of the
    error or 1."""
    model: str | None
    """The service that made it."""
    error: str | None
    """Why the last try failed; None once a try succeeds."""
    attempts: int
    processed_at: datetime | None
    """When it was made or finally failed."""
