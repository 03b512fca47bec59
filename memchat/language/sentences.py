"""The sentences of a message."""

from __future__ import annotations

import re
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
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|no|nr|ca|bzw|usw|evtl|inkl|sr|sra|av|e\.g|i\.e|z\.b|d\.h|u\.a|p\.m|a\.m)"
    r"|\b[A-ZÀ-Þ]|\b\d{1,2})$",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"[.!?…؟۔]+[\"'”’»)\]*]*(?=\s)|[。！？।॥]+[”’」』）]*|\n\s*\n|\n(?=\s*(?:[-*•·]|\d+[.)])\s)|\n(?=\s*>)|\n(?=```)"
)


@lru_cache(maxsize=512)
def _breaks(message: str) -> tuple[int, ...]:
    places = [0]
    for match in _BREAK.finditer(message):
        dot = match[0].startswith(".") and match[0].rstrip("\"'”’»)]*") == "."
        if dot and _ABBREVIATION.search(message, max(0, match.start() - 8), match.start()):
            initial_or_number = message[match.end() :].lstrip()[:1]
            if not (message[match.start() - 1].isdigit() and initial_or_number.isupper()):
                continue
        places.append(match.end())
    return (*places, len(message))


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
