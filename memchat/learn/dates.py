"""Checks of the gate on the dates of a proposed memory: the first and the last day that it holds.

The model gives a date as a code, and a wrong code would go unnoticed. It is therefore compared with
the user's own words for the date, as far as these name one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from heapq import nsmallest
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.language import calendar
from memchat.language.calendar import (
    PERIODS,
    NamedDate,
    from_date,
    later,
    period,
    quarter_or_season,
    until_date,
)
from memchat.language.lexicon import languages_of
from memchat.language.text import (
    UNSPACED,
    Span,
    content_words,
    find_spans,
    fold,
    holds_word,
    normal_value,
    sentence_around,
)
from memchat.learn.candidate import Candidate
from memchat.learn.own_words import is_quoted

if TYPE_CHECKING:
    from memchat.learn.candidate import Case, Turn

_BREAK = re.compile(
    r"[;:、，]|,(?!\d)|\s[-–—]\s|(?<!\w)(?:and|but|while|because|und|aber|weil|et|mais|y|pero|e|ma|mas|maar"
    r"|en(?= (?:ik|mijn|we|het|de)\b))(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The folded text around a phrase; ``rest`` is the clause without the phrase."""

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
        """Whether the clause says something by itself: not "it lasts", "staying", "only"."""
        return len(content_words(self.rest)) > 1


def clause_around(text: str, phrase: Span) -> Clause:
    """The clause around a phrase of a message."""
    sentence = sentence_around(text, phrase.start, phrase.end)
    start, end = clause_edges(text, phrase.start, phrase.end)
    rest = f"{text[start : phrase.start]} {text[phrase.end : end]}"
    return Clause(sentence, fold(phrase.text).text, fold(rest).text)


def clause_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """A span widened to the clause breaks around it in its sentence."""
    sentence = sentence_around(text, start, end)
    breaks = _breaks(text, sentence.start, sentence.end)
    left = max((b for _, b in breaks if b <= start), default=sentence.start)
    right = min((a for a, _ in breaks if a >= end), default=sentence.end)
    return left, right


