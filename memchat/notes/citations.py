"""Citations in an answer: numbers of notes in square brackets, [2] or [1, 3] or [2-4]."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from memchat.types import NoteSource

UNANSWERED = "[none]"
"""With this a model begins an answer that no passage holds."""
_NUMBERS = r"\[\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*\]"
# Three digits at most, so that a year in brackets stays what it is.
_CITATION = re.compile(rf"(?P<space>[ \t]*)(?P<numbers>{_NUMBERS})")
_BEGUN = re.compile(r"[ \t]*(?:\[[\d\s,;–-]{0,60})?\Z")
_STEP = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_NO_ANSWER = re.compile(r"\s*\[none\][ \t]*[:.–-]?\s*", re.IGNORECASE)


def numbers(text: str) -> list[int]:
    """The numbers that a text cites, each once, in their order."""
    found = (n for match in _CITATION.finditer(text) for n in _cited(match["numbers"]))
    return list(dict.fromkeys(found))


def cited(text: str, sources: Sequence[NoteSource]) -> tuple[NoteSource, ...]:
    """The notes that a text cites, in the order in which it first cites them."""
    known = {source.number: source for source in sources}
    return tuple(known[n] for n in numbers(text) if n in known)


def kept(pieces: Iterable[str], known: Collection[int]) -> Iterator[str]:
    """An answer as it comes in, without citations of notes that it was not given.

    What may become a citation is held back until it is known whether it is one. An answer that
    begins with ``UNANSWERED`` loses that mark, and all its citations.
    """
    held, begun = "", False
    for piece in pieces:
        held += piece
        if not begun:
            start = held.lstrip().casefold()
            if UNANSWERED.startswith(start) or _NO_ANSWER.fullmatch(held):
                continue
            begun = True
            held, unanswered = _without_mark(held)
            known = () if unanswered else known
        ready, held = _ready(held)
        if out := _checked(ready, known):
            yield out
    if not begun:
        held, _ = _without_mark(held)
    if out := _checked(held, known):
        yield out


def _without_mark(text: str) -> tuple[str, bool]:
    match = _NO_ANSWER.match(text)
    return (text[match.end() :], True) if match else (text, False)


def _ready(text: str) -> tuple[str, str]:
    """What can be given out, and what may still become a citation."""
    open_at = _BEGUN.search(text)
    at = open_at.start() if open_at else len(text)
    return text[:at], text[at:]


def _checked(text: str, known: Collection[int]) -> str:
    """A text with the citations that are known, one number in each pair of brackets."""

    def replaced(match: re.Match[str]) -> str:
        right = [n for n in _cited(match["numbers"]) if n in known]
        return match["space"] + "".join(f"[{n}]" for n in right) if right else ""

    return _CITATION.sub(replaced, text)


def _cited(group: str) -> list[int]:
    found: list[int] = []
    for first, last in _STEP.findall(group):
        found += range(int(first), int(last or first) + 1)
    return found
