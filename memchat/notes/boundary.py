"""Where a text may be cut, and how good each of these places is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum

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


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    code: bool
    """Whether it belongs to a fenced block, the fences included."""


def sentence_boundaries(text: str) -> Boundaries:
    """Where sentences, lines, paragraphs and headings begin; the first is where the text itself
    does. Empty for a blank text."""
    lines = _lines(text)
    found = _line_boundaries(lines)
    code = [line for line in lines if line.code]
    passed = 0
    for end in sentence_ends(text):
        while passed < len(code) and code[passed].end < end:
            passed += 1
        in_code = passed < len(code) and code[passed].start < end
        start = _after_space(text, end)
        if start < len(text) and not in_code and not _goes_on(text, end, start):
            found.setdefault(start, Level.SENTENCE)
    return found


def word_boundaries(text: str, start: int, end: int) -> Boundaries:
    """Where clauses and words begin between two places, ``start`` aside."""
    found: Boundaries = {}
    for pattern, level in ((_CLAUSE, Level.CLAUSE), (_SPACE, Level.WORD)):
        for match in pattern.finditer(text, start, end):
            if start < match.end() < end:
                found.setdefault(match.end(), level)
    return found


def cluster_boundaries(text: str, start: int, end: int) -> Boundaries:
    """Where characters begin that nothing ties to the one before, ``start`` aside."""
    found: Boundaries = {}
    flag = ord(text[start]) in _FLAGS
    for at in range(start + 1, end):
        second = flag and ord(text[at]) in _FLAGS
        tied = second or text[at - 1] == _JOINER or _extends(text[at])
        if not tied and not text[at].isspace():
            found[at] = Level.CLUSTER
        flag = not second and ord(text[at]) in _FLAGS
    return found


def character_boundaries(text: str, start: int, end: int) -> Boundaries:
    """Where code points other than white space begin, ``start`` aside."""
    return {at: Level.CHARACTER for at in range(start + 1, end) if not text[at].isspace()}


def _lines(text: str) -> list[_Line]:
    lines = []
    fence = ""
    start = 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        code = bool(fence or mark)
        if not fence and mark:
            fence = mark[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        lines.append(_Line(start, start + len(line), line, code))
        start += len(line)
    return lines


def _line_boundaries(lines: list[_Line]) -> Boundaries:
    found: Boundaries = {}
    level: int = Level.PARAGRAPH  # of what begins with the next line, if it has text
    before = 0
    for line in lines:
        if not line.text.strip():
            if level != Level.BELOW_HEADING:
                level = max(level, Level.LINE if line.code else Level.PARAGRAPH)
            continue
        here = line.start + _after_space(line.text, 0)
        heading = None if line.code else _HEADING.match(line.text)
        underline = None if line.code else _UNDERLINE.match(line.text)
        if heading:
            depth = Level.HEADING + 6 - len(heading[1])
            found[here] = level if level == Level.BELOW_HEADING else depth
            level = Level.BELOW_HEADING
        elif underline and level == Level.SENTENCE and found.get(before) == Level.PARAGRAPH:
            found[before] = Level.HEADING + (5 if "=" in underline[1] else 4)
            level = Level.BELOW_HEADING
        else:
            if line.code or _ITEM.match(line.text):
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
