"""Where a memory comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryOrigin:
    """The conversation that proves a memory, and the app that it was kept in before."""

    session_id: int | None = None
    """The last conversation of this app in which the person said it; None where there is none."""
    promoted_from: str | None = None
    """Of a memory that is kept for every app: the app that it was kept in before."""
