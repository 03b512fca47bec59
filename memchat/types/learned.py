"""What one conversation taught."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Change:
    """One thing a session taught, or refused: what happened to which memory, and its proof."""

    kind: str
    """added, repeated, merged, superseded, ended, revived, forgotten, review or refused."""
    memory: Memory | None
    quotes: tuple[str, ...] = ()
    before: str | None = None
    """The replaced value, where one was."""
    reason: str | None = None
    """Why it went to review or was refused."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The outcome of one session's extraction."""

    session_id: int
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read at all (memory off, nothing new said), or None."""

    def count(self, *kinds: str) -> int:
        """How many changes are of one of these kinds."""
        return sum(change.kind in kinds for change in self.changes)

    @property
    def headline(self) -> str:
        """``Saved N (merged/updated M)``."""
        saved = self.count("added", "revived", "superseded")
        changed = self.count("merged", "repeated", "superseded", "ended")
        return f"Saved {saved} (merged/updated {changed})"
