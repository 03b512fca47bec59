"""The first day that a candidate holds: the user's words for it, and the date of its code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.language import calendar, lexicon
from memchat.language.dates import from_date
from memchat.memory.extraction.candidate import Candidate
from memchat.memory.gate.checks.expiry import (
    a_week_later,
    code_matches_phrase,
    languages_near,
    phrase_places,
    read_phrase,
)
from memchat.memory.gate.clauses import clause_around, clause_edges
from memchat.memory.gate.keys import cardinality

if TYPE_CHECKING:
    from memchat.memory.gate.types import Case

UNREAD = "the start date could not be read"


def _words(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_FULL = [
    name
    for name in (*calendar.MONTHS, *calendar.WEEKDAYS, *calendar.SEASONS)
    if len(name) > 3 or name in ("may", "mai", "ete") or not name.isascii()
]
_UNITS = [*calendar.UNITS, *_FULL]
_NEXT, _TOMORROW = calendar.words_for("next"), calendar.words_for("tomorrow")
_COMING = rf"(?:{_NEXT})\s*(?:{_words(_UNITS)})|(?:{_words(_UNITS)})\s*(?:{_NEXT})"
_DAY = (
    rf"{_COMING}|{_TOMORROW}|\d{{1,2}}\s*[月월](?:\s*\d+\s*[日일])?|\d{{1,2}}(?:st|nd|rd|th|er|\.)?"
    rf"(?: (?:of |de )?(?:{_words(_FULL)})|(?<=\D)\b)(?: (?:de )?\d{{4}})?"
    rf"|(?:{_words(_FULL)})(?: (?:de )?\d{{4}}| \d{{1,2}}\b)?|20\d\d"
)
_SMALL = r"(?:on |in |the |der |dem |el |la |le |lunes |du |de |d')?"


def _from(*, spaced: bool) -> str:
    """The words for "from" of the languages with spaces between words, or of the others."""
    codes = [code for code in lexicon.codes() if lexicon.is_spaced(code) is spaced]
    return "|".join(calendar.unaccented(lexicon.alternatives(code, "from")) for code in codes)


_FROM, _GLUED = _from(spaced=True), _from(spaced=False)
_AHEAD = re.compile(
    rf"(?<!\w)(?:{_FROM})\s{_SMALL}(?P<day>{_DAY})(?!\w)|(?:{_DAY})(?:\s*(?:{_FROM})(?!\w)|{_GLUED})"
    rf"|(?:{_GLUED})(?:{_DAY})"
)
_BEFORE = 60
"""Characters before a day in which "until" or "from" is looked for."""
_NEARER_AHEAD = 183
"""Days; a month without a year that lies further ahead may as well be the last one."""
_COMING_DAY = re.compile(rf"(?<!\w)(?:{_COMING})(?!\w)")
_LASTING = re.compile(rf"(?:{calendar.words_for('until', 'leads', 'before')}|over|the|die)\s*$")
_RANGE = re.compile(rf"\s*(?:-|(?:to|through|{calendar.words_for('until')})\s)")


def check(case: Case) -> None:
    """Find the first day that a candidate holds, where that lies ahead of the message; the words
    for it must stand in a quoted message. What starts today or has started holds now."""
    candidate = case.candidate
    code, said = candidate.starts, candidate.from_said
    places = phrase_places(said, case) if said is not None else []
    if places and code is not None:
        case.starts = _resolve(case)
    elif later := starts_later(case):
        case.signals.append(f"it may only start later: {later}")
    elif code is not None:
        case.notes.append("the start date was dropped: the user gave no words for it")
    if case.starts is None:
        case.change(starts=None, from_said=None)


def _resolve(case: Case) -> date | None:
    candidate, until = case.candidate, case.until
    turn, span = phrase_places(candidate.from_said or "", case)[-1]
    named, code = read_phrase(turn, span, clause_around(turn.text, span)), candidate.starts or ""
    day = turn.said_at.astimezone(case.zone).date()
    if named.since:
        return None
    try:
        starts = a_week_later(named, code, from_date(code, turn.said_at, case.zone), day)
    except InputError as error:
        case.reviews.append(f"{UNREAD}: {error}")
        return None
    if starts <= day and not (named.year and named.year > day.year):
        return None
    if not code_matches_phrase(
        named, code, starts, day, languages_near(turn, span, case), first=True
    ):
        case.reviews.append(f"{UNREAD}: “{span.text}” may be another day")
        return None
    bare = named.month is not None or bool(named.dates)
    if bare and not named.year and not named.next and (starts - day).days > _NEARER_AHEAD:
        case.signals.append(f"it may have begun already: {span.text}")
        return None
    if until is not None and starts > until:
        case.refusals.append("it would end before it starts")
    return starts


def starts_later(case: Case) -> str | None:
    """The words of a quote's clause by which it may only start in the future, else None."""
    for turn, span in case.proofs:
        start, end = clause_edges(turn.text, span.start, span.end)
        text = calendar.unaccented(turn.text[start:end])
        today = turn.said_at.astimezone(case.zone).date()
        for match in _matches(case.candidate, text):
            named = calendar.parse_phrase(match[0], before="from ")
            year = named.year or today.year + 1
            if (year, named.month or 12) > (today.year, today.month) and not named.endless:
                return match[0].strip()
    return None


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _BEFORE) : match.start()]


def _matches(candidate: Candidate, text: str) -> list[re.Match[str]]:
    found = [match for match in _AHEAD.finditer(text) if not _RANGE.match(text, match.end())]
    if cardinality(candidate.key) == "one" and candidate.relation != "ends":
        coming = _COMING_DAY.finditer(text)
        found += [match for match in coming if not _LASTING.search(_before(text, match))]
    return found
