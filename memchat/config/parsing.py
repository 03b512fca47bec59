"""Turning the text of a variable into a value of the right type and range.

Each function makes a parser, called with the variable's name and its text. A parser raises
ConfigError with the name of the variable and what it accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memchat.errors import ConfigError

Parser = Callable[[str, str], object]

MOST_RETRIES = 20
LONGEST_RETRY_MINUTES = 10_080


def text(name: str, value: str) -> str:
    """The value as it is."""
    return value


def folder(name: str, value: str) -> Path:
    """A path; a leading ``~`` is the home folder."""
    return Path(value).expanduser()


def number(low: float, high: float) -> Callable[[str, str], float]:
    """A number from ``low`` to ``high``."""

    def parse(name: str, value: str) -> float:
        try:
            found = float(value)
        except ValueError:
            raise ConfigError(f"{name}={value!r} is not a number") from None
        if not low <= found <= high:
            raise ConfigError(f"{name}={value} is out of range; use {low:g} to {high:g}")
        return found

    return parse


def whole(low: int, high: int) -> Callable[[str, str], int]:
    """A whole number from ``low`` to ``high``; decimal places are cut off."""
    parse = number(low, high)
    return lambda name, value: int(parse(name, value))


def one_of(*allowed: str) -> Callable[[str, str], str]:
    """One of the values given."""

    def parse(name: str, value: str) -> str:
        if value not in allowed:
            raise ConfigError(f"{name}={value!r} is unknown; use {' or '.join(allowed)}")
        return value

    return parse


def switch(name: str, value: str) -> bool:
    """``on`` or ``off``."""
    return one_of("off", "on")(name, value) == "on"


def minutes(name: str, value: str) -> tuple[float, ...]:
    """Numbers of minutes with commas between them, one for each retry."""
    parts = value.split(",")
    if len(parts) > MOST_RETRIES:
        raise ConfigError(f"{name} names {len(parts)} retries; give at most {MOST_RETRIES}")
    parse = number(0, LONGEST_RETRY_MINUTES)
    return tuple(parse(name, part.strip()) for part in parts)
