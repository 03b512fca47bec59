"""Checks of the values that a caller gives."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.errors import InputError

MOST = 2**31 - 1


def check_count(number: object, name: str = "limit") -> None:
    """Raise InputError for a limit or an offset that is negative or too large."""
    if not isinstance(number, int) or not 0 <= number <= MOST:
        raise InputError(f"the {name} {number!r} cannot be; give a number from 0 to {MOST}")


def check_choice(given: object, choices: Sequence[str], name: str) -> None:
    """Raise InputError for a word that is not one of a few."""
    if given not in choices:
        raise InputError(f"{given!r} is no {name}; use {', '.join(choices)}")
