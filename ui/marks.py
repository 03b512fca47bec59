"""The words that a search found, marked in the texts that hold them."""

from __future__ import annotations

import unicodedata

from memchat.language.text import places
from ui import components as ui

_BEGIN, _END = "\ufdd0", "\ufdd1"
"""Characters that stand in no text, as Unicode keeps them free."""
_PLAIN = str.maketrans("", "", _BEGIN + _END)
BEFORE = 24
"""Characters of a message that are shown at most before the first word found."""


def pieces(text: str, query: str) -> list[tuple[str, bool]]:
    """A text on one line in pieces, each with whether it is a word of the query."""
    line, found, at = _line(text), list[tuple[str, bool]](), 0
    for start, end in places(query, line):
        found += [(line[at:start], False), (line[start:end], True)]
        at = end
    return [piece for piece in [*found, (line[at:], False)] if piece[0]]


def marked(text: str, query: str) -> str:
    """A text for Markdown, just as it is, with the words of the query marked."""
    line = _line(text)
    for start, end in reversed(places(query, line)):
        line = f"{line[:start]}{_BEGIN}{line[start:end]}{_END}{line[end:]}"
    shown = ui.literal(line)
    return shown.replace(_BEGIN, ":orange-background[").replace(_END, "]")


def excerpt(text: str, query: str, length: int) -> str:
    """At most so many characters of a text, around the first word of the query in it."""
    line = _line(text)
    first = next((start for start, _ in places(query, line)), 0)
    start = max(first - BEFORE, 0)
    if start:  # at a word, where the script has spaces between words
        start = max(start, line.find(" ", start, first) + 1)
    return ("… " if start else "") + ui.shorten(line[start:], length)


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text.translate(_PLAIN)).split())
