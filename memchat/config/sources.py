"""Where settings come from, and changing ``settings.toml``, whose other lines stay as they are.

The environment comes first, then the file that was named with ``--env-file``, then
``settings.toml`` and ``keys.toml`` in the data folder. No file of the working folder is read unless
it was named: such a file could otherwise make memchat send messages and keys to an address of its
author.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memchat.config import files, keys
from memchat.config.files import default_home
from memchat.config.keys import (
    ADDRESS_NAMES,
    ENVIRONMENT,
    KEY_NAMES,
    USER,
    Keys,
    choose_models,
    closest,
    synonyms,
)
from memchat.config.settings import HOME, VARIABLES, Settings, parse
from memchat.errors import ConfigError

FILE = "settings.toml"
DOTENV = ".env"
OWN = "MEMCHAT_"
DEBUG = "MEMCHAT_DEBUG"
MCP_SERVERS = "mcp_servers"
"""The table of ``settings.toml`` that names other servers."""
SETTING_NAMES = (frozenset(VARIABLES.values()) | ADDRESS_NAMES | {USER}) - {HOME}
"""What ``settings.toml`` may hold."""
KNOWN_NAMES = SETTING_NAMES | KEY_NAMES | {HOME}
"""What a file named with ``--env-file`` may hold."""


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The contents of a file named with ``--env-file``."""

    name: str
    values: Mapping[str, str] = field(repr=False)
    ignored: tuple[str, ...] = ()
    """Unknown names in it, which are ignored."""


@dataclass(frozen=True, slots=True)
class SettingValues:
    """Every value that is set, by its variable, with its source."""

    home: Path
    values: Mapping[str, str] = field(repr=False)
    origins: Mapping[str, str]
    keys: Keys


def collect(environment: Mapping[str, str], env_file: EnvFile | None) -> SettingValues:
    """The values of all sources in their order. Raises ConfigError for a file that is refused."""
    values = {name: value for name, value in environment.items() if value}
    origins = dict.fromkeys(values, ENVIRONMENT)
    if env_file is not None:
        _add(values, origins, env_file.values, env_file.name)
    home = Path(values[HOME]).expanduser() if HOME in values else default_home()
    _add(values, origins, read_settings(home), FILE)
    _add(values, origins, keys.read(home), keys.FILE)
    given = {
        name: (values[name], origin)
        for name, origin in origins.items()
        if name in KEY_NAMES and origin != ENVIRONMENT
    }
    return SettingValues(home, values, origins, Keys(given))


def misspelt(names: Iterable[str]) -> list[str]:
    """A line for each variable that begins as memchat's own do and is none of them."""
    own = {name.removeprefix(OWN) for name in (DEBUG, *KNOWN_NAMES) if name.startswith(OWN)}
    lines = []
    for name in sorted(name for name in names if name.startswith(OWN)):
        if (rest := name.removeprefix(OWN)) in own:
            continue
        meant = closest(rest, own)
        hint = f"did you mean {OWN}{meant}?" if meant else "memchat config lists those there are"
        lines.append(f"{name} is no variable of memchat's, and does nothing; {hint}")
    return lines


def read_settings(home: Path) -> dict[str, str]:
    """The values of ``settings.toml``, as texts like those of the variables.

    Raises ConfigError for a file that is not private, and for an unknown name.
    """
    path = home / FILE
    found = files.read(path).items()
    return {name: _text(path, name, value) for name, value in found if name != MCP_SERVERS}


def read_env_file(path: Path) -> EnvFile:
    """The values of a file in the form of ``.env``. Raises ConfigError for one it cannot read.

    Only known names are used, and a ``$`` stays as it is: no variables are substituted.
    """
    try:
        values = _parsed(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    known = {name: value for name, value in values.items() if name in KNOWN_NAMES and value}
    return EnvFile(str(path), known, tuple(name for name in values if name not in KNOWN_NAMES))


def unread_dotenv(folder: Path, env_file: EnvFile | None = None) -> list[str]:
    """The known names in the folder's ``.env``, which is only read when it is named.

    Empty where there is none, or where it was named with ``--env-file``.
    """
    path = folder / DOTENV
    try:
        found = path.stat()
        named = env_file is not None and os.path.samefile(env_file.name, path)
        if named or not stat.S_ISREG(found.st_mode) or found.st_size > files.MOST_BYTES:
            return []
        return [name for name in _parsed(path.read_text("utf-8")) if name in KNOWN_NAMES]
    except (OSError, UnicodeDecodeError):
        return []


def _add(
    values: dict[str, str], origins: dict[str, str], found: Mapping[str, str], origin: str
) -> None:
    """Add the values that no earlier source has set, under this name or a synonym."""
    taken = {other for name in values for other in synonyms(name)}
    for name, value in found.items():
        if name not in taken and value:
            values[name], origins[name] = value, origin


def _parsed(text: str) -> dict[str, str]:
    from dotenv import dotenv_values

    found = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value or "" for name, value in found.items()}


