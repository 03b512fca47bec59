"""How many columns of a terminal a text takes, and shortening it to fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

EMOJI_STYLE = "\ufe0f"
"""Shows the character before it as an emoji, which takes two columns."""


def width(text: str) -> int:
    """How many terminal columns a line takes."""
    if text.isascii():
        return len(text)
    return sum(columns for _, columns in _cells(text))


def shorten(text: str, columns: int) -> str:
    """The line cut to this many columns, with an ellipsis if something is missing."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for c, taken in _cells(text):
        used += taken
        if used > columns - 1:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…"


def _cells(text: str) -> Iterator[tuple[str, int]]:
    """Each character of a line with the columns that it adds."""
    before = 0
    for c in text:
        before = 1 if c == EMOJI_STYLE and before == 1 else _columns(c)
        yield c, before


def _columns(c: str) -> int:
    if unicodedata.east_asian_width(c) in "WF":
        return 2
    return 0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1
