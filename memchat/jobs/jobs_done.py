"""What one run of the worker did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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


def outcome(done: JobsDone, before: Learned) -> Learned:
    """What a run for one conversation taught, or why it still waits, beside what was known
    ``before``."""
    if not done.learned:
        why = done.errors[-1] if done.errors else "another worker reads it, or will"
        return replace(before, queued=why)
    first = done.learned[0]
    return replace(
        before,
        queued=done.errors[-1] if done.errors else None,
        changes=tuple(change for one in done.learned for change in one.changes),
        title=first.title,
        summary=first.summary,
        skipped=first.skipped,
        shortened=first.shortened,
    )