@lru_cache(maxsize=512)
def _breaks(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    return tuple(m.span() for m in _BREAK.finditer(text, start, end))


_AROUND = 400
"""Characters beside a span from which its language is recognised."""
_ENGLISH_I = re.compile(r"(?<!\w)I (?=[a-z])")


def languages_in(text: str, start: int, end: int) -> tuple[str, ...]:
    """The languages of the words around a span, likeliest first; empty where no list is known."""
    window = text[max(0, start - _AROUND) : end + _AROUND]
    found = languages_of(fold(window).text)
    # "I adore jazz." holds no other function word, and folding takes the capital away.
    return found or (("en",) if _ENGLISH_I.search(window) else ())


_SEASON_MONTHS = {
    "spring": (3, 4, 5, 6),
    "summer": (6, 7, 8, 9),
    "autumn": (9, 10, 11, 12),
    "winter": (12, 1, 2, 3),
}
_A_WEEK, _A_YEAR, _A_SEASON = 7, 366, 92
_A_THIRD = 10
_FRIDAY = 4
_NEXT_OF_MONTH = 62
"""Days ahead in which a day of the month such as the 31st comes at the latest."""


def agrees(named: NamedDate, found: date, day: date, *, first: bool = False) -> bool:
    """Whether ``found``, as understood on ``day``, fits every part of a date that a phrase names.
    ``first`` is set if it is the first day of the period and not the last."""
    if named.before:
        first, found = True, later(found, 1, "d")
        if found.year == date.max.year:
            return False
    try:
        return all(_checks(named, found, day, first))
    except (OverflowError, ValueError):
        return False  # "for 9999 years": no calendar reaches that far


def agrees_in_digits(named: NamedDate, code: str, until: date) -> bool:
    """The same for a language without word lists: each number in the phrase must be one of the
    date's."""
    if code.startswith("+"):
        count = int("".join(c for c in code if c.isdigit()))
        return named.numbers <= {count, count * 7 if code.endswith("w") else count}
    shown = {until.day, until.month, until.year, until.year % 100}
    shown |= {int(code[-1])} if re.search(r"(?:^|:)q[1-4]$", code) else set()
    return named.clock or named.numbers <= shown


def _checks(named: NamedDate, until: date, day: date, first: bool) -> Iterator[bool]:
    yield not named.unread
    yield from _day_checks(named, until, day)
    if named.near is not None:
        yield until == later(day, named.near, "d")
    elif named.clock and not _has_day(named):
        yield until <= later(day, 1, "d")
    if named.weekend:
        yield until.weekday() >= _FRIDAY and (until - day).days <= _A_WEEK * (
            2 if named.next else 1
        )
    if named.season is not None:
        yield until.month in _SEASON_MONTHS[named.season]
        yield not named.next or (until - day).days >= _A_SEASON
    if named.quarter is not None:
        ahead = _begins_quarter(named.quarter, until) if first else named.next
        ends = period("quarter", day) if named.quarter == "quarter" else None
        _, end = ends or quarter_or_season(day, named.quarter) or (day, day)
        yield until == end or (ahead and until > day)
    if named.weekday is not None and (named.count or named.unit):
        yield _in_that_week(named, until, day)
    elif named.count is not None and not _has_day(named) and named.month is None:
        number, unit = named.count
        yield until == later(day, number, unit)
    elif named.unit is not None and not _has_day(named) and named.month is None:
        yield _in_period(named, until, day)


def _has_day(named: NamedDate) -> bool:
    return bool(named.dates) or named.day is not None or named.weekday is not None


def _day_checks(named: NamedDate, until: date, day: date) -> Iterator[bool]:
    ahead = (until - day).days
    if named.dates:
        yield (until.month, until.day) in named.dates
    if named.day is not None:
        yield until.day == named.day
        yield named.month is not None or ahead <= _NEXT_OF_MONTH
    if named.weekday is not None:
        yield until.weekday() == named.weekday
        alone = not named.dates and not any((named.day, named.month, named.count, named.unit))
        # On a Thursday some mean tomorrow by "next Friday"; the later day is taken.
        later = (_A_WEEK, _A_WEEK + 1) if named.next else (_A_WEEK,) if named.before else ()
        yield not alone or ahead < _A_WEEK or ahead in later
    if named.month is not None:
        yield until.month == named.month
        yield not named.end or named.day is not None or until == period("month", until)[1]
        yield not named.early or named.day is not None or until.day <= _A_THIRD
        yield not named.mid or named.day is not None or _A_THIRD <= until.day <= 2 * _A_THIRD
        yield not named.next or (until.year, until.month) != (day.year, day.month)
    if named.year is not None:
        yield until.year == named.year
    elif named.month is not None or named.dates:
        yield ahead <= _A_YEAR or (until.month, until.day) == (2, 29)


def _in_that_week(named: NamedDate, until: date, day: date) -> bool:
    """Whether it lies in the week that is named with a weekday: "Monday in two weeks"."""
    number, unit = named.count or (1, named.unit)
    if unit != "w":
        return False
    if named.this or named.end:
        return period("week", until) == period("week", day)
    if named.count is None and not named.next:
        return until >= later(day, 1, "w")
    return period("week", until) == period("week", day, number)


def _in_period(named: NamedDate, until: date, day: date) -> bool:
    """Whether it lies in this or the next week, month or year, and at its end if the phrase says
    so."""
    unit = named.unit or "d"
    if unit == "d":
        return day <= until <= later(day, 31, "d")
    if named.year is not None:
        return not named.end or (until.month, until.day) == (12, 31)
    name, step = PERIODS[unit], later(day, 1, unit)
    there = period(name, until)
    at_its_end = until.weekday() >= _FRIDAY if unit == "w" else until == there[1]
    if named.next:
        in_the_next = there == period(name, day, 1) and (at_its_end or not named.end)
        return in_the_next or (not named.end and until == step)
    here = there == period(name, day)
    if named.end or named.this:
        return here and (at_its_end or not named.end)
    return (here and at_its_end) or until >= step


def _begins_quarter(quarter: str, day: date) -> bool:
    names = ("quarter", f"q{(day.month + 2) // 3}")
    return day == period("quarter", day)[0] and quarter in names


UNREAD_END = "the end date could not be read"
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


def check_expiry(case: Case) -> None:
    """Find the last day that a candidate holds; the words for it must stand in a quoted message."""
    code, said = case.candidate.until, case.candidate.until_said
    if said is not None and (places := phrase_places(said, case)):
        case.until = _resolve(case, places)
    elif said is not None or code is not None:
        case.notes.append("the end date was dropped: the user gave no words for it")
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
        _keep_words(case, span)
        return None
    try:
        until = until_date(candidate.until, turn.said_at, case.zone)
    except InputError:
        _keep_words(case, span)
        return None
    until = a_week_later(named, candidate.until, until, day)
    languages = languages_near(turn, span, case)
    if not own:
        case.notes.append("the end date was dropped: it is said of something else")
        return None
    if named.over or named.since or _counts_back(named, clause.rest, turn.text[span.end :]):
        case.notes.append("the words for its end say how long it has been so")
        return None
    agreed = code_matches_phrase(named, candidate.until, until, day, languages)
    if not agreed or until.year - day.year > _MOST_YEARS:
        _keep_words(case, span)
        return None
    if until >= day:
        return until
    if candidate.relation != "ends":
        case.refusals.append("it was already over when it was said")
    return None


def _keep_words(case: Case, span: Span) -> None:
    """Words for an end that name no day, or another than the code. The fact keeps them in its
    value, takes no other's place, and is asked about; what would change a known fact waits."""
    item, target, words = case.candidate, case.target, " ".join(span.text.split())
    question = f"{UNREAD_END}: “{words}”"
    changes = target is not None and not target.many and item.relation != "beside"
    if changes or item.relation in ("same", "ends"):
        case.reviews.append(question)
        return
    case.asks = question
    case.change(
        value=item.value if words in item.value else f"{item.value} ({words})",
        relation="new" if target is None else "beside",
    )


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
        if not is_quoted(turn.text, span.start, span.end)
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
    return languages_in(turn.text, span.start, span.end) or case.languages


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


UNREAD_START = "the start date could not be read"


_NEARER_AHEAD = 183
"""Days; a month without a year that lies further ahead may as well be the last one."""


def check_start(case: Case) -> None:
    """Find the first day that a candidate holds, where that lies ahead of the message; the words
    for it must stand in a quoted message. What starts today or has started holds now."""
    candidate = case.candidate
    code, said = candidate.starts, candidate.from_said
    places = phrase_places(said, case) if said is not None else []
    if places and code is not None:
        case.starts = _resolve_start(case)
    elif code is not None:
        case.notes.append("the start date was dropped: the user gave no words for it")
    if case.starts is None:
        case.change(starts=None, from_said=None)


def _resolve_start(case: Case) -> date | None:
    candidate, until = case.candidate, case.until
    turn, span = phrase_places(candidate.from_said or "", case)[-1]
    named, code = read_phrase(turn, span, clause_around(turn.text, span)), candidate.starts or ""
    day = turn.said_at.astimezone(case.zone).date()
    if named.since:
        return None
    try:
        starts = a_week_later(named, code, from_date(code, turn.said_at, case.zone), day)
    except InputError as error:
        case.reviews.append(f"{UNREAD_START}: {error}")
        return None
    if starts <= day and not (named.year and named.year > day.year):
        return None
    if not code_matches_phrase(
        named, code, starts, day, languages_near(turn, span, case), first=True
    ):
        case.reviews.append(f"{UNREAD_START}: “{span.text}” may be another day")
        return None
    bare = named.month is not None or bool(named.dates)
    if bare and not named.year and not named.next and (starts - day).days > _NEARER_AHEAD:
        return None  # it may have begun already
    if until is not None and starts > until:
        case.refusals.append("it would end before it starts")
    return starts
