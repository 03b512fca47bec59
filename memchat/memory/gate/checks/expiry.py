"""The last day that a candidate holds: the user's words for it, and the date of its code."""

from __future__ import annotations

import re
from datetime import date
from heapq import nsmallest
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.language import calendar
from memchat.language.agreement import agrees, agrees_in_digits
from memchat.language.calendar import NamedDate
from memchat.language.dates import until_date
from memchat.language.quotes import find_spans
from memchat.language.sentences import Span, sentence_around
from memchat.language.text import UNSPACED, fold, normal_value
from memchat.memory.gate import quoted_text
from memchat.memory.gate.checks import ambiguity, temporary_or_past
from memchat.memory.gate.clauses import Clause, clause_around

if TYPE_CHECKING:
    from memchat.memory.gate.types import Case, Turn

UNREAD = "the end date could not be read"
_BESIDE = 25
"""Characters beside a phrase that tell "May" from "may"."""
_MOST_YEARS = 100
_MOST_PLACES = 20
"""Places of one phrase that are read: each costs a pass over its sentence, which may be long."""
_SO_FAR = re.compile(
    rf"(?<!\w)(?:(?:have|has|had|i've|we've|'s) (?:\w+ )?(?:been|\w+ed|had|known)|llevo"
    rf"|schon|depuis|{calendar.words_for('since')})(?!\w)"
)
"""Before a length of time: "I have been learning it for three years"."""
_STATE = re.compile(
    r"(?<!\w)(?:married|engaged|together|divorced|with|working|living|verheiratet|zusammen"
    r"|mariee?s?|casad[oa]s?|juntos|sposat[oa]|insieme|getrouwd)(?!\w)"
)
"""What lasts for years: "I'm married for ten years" tells how long it has been so."""
_BY_NOW = re.compile(r"\s*(?:now|already|so far|schon|jetzt|deja|maintenant|ya|ahora|gia|nu)(?!\w)")


def check(case: Case) -> None:
    """Find the last day that a candidate holds; the words for it must stand in a quoted message."""
    candidate = case.candidate
    code, said = candidate.until, candidate.until_said
    if said is None and code is None:
        if candidate.from_said is None:
            temporary_or_past.check_temporary(case)
    elif said is None or not (places := phrase_places(said, case)):
        if code is None:
            case.reviews.append(UNREAD)
        else:
            case.notes.append("the end date was dropped: the user gave no words for it")
            temporary_or_past.check_temporary(case)
    else:
        case.until = _resolve(case, places)
    if case.until is None:
        case.change(until=None, until_said=None)


def _resolve(case: Case, places: list[tuple[Turn, Span]]) -> date | None:
    """The day, where the phrase and its code agree on it and it is said of the candidate."""
    candidate = case.candidate
    own = [place for place in places if not _of_something_else(case, *place)]
    turn, span = (own or places)[-1]
    clause = clause_around(turn.text, span)
    named = read_phrase(turn, span, clause)
    day = turn.said_at.astimezone(case.zone).date()
    if named.over and own and candidate.relation == "ends":
        return None  # that is what the end says: it is over now
    if named.over and own:
        case.refusals.append("it was already over when it was said")
        return None
    if named.endless and own:
        case.notes.append("it was said to hold for good")
        return None
    if named.since and named.count is None:
        case.notes.append("the words for its end say since when it has been so")
        return None
    if candidate.until is None:
        case.reviews.append(UNREAD)
        return None
    try:
        until = until_date(candidate.until, turn.said_at, case.zone)
    except InputError as error:
        case.reviews.append(f"{UNREAD}: {error}")
        return None
    until = a_week_later(named, candidate.until, until, day)
    languages = languages_near(turn, span, case)
    if not own:
        case.signals.append("the end date is said of something else; it may not end then")
    elif named.over or named.since or _counts_back(named, clause.rest, turn.text[span.end :]):
        case.signals.append(f"“{span.text}” may be how long it has been so, not how long it will")
    elif not code_matches_phrase(named, candidate.until, until, day, languages):
        case.reviews.append(f"{UNREAD}: “{span.text}” may be another day")
    elif until.year - day.year > _MOST_YEARS:
        case.reviews.append(f"{UNREAD}: it is more than a hundred years away")
    elif until < day and candidate.relation == "ends":
        return None
    elif until < day:
        case.refusals.append("it was already over when it was said")
    else:
        return until
    return None


