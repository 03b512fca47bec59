"""The sentences of a message.

Where a quote stands in a message: verbatim but for what folding forgives, at word boundaries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memchat.language.text import UNSPACED, Folded, fold, is_word, trim


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


_JOINT = re.compile(
    r"[;:、，]|,(?!\d)|\s[-–—]\s|(?<!\w)(?:and|but|while|because|und|aber|weil|et|mais|y|pero|e|ma|mas|maar"
    r"|en(?= (?:ik|mijn|we|het|de)\b))(?!\w)",
    re.IGNORECASE,
)
"""Where clauses are joined."""


def clause_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """A span widened to the clause breaks around it in its sentence."""
    sentence = sentence_around(text, start, end)
    breaks = [m.span() for m in _JOINT.finditer(text, sentence.start, sentence.end)]
    left = max((b for _, b in breaks if b <= start), default=sentence.start)
    right = min((a for a, _ in breaks if a >= end), default=sentence.end)
    return left, right


def clauses(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The clauses of a part of a text."""
    breaks = [m.span() for m in _JOINT.finditer(text, start, end)]
    breaks = sorted([*breaks, *((at, at) for at in _breaks(text) if start < at < end)])
    starts = [start, *(b for _, b in breaks)]
    return list(zip(starts, [*(a for a, _ in breaks), end], strict=True))


_MIN_UNSPACED = 4
_MAX_PIECES = 4


def find_spans(quote: str, message: str) -> list[Span]:
    """Every place in a message where a quote stands at word boundaries; its edges are trimmed."""
    needle = trim(fold(quote).text)
    hay = fold(message)
    if not needle or not any(c.isalnum() for c in needle):
        return []
    spans = [_span(message, hay, [found]) for found in _occurrences(needle, hay, 0)]
    if not spans and "..." in needle:
        elided = _find_elided(needle, hay, message)
        spans = [elided] if elided else []
    return spans


def find_span(quote: str, message: str) -> Span | None:
    """The first place of a quote in a message, or None. The match is never fuzzy; ``…`` may stand
    for words left out of one sentence. In scripts without spaces a quote needs four characters, or
    the whole message."""
    return next(iter(find_spans(quote, message)), None)


def _occurrences(needle: str, hay: Folded, start: int) -> list[tuple[int, int]]:
    found, at = [], hay.text.find(needle, start)
    while at >= 0:
        end = at + len(needle)
        if hay.whole[at] and hay.whole[end] and _bounded(needle, hay.text, at, end):
            found.append((at, end))
        at = hay.text.find(needle, at + 1)
    return found


def _bounded(needle: str, hay: str, start: int, end: int) -> bool:
    if _joined(hay, start) or _joined(hay, end):
        return False
    inside = UNSPACED.search(needle) is not None
    letters = sum(c.isalnum() for c in needle)
    return not inside or letters >= _MIN_UNSPACED or needle == trim(hay)


def _joined(text: str, at: int) -> bool:
    """Whether a cut at this position would split a word or a number."""
    if at <= 0 or at >= len(text):
        return at == 0 < len(text) and unicodedata.category(text[0])[0] == "M"
    left, right = text[at - 1], text[at]
    if is_word(left) and is_word(right):
        if left.isdigit() and right.isdigit():
            return True
        return not (UNSPACED.match(left) or UNSPACED.match(right))
    if right.isdigit() and left in ".,:/-'":
        before = text[at - 2 : at - 1]
        return (
            before.isdigit()
            or (left == "-" and not is_word(before))
            or (left == "." and not before.strip())
        )
    if left.isdigit() and right in ".,:/-'":
        return text[at + 1 : at + 2].isdigit()
    # The t of don't is no word.
    return (left == "'" and right == "t" and text[at - 2 : at - 1] == "n") or (
        right == "'" and text[at : at + 2] == "'t" and left == "n"
    )


def _span(message: str, hay: Folded, found: list[tuple[int, int]]) -> Span:
    pieces = tuple((hay.offsets[a], hay.ends[b - 1]) for a, b in found)
    start, end = pieces[0][0], pieces[-1][1]
    return Span(start, end, message[start:end], pieces)


def _find_elided(needle: str, hay: Folded, message: str) -> Span | None:
    pieces = [trim(piece) for piece in re.split(r"\.{3,}", needle)]
    if not 2 <= len(pieces) <= _MAX_PIECES or any(len(p) < 2 for p in pieces):
        return None
    for first in _occurrences(pieces[0], hay, 0):
        found = [first]
        for piece in pieces[1:]:
            later = _occurrences(piece, hay, found[-1][1])
            if not later:
                break
            found.append(later[0])
        else:
            span = _span(message, hay, found)
            around = sentence_around(message, *span.pieces[0])
            if span.end <= around.end:
                return span
    return None
