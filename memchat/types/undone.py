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
