"""Cuts a text into chunks that an embedding model can read whole.

A text that is too long is cut in two at the best boundary, and so is each part, until all fit. The
best boundary has the highest level in the part (heading, paragraph, line, sentence) and is not near
its ends. Among equals a hash of the characters that follow decides. An edit elsewhere in the text
therefore leaves a cut where it is, and few chunks have to be embedded again.

Tokens are counted by the model's own tokenizer where it is on this machine; otherwise an upper
bound is taken.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from itertools import pairwise

from memchat.errors import InputError
from memchat.language.sentences import sentence_ends
from memchat.types import Service


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


CountTokens = Callable[[str], int]
"""The tokens of a text, a model's special tokens included."""

_FREQUENT_WORDS = (
    "a about after again all also always an and another any are as at back be because been before"
    " being both but by call called can come could day did do does down each even every few find"
    " first for from get give go good great had has have he help her here his how if in into is it"
    " its just know last life like line little long made make many may me mean more most much my"
    " name never new next no not now number of off on one only or other our out over part people"
    " place right same say see set should so some still take tell than that the their them then"
    " there these they thing think this those through time to too two under up us very was way we"
    " well were what when where which while who will with without work would year you your i"
)
_FREQUENT = frozenset(_FREQUENT_WORDS.split())
"""English words that every tokenizer trained on English has whole."""
_PAIRS = {
    "a": "abcdefghijklmnopqrstuvwxyz", "b": "abcefhilmnorstuy", "c": "abcdehiklmoprstuyz",
    "d": "abcdefhilmoprstuy", "e": "abcdefghijklmnoprstuvwxyz", "f": "abcefiklmoprstuy",
    "g": "abcefghilmnoprstuy", "h": "acdeghilmnoprstuy", "i": "abcdefghijklmnopqrstuvxyz",
    "j": "aeikmnosu", "k": "aehikmorstuy", "l": "abcdefiklmnoprstuyz", "m": "abcdegilmopstuxy",
    "n": "abcdeghiklnoprstuxyz", "o": "abcdefghijklmnoprstuvwxyz", "p": "acdefghilmoprstuwy",
    "q": "aiu", "r": "abcdefghiklmnoprstuyz", "s": "abcdefghiklmoprstuwyz",
    "t": "acefhilmoprstuvyz", "u": "abcdefghijklmnoprstwxyz", "v": "abcdeinorsuy",
    "w": "acdegiklnorstuy", "x": "aitxy", "y": "adeiklmnoprstux", "z": "adehiouyz",
}  # fmt: skip
"""The letters that may follow a letter where both vocabularies have the two as one piece."""
_FUSED = "|".join(f"{first}(?=[{rest}])" for first, rest in _PAIRS.items())
_SMOOTH = re.compile(f"[A-Z]?(?:{_FUSED})*[a-z]")
"""A word of such pairs alone: at most two pieces for three letters, the capital aside."""
_WORD = re.compile("[A-Za-z]+")
_SINGLE = re.compile(r"[0-9!-/:-@\[-`{-~\x00-\x1f\x7f]| (?![!-/:-@A-Z\[-`a-z{-~])")
"""Digits, punctuation, control characters, and the spaces that are no part of what follows."""
_TWO_BYTES_ONE_TOKEN = re.compile("[\u0430-\u044f\u0627-\u063a\u0641-\u064a]")
"""Small Cyrillic and most Arabic letters."""
_THREE_BYTES_TWO_TOKENS = re.compile(
    "[\u0900-\u097f\u0e00-\u0e7f\u2010-\u202f\u3000-\u30ff\uff00-\uff5f]"
)
"""Devanagari, Thai, kana and common punctuation."""


def token_counter(embedder: object) -> CountTokens:
    """The embedder's own count where its tokenizer is on this machine, else ``most_tokens``."""
    count: CountTokens = getattr(embedder, "count_tokens", most_tokens)
    return count


def most_tokens(text: str) -> int:
    """As many tokens as a text can have at most.

    It is checked against OpenAI's cl100k_base and the tokenizer of MiniLM; for English it is about
    twice what they count. A character outside ASCII counts as its bytes in UTF-8, the finest that
    byte-level tokenizers cut, unless its script is known to need less.
    """
    count = sum(map(_word_tokens, _WORD.findall(text))) + len(_SINGLE.findall(text))
    if text.isascii():
        return count
    beyond = re.sub("[\0-\x7f]+", "", text)
    saved = len(_TWO_BYTES_ONE_TOKEN.findall(beyond)) + len(_THREE_BYTES_TWO_TOKENS.findall(beyond))
    return count + len(beyond.encode("utf-8", "surrogatepass")) - saved


@lru_cache(maxsize=65_536)
def _word_tokens(word: str) -> int:
    if word[1:].islower() or len(word) == 1:
        if word.lower() in _FREQUENT:
            return 1
        if _SMOOTH.fullmatch(word):
            return (2 * len(word) + 2) // 3
    return len(word)


SMALLEST = 16
"""Tokens: no chunk size is below this, so that every character fits into a chunk whatever the
tokenizer makes of it."""
_OVERLAP_SHARE = 4


@dataclass(frozen=True, slots=True)
class Profile:
    """``max_tokens`` is the most that a chunk may have, its overlap included, ``overlap_tokens``
    the most of it that may be repeated from the end of the chunk before.

    Raises InputError for chunks that are too short.
    """

    max_tokens: int
    overlap_tokens: int

    def __post_init__(self) -> None:
        if self.max_tokens < SMALLEST:
            raise InputError(
                f"chunks of {self.max_tokens} tokens are too short; give at least {SMALLEST}"
            )


MEMO = Profile(500, 50)
"""For voice memos and other spoken text: a thought that crosses a cut is found from both sides."""
DOCUMENT = Profile(2_000, 0)
"""For written text, which its headings and paragraphs divide."""


def effective_profile(default: Profile, service: Service) -> Profile:
    """The profile for texts that ``service`` embeds: ``default``, made smaller where the service's
    chunks are; its overlap is then at most a quarter of the chunk.

    The size that someone asks for is the service's ``chunking_max_tokens``, which is an error above
    what the model reads.
    """
    size = min(default.max_tokens, service.chunking_max_tokens)
    return Profile(size, min(default.overlap_tokens, size // _OVERLAP_SHARE))


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
    """A piece of a text: ``text[start:end]``, without white space at its ends. ``tokens`` is
    what ``count_tokens`` gives for it."""

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
            return [Chunk(start, end, tokens)]
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
        for first, last in self._parts():
            begin = self._begin(before, first, last) if first else first
            start, end = self._place(begin, last)
            found.append(Chunk(start, end, self._tokens(begin, last)))
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
