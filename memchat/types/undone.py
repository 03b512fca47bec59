"""The effect of deleting a conversation or a message on the memories."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Undone:
    """What deleting a conversation, or a message, does to the memories."""

    gone: tuple[Memory, ...] = ()
    """Only its words proved them."""
    back: tuple[Memory, ...] = ()
    """It had retired them, and they are in use again."""
    kept: tuple[Memory, ...] = ()
    """Words said elsewhere prove them too, or they are the person's own entry or edit."""
