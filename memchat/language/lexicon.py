"""Reads the lists of words in ``data`` and makes patterns of them.

A language is one file, and a new file is a new language. Entries are parted by commas, and are
words or fragments of a regular expression, written as ``text.fold`` leaves text: case folded,
straight apostrophes, no dotless i. A slash parts words of one meaning, or of one pair.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

_DATA = files("memchat.language") / "data"
_CALENDAR = "calendar"
_HOLDS = {"passing": ("today", "tomorrow", "until")}
"""Kinds that hold others."""
_MARK = r"\w\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"


@cache
def codes() -> tuple[str, ...]:
    """The languages that have a file."""
    names = (path.name.removesuffix(".toml") for path in _DATA.iterdir())
    return tuple(sorted(name for name in names if name != _CALENDAR))


@cache
def table(code: str) -> dict[str, Any]:
    """One language's file, or that of the calendar, as it is."""
    return tomllib.loads((_DATA / f"{code}.toml").read_text(encoding="utf-8"))


def calendar() -> dict[str, Any]:
    """The names of weekdays, months and units of time by language."""
    return table(_CALENDAR)


@cache
def kinds() -> tuple[str, ...]:
    """The kinds of words that each language lists."""
    return tuple(kind for kind, words in table("en").items() if isinstance(words, str))


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """A language's entries of one kind."""
    listed = (" ".join(entry.split()) for entry in table(code)[kind].split(","))
    return tuple(entry for entry in listed if entry)


def groups(code: str, kind: str) -> list[list[str]]:
    """The same, each as its words of one meaning."""
    return [entry.split("/") for entry in entries(code, kind)]


@cache
def all_words(kind: str) -> frozenset[str]:
    """The plain words of one kind in all languages."""
    return frozenset(word for code in codes() for entry in groups(code, kind) for word in entry)


def alternatives(code: str, kind: str) -> str:
    """The entries of one kind as alternatives of a regular expression, which may be none."""
    words = [word for part in (kind, *_HOLDS.get(kind, ())) for word in _plain(code, part)]
    if kind == "somebody_else":
        owners, people = alternatives(code, "possessive"), alternatives(code, "people")
        words.append(
            rf"(?:{owners}) (?:\w+ )?(?:{people})" if _plain(code, "possessive") else people
        )
    return "|".join(words) or r"(?!)"


def _plain(code: str, kind: str) -> list[str]:
    return [word for group in groups(code, kind) for word in group]


def is_spaced(code: str) -> bool:
    """Whether spaces part the words of a language."""
    return bool(table(code)["spaced"])


@cache
def pattern(code: str, kind: str) -> re.Pattern[str]:
    """One language's entries of a kind, as whole words where spaces part words."""
    words = alternatives(code, kind)
    if not is_spaced(code):
        return re.compile(f"(?:{words})")
    return re.compile(rf"(?<![{_MARK}])(?:{words})(?![{_MARK}])")


@cache
def any_language(kind: str) -> re.Pattern[str]:
    """The entries of a kind in every language, in any case."""
    return re.compile("|".join(pattern(code, kind).pattern for code in codes()), re.IGNORECASE)
