"""What one run of the worker did."""

from __future__ import annotations

from dataclasses import dataclass, field

from memchat.types import Job, Learned


@dataclass(slots=True)
class JobsDone:
    """Counts and outcomes of one run of the worker."""

    learned: list[Learned] = field(default_factory=list)
    done: int = 0
    failed: list[Job] = field(default_factory=list)
    """Jobs that failed in this run; each waits for its next try or has no tries left."""

    running: bool = False
    """Whether the run goes on in the background, after the time it was given."""

    @property
    def errors(self) -> list[str]:
        """Why they failed."""
        return [job.error_message or "unknown" for job in self.failed]
