"""The progress of a long task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long task has come."""

    done: int
    total: int
    seconds: float
    """Seconds since it began."""
    begun_at: int = 0
    """How much an earlier run had done already."""
    failed: int = 0
    pause: float | None = None
    """Seconds of the current wait, as a service asked for."""
    unit: str = ""
    """What is counted, if it is not texts: MB."""
    name: str = ""
    """What is being done now, where it has a name: a file."""

    @property
    def past(self) -> int:
        """How much is finished: done or failed."""
        return self.done + self.failed

    @property
    def rate(self) -> float:
        """How much is finished each second; 0 before the first."""
        return (self.past - self.begun_at) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate, or None if that cannot be told yet."""
        return (self.total - self.past) / self.rate if self.rate > 0 else None


OnProgress = Callable[[Progress], None]
"""Told now and then how far a task has come."""
