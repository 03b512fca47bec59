"""From when and until when a candidate holds."""

from __future__ import annotations

from memchat.memory.gate.checks import expiry, start_date, temporary_or_past
from memchat.memory.gate.types import Case


def check(case: Case) -> None:
    """Read the days out of the user's own words."""
    case.candidate, case.until = expiry.check_until(case.candidate, case, case.zone)
    case.candidate, case.starts = start_date.check_start(
        case.candidate, case, case.zone, case.until
    )
    temporary_or_past.check_past(case.candidate, case)