def read_phrase(turn: Turn, span: Span, clause: Clause) -> NamedDate:
    """What a phrase names where it stands."""
    before = turn.text[max(clause.sentence.start, span.start - _BESIDE) : span.start]
    return calendar.parse_phrase(span.text, before, turn.text[span.end : span.end + _BESIDE])


def phrase_places(said: str, case: Case) -> list[tuple[Turn, Span]]:
    """Where a phrase stands in the user's own words of the quoted messages, in their order, and of
    many places those nearest to a quote; where no spaces part words, of any length."""
    turns = sorted(case.quoted_turns(), key=lambda turn: turn.message_id)
    places = [
        (turn, span)
        for turn in turns
        for span in _spans(said, turn.text)
        if not quoted_text.is_quoted(turn.text, span.start, span.end)
    ]
    if len(places) <= _MOST_PLACES:
        return places
    near = nsmallest(_MOST_PLACES, places, key=lambda place: _from_quote(case, *place))
    return sorted(near, key=lambda place: (place[0].message_id, place[1].start))


def _from_quote(case: Case, turn: Turn, span: Span) -> int:
    """Characters between a place and the nearest quote of its message."""
    return min(
        max(quote.start - span.end, span.start - quote.end, 0)
        for quoted, quote in case.proofs
        if quoted.id == turn.id
    )


def code_matches_phrase(
    named: NamedDate,
    code: str,
    found: date,
    day: date,
    languages: tuple[str, ...],
    first: bool = False,
) -> bool:
    """Whether a phrase and the date of its code agree, as far as the phrase's language is read."""
    known = bool(languages) and calendar.reads_dates(languages[0])
    if known or (not languages and named.led):
        return named.anything and agrees(named, found, day, first=first)
    same_day = named.weekday in (None, found.weekday()) and named.month in (None, found.month)
    return same_day and not named.unread and agrees_in_digits(named, code.strip(), found)


def languages_near(turn: Turn, span: Span, case: Case) -> tuple[str, ...]:
    """The languages around a phrase, else those of the session."""
    return ambiguity.languages_in(turn.text, span.start, span.end) or case.languages


def a_week_later(named: NamedDate, code: str, found: date, day: date) -> date:
    """ "Next Friday", said on that day or the day before, is the one after; "Friday of next week"
    always is."""
    this_week = found.isocalendar()[:2] == day.isocalendar()[:2]
    ahead = named.next and ((found - day).days in (0, 1) or (this_week and named.unit == "w"))
    by_weekday = code.strip().casefold().startswith("weekday:")
    return date.fromordinal(found.toordinal() + 7) if by_weekday and ahead else found


def _spans(said: str, text: str) -> list[Span]:
    spans = find_spans(said, text)
    if spans or UNSPACED.search(said) is None:
        return spans
    hay, needle = fold(text), normal_value(said)
    at = hay.text.find(needle) if needle else -1
    if at < 0:
        return []
    start, end = hay.offsets[at], hay.ends[at + len(needle) - 1]
    return [Span(start, end, text[start:end], ((start, end),))]


def _counts_back(named: NamedDate, rest: str, behind: str) -> bool:
    """Whether a length of time says since when it has been so, not until when it will."""
    if named.count is None:
        return False
    bare = calendar.unaccented(rest)
    years = named.count[1] == "y" and _STATE.search(bare) is not None
    return years or bool(_SO_FAR.search(bare) or _BY_NOW.match(calendar.unaccented(behind)))


def _of_something_else(case: Case, turn: Turn, span: Span) -> bool:
    """Whether the phrase stands in a clause with a subject of its own that is not the candidate, or
    far from every quote."""
    clause, candidate = clause_around(turn.text, span), case.candidate
    ends = candidate.relation == "ends"
    if clause.about(candidate) or (ends and _in_a_quote(case, turn, span)):
        return False
    quoted = [
        sentence_around(turn.text, quote.start, quote.end)
        for quoted, quote in case.proofs
        if quoted.id == turn.id
    ]
    here = clause.sentence
    gaps = [turn.text[min(s.end, here.end) : max(s.start, here.start)].strip() for s in quoted]
    return clause.has_own_subject or all(gaps)


def _in_a_quote(case: Case, turn: Turn, span: Span) -> bool:
    """Whether the phrase is part of the words for it: an end need not name its value."""
    return any(
        quoted.id == turn.id and quote.start <= span.start and span.end <= quote.end
        for quoted, quote in case.proofs
    )
