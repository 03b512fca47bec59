"""What one conversation taught."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a session taught, or that was refused: which memory it changed, and its
    proof."""

    kind: str
    """added, repeated, merged, superseded, ended, revived, forgotten, review or refused."""
    memory: Memory | None
    quotes: tuple[str, ...] = ()
    before: str | None = None
    """The replaced value, if there is one."""
    reason: str | None = None
    """Why it went to the inbox or was refused."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of the extraction of one session."""

    session_id: int
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read (memory is off, nothing new), or None."""

    def count(self, *kinds: str) -> int:
        """How many changes are of one of these kinds."""
        return sum(change.kind in kinds for change in self.changes)

    @property
    def headline(self) -> str:
        """``Saved N (merged/updated M)``."""
        saved = self.count("added", "revived", "superseded")
        changed = self.count("merged", "repeated", "superseded", "ended")
        return f"Saved {saved} (merged/updated {changed})"
