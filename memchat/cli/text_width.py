"""How many columns of a terminal a text takes; shortening and wrapping it to fit."""

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


def wrap(line: str, columns: int) -> list[str]:
    """The line as lines of at most this many columns, broken at spaces where there are any."""
    lines: list[str] = []
    used = 0
    for word in line.split(" "):
        size = width(word)
        if lines and used + 1 + size <= columns:
            lines[-1], used = f"{lines[-1]} {word}", used + 1 + size
            continue
        lines.append("")
        used = 0
        for c, taken in _cells(word):
            if lines[-1] and used + taken > columns:
                lines.append("")
                used = 0
            lines[-1], used = lines[-1] + c, used + taken
    return lines


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
