"""The effect of deleting a conversation or a message on the memories."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Undone:
    """What deleting a conversation or a message does to the memories."""

    gone: tuple[Memory, ...] = ()
    """They are deleted, since nothing else proves them."""
    back: tuple[Memory, ...] = ()
    """They had been replaced or ended by it, and are in use again."""
    kept: tuple[Memory, ...] = ()
    """They stay, since other messages prove them or the user entered or edited them."""

    def then(self, later: Undone) -> Undone:
        """What this and a later deletion do together."""
        gone = {memory.id for memory in later.gone}
        told = gone | {memory.id for memory in (*later.back, *later.kept)}
        return Undone(
            self.gone + later.gone,
            tuple(m for m in self.back if m.id not in gone) + later.back,
            tuple(m for m in self.kept if m.id not in told) + later.kept,
        )
