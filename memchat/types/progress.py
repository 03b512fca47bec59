"""The progress of a long task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come."""

    done: int
    total: int
    seconds: float
    """Since it began."""
    begun_at: int = 0
    """What was done before, by an earlier run."""
    failed: int = 0
    pause: float | None = None
    """Seconds that are being waited, as a service asked."""
    unit: str = ""
    """What is counted, where that is no texts: MB."""

    @property
    def past(self) -> int:
        """What is behind: done or failed."""
        return self.done + self.failed

    @property
    def rate(self) -> float:
        """So many a second; 0 before the first is done."""
        return (self.past - self.begun_at) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate, or None where that cannot be told yet."""
        return (self.total - self.past) / self.rate if self.rate > 0 else None
