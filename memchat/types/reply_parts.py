"""A reply in its parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """A reply that lists memories, asks a question, or does neither: then all is in ``before``."""

    before: str
    """What stands before the list, with the line that says how many there are."""
    listed: tuple[int, ...] = ()
    """The ids of the memories that were listed."""
    after: str = ""
    """What stands after the list."""
    question: str = ""
    """The question at its end."""
