"""The first and the last day that a candidate holds."""

from __future__ import annotations

from memchat.memory.gate.checks import expiry, start_date, temporary_or_past
from memchat.memory.gate.types import Case


def check(case: Case) -> None:
    """Read the days out of the user's own words."""
    expiry.check(case)
    start_date.check(case)
    temporary_or_past.check_past(case)
