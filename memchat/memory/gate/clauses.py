"""The clause of a sentence that a time phrase stands in, and whom it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.text import UNSPACED, Span, content_words, fold, says, sentence_around

_BREAK = re.compile(
    r"[;:、，]|,(?!\d)|\s[-–—]\s|(?<!\w)(?:and|but|while|because|und|aber|weil|et|mais|y|pero|e|ma|mas|maar"
    r"|en(?= (?:ik|mijn|we|het|de)\b))(?!\w)",
    re.IGNORECASE,
)
_STAYS = """
stay stays staying here there only just be being keep remain will going till i'll we'll about least
bleibe bleiben hier dort da nur noch bleib reste restons ici seulement là serai quedo quedamos aquí
allí solo sólo estaré resto restiamo qui lì sarò fico ficamos aqui lá só estarei blijf blijven daar
alleen nog maar maybe probably ungefähr environ unos
"""
_STAYING = frozenset(_STAYS.split())
"""What goes on with the clause before: "only until June", "I stay until June"."""
_PARTICLES = 3
"""Characters that a clause without a subject may hold beside the phrase, where no spaces are."""
_IT = re.compile(
    r"\W*(?:and |und |et |y |e |en )?(?:it|it's|this|that|that's|es|das|dies|ça|c'est|cela"
    r"|il dure|esto|eso|dura|è|isso|isto|het|dit|dat)(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A phrase's surroundings, folded. ``rest`` is its clause without it."""

    sentence: Span
    phrase: str
    rest: str
    others: str
    """The other clauses of the sentence."""

    def about(self, candidate: Candidate) -> bool:
        """Whether the clause holds a word of the candidate's value or key."""
        return self._holds(candidate, self.rest)

    def others_about(self, candidate: Candidate) -> bool:
        """Whether another clause of the sentence does."""
        return self._holds(candidate, self.others)

    @property
    def has_own_subject(self) -> bool:
        """Whether the clause says something, and not only how long or of "it"."""
        if _IT.match(self.rest):
            return False
        if UNSPACED.search(self.rest):
            return sum(char.isalnum() for char in self.rest) > _PARTICLES
        return bool(content_words(self.rest) - _STAYING)

    def _holds(self, candidate: Candidate, text: str) -> bool:
        words = content_words(candidate.value) | content_words(candidate.key.replace("_", " "))
        return any(says(text, word) for word in words if not says(self.phrase, word))


def clause_around(text: str, phrase: Span) -> Clause:
    """The clause of a message in which a phrase stands."""
    sentence = sentence_around(text, phrase.start, phrase.end)
    breaks = [m.span() for m in _BREAK.finditer(text, sentence.start, sentence.end)]
    start = max((end for _, end in breaks if end <= phrase.start), default=sentence.start)
    end = min((start for start, _ in breaks if start >= phrase.end), default=sentence.end)
    rest = f"{text[start : phrase.start]} {text[phrase.end : end]}"
    others = f"{text[sentence.start : start]} {text[end : sentence.end]}"
    return Clause(sentence, fold(phrase.text).text, fold(rest).text, fold(others).text)
