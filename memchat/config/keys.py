"""The keys of providers, in a private file.

A key of ``keys.toml`` is passed to the provider's library in each call; it is never put into the
environment, which other programs would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memchat import disk
from memchat.config.providers import KEY_NAMES, KEYS, closest, elsewhere, spelling_hint
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
    """False where another source takes precedence, or it belongs to another address."""
    address: str = ""
    """The address that it belongs to; empty for the provider's own."""


class Keys:
    """The keys that are set, by variable. Those of the environment come before those of files."""

    def __init__(self, given: Mapping[str, tuple[str, str]] | None = None) -> None:
        """``given`` has for each variable its value and its source. The environment is looked at
        each time, as a key may be put there later."""
        self._given = dict(given or {})

    def __repr__(self) -> str:
        return f"Keys({', '.join(sorted(self._given))})"

    def _set(self) -> dict[str, tuple[str, str]]:
        inside = {name: (os.environ.get(name, ""), ENVIRONMENT) for name in KEY_NAMES}
        return self._given | {name: key for name, key in inside.items() if key[0]}

    def first(self, names: Iterable[str]) -> str | None:
        """The first of these variables that is set, in the environment before a file."""
        there = (name for name in names if name in self._set())
        return min(there, key=lambda name: self.origin(name) != ENVIRONMENT, default=None)

    def value(self, name: str) -> str | None:
        """The key in this variable."""
        return self._set().get(name, (None, None))[0]

    def origin(self, name: str) -> str | None:
        """The source of the key in this variable; None if it is not set."""
        return self._set().get(name, (None, None))[1]


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


_AT = " at "
_PROVIDERS = {name: provider for provider, names in KEYS.items() for name in names}


def read(home: Path) -> dict[str, str]:
    """The keys in ``keys.toml``, by variable, or by variable and address as ``NAME at ADDRESS``.

    Raises ConfigError for a file that is invalid or not private.
    """
    path = home / FILE
    found: dict[str, str] = {}
    for name, value in disk.read(path).items():
        if name.partition(_AT)[0] not in KEY_NAMES:
            hint = spelling_hint(name, KEY_NAMES, "remove it")
            raise ConfigError(f"{path} holds {name!r}, which is no key that memchat knows; {hint}")
        if not isinstance(value, str):
            raise ConfigError(f"{name} in {path} is no text; write it in quotation marks")
        if value:
            found[name] = checked(name, value)
    return found


def in_force(found: Mapping[str, str], addresses: Mapping[str, str]) -> dict[str, str]:
    """Of the keys in ``keys.toml`` those that belong to the addresses that are set, by variable:
    no key is sent to another address than the one it was given for."""
    at = {name: (*name.partition(_AT)[::2], value) for name, value in found.items()}
    return {name: key for name, url, key in at.values() if url == address_of(name, addresses)}


def address_of(variable: str, addresses: Mapping[str, str]) -> str:
    """The address that a key would be sent to; empty for the provider's own."""
    return elsewhere(addresses, _PROVIDERS[variable])


def set_key(home: Path, name: str, value: str, at: str = "") -> str:
    """Write a key to ``keys.toml``, replacing an earlier one; gives its variable. ``at`` is the
    address that it belongs to, where that is not the provider's own."""
    variable = variable_of(name)
    key = checked(variable, value)
    with disk.changing(home):
        disk.write(home / FILE, read(home) | {_entry(variable, at): key}, _HEADING)
    return variable


def remove_key(home: Path, name: str, at: str | None = None) -> str:
    """Remove a key from ``keys.toml``, for one address or for all; gives its variable. Raises
    NotFound."""
    variable = variable_of(name)
    found = read(home)
    mine = [one for one in found if one.partition(_AT)[0] == variable]
    gone = mine if at is None else [one for one in mine if one == _entry(variable, at)]
    if not gone:
        raise NotFound(f"{variable} is not in {home / FILE}", see="keys list")
    with disk.changing(home):
        left = {key: value for key, value in read(home).items() if key not in gone}
        disk.write(home / FILE, left, _HEADING)
    return variable


def _entry(variable: str, at: str) -> str:
    return f"{variable}{_AT}{at.rstrip('/')}" if at else variable


def listed(home: Path, keys: Keys, addresses: Mapping[str, str]) -> list[KeyInfo]:
    """Every key that is set, with its source, including those that are not used."""
    stored = [one.partition(_AT)[::2] for one in read(home)]
    rows = []
    for provider, names in KEYS.items():
        in_use = keys.first(names)
        for name in names:
            origin, here = keys.origin(name), address_of(name, addresses)
            if origin not in (None, FILE):
                rows.append(KeyInfo(name, provider, str(origin), name == in_use))
            for variable, url in stored:
                if variable == name:
                    used = (origin, name, url) == (FILE, in_use, here)
                    rows.append(KeyInfo(name, provider, FILE, used, url))
    return rows


def checked(name: str, value: str) -> str:
    """A key as it is kept. Raises InputError for what can be none."""
    key = value.strip()
    if not key:
        raise InputError(f"no key was given for {name}; nothing was changed")
    if len(key) > _LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"what was given for {name} is no key: a key is one word without spaces")
    return key
