"""Where a text may be cut, and how good each of these places is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import pairwise

from memchat.language.sentences import sentence_ends


class Level(IntEnum):
    """What begins at a boundary; a cut at a higher level is the better one.

    A heading is ``HEADING + 6 - depth``, so that a chapter counts more than a section.
    """

    CHARACTER = 0
    CLUSTER = 1
    """A character as people see it, with its marks; an emoji of several parts."""
    WORD = 2
    CLAUSE = 3
    SENTENCE = 4
    LINE = 5
    """A list item, a row of a table, a line of code or of a dialogue."""
    BELOW_HEADING = 6
    PARAGRAPH = 7
    HEADING = 8


Boundaries = dict[int, int]
"""The level of each place where a piece of the text begins, by position."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})\s*$")
_ITEM = re.compile(
    r"\s*(?:[-*+•·]\s|\d{1,3}[.)]\s|\||\[?\d{1,2}:\d\d|[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}: )"
)
"""Begins a list item, a table's row, or a turn of a dialogue by a time or a name."""
_ORDINAL = re.compile(r"(?:^|[^\w.,])\d{1,2}\.$")
"""A number with a full stop: a day in German, say, rather than the end of a sentence."""
_CLOSERS = "\"'”’»)]"
_CLAUSE = re.compile(
    r"\n\s*|[,;:،؛](?=\s)\s*|[、，；：]+\s*|\s[-–—]\s+|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\s+"
)
"""Ends a clause. Thai, Lao, Burmese and Khmer have no mark for it but a space."""
_SPACE = re.compile(r"\s+")
_BLANK = re.compile(r"\s*")
_FLAGS = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_JOINER = "\u200d"


def sentence_boundaries(text: str) -> Boundaries:
    """Where sentences, lines, paragraphs and headings begin; the first is where the text itself
    does. Empty for a blank text."""
    found = _line_boundaries(_lines(text))
    code = [(start, start + len(line)) for start, line, in_code in _lines(text) if in_code]
    passed = 0
    for end in sentence_ends(text):
        while passed < len(code) and code[passed][1] < end:
            passed += 1
        in_code = passed < len(code) and code[passed][0] < end
        start = _after_space(text, end)
        if start < len(text) and not in_code and not _goes_on(text, end, start):
            found.setdefault(start, Level.SENTENCE)
    return found


def word_boundaries(text: str, start: int, end: int, step: int = 1) -> Boundaries:
    """Where clauses and words begin between two places, ``start`` aside; of words that have no more
    than ``step`` characters together the first."""
    found: Boundaries = {}
    for pattern, level in ((_CLAUSE, Level.CLAUSE), (_SPACE, Level.WORD)):
        for match in pattern.finditer(text, start, end):
            if start < match.end() < end:
                found.setdefault(match.end(), level)
    return found if step == 1 else thinned(found, end, step)


def thinned(found: Boundaries, end: int, step: int) -> Boundaries:
    """Boundaries of a text up to ``end``, without those between pieces that have no more than
    ``step`` characters together."""
    kept: Boundaries = {}
    begin = None
    for at, after in pairwise([*sorted(found), end]):
        if begin is None or after - begin > step:
            kept[at] = found[at]
            begin = at
    return kept


def cluster_boundaries(text: str, start: int, end: int, step: int) -> Boundaries:
    """Where characters begin that nothing ties to the one before, ``start`` aside, each at least
    ``step`` after the one before."""
    found: Boundaries = {}
    before = start
    flag = ord(text[start]) in _FLAGS
    for at in range(start + 1, end):
        second = flag and ord(text[at]) in _FLAGS
        tied = second or text[at - 1] == _JOINER or _extends(text[at])
        if not tied and at - before >= step and not text[at].isspace():
            found[at] = Level.CLUSTER
            before = at
        flag = not second and ord(text[at]) in _FLAGS
    return found


def character_boundaries(text: str, start: int, end: int, step: int) -> Boundaries:
    """Where code points other than white space begin, ``start`` aside, in steps."""
    places = range(start + step, end, step)
    return {at: Level.CHARACTER for at in places if not text[at].isspace()}


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Where each line begins, the line, and whether it belongs to a fenced block, the fences
    included."""
    fence = ""
    start = 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        code = bool(fence or mark)
        if not fence and mark:
            fence = mark[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        yield start, line, code
        start += len(line)


def _line_boundaries(lines: Iterable[tuple[int, str, bool]]) -> Boundaries:
    found: Boundaries = {}
    level: int = Level.PARAGRAPH  # of what begins with the next line, if it has text
    before = 0
    for start, line, code in lines:
        if not line.strip():
            if level != Level.BELOW_HEADING:
                level = max(level, Level.LINE if code else Level.PARAGRAPH)
            continue
        here = start + _after_space(line, 0)
        heading = None if code else _HEADING.match(line)
        underline = None if code else _UNDERLINE.match(line)
        if heading:
            depth = Level.HEADING + 6 - len(heading[1])
            found[here] = level if level == Level.BELOW_HEADING else depth
            level = Level.BELOW_HEADING
        elif underline and level == Level.SENTENCE and found.get(before) == Level.PARAGRAPH:
            found[before] = Level.HEADING + (5 if "=" in underline[1] else 4)
            level = Level.BELOW_HEADING
        else:
            if code or _ITEM.match(line):
                level = max(level, Level.LINE)
            if level > Level.SENTENCE:
                found[here] = level
            level = Level.SENTENCE
        before = here
    return found


def _goes_on(text: str, end: int, start: int) -> bool:
    """Whether a sentence goes on after a mark that could end it: after "3." for the third, after
    a pause, after a quotation that it contains."""
    if text[start].islower():
        return text[end - 1] in _CLOSERS or text.endswith(("..", "…"), 0, end)
    if text[end - 1] in "」』":
        return text[start] in "とっ"
    return _ORDINAL.search(text, max(0, end - 5), end) is not None


def _after_space(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _extends(char: str) -> bool:
    """Whether a character belongs to the one before it."""
    if char < "\u0300":
        return False
    code = ord(char)
    return (
        char in (_JOINER, "\u200c")
        or code in _SKIN_TONES
        or code in _TAGS
        or unicodedata.category(char).startswith("M")
    )
