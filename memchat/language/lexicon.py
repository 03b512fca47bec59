"""Reads the word lists in ``data`` and makes patterns of them.

Each file is one language; adding a file adds a language. Entries are separated by commas. They are
words or parts of regular expressions, in the form that ``text.fold`` returns: lower case, straight
apostrophes, no dotless i. A slash separates words with one meaning, or the two of a pair.
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
"""Kinds that include other kinds."""
_MARK = r"\w\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"


@cache
def codes() -> tuple[str, ...]:
    """The codes of the languages that have a file."""
    names = (path.name.removesuffix(".toml") for path in _DATA.iterdir())
    return tuple(sorted(name for name in names if name != _CALENDAR))


@cache
def table(code: str) -> dict[str, Any]:
    """The content of one language's file, or of the calendar's."""
    return tomllib.loads((_DATA / f"{code}.toml").read_text(encoding="utf-8"))


def calendar() -> dict[str, Any]:
    """The names of weekdays, months and units of time, by language."""
    return table(_CALENDAR)


@cache
def kinds() -> tuple[str, ...]:
    """The kinds of words in the list of each language."""
    return tuple(kind for kind, words in table("en").items() if isinstance(words, str))


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """The entries of one kind in a language."""
    listed = (" ".join(entry.split()) for entry in table(code)[kind].split(","))
    return tuple(entry for entry in listed if entry)


def groups(code: str, kind: str) -> list[list[str]]:
    """The same, each entry split into its words with one meaning."""
    return [entry.split("/") for entry in entries(code, kind)]


@cache
def all_words(kind: str) -> frozenset[str]:
    """The words of one kind in all languages."""
    return frozenset(word for code in codes() for entry in groups(code, kind) for word in entry)


def alternatives(code: str, kind: str) -> str:
    """The entries of one kind as alternatives of a regular expression. Without entries the
    expression never matches."""
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
    """Whether a language puts spaces between words."""
    return bool(table(code)["spaced"])


@cache
def pattern(code: str, kind: str) -> re.Pattern[str]:
    """The entries of a kind in one language; whole words, if the language puts spaces between
    words."""
    words = alternatives(code, kind)
    if not is_spaced(code):
        return re.compile(f"(?:{words})")
    return re.compile(rf"(?<![{_MARK}])(?:{words})(?![{_MARK}])")


@cache
def any_language(kind: str) -> re.Pattern[str]:
    """The entries of a kind in all languages, in any case."""
    return re.compile("|".join(pattern(code, kind).pattern for code in codes()), re.IGNORECASE)
