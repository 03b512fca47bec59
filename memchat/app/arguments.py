"""Checks of the values that a caller gives."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from memchat.errors import InputError

MOST = 2**31 - 1


def checked_timeout(seconds: object) -> float | None:
    """How long to wait, None for as long as it takes. Raises InputError for what is no time."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= threading.TIMEOUT_MAX:
        most = f"{threading.TIMEOUT_MAX:.0f}"
        raise InputError(f"{seconds!r} is no timeout; give seconds, more than 0 and up to {most}")
    return float(seconds)


def check_count(number: object, name: str = "limit") -> None:
    """Raise InputError for a limit or an offset that is negative or too large."""
    if not isinstance(number, int) or not 0 <= number <= MOST:
        raise InputError(f"the {name} {number!r} cannot be; give a number from 0 to {MOST}")


def check_choice(given: object, choices: Sequence[str], name: str) -> None:
    """Raise InputError for a word that is not one of a few."""
    if given not in choices:
        raise InputError(f"{given!r} is no {name}; use {', '.join(choices)}")
