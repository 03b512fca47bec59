"""The sentences of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text. ``pieces`` are its parts if words between them were left out."""

    start: int
    end: int
    text: str
    pieces: tuple[tuple[int, int], ...] = ()


_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|no|nr|ca|bzw|usw|evtl|inkl|sr|sra|av|e\.g|i\.e|z\.b|d\.h|u\.a|p\.m|a\.m"
    r"|dra|dott|sig|mme|mlle|fig|figs|vol|inc|ltd|jr|pág|núm|डॉ|श्री|श्रीमती|प्रो|г|ул|т\.е|т\.д)"
    r"|\b[A-ZÀ-Þ]|\b\d{1,2})$",
    re.IGNORECASE,
)
_MARKS = (
    # Looked for from the first mark of a run on only, else a long run takes the square of its time.
    r"(?<![.!?…؟۔։])[.!?…؟۔։]++[\"'”’»)\]*_]*+(?=\s)"
    r"|[。！？｡।॥།።፧។៕။]+[”’」』）]*"
)
"""Marks that end a sentence."""
_END = re.compile(_MARKS)
_BREAK = re.compile(_MARKS + r"|\n\s*\n|\n(?=\s*(?:[-*•·]|\d+[.)])\s)|\n(?=\s*>)|\n(?=```)")


def sentence_ends(text: str) -> Iterator[int]:
    """Where the marks that end a sentence end, in order: the full stops of every script, but not
    those of abbreviations."""
    return _ends(_END, text)


def _ends(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for match in pattern.finditer(text):
        dot = match[0].startswith(".") and match[0].rstrip("\"'”’»)]*_") == "."
        if dot and _ABBREVIATION.search(text, max(0, match.start() - 8), match.start()):
            initial_or_number = text[match.end() : match.end() + 80].lstrip()[:1]
            if not (text[match.start() - 1].isdigit() and initial_or_number.isupper()):
                continue
        yield match.end()


@lru_cache(maxsize=512)
def _breaks(message: str) -> tuple[int, ...]:
    return (0, *_ends(_BREAK, message), len(message))


def sentence_around(message: str, start: int, end: int) -> Span:
    """The sentence or sentences that a span touches. A list item includes the line that introduces
    the list. In doubt the result is too long rather than too short."""
    places = _breaks(message)
    left = max(p for p in places if p <= start) if start else 0
    right = min((p for p in places if p >= end), default=len(message))
    if re.match(r"\s*(?:[-*•·]|\d+[.)])\s", message[left:]):
        heading = re.search(
            r"[^\n]*:[ \t]*\n(?:\s*(?:[-*•·]|\d+[.)])\s[^\n]*\n?)*\s*$", message[:left]
        )
        left = heading.start() if heading else left
    while left < right and message[left].isspace():
        left += 1
    while right > end and message[right - 1].isspace():
        right -= 1
    return Span(left, right, message[left:right], ((left, right),))


def next_sentence(message: str, end: int) -> str:
    """The sentence after the one in which a span ends, or an empty string."""
    after = sentence_around(message, max(0, end - 1), end).end
    rest = message[after:].lstrip()
    at = len(message) - len(rest)
    return sentence_around(message, at, at + 1).text if rest else ""
