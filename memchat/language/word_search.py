"""Finding the words of a search in texts of any script, whatever their case, width and accents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670\ufe00-\ufe0f]"
)
"""Accents, vowel signs that Hebrew and Arabic mostly omit, and selectors of an emoji's form."""
_STROKES = str.maketrans(
    {"đ": "d", "ł": "l", "ø": "o", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
)
"""Letters that Unicode does not decompose, and the plain letters that people type for them."""


def folded(text: str) -> str:
    """A text as it is compared: without differences of case, width and accents."""
    if text.isascii():
        return text.lower()
    # Normalising turns mathematical letters into capitals, so case is folded first.
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()).casefold())
    return unicodedata.normalize("NFC", bare.translate(_STROKES))


def holds_all(words: str, *texts: str | None) -> bool:
    """Whether each of the folded words, which stand between spaces, is in one of the texts."""
    whole = folded("\n".join(text for text in texts if text))
    return all(word in whole for word in words.split())


def places(query: str, text: str) -> list[tuple[int, int]]:
    """Where the words of a query stand in a text that is in Unicode's composed form (NFC): the
    start and end of each place, in order and apart from each other."""
    letters = [_folded_letter(letter) for letter in text]
    whole = "".join(letters)
    origin = [at for at, letter in enumerate(letters) for _ in letter]
    found: set[int] = set()
    for word in folded(query).split():
        start = whole.find(word)
        while start >= 0:
            found.update(range(origin[start], origin[start + len(word) - 1] + 1))
            start = whole.find(word, start + 1)
    # Accents that are letters of their own go with the letter before them.
    for at, letter in enumerate(letters):
        if not letter and at - 1 in found:
            found.add(at)
    starts = sorted(at for at in found if at - 1 not in found)
    ends = sorted(at + 1 for at in found if at + 1 not in found)
    return list(zip(starts, ends, strict=True))


@lru_cache(maxsize=4096)
def _folded_letter(letter: str) -> str:
    return folded(letter)
