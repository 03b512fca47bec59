"""Changing ``settings.toml`` of the data folder; its other lines stay as the person wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from memchat.config import private_files
from memchat.config.settings import parse
from memchat.config.sources import FILE, SETTING_NAMES
from memchat.errors import ConfigError

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
    with private_files.changing(home):
        text = private_files.read_text(path)
        wanted = {
            name: value
            for name, value in private_files.parsed(path, text).items()
            if name not in changes
        }
        text = text or _HEADING
        for name, value in changes.items():
            text = _with(text, name, value)
        if _values(path, text) != wanted | values:
            raise ConfigError(
                f"{path} cannot be changed safely, as it is not one NAME = value a line; change "
                f"{' and '.join(changes)} in it by hand"
            )
        private_files.write_text(path, text)


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
        return private_files.parsed(path, text)
    except ConfigError:
        return None
