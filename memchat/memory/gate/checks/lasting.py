"""Signs that something is true for a while only, or was true once and is no longer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memchat.language import calendar, markers
from memchat.language.text import fold
from memchat.memory.extraction.candidate import Candidate
from memchat.memory.gate.checks import signals
from memchat.memory.gate.checks.clauses import edges
from memchat.memory.gate.checks.keys import cardinality

if TYPE_CHECKING:
    from memchat.memory.gate.types import Case

_PHRASE = 40
"""Characters behind an "until" that say until what."""
_FROM = re.compile(rf"(?<!\w)(?:{calendar.words_for('from')})\s*$")
_TRUE_FOR_EVER = frozenset(("birthday",))


def check_passing(candidate: Candidate, case: Case) -> None:
    """A signal where the words speak of a while: "this week", "until I finish school"."""
    if candidate.relation == "ends":
        return
    for text, languages in own_words(case):
        found = markers.find_markers("passing", text, languages)
        if any(_passes(text, m.start()) for m in found):
            case.signals.append("it holds for a while only, and no end is given")
            return


def check_past(candidate: Candidate, case: Case) -> None:
    """A signal where the words of a slot of one value tell what was, and none says that it is."""
    one = cardinality(candidate.key) == "one" and candidate.key not in _TRUE_FOR_EVER
    if not one or candidate.relation == "ends" or case.ref:
        return
    value = fold(candidate.value).text
    for text, languages in own_words(case):
        past = [m for m in markers.find_markers("past", text, languages) if m[0] not in value]
        if past and not markers.find_markers("change", text, languages):
            case.signals.append("it tells what was once so, and not what is")
            return


def own_words(case: Case) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each quote with the rest of its clause, folded, and the languages it may be in."""
    for turn, span in case.proofs:
        start, end = edges(turn.text, span.start, span.end)
        languages = signals.languages_in(turn.text, span.start, span.end)
        yield fold(turn.text[start:end]).text, languages or case.languages


def _passes(text: str, at: int) -> bool:
    """Not "until noon", which ends no habit, nor "starting today"."""
    named = calendar.parse_phrase(text[at : at + _PHRASE])
    before = text[max(0, at - _PHRASE) : at]
    return (not named.clock or named.dated) and _FROM.search(before) is None