def _text(path: Path, name: str, value: object) -> str:
    if name in KEY_NAMES:
        raise ConfigError(f"{path} holds {name}; a key is set with memchat keys set {name}")
    if name == HOME:
        raise ConfigError(f"{path} holds {HOME}, which the environment alone can set; remove it")
    if name not in SETTING_NAMES:
        meant = closest(name, SETTING_NAMES)
        hint = f"did you mean {meant}?" if meant else "memchat config lists those there are"
        raise ConfigError(f"{path} holds {name!r}, which is no setting; {hint}")
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, (str, int, float)):
        raise ConfigError(f'{name} in {path} is no text or number; write it as {name} = "value"')
    return str(value)


_HEADING = "# Settings of memchat, each as NAME = value. `memchat config` lists them.\n"
_ONE_LINE = r"""[ \t]*=[ \t]*(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'#\[{]+)"""
"""The rest of a line up to the end of its value: a text in quotation marks, a number or a word."""


def set_settings(home: Path, changes: Mapping[str, str | None]) -> None:
    """Write variables to ``settings.toml``; None takes one out. Comments and other lines stay.

    Raises ConfigError for a value that cannot be used, and for a file that is not private, is not
    TOML, or holds one of these variables in a form that only a person can change.
    """
    unknown = [name for name in changes if name not in SETTING_NAMES]
    if unknown:
        raise ConfigError(f"{unknown[0]} is no setting; memchat config lists those there are")
    values = {name: value for name, value in changes.items() if value is not None}
    parse(values)
    path = home / FILE
    with files.changing(home):
        text = files.read_text(path)
        wanted = {
            name: value for name, value in files.parsed(path, text).items() if name not in changes
        }
        text = text or _HEADING
        for name, value in changes.items():
            text = _with(text, name, value)
        if _values(path, text) != wanted | values:
            raise ConfigError(
                f"{path} cannot be changed safely, as it is not one NAME = value a line; change "
                f"{' and '.join(changes)} in it by hand"
            )
        files.write_text(path, text)


def _with(text: str, name: str, value: str | None) -> str:
    """The text with this value on the variable's line, whose comment stays, or on a new line."""
    line = re.compile(rf"""^[ \t]*(["']?){name}\1{_ONE_LINE}[ \t]*(#[^\r\n]*)?(\r?\n|\Z)""", re.M)
    new = None if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
    found = line.search(text)
    if found is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return text if new is None else f"{text}{end}{new}\n"
    line_now = "  ".join(part for part in (new, found[2]) if part)
    line_now += found[3] if line_now else ""
    return text[: found.start()] + line_now + text[found.end() :]


def _values(path: Path, text: str) -> dict[str, object] | None:
    try:
        return files.parsed(path, text)
    except ConfigError:
        return None


TIMEZONE = VARIABLES["timezone"]


def load(env: Mapping[str, str] | None = None, *, env_file: EnvFile | None = None) -> Settings:
    """Settings from an environment (default ``os.environ``), then ``env_file``, then the files of
    the data folder.

    Raises ConfigError naming the variable that cannot be used, or the file that is refused.
    """
    found = collect(os.environ if env is None else env, env_file)
    values = found.values
    models, why = choose_models(values, found.origins)
    chosen = {"home": found.home, "timezone": _zone(values)}
    return Settings(
        **{**parse(values), **models, **chosen},
        why=why,
        origins=found.origins,
        addresses={name: url for name, url in values.items() if _is_address(name)},
        keys=found.keys,
    )


def _is_address(name: str) -> bool:
    # Libraries read more such variables than memchat knows by name.
    return name in ADDRESS_NAMES or name.endswith(("_API_BASE", "_BASE_URL"))


def _zone(values: Mapping[str, str]) -> str:
    name = values.get(TIMEZONE) or values.get("TZ", "").lstrip(":") or _system_zone()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if TIMEZONE in values:
            raise ConfigError(
                f"{TIMEZONE}={name!r} is not a time zone; use a name such as Europe/Berlin"
            ) from None
        return "UTC"
    return name


def _system_zone() -> str:
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"
