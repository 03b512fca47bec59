"""Reads the words that stand near secrets, by language, from ``words.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from memchat.language import lexicon

MARKS = (
    r"\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
"""Marks that belong to the letter before them, for a character class."""


@cache
def _tables() -> dict[str, dict[str, str]]:
    path = files("memchat.language") / "secret_data" / "words.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def languages() -> tuple[str, ...]:
    """The languages whose words for secrets are listed."""
    return tuple(_tables())


def kinds(code: str) -> tuple[str, ...]:
    """The kinds of words that a language lists."""
    return tuple(_tables()[code])


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """The entries of one kind in a language."""
    listed = (" ".join(e.split()) for e in re.split(r",(?![^{]*\})", _tables()[code][kind]))
    return tuple(entry for entry in listed if entry)


def is_spaced(code: str) -> bool:
    return code not in lexicon.codes() or lexicon.is_spaced(code)


def whole_words(code: str, words: str) -> str:
    """Alternatives as whole words, if the language puts spaces between words."""
    words = words or r"(?!)"
    return rf"(?<!\w)(?:{words})(?![\w{MARKS}])" if is_spaced(code) else f"(?:{words})"
