"""Cutting a text into chunks.

A text that is too long is cut in two at the best boundary, and so is each part, until all fit. The
best boundary is one of the highest level there is in the part, away from its ends. Among equals the
characters that follow decide, by a hash: they stay what they are when the text is edited elsewhere,
so the cuts stay where they are, and few chunks have to be embedded again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from memchat.notes.boundary import (
    Boundaries,
    Level,
    character_boundaries,
    cluster_boundaries,
    sentence_boundaries,
    thinned,
    word_boundaries,
)
from memchat.notes.profile import Profile
from memchat.notes.token_count import CountTokens

_SHARE = 3
"""A cut leaves this part (a third) of the longest chunk on either side, where it can."""
_HASHED = 24
"""Characters after a boundary that decide among equals."""
_LAST = 1 << 32
_COUNTED_WHOLE = 8
"""Characters a token up to which a text may fit into one chunk. In English there are about four."""
_MANY = 20_000
"""Pieces of a text, and characters of a piece, up to which any of its boundaries may be a cut."""
_DENSE = 16
"""Characters of a piece on average below which only some boundaries of a text of many may be."""
_STEPS = 16
"""A step between those that may be has so many times fewer characters than a chunk may have tokens:
no character has as many tokens."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text: ``text[start:end]``, without white space at its ends. ``index`` counts
    from 0; ``tokens`` is what ``count_tokens`` gives for it."""

    index: int
    start: int
    end: int
    tokens: int


def chunks(text: str, profile: Profile, count_tokens: CountTokens) -> list[Chunk]:
    """The chunks of a text, in order; none for a blank one.

    Every character but white space is in one; none has more than ``profile.max_tokens``, and
    paragraphs that fit are not cut. None begins or ends within a sentence unless the sentence alone
    is too long; then it is cut between clauses, words or characters. With an overlap a chunk begins
    with the last sentences of the one before, as far as they have no more than
    ``profile.overlap_tokens`` and leave the chunk within its limit.
    """
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if start < end <= start + _COUNTED_WHOLE * profile.max_tokens:
        # Most memos fit into one chunk: there is no need to look for sentences in them.
        tokens = count_tokens(text[start:end])
        if tokens <= profile.max_tokens:
            return [Chunk(0, start, end, tokens)]
    return _Pieces(text, profile, cache(count_tokens)).chunks()


class _Pieces:
    """The sentences of a text, and smaller pieces of those that are too long. They are numbered;
    ``first`` and ``last`` name a run of them, ``last`` not included."""

    def __init__(self, text: str, profile: Profile, count_tokens: CountTokens) -> None:
        self._text = text
        self._limit = profile.max_tokens
        self._overlap = profile.overlap_tokens
        self._count = count_tokens
        self._special = count_tokens("")  # tokens that the model adds to every text
        self._step = max(1, self._limit // _STEPS)
        boundaries = sentence_boundaries(text)
        if _MANY < len(boundaries) > len(text) // _DENSE:
            boundaries = thinned(boundaries, len(text), self._step)
        for finer in (word_boundaries, cluster_boundaries, character_boundaries):
            self._refine(boundaries, finer)
        self._starts = [*sorted(boundaries), len(text)]
        self._levels = [boundaries[start] for start in self._starts[:-1]]
        self._sums = [0]
        for number in range(len(self._levels)):
            self._sums.append(self._sums[-1] + self._tokens(number, number + 1) - self._special)
        self._ranks = [self._rank(number) for number in range(len(self._levels))]

    def chunks(self) -> list[Chunk]:
        """The text's chunks."""
        found = []
        before = 0
        for index, (first, last) in enumerate(self._parts()):
            begin = self._begin(before, first, last) if index else first
            start, end = self._place(begin, last)
            found.append(Chunk(index, start, end, self._tokens(begin, last)))
            before = first
        return found

    def _refine(
        self, boundaries: Boundaries, finer: Callable[[str, int, int, int], Boundaries]
    ) -> None:
        """Add the finer boundaries of every piece that is longer than a chunk."""
        starts = [*sorted(boundaries), len(self._text)]
        for start, end in pairwise(starts):
            if self._is_too_long(self._text[start:end].rstrip()):
                step = self._step if end - start > _MANY else 1
                boundaries |= finer(self._text, start, end, step)

    def _is_too_long(self, piece: str) -> bool:
        """Whether a piece has more tokens than a chunk. A tokenizer takes much memory for a long
        text, so of a long piece parts are counted until that is certain."""
        counted = 0
        for at in range(0, len(piece), _MANY) if len(piece) > _MANY else ():
            counted += self._count(piece[at : at + _MANY]) - self._special
            if counted > 2 * self._limit:
                return True
        return self._count(piece) > self._limit

    def _parts(self) -> list[tuple[int, int]]:
        """The runs of pieces that become chunks, without their overlap."""
        found = []
        waiting = [(0, len(self._levels))] if self._levels else []
        while waiting:
            first, last = waiting.pop()
            if self._fits(first, last):
                found.append((first, last))
            else:
                cut = self._cut(first, last)
                waiting += [(cut, last), (first, cut)]
        return found

    def _fits(self, first: int, last: int) -> bool:
        if last - first == 1:
            return True
        # The sum of the pieces is near the count of the whole, so most need not be counted.
        total = self._sums[last] - self._sums[first]
        if total > 2 * self._limit:
            return False
        room = self._limit if self._is_whole(first, last) else self._limit - self._overlap
        return total <= 2 * room and self._tokens(first, last) <= room

    def _is_whole(self, first: int, last: int) -> bool:
        """Whether these are a whole paragraph or section, which is kept whole if it fits at all,
        even where that leaves no room for an overlap."""
        inner = max(self._levels[first + 1 : last])
        return (first == 0 or self._levels[first] > inner) and (
            last == len(self._levels) or self._levels[last] > inner
        )

    def _cut(self, first: int, last: int) -> int:
        """The boundary at which a run that is too long is cut in two."""
        level = self._cut_level(first, last)
        places = [n for n in range(first + 1, last) if self._levels[n] == level]
        low, high = self._sums[first], self._sums[last]
        least = self._limit // _SHARE
        inside = [n for n in places if low + least <= self._sums[n] <= high - least]
        if inside:
            best = min(map(self._ranks.__getitem__, inside))
            places = [n for n in inside if self._ranks[n] == best]
        return min(places, key=lambda n: abs(self._sums[n] - (low + high) / 2))

    def _cut_level(self, first: int, last: int) -> int:
        """The highest level inside. A heading is parted from what is below it only to keep that
        whole."""
        inner = self._levels[first + 1 : last]
        level = max(inner)
        if level == Level.BELOW_HEADING:
            below = last - inner[::-1].index(level) - 1
            finer = [other for other in inner if other != level]
            if finer and self._tokens(below, last) > self._limit:
                return max(finer)
        return level

    def _rank(self, number: int) -> int:
        """The lowest is the best among boundaries of a level: first those after a piece that is
        short enough to be repeated."""
        start = self._starts[number]
        after = self._text[start : start + _HASHED].encode("utf-8", "surrogatepass")
        before = self._sums[number] - self._sums[number - 1] if number else 0
        return zlib.crc32(after) + (_LAST if 0 < self._overlap < before else 0)

    def _begin(self, before: int, first: int, last: int) -> int:
        """Where a chunk begins with its overlap. It never repeats the whole chunk before, which
        begins with the piece ``before``."""
        begin = first
        while begin - 1 > before and self._sums[first] - self._sums[begin - 1] <= self._overlap:
            begin -= 1
        while begin < first and (
            self._tokens(begin, first) - self._special > self._overlap
            or self._tokens(begin, last) > self._limit
        ):
            begin += 1
        return begin

    def _place(self, first: int, last: int) -> tuple[int, int]:
        """Start and end in the text, without the white space at the end."""
        start = self._starts[first]
        return start, start + len(self._text[start : self._starts[last]].rstrip())

    def _tokens(self, first: int, last: int) -> int:
        start, end = self._place(first, last)
        return self._count(self._text[start:end])
