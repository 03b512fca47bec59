"""A note's text as HTML, with one passage lit. Of a long text only a part is drawn."""

from __future__ import annotations

import re
from html import escape
from unicodedata import is_normalized

from memchat.language.text import places

LONG = 40_000
"""Characters of a text that is drawn whole."""
BEFORE = 8_000
"""Characters that are drawn before the passage in a longer one."""
DRAWN = 24_000
"""Characters that are drawn of a longer one."""
REACH = 200
"""Characters in which the end of a word or line is looked for."""
Span = tuple[int, int]
_HEAD = re.compile(r"“.*?”, \d{4}-\d\d-\d\d: ")
"""What a prompt has before a passage: title and day."""
_CHANGED = re.compile(r"(\s+)|([‹›ʼ])|(\[[^\[\]]{1,40}\])")
"""What a prompt may have for other characters: spaces, marks, and the names of secrets."""


def window(text: str, passage: Span | None) -> Span:
    """The start and end of the part that is drawn: the whole text, or what is around the passage
    (offset and size), or the beginning."""
    if len(text) <= LONG:
        return 0, len(text)
    offset, size = passage or (0, 0)
    start = _break(text, max(min(offset, len(text)) - BEFORE, 0))
    return start, _break(text, max(start + DRAWN, min(offset + size, len(text))))


def note_html(text: str, span: Span, passage: Span | None, words: str = "") -> str:
    """The part ``span`` of a text, just as it is, with the passage lit, and in it the words of a
    search. Of a passage that is the whole text only the words are lit."""
    start, end = span
    lit, dark = (start, start) if passage is None else (passage[0], sum(passage))
    lit, dark = (min(max(place, start), end) for place in (lit, dark))
    part = passage is not None and passage[1] < len(text)
    body = escape(text[start:lit]) + _lit(text[lit:dark], words, part) + escape(text[dark:end])
    return f'<div class="memchat-note" dir="auto">{body}</div>'


def place_of(text: str, given: str) -> Span | None:
    """Where a text has a passage that a prompt was given, as offset and size; None if nowhere."""
    head = _HEAD.match(given)
    words = given[head.end() if head else 0 :].strip(" …")
    parts, at = [], 0
    for one in _CHANGED.finditer(words):
        instead = r"\s+" if one[1] else "." if one[2] else ".{1,400}?"
        parts += [re.escape(words[at : one.start()]), instead]
        at = one.end()
    found = re.search("".join([*parts, re.escape(words[at:])]), text, re.DOTALL)
    return (found.start(), found.end() - found.start()) if found and words else None


def _lit(text: str, words: str, part: bool) -> str:
    found = places(words, text) if is_normalized("NFC", text) else []
    # What is named "marked" is scrolled to (``scripts/transcript.js``).
    parts, at = [], 0
    for n, (start, end) in enumerate(found):
        name = "memchat-found" if n else "memchat-found-marked"
        parts += [escape(text[at:start]), f'<b class="{name}">{escape(text[start:end])}</b>']
        at = end
    body = "".join([*parts, escape(text[at:])])
    name = "memchat-passage" if found else "memchat-passage-marked"
    return f'<mark class="{name}">{body}</mark>' if part and text.strip() else body


def _break(text: str, place: int) -> int:
    """The end of the line or word at a place, if it is near."""
    if place <= 0 or place >= len(text):
        return min(max(place, 0), len(text))
    for mark in ("\n", " "):
        found = text.find(mark, place, place + REACH)
        if found >= 0:
            return found + 1
    return place
