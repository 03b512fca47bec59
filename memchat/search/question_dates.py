"""Finds the days that a question names, and what is of these days.

It reads English, German, French and Spanish: "last week", "im Mai", "il y a deux semaines",
"mañana". Days are counted in the user's own time zone. What is not clearly a time is none: "may"
the verb, or "March" without a word that leads to a month.

What is of these days is a third list of candidates beside those by vector and by words, and adds to
the score. Other rows are left out only where a question asks for a time alone and there are rows
of that time, so a misread date costs some places and never the answer.
"""

from __future__ import annotations

import re
import tomllib
from calendar import monthrange
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from importlib.resources import files
from typing import Any, Literal
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from dateutil.relativedelta import relativedelta

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among
from memchat.language.calendar import (
    MONTHS,
    NUMBERS,
    PERIODS,
    SEASONS,
    UNITS,
    WEEKDAYS,
    later,
    period,
)
from memchat.language.lexicon import with_parts
from memchat.language.text import content_words, unaccented
from memchat.search import keywords

Kind = Literal["past", "future"]
Days = tuple[date, date]
"""The first and the last."""

_READ = 2_000
"""Characters of a question that are read."""
_NEAR = {"d": 0, "w": 3, "m": 15, "y": 90}
"""Days around "two weeks ago" that it may mean as well."""
_WIDE = {"d": 2, "w": 10, "m": 45, "y": 400}
"""The same of "a few weeks ago"."""
_VAGUE = {"a couple of": 2, "couple of": 2, "a couple": 2} | dict.fromkeys(
    ("a few", "few", "ein paar", "paar", "einigen", "quelques", "unos", "unas"), 3
)
_COUNTS = NUMBERS | dict.fromkeys(("einem", "einer", "una"), 1) | _VAGUE
_NO_DAYS = ("segunda", "terca", "quarta", "quinta", "sexta", "tues", "thurs")
_DAY_NAMES = [word for word in WEEKDAYS if len(word) > 3 and word not in _NO_DAYS]
_MONTH_NAMES = [word for word in MONTHS if len(word) > 3 or word in ("may", "mai")]


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_DATA = tomllib.loads((files("memchat.search") / "question_dates.toml").read_text("utf-8"))
_PARTS = _DATA["parts"] | {
    "NUMBERS": _one_of(_COUNTS),
    "UNITS": _one_of(UNITS),
    "MONTHS": _one_of(MONTHS),
    "DAY_NAMES": _one_of(_DAY_NAMES),
    "LONG_NAMES": _one_of([*_DAY_NAMES, *_MONTH_NAMES, *SEASONS]),
}
_WORDS, _NAMES = (
    [(re.compile(with_parts(row["match"], _PARTS)), row["read"]) for row in _DATA[table]]
    for table in ("words", "names")
)
_ASKING = frozenset(_DATA["asking"].split())
_OF_THE_PERSON, _PAST, _FUTURE = (
    re.compile(rf"\b(?:{'|'.join(_DATA[kind])})\b") for kind in ("of_the_person", "past", "future")
)
_SINCE = re.compile(_DATA["since"])
SHARE = 0.2
"""Added to the score of a row on the days asked about: less than vector and words give it."""
DATED_SHARE = 0.05
"""The same where a date is asked for: texts hold theirs, so vector and words match it already."""
MOST = 50
ALL = None
"""The limit for rows without a limit."""


