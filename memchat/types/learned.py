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
    """What reading a conversation taught; of ``User.add`` also what was stored of it."""

    session_id: int | None
    """None where nothing was stored."""
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read (memory is off, nothing new), or None."""
    queued: str | None = None
    """Why it is not read yet but waits in the queue, or None."""
    stored: int = 0
    """How many turns ``User.add`` stored."""
    known: int = 0
    """How many turns it skipped, as they were added before."""
    ignored: int = 0
    """How many messages and parts it left out: of another role, or without text."""
    shortened: int = 0
    """How many very long messages were read only at their beginning and end; ``read_all`` has all
    of one read."""

    def count(self, *kinds: str) -> int:
        """How many changes are of one of these kinds."""
        return sum(change.kind in kinds for change in self.changes)

    @property
    def headline(self) -> str:
        """``Saved N (merged/updated M)``."""
        saved = self.count("added", "revived", "superseded")
        changed = self.count("merged", "repeated", "superseded", "ended")
        return f"Saved {saved} (merged/updated {changed})"
