"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, beside its goal. ``met`` is None where nothing could be measured."""

    name: str
    seen: str
    """The figure as printed, with what it was counted over: ``0 of 200``."""
    goal: str
    met: bool | None
    by: str = "code alone"
    """Which model took part: its name, ``recorded answers (name)``, or ``code alone``."""
    baseline: str = ""
    """The same for "merge at cosine >= .85 / .92", where that can be said."""
    note: str = ""