@dataclass(frozen=True, slots=True)
class DateRange:
    """The days asked about, the first to the last."""

    start: date
    end: date
    kind: Kind
    only: bool = False
    """Whether nothing but the time is asked about: "what did I say yesterday?"."""
    phrase: str = ""
    """The words that name the days, folded."""
    by_date: bool = False
    """Whether they are named by day, month or year, as texts are dated: not "last week"."""

    def instants(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """The midnight they begin at, and the one that they end before."""
        after = self.end + timedelta(days=1) if self.end < date.max else date.max
        first, last = (datetime.combine(day, time(), zone) for day in (self.start, after))
        return first, last

    def holds(self, at: datetime, zone: ZoneInfo) -> bool:
        """Whether an instant falls on one of these days."""
        return self.start <= at.astimezone(zone).date() <= self.end

    @property
    def words(self) -> frozenset[str]:
        """The search terms that name the days: no hit has to hold them."""
        return frozenset(keywords.query_terms(self.phrase))

    def rows(
        self,
        tx: Tx,
        kind: keywords.Kind,
        app_ids: Sequence[int],
        without: Collection[int] = (),
        only: Collection[int] | None = None,
    ) -> list[int]:
        """The rows of these days, the nearest first; never one of ``without``, and none but those
        of ``only`` where that is given."""
        limit = MOST if only is None else ALL
        found: list[int] = []
        if kind == "fact" and self.kind == "future":
            found += ending(tx, app_ids, self.start, limit, without)
        if self.kind == "past" or self.start <= tx.today:
            found += said(tx, kind, app_ids, self.instants(tx.zone), limit, without)
        if only is not None:
            found = [i for i in found if i in only][:MOST]
        return list(dict.fromkeys(found))

    def shares(self, rows: Sequence[int]) -> dict[int, float]:
        """What is added to the score of each of those rows: a little more to the nearer ones."""
        share = DATED_SHARE if self.by_date else SHARE
        return {i: round(share * (1 - n / (10 * MOST)), 6) for n, i in enumerate(rows)}


_FRAGMENTS = re.compile(r"[^\W\d_]+|\d+")
_NAMING = {
    part for word in (*UNITS, *WEEKDAYS, *MONTHS, *SEASONS) for part in _FRAGMENTS.findall(word)
}
_NAMING |= {"weekend", "end", "wochenende", "fin"}


def names_day(folded: str) -> bool:
    """Whether a folded text holds a digit, a unit of time, a month, a season or a weekday."""
    parts = _FRAGMENTS.findall(folded)
    return not _NAMING.isdisjoint(parts) or any(part[0].isdigit() for part in parts)


def date_range(text: str, now: datetime, zone: ZoneInfo) -> DateRange | None:
    """The days a question is about, or None where it names none; of several the first kind read."""
    words = unaccented(text[:_READ]).replace("\u2019", "'")
    today = now.astimezone(zone).date()
    for pattern, read in (*_WORDS, *(_NAMES if names_day(words) else ())):
        for match in pattern.finditer(words):
            try:
                found = _days_named(match, read, today, _tense(words))
            except (ValueError, OverflowError):
                continue  # 30 February, the year 10000
            if found is not None:
                before, named = words[: match.start()], match.groupdict()
                if found.start <= today and _SINCE.search(before):
                    found = DateRange(found.start, today, "past")
                by_date = not named.keys().isdisjoint(("year", "month", "day"))
                by_date = by_date or named.get("name") in MONTHS
                only = _asks_time_alone(before + " " + words[match.end() :])
                return replace(found, only=only, phrase=match[0], by_date=by_date)
    return None


def _tense(words: str) -> Kind | None:
    """Of a folded question; None where it tells neither, or both."""
    past, future = _PAST.search(words), _FUTURE.search(words)
    if bool(past) == bool(future):
        return None
    return "past" if past else "future"


def _asks_time_alone(rest: str) -> bool:
    """Whether a question, folded and without its time, asks for nothing but that time, as in "what
    did I say yesterday?".

    Then everything of that time answers it. So it is not enough that it has no other words: it has
    to be about what the person said, did, has or plans, or about what happened. "How are you
    today?" is not.
    """
    said = " ".join(rest.split())
    if not _OF_THE_PERSON.search(said):
        return False
    return not {unaccented(word) for word in content_words(re.sub(r"[\W_]+", " ", said))} - _ASKING


def _days_named(
    match: re.Match[str], read: str | int, today: date, tense: Kind | None
) -> DateRange | None:
    """The days that a match names, on a day and in the tense of its sentence; ``read`` as in the
    table of patterns."""
    if isinstance(read, int):
        day = today + timedelta(days=read)
        return _in_tense((day, day), today, tense)
    if read == "part_of_today":
        return DateRange(today, today, tense or "past")
    if read == "date":
        return _dated(match.groupdict(), today, tense)
    if read == "named":
        return _named(match.groupdict(), today, tense)
    return _counted(match, read, today, tense)


def _in_tense(days: Days, today: date, tense: Kind | None) -> DateRange:
    """A range around today is cut to what was, or to what comes, where the tense tells."""
    start, end = days
    if end < today:
        return DateRange(start, end, "past")
    if tense == "past" and start <= today:
        return DateRange(start, today, "past")
    return DateRange(start if tense is None else max(start, today), end, "future")


def _counted(match: re.Match[str], read: str, today: date, tense: Kind | None) -> DateRange | None:
    """ "Two weeks ago", "in two weeks", "the last two weeks", "the next two weeks"."""
    if read == "ahead" and tense == "past":
        return None  # "what did I eat in two days"
    number, unit = match["n"], UNITS[match["unit"]]
    count = int(number) if number.isdigit() else _COUNTS[number]
    day = later(today, count if read in ("ahead", "next") else -count, unit)
    near = timedelta(days=(_WIDE if number in _VAGUE else _NEAR)[unit])
    if read == "ago":
        return DateRange(day - near, min(day + near, today), "past")
    if read == "ahead":
        return DateRange(max(day - near, today), day + near, "future")
    return DateRange(day, today, "past") if read == "last" else DateRange(today, day, "future")


def _dated(parts: dict[str, str], today: date, tense: Kind | None) -> DateRange | None:
    """A day, a month or a year; without a year the one that fits or lies nearer, and "on the 3rd"
    of this month or one beside it."""
    name, day = parts.get("month"), int(parts.get("day") or 0)
    month = 0 if not name else int(name) if name.isdigit() else MONTHS[name]
    if parts.get("year"):
        first = date(int(parts["year"]), month or 1, day or 1)
        days = (first, first) if day else period("month" if month else "year", first)
        return _in_tense(days, today, tense)
    if month:
        firsts = [date(today.year + n, month, 1) for n in (-1, 0, 1)]
    else:
        firsts = [today.replace(day=1) + relativedelta(months=n) for n in range(-2, 3)]
    there = [f.replace(day=day) for f in firsts if 1 <= day <= monthrange(f.year, f.month)[1]]
    return _fitting([(found, found) for found in there], today, tense)


def _fitting(spans: list[Days], today: date, tense: Kind | None) -> DateRange | None:
    """Of the same days in several years those that the tense wants, else those nearest to today."""

    def away(span: Days) -> tuple[int, bool]:
        start, end = span
        gap = (today - end).days if end < today else (start - today).days if start > today else 0
        return gap, start > today

    wanted = [
        (start, end)
        for start, end in spans
        if tense is None or (start <= today if tense == "past" else end >= today)
    ]
    return _in_tense(min(wanted, key=away), today, tense) if wanted else None


def _spans(name: str, today: date) -> list[Days]:
    """Some of each name's ranges before, around and after today, in order."""
    if name in UNITS:
        return [period(PERIODS[UNITS[name]], today, n) for n in (-1, 0, 1)]
    years = range(today.year - 2, today.year + 3)
    if name in MONTHS:
        return [period("month", date(year, MONTHS[name], 1)) for year in years]
    if name in SEASONS:
        firsts = [date(year, _SEASON_STARTS[SEASONS[name]], 1) for year in years]
        return [(f, f + relativedelta(months=3, days=-1)) for f in firsts]
    first, last = (WEEKDAYS[name],) * 2 if name in WEEKDAYS else (5, 6)  # a weekend
    monday = period("week", today)[0]
    weeks = range(-2, 3 if name in WEEKDAYS else 2)
    return [
        (monday + timedelta(days=7 * n + first), monday + timedelta(days=7 * n + last))
        for n in weeks
    ]


_SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


def _named(parts: dict[str, str], today: date, tense: Kind | None) -> DateRange | None:
    """ "Last week", "next Friday", "this summer"; a bare name goes by the tense."""
    name = parts["name"]
    spans = _spans(name, today)
    if parts.get("last"):
        return DateRange(*[span for span in spans if span[1] < today][-1], "past")
    if parts.get("next"):
        return DateRange(*next(span for span in spans if span[0] > today), "future")
    if parts.get("this"):
        days = next(span for span in spans if span[1] >= today)
        if days[0] > today and tense == "past":
            return _fitting(spans, today, tense)  # "this summer", asked in autumn
        return _in_tense(days, today, tense)
    if name in WEEKDAYS or parts.get("coming"):
        tense = tense or "future"
    if name in WEEKDAYS and tense == "past":
        spans = [span for span in spans if span[0] < today]
    return _fitting(spans, today, tense)


_f, _m, _c, _s = t.memories.c, t.messages.c, t.chunks.c, t.sources.c
_facts = sa.select(_f.id).where(_f.active == 1)
# A message that is only a question says nothing.
_turns = (
    sa.select(_m.id)
    .join(t.sessions, t.sessions.c.id == _m.session_id)
    .where(_m.role == "user", t.searched_messages)
    .where(~sa.and_(_m.content.like("%?"), ~_m.content.like("%.%")))
)
_chunks = sa.select(_c.id).join(t.sources, _s.id == _c.source_id)
_SAID: dict[keywords.Kind, tuple[sa.Select[Any], Any, Any]] = {
    "fact": (_facts.order_by(_f.said_at.desc(), _f.id.desc()), _f.app_id, _f.said_at),
    "turn": (_turns.order_by(_m.id.desc()), t.sessions.c.app_id, _m.created_at),
    "chunk": (_chunks.order_by(_s.created_at.desc(), _c.id.desc()), _s.app_id, _s.created_at),
}
"""Each kind's rows, the newest first, with the columns of their scope and time."""


def said(
    tx: Tx,
    kind: keywords.Kind,
    app_ids: Sequence[int],
    period: tuple[datetime, datetime],
    limit: int | None,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of what was said from the start of a period until before its end, the newest first:
    active facts, the user's messages, or chunks of notes. Messages that were sent with memory off,
    that are copies, or that are only a question, are left out."""
    query, home, at = _SAID[kind]
    start, end = period
    query = query.where(home.in_(app_ids), at >= start, at < end)
    query = query.where(~among(query.selected_columns[0], without))
    return list(tx.execute(query.limit(limit)).scalars())


def ending(
    tx: Tx, app_ids: Sequence[int], first: date, limit: int | None, without: Collection[int] = ()
) -> list[int]:
    """The ids of active facts that end on ``first`` or later, the soonest first."""
    query = sa.select(_f.id).where(_f.app_id.in_(app_ids), _f.active == 1, _f.expires_at >= first)
    query = query.where(~among(_f.id, without))
    return list(tx.execute(query.order_by(_f.expires_at, _f.id).limit(limit)).scalars())
