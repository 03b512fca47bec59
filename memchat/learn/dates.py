"""Checks of the gate on the dates of a proposed memory: the first and the last day that it holds.

The model gives a date as a code, and a wrong code would go unnoticed. It is therefore compared with
the user's own words for the date, as far as these name one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from heapq import nsmallest

from memchat.errors import InputError
from memchat.language import calendar, lexicon
from memchat.language.calendar import PERIODS, SEASON_STARTS, NamedDate, coded_days, later, period
from memchat.language.lexicon import languages_of
from memchat.language.sentences import Span, clause_edges, find_spans, sentence_around
from memchat.language.text import (
    UNSPACED,
    content_words,
    fold,
    holds_word,
    normal_value,
    unaccented,
)
from memchat.learn.candidate import Case, Turn
from memchat.learn.own_words import is_quoted

_AROUND = 400
"""Characters beside a span from which its language is recognised."""
_ENGLISH_I = re.compile(r"(?<!\w)I (?=[a-z])")


def languages_in(text: str, start: int, end: int) -> tuple[str, ...]:
    """The languages of the words around a span, likeliest first; empty where no list is known."""
    window = text[max(0, start - _AROUND) : end + _AROUND]
    found = languages_of(fold(window).text)
    # "I adore jazz." holds no other function word, and folding takes the capital away.
    return found or (("en",) if _ENGLISH_I.search(window) else ())


_A_WEEK, _A_YEAR, _A_SEASON = 7, 366, 92
_FRIDAY = 4
_NEXT_OF_MONTH = 62
"""Days ahead in which a day of the month such as the 31st comes at the latest."""
_MOST_YEARS = 100


def agrees(named: NamedDate, found: date, day: date, *, first: bool = False) -> bool:
    """Whether ``found``, as understood on ``day``, fits every part of a date that a phrase names.
    ``first`` is set if it is the first day of the period and not the last."""
    try:
        if named.before:
            first, found = True, later(found, 1, "d")
        return all(_checks(named, found, day, first))
    except (OverflowError, ValueError):
        return False  # "for 9999 years": no calendar reaches that far


def _checks(named: NamedDate, found: date, day: date, first: bool) -> Iterator[bool]:
    ahead = (found - day).days
    has_day = bool(named.dates) or named.day is not None or named.weekday is not None
    yield not named.unread
    yield not named.dates or (found.month, found.day) in named.dates
    yield named.day in (None, found.day)
    yield named.weekday in (None, found.weekday())
    yield named.month in (None, found.month)
    yield named.year in (None, found.year)
    yield named.near in (None, ahead)
    yield has_day or not named.clock or ahead <= 1
    yield ahead <= _reach(named) or (found.month, found.day) == (2, 29)
    if named.month is not None:
        yield not named.next or (found.year, found.month) != (day.year, day.month)
        yield not named.end or has_day or found == period("month", found)[1]
        yield has_day or named.third in (None, (found.day - 1) // 10)
    if named.season is not None:
        yield (found.month - SEASON_STARTS[named.season][0]) % 12 <= 3
        yield not named.next or ahead >= _A_SEASON
    if named.quarter is not None:
        yield named.quarter == (found.month + 2) // 3
        yield found == period("quarter", found)[not first]
    if named.weekday is not None and (named.count or named.unit):
        weeks, unit = named.count or (int(named.next), named.unit)
        yield unit == "w" and period("week", found) == period("week", day, weeks)
    elif named.count is not None and not has_day and named.month is None:
        yield found == later(day, *named.count)
    elif named.unit is not None and not has_day and named.month is None:
        yield _in_period(named, named.unit, found, day)


def _reach(named: NamedDate) -> int:
    """How many days ahead what a phrase names may lie."""
    if named.year is None and (named.month or named.dates or named.quarter):
        return _A_YEAR
    if named.year is None and named.day is not None:
        return _NEXT_OF_MONTH
    if named.weekday is not None and not any((named.dates, named.day, named.count, named.unit)):
        # On a Thursday some mean tomorrow by "next Friday"; the later day is taken.
        return _A_WEEK + 1 if named.next else _A_WEEK if named.before else _A_WEEK - 1
    return _MOST_YEARS * _A_YEAR


def _in_period(named: NamedDate, unit: str, found: date, day: date) -> bool:
    """Whether it lies in this or the next week, month or year, and at its end if the phrase says
    so, or where it says neither."""
    if unit == "d":
        return day <= found <= later(day, 31, "d")
    if named.year is not None:
        return not named.end or (found.month, found.day) == (12, 31)
    there = period(PERIODS[unit], found)
    at_its_end = found.weekday() >= _FRIDAY if unit == "w" else found == there[1]
    anywhere = (named.next or named.this) and not named.end
    if there == period(PERIODS[unit], day, named.next) and (at_its_end or anywhere):
        return True
    if named.end or named.this:
        return False
    step = later(day, 1, unit)
    return found == step if named.next else found >= step


UNREAD_END = "the end date could not be read"
_BESIDE = 25
"""Characters beside a phrase that tell "May" from "may"."""
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


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words for a date, where they stand in a message."""

    turn: Turn
    span: Span
    named: NamedDate
    """What they name there."""
    day: date
    """The day of the message."""
    languages: tuple[str, ...]
    """Those of the words around it, else of the session."""

    def day_of(self, code: str | None, *, first: bool = False) -> date | None:
        """The last day, or the first, that its code names; None where the code names none."""
        code = (code or "").strip().casefold()
        try:
            found = coded_days(code, self.day)[not first]
        except InputError:
            return None
        # "Next Friday", said on that day or the day before, is the one after; "Friday of next
        # week" always is.
        near = (found - self.day).days in (0, 1)
        this_week = self.named.unit == "w" and period("week", found) == period("week", self.day)
        ahead = code.startswith("weekday:") and self.named.next and (near or this_week)
        return later(found, 1, "w") if ahead else found

    def agrees_with(self, code: str, found: date, *, first: bool = False) -> bool:
        """Whether it names the date of its code, as far as its language is read. In a language
        without word lists each number in it must be one of the date's."""
        named = self.named
        # Where the date words of a language are listed, a phrase without any names no day.
        listed = self.languages and lexicon.table(self.languages[0])["reads_dates"]
        reads = listed if self.languages else named.led
        if reads:
            return named.anything and agrees(named, found, self.day, first=first)
        if named.weekday not in (None, found.weekday()) or named.month not in (None, found.month):
            return False
        if code.startswith("+"):
            count = int(code[1:-1])
            shown = {count, count * 7 if code.endswith("w") else count}
        else:
            shown = {found.day, found.month, found.year, found.year % 100, (found.month + 2) // 3}
        return not named.unread and (named.clock or named.numbers <= shown)


def phrase_at(case: Case, turn: Turn, span: Span) -> Phrase:
    """A phrase as it is read where it stands."""
    sentence = sentence_around(turn.text, span.start, span.end)
    before = turn.text[max(sentence.start, span.start - _BESIDE) : span.start]
    behind = turn.text[span.end : span.end + _BESIDE]
    named = calendar.parse_phrase(span.text, before, behind)
    languages = languages_in(turn.text, span.start, span.end) or case.languages
    return Phrase(turn, span, named, turn.said_at.date(), languages)


def check_expiry(case: Case) -> None:
    """Find the last day that a candidate holds; the words for it must stand in a quoted message."""
    code, said = case.candidate.until, case.candidate.until_said
    if said is not None and (places := phrase_places(said, case)):
        case.until = _last_day(case, places)
    elif said is not None or code is not None:
        case.notes.append("the end date was dropped: the user gave no words for it")
    if case.until is None:
        case.change(until=None, until_said=None)


def _last_day(case: Case, places: list[tuple[Turn, Span]]) -> date | None:
    """The day, where the phrase and its code agree on it and it is said of the candidate."""
    candidate = case.candidate
    own = [place for place in places if not _of_something_else(case, *place)]
    if not own:
        case.notes.append("the end date was dropped: it is said of something else")
        return None
    phrase = phrase_at(case, *own[-1])
    named, until = phrase.named, phrase.day_of(candidate.until)
    if until is not None and not phrase.agrees_with(candidate.until or "", until):
        until = None
    if named.endless:
        case.notes.append("it was said to hold for good")
    elif named.since and named.count is None:
        case.notes.append("the words for its end say since when it has been so")
    elif named.since or _counts_back(phrase):
        case.notes.append("the words for its end say how long it has been so")
    elif named.over or (until is not None and until < phrase.day):
        if candidate.relation != "ends":  # what an end says is that it is over now
            case.refusals.append("it was already over when it was said")
    elif until is not None:
        return until
    else:
        _keep_words(case, phrase.span)
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


def _counts_back(phrase: Phrase) -> bool:
    """Whether a length of time says since when it has been so, not until when it will."""
    if phrase.named.count is None:
        return False
    text, span = phrase.turn.text, phrase.span
    start, end = clause_edges(text, span.start, span.end)
    rest = unaccented(f"{text[start : span.start]} {text[span.end : end]}")
    years = phrase.named.count[1] == "y" and _STATE.search(rest) is not None
    behind = unaccented(text[span.end : span.end + _BESIDE])
    return years or bool(_SO_FAR.search(rest) or _BY_NOW.match(behind))


def _of_something_else(case: Case, turn: Turn, span: Span) -> bool:
    """Whether the phrase stands in a clause with a subject of its own that is not the candidate, or
    far from every quote. "It lasts", "staying" and "only" are no subjects. Whether a clause that is
    a quote of its own says it of the candidate is the second look's to judge."""
    text, candidate = turn.text, case.candidate
    quotes = [quote for quoted, quote in case.proofs if quoted.id == turn.id]
    start, end = clause_edges(text, span.start, span.end)
    inside = [quote for quote in quotes if quote.start <= span.start and span.end <= quote.end]
    # An end need not name its value.
    if any(candidate.relation == "ends" or (start <= q.start and q.end <= end) for q in inside):
        return False
    rest = fold(f"{text[start : span.start]} {text[span.end : end]}").text
    words = content_words(f"{candidate.value} \n{candidate.key.replace('_', ' ')}")
    if any(holds_word(rest, word) and not holds_word(span.text, word) for word in words):
        return False
    here = sentence_around(text, span.start, span.end)
    quoted = [sentence_around(text, quote.start, quote.end) for quote in quotes]
    gaps = [text[min(s.end, here.end) : max(s.start, here.start)].strip() for s in quoted]
    return len(content_words(rest)) > 1 or all(gaps)


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
        case.starts = _first_day(case, phrase_at(case, *places[-1]), code)
    elif code is not None:
        case.notes.append("the start date was dropped: the user gave no words for it")
    if case.starts is None:
        case.change(starts=None, from_said=None)


def _first_day(case: Case, phrase: Phrase, code: str) -> date | None:
    named, day = phrase.named, phrase.day
    if named.since:
        return None
    starts = phrase.day_of(code, first=True)
    if starts is not None and starts <= day and not (named.year and named.year > day.year):
        return None
    if starts is None or not phrase.agrees_with(code, starts, first=True):
        case.reviews.append(f"{UNREAD_START}: “{phrase.span.text}” may be another day")
        return None
    bare = named.month is not None or bool(named.dates)
    if bare and not named.year and not named.next and (starts - day).days > _NEARER_AHEAD:
        return None  # it may have begun already
    if case.until is not None and starts > case.until:
        case.refusals.append("it would end before it starts")
    return starts
