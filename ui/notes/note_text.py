"""A note's text as HTML, with one passage lit. Of a long text only a part is drawn."""

from __future__ import annotations

import re
from html import escape
from unicodedata import is_normalized

from memchat.language.text import places
from memchat.notes.formats import web_page
from ui.reply_html import LONGEST, placed_blocks, reply_html

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
_WEB_PAGE = re.compile(
    r"\s*<(!doctype|html|head|body|article|section|div|p|h[1-6]|table|ul|ol)\b", re.IGNORECASE
)
_FROM, _TO, _OPEN, _CLOSE = "\ufdd0\ufdd1\ufdd2\ufdd3"
"""Characters that stand in no text, as Unicode keeps them free."""
_MARKS = re.compile(r"[\ufdd0-\ufdd3]|%EF%B7%9[0-3]")
_ELEMENTS = {
    _FROM: '<b class="memchat-found">',
    _TO: "</b>",
    _OPEN: '<mark class="memchat-passage">',
    _CLOSE: "</mark>",
}
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


def drawn_html(text: str, span: Span, passage: Span | None, words: str = "") -> str:
    """The same as what it is: Markdown, a table, a web page, by the renderer of replies."""
    start, end = span
    part = text[start:end]
    if len(part) > LONGEST:
        return note_html(text, span, passage, words)
    if _WEB_PAGE.match(part):
        return reply_html(web_page(part.encode()).text)
    begin, after = (start, start) if passage is None else (passage[0], sum(passage))
    begin, after = (min(max(place, start), end) - start for place in (begin, after))
    # Whole blocks are lit where the passage is more than words of one paragraph.
    begin += len(part[begin:after]) - len(part[begin:after].lstrip())
    after -= len(part[begin:after]) - len(part[begin:after].rstrip())
    lines = range(part.count("\n", 0, begin), part.count("\n", 0, after) + (after > begin))
    is_part = passage is not None and passage[1] < len(text)
    holds = [html for at, html in placed_blocks(part) if _meet(at, lines)] if is_part else []
    found = _with_marks(part[begin:after], words)
    inside = len(holds) == 1 and holds[0].startswith("<p>")
    if inside:
        found = f"{_OPEN}{found}{_CLOSE}"
    marked = f"{part[:begin]}{found}{part[after:]}"
    body = "".join(
        f'<div class="memchat-passage">{html}</div>'
        if not inside and is_part and _meet(at, lines)
        else html
        for at, html in placed_blocks(marked)
    )
    return f'<div class="memchat-reply memchat-text" dir="auto">{_landed(_lights(body))}</div>'


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _with_marks(text: str, words: str) -> str:
    """The text with marks that no text has around the words of a search."""
    for start, end in reversed(places(words, text) if is_normalized("NFC", text) else []):
        text = f"{text[:start]}{_FROM}{text[start:end]}{_TO}{text[end:]}"
    return text


def _lights(html: str) -> str:
    """HTML with elements in the place of these marks, which stay out of its tags."""
    return "".join(
        _MARKS.sub("", piece) if piece.startswith("<") else _MARKS.sub(_element, piece)
        for piece in re.split(r"(<[^>]*>)", html)
    )


def _element(mark: re.Match[str]) -> str:
    return _ELEMENTS.get(mark[0], "")


def _landed(html: str) -> str:
    """The first lit word, or else the passage, named so that it is scrolled to
    (``scripts/transcript.js``)."""
    name = "memchat-found" if "memchat-found" in html else "memchat-passage"
    return html.replace(f'class="{name}"', f'class="{name}-marked"', 1)


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
