"""API keys of providers, from the environment and from files, and the file ``keys.toml``.

A key from a file is passed to the provider's library in each call. It is never put into the
environment, which other programs would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memchat.config import private_files
from memchat.config.names import KEY_NAMES, KEYS, closest
from memchat.errors import ConfigError, InputError, NotFound

FILE = "keys.toml"
ENVIRONMENT = "environment"
_HEADING = (
    "Keys of model providers. `memchat keys set NAME` and `keys remove NAME` write this file."
)
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key that is set, without its value."""

    name: str
    provider: str
    origin: str
    """``environment``, the name of the file given with --env-file, or ``keys.toml``."""
    used: bool
    """False where another source takes precedence."""


class Keys:
    """The keys that are set, by variable. The current environment takes precedence."""

    def __init__(self, given: Mapping[str, tuple[str, str]] | None = None) -> None:
        """``given`` are the keys of files: for each variable its value and its source."""
        self._given = dict(given or {})

    def __repr__(self) -> str:
        return f"Keys({', '.join(sorted(self._given))})"

    def first(self, names: Iterable[str]) -> str | None:
        """The first of these variables that is set, in the environment before a file."""
        names = tuple(names)
        inside = (name for name in names if os.environ.get(name))
        return next(inside, next((name for name in names if name in self._given), None))

    def value(self, name: str) -> str | None:
        """The key in this variable."""
        return os.environ.get(name) or self._given.get(name, (None, ""))[0]

    def origin(self, name: str) -> str | None:
        """The source of the key in this variable; None if it is not set."""
        if os.environ.get(name):
            return ENVIRONMENT
        return self._given[name][1] if name in self._given else None

    def names(self) -> list[str]:
        """The variables that are set, in the order of their providers."""
        return [name for names in KEYS.values() for name in names if self.origin(name)]

    def kept(self, environment: Mapping[str, str]) -> Keys:
        """The same keys with a copy of those in ``environment``, for when they are removed from the
        environment of this process."""
        inside = {name: (environment[name], ENVIRONMENT) for name in KEY_NAMES & environment.keys()}
        return Keys(self._given | {name: key for name, key in inside.items() if key[0]})


def variable_of(name: str) -> str:
    """The variable of a key, from its own name or the provider's short name (``openai``).

    Raises ConfigError for an unknown name, with the closest known one.
    """
    if name.lower() in KEYS:
        return KEYS[name.lower()][0]
    if name.upper() in KEY_NAMES:
        return name.upper()
    meant = closest(name, [*KEY_NAMES, *(provider.upper() for provider in KEYS)])
    if meant is not None and meant.lower() in KEYS:
        meant = meant.lower()
    hint = f"did you mean {meant}?" if meant else f"use one of {', '.join(KEYS)}"
    raise ConfigError(f"{name!r} is no key that memchat knows; {hint}")


def read(home: Path) -> dict[str, str]:
    """The keys in ``keys.toml``. Raises ConfigError for a file that is invalid or not private."""
    path = home / FILE
    found: dict[str, str] = {}
    for name, value in private_files.read(path).items():
        if name not in KEY_NAMES:
            meant = closest(name, KEY_NAMES)
            hint = f"did you mean {meant}?" if meant else "remove it"
            raise ConfigError(f"{path} holds {name!r}, which is no key that memchat knows; {hint}")
        if not isinstance(value, str):
            raise ConfigError(f"{name} in {path} is no text; write it in quotation marks")
        if value:
            found[name] = _checked(name, value)
    return found


def set_key(home: Path, name: str, value: str) -> str:
    """Write a key to ``keys.toml``, replacing an earlier one; gives its variable."""
    variable = variable_of(name)
    key = _checked(variable, value)
    with private_files.changing(home):
        _write(home, read(home) | {variable: key})
    return variable


def remove_key(home: Path, name: str) -> str:
    """Remove a key from ``keys.toml``; gives its variable. Raises NotFound."""
    variable = variable_of(name)
    if variable not in read(home):
        raise NotFound(f"{variable} is not in {home / FILE}; see memchat keys list")
    with private_files.changing(home):
        _write(home, {key: value for key, value in read(home).items() if key != variable})
    return variable


def listed(home: Path, keys: Keys) -> list[KeyInfo]:
    """Every key that is set, with its source, including those that are not used."""
    stored = read(home)
    rows = []
    for provider, names in KEYS.items():
        in_use = keys.first(names)
        for name in names:
            origin = keys.origin(name)
            if origin is not None:
                rows.append(KeyInfo(name, provider, origin, name == in_use))
            if name in stored and origin != FILE:
                rows.append(KeyInfo(name, provider, FILE, False))
    return rows


def _write(home: Path, values: Mapping[str, str]) -> None:
    private_files.write(home / FILE, values, _HEADING)


def _checked(name: str, value: str) -> str:
    key = value.strip()
    if not key:
        raise InputError(f"no key was given for {name}; nothing was changed")
    if len(key) > _LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"what was given for {name} is no key: a key is one word without spaces")
    return key
