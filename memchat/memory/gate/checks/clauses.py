"""The clause of a sentence that a time phrase stands in, and whom it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memchat.language.sentences import Span, sentence_around
from memchat.language.text import content_words, fold, holds_word
from memchat.memory.extraction.candidate import Candidate

BREAK = re.compile(
    r"[;:、，]|,(?!\d)|\s[-–—]\s|(?<!\w)(?:and|but|while|because|und|aber|weil|et|mais|y|pero|e|ma|mas|maar"
    r"|en(?= (?:ik|mijn|we|het|de)\b))(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A phrase's surroundings, folded. ``rest`` is its clause without it."""

    sentence: Span
    phrase: str
    rest: str

    def about(self, candidate: Candidate) -> bool:
        """Whether the clause holds a word of the candidate's value or key."""
        words = content_words(candidate.value) | content_words(candidate.key.replace("_", " "))
        return any(
            holds_word(self.rest, word) for word in words if not holds_word(self.phrase, word)
        )

    @property
    def has_own_subject(self) -> bool:
        """Whether the clause says something itself: not "it lasts", "staying", "only"."""
        return len(content_words(self.rest)) > 1


def clause_around(text: str, phrase: Span) -> Clause:
    """The clause of a message in which a phrase stands."""
    sentence = sentence_around(text, phrase.start, phrase.end)
    start, end = edges(text, phrase.start, phrase.end)
    rest = f"{text[start : phrase.start]} {text[phrase.end : end]}"
    return Clause(sentence, fold(phrase.text).text, fold(rest).text)


def edges(text: str, start: int, end: int) -> tuple[int, int]:
    """A place of a message widened to the breaks before and after it in its sentence."""
    sentence = sentence_around(text, start, end)
    breaks = _breaks(text, sentence.start, sentence.end)
    left = max((b for _, b in breaks if b <= start), default=sentence.start)
    right = min((a for a, _ in breaks if a >= end), default=sentence.end)
    return left, right


@lru_cache(maxsize=512)
def _breaks(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    return tuple(m.span() for m in BREAK.finditer(text, start, end))
