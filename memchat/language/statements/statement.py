"""A fact that a clause states."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as its clause states it; it is not yet compared with what is known."""

    type: str
    """A memory type: profile, preference, fact or other."""
    key: str
    value: str
    many: bool
    """Whether the key holds several values."""
    quote: str
    """The clause, verbatim."""
    until_said: str | None = None
    """The words of the time phrase that ends it."""
    until: str | None = None
    """The same as a code, such as ``weekday:fri`` or ``10-15``."""
    asked: bool = False
    """Whether the clause asks to remember it."""
    ends: bool = False
    """Whether the clause says that ``value`` is over."""
