"""Figures about the memories of an app."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Insights:
    """Figures about the memories of an app. Days are in the user's time zone."""

    kept: dict[date, int]
    """How many memories were stored on each day."""
    said: dict[date, int]
    """How many messages the user sent on each day."""
    types: dict[str, int]
    keys: dict[str, int]
    """The keys with the most memories."""
    states: dict[str, int]
    """How many memories are in use, and how many are inactive for each reason."""
    most_used: tuple[tuple[Memory, int], ...]
    never_used: int
    queue: dict[str, int]
