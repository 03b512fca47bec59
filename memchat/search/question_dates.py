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
from calendar import monthrange
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta
from sqlalchemy import Select, and_, select

from memchat.db import Tx, database
from memchat.db.schema import chunks, memories, messages, searched_messages, sessions, sources
from memchat.language.calendar import MONTHS, SEASONS, UNITS, WEEKDAYS, names_day, unaccented
from memchat.language.numbers import NUMBER_WORDS
from memchat.language.text import content_words
from memchat.search import keywords

# ruff: noqa: E501  (word lists are read along, not down)


_ASKING = {
    word
    for words in (
        "say said tell told talk talked talking speak spoke discuss discussed mention mentioned happen happened do did doing ago since",
        "have having plan plans planned know remember chat conversation up coming anything something thing things on schedule",
        "sage sagte gesagt erzahlt erzahle besprochen reden geredet gesprochen passiert war habe hab geplant los steht vor seit plane",
        "weisst uber gemacht was qu est ce que ai j dit dire dis parle parler avons nous a t raconte passe passee fait faire prevu rien",
        "chose quoi depuis dije dicho decir conte contado hable hablado hablamos paso pasado hice hecho hacer tengo planes hace desde",
    )
    for word in words.split()
}
"""Words that name nothing to search for beside the time."""
_OF_THE_PERSON = re.compile(
    r"\b(?:"
    # English
    r"(?:did|do|have|had|was|were|am|are|will|shall|should) (?:i|we)|(?:what|anything|something) (?:i|we)"
    r"|did you (?:say|tell)|told|talked|spoke|discussed|mentioned|happen(?:s|ed|ing)?"
    r"|(?:tell me|know) (?:about|of|from)|remember|coming up|(?<!your )(?:plans?|schedule)|(?<!you )planned"
    r"|(?:what's|what is|anything|something) on"
    # German
    r"|(?:hab|habe|haben|hatte|hatten|war|waren) (?:ich|wir)|was (?:ich|wir)|gesagt|erzahlt|besprochen|gesprochen|geredet|passiert"
    r"|(?<!du )geplant|plane(?:n wir)?|steht|was (?:war|ist)(?: los)?(?=\W*$)|weisst du (?:uber|von)"
    # French
    r"|j'ai|ai-je|avons-nous|nous avons|on a|s'est passee?|(?<!tu as )prevu|raconte|parle"
    # Spanish
    r"|dije|dijimos|he (?:dicho|hecho|contado|hablado)|conte|hable|hablamos|hice|hicimos|tengo|tenemos|paso|pasado|(?<!tus )planes"
    r")\b"
)


def asks_time_alone(rest: str) -> bool:
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


# ruff: noqa: E501  (word lists are read along, not down)


Kind = Literal["past", "future"]

_PAST_WORDS = re.compile(
    r"\b(?:did|were|had|said|told|talked|went|happened|mentioned|discussed|decided|spoke|been|bought|met"
    r"|war|waren|hatten?|wurden?|sagten?|(?:hab\w*|hat|bin|ist|sind)\b.*\b\w*ge\w{2,}(?:t|en)|erzahlt|besprochen|passiert"
    r"|ai-je|as-tu|avons-nous|avais|avait|etais|etait|disais|j'ai \w+(?:e|i|u|it)|ai \w+e"
    r"|dije|dijo|dijiste|hice|hicimos|hizo|fui|fue|era|estaba|tuve|conte|hable|hablamos|paso|he \w+[ai]do)\b"
    r"|\bwas\b(?!.*\b(?:ich|mein\w*|habe|steht|ist|du)\b)"
)
_FUTURE_WORDS = re.compile(
    r"\b(?:will|shall|going to|gonna|plans?|planned|upcoming|have to|coming up|due"
    r"|werden?|wird|geplant|steht|stehen|plane|termine?|vais|vas|va|allons|aurai|prevu\w*"
    r"|voy|vamos|tengo|tendre|pendiente|planead\w+)\b|'ll\b"
)


def tense_of(words: str) -> Kind | None:
    """Of a folded question; None where it tells neither, or both."""
    past, future = _PAST_WORDS.search(words), _FUTURE_WORDS.search(words)
    if bool(past) == bool(future):
        return None
    return "past" if past else "future"


# ruff: noqa: E501  (word lists are read along, not down)


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

    def holds(self, at: datetime, zone: ZoneInfo) -> bool:
        """Whether an instant falls on one of these days."""
        return self.start <= at.astimezone(zone).date() <= self.end


def date_range(text: str, now: datetime, zone: ZoneInfo) -> DateRange | None:
    """The days a question is about, or None where it names none; of several the first kind read."""
    words = unaccented(text[:_READ]).replace("\u2019", "'")
    today = now.astimezone(zone).date()
    readers = _READERS if names_day(words) else _READERS[:_OWN_WORDS]
    for pattern, resolve in readers:
        for match in pattern.finditer(words):
            try:
                found = resolve(match, today, tense_of(words))
            except (ValueError, OverflowError):
                continue  # 30 February, the year 10000
            if found is not None:
                found = _since(words[: match.start()], found, today)
                rest = words[: match.start()] + " " + words[match.end() :]
                named = match.groupdict()
                by_date = not named.keys().isdisjoint(("year", "month", "day"))
                by_date = by_date or named.get("name") in MONTHS
                only = asks_time_alone(rest)
                return replace(found, only=only, phrase=match[0], by_date=by_date)
    return None


Resolve = Callable[[re.Match[str], date, Kind | None], DateRange | None]
"""Finds the days that a match names, on a day and in the tense of its sentence."""
_READ, _OWN_WORDS = 2_000, 6
_NEAR = {"d": 0, "w": 3, "m": 15, "y": 90}
"""Days around "two weeks ago" that it may mean as well."""
_WIDE = {"d": 2, "w": 10, "m": 45, "y": 400}
"""The same of "a few weeks ago"."""

_NUMBERS = {unaccented(word): number for word, number in NUMBER_WORDS.items()}
_NUMBERS |= dict.fromkeys(
    ("a", "an", "one", "ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uno"), 1
)
_VAGUE = {"a couple of": 2, "couple of": 2, "a couple": 2} | dict.fromkeys(
    ("a few", "few", "ein paar", "paar", "einigen", "quelques", "unos", "unas"), 3
)
_NUMBERS |= _VAGUE
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
_NUMBER = rf"\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}"
_COUNT = rf"(?P<n>{_NUMBER})\s+(?P<unit>{_UNIT})"
_DAY_NAMES = [
    word
    for word in WEEKDAYS
    if len(word) > 3
    and word not in ("segunda", "terca", "quarta", "quinta", "sexta", "tues", "thurs")
]
_MONTH_NAMES = [word for word in MONTHS if len(word) > 3 or word in ("may", "mai")]
_WEEKEND = "week-?end|wochenende|fin de semana"
_NAME = (
    rf"(?P<name>{_WEEKEND}|{'|'.join(sorted([*_DAY_NAMES, *_MONTH_NAMES, *SEASONS], key=len, reverse=True))}"
    r"|weeks?|months?|years?|wochen?|monats?|jahre?s?|semaine|mois|annee|semana|mes|ano)"
)
_LAST = r"(?P<last>last|past|previous|letzte[nmrs]?|vorige[nmrs]?|vergangene[nmrs]?|ultim[oa]|pasad[oa])"
_NEXT = r"(?P<next>next|coming|nachste[nmrs]?|kommende[nmrs]?|proxim[oa])"
_THIS = r"(?P<this>this|diese[nmrs]?|cette|cet|ce|est[ea])"
_TRAILING = r"(?P<after>(?P<last>derniere?|passee?|pasad[oa])|(?P<next>prochaine?|proxim[oa]|que viene|qui vient))"
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_NO_VERB = (
    r"(?:(?<=\bon )|(?<=\bsince )|(?<=\buntil )|(?<=\bby )|(?!(?:\d+\s+)?(?:may|march)\b(?:\s+\d+)?"
    r"(?!\w)(?!\s*(?:$|[^\w\s']|\d|(?:about|and|at|because|by|for|from|in|of|on|to|when|where|with)\b))))"
)
"""Not "this may be", "may 5 people", "the 2 may": the month that is a verb too ends its phrase."""
_YEAR = r"(?P<year>(?:19|20)\d{2})"

_SINCE = re.compile(r"\b(?:since|seit|depuis|desde)(?:\s+(?:the|dem|der|le|la|el))?\s*$")


def _since(before: str, found: DateRange, today: date) -> DateRange:
    if found.start <= today and _SINCE.search(before):
        return DateRange(found.start, today, "past")
    return found


def _days(start: date, end: date, today: date, tense: Kind | None) -> DateRange:
    """A range around today is cut to what was, or to what comes, where the tense tells."""
    if end < today:
        return DateRange(start, end, "past")
    if tense == "past" and start <= today:
        return DateRange(start, today, "past")
    return DateRange(start if tense is None else max(start, today), end, "future")


def _offset(days: int) -> Resolve:
    def resolve(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
        day = today + timedelta(days=days)
        return _days(day, day, today, tense)

    return resolve


def _this_part_of_day(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    return DateRange(today, today, tense or "past")


def _number(match: re.Match[str]) -> int:
    return int(match["n"]) if match["n"].isdigit() else _NUMBERS[match["n"]]


def _moved(today: date, count: int, unit: str) -> date:
    if unit in "dw":
        return today + timedelta(days=count * (7 if unit == "w" else 1))
    return today + (relativedelta(months=count) if unit == "m" else relativedelta(years=count))


def _near(match: re.Match[str]) -> timedelta:
    return timedelta(days=(_WIDE if match["n"] in _VAGUE else _NEAR)[UNITS[match["unit"]]])


def _ago(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    day, near = _moved(today, -_number(match), UNITS[match["unit"]]), _near(match)
    return DateRange(day - near, min(day + near, today), "past")


def _ahead(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    if tense == "past":
        return None  # "what did I eat in two days"
    day, near = _moved(today, _number(match), UNITS[match["unit"]]), _near(match)
    return DateRange(max(day - near, today), day + near, "future")


def _counted_last(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    return DateRange(_moved(today, -_number(match), UNITS[match["unit"]]), today, "past")


def _counted_next(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    return DateRange(today, _moved(today, _number(match), UNITS[match["unit"]]), "future")


def _iso(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    return _days(day, day, today, tense)


def _dated(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    """A day of a month, in the year named or else the one that fits or lies nearer."""
    parts = match.groupdict()
    month = int(parts["month"]) if parts["month"].isdigit() else MONTHS[parts["month"]]
    day, year = int(parts["day"]), parts.get("year")
    if year:
        only = date(int(year), month, day)
        return _days(only, only, today, tense)
    spans = []
    for y in range(today.year - 1, today.year + 2):
        if day <= monthrange(y, month)[1]:
            spans.append((date(y, month, day), date(y, month, day)))
    return _fitting(spans, today, tense)


def _day_of_month(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    """ "On the 3rd": of this month or one beside it."""
    day, first, spans = int(match["day"]), today.replace(day=1), []
    for n in range(-2, 3):
        month = first + relativedelta(months=n)
        if 1 <= day <= monthrange(month.year, month.month)[1]:
            spans.append((month.replace(day=day), month.replace(day=day)))
    return _fitting(spans, today, tense)


def _of_year(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    year = int(match["year"])
    month = match.groupdict().get("month")
    if month:
        start, end = _month(year, MONTHS[month])
    else:
        start, end = date(year, 1, 1), date(year, 12, 31)
    return _days(start, end, today, tense)


def _fitting(spans: list[tuple[date, date]], today: date, tense: Kind | None) -> DateRange | None:
    """Of the same days in several years those that the tense wants, else those nearest to today."""

    def away(span: tuple[date, date]) -> tuple[int, bool]:
        start, end = span
        gap = (today - end).days if end < today else (start - today).days if start > today else 0
        return gap, start > today

    wanted = [
        (start, end)
        for start, end in spans
        if tense is None or (start <= today if tense == "past" else end >= today)
    ]
    if not wanted:
        return None
    start, end = min(wanted, key=away)
    return _days(start, end, today, tense)


def _month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _season(year: int, season: str) -> tuple[date, date]:
    first = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}[season]
    start = date(year, first, 1)
    return start, start + relativedelta(months=3) - timedelta(days=1)


def _spans(name: str, today: date) -> list[tuple[date, date]]:
    """Some of each name's ranges before, around and after today, in order."""
    week = today - timedelta(days=today.weekday())
    if re.fullmatch(_WEEKEND, name):
        saturdays = [week + timedelta(days=5 + 7 * n) for n in (-2, -1, 0, 1)]
        return [(day, day + timedelta(days=1)) for day in saturdays]
    if name in WEEKDAYS:
        first = week + timedelta(days=WEEKDAYS[name])
        days = [first + timedelta(days=7 * n) for n in (-2, -1, 0, 1, 2)]
        return [(day, day) for day in days]
    years = range(today.year - 2, today.year + 3)
    if name in MONTHS:
        return [_month(year, MONTHS[name]) for year in years]
    if name in SEASONS:
        return [_season(year, SEASONS[name]) for year in years]
    unit = UNITS[name]
    if unit == "w":
        mondays = [week + timedelta(days=7 * n) for n in (-1, 0, 1)]
        return [(day, day + timedelta(days=6)) for day in mondays]
    if unit == "m":
        first = today.replace(day=1)
        starts = [first + relativedelta(months=n) for n in (-1, 0, 1)]
        return [_month(day.year, day.month) for day in starts]
    return [(date(y, 1, 1), date(y, 12, 31)) for y in (today.year - 1, today.year, today.year + 1)]


def _named(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    """ "Last week", "next Friday", "this summer"; a bare name goes by the tense."""
    parts = match.groupdict()
    spans = _spans(match["name"], today)
    if parts.get("last"):
        start, end = [span for span in spans if span[1] < today][-1]
        return DateRange(start, end, "past")
    if parts.get("next"):
        start, end = next(span for span in spans if span[0] > today)
        return DateRange(start, end, "future")
    if parts.get("this"):
        start, end = next(span for span in spans if span[1] >= today)
        if start > today and tense == "past":
            return _fitting(spans, today, tense)  # "this summer", asked in autumn
        return _days(start, end, today, tense)
    if match["name"] in WEEKDAYS and tense is None:
        tense = "future"
    if match["name"] in WEEKDAYS and tense == "past":
        spans = [span for span in spans if span[0] < today]
    return _fitting(spans, today, tense)


def _for_named(match: re.Match[str], today: date, tense: Kind | None) -> DateRange | None:
    return _named(match, today, tense or "future")


def _words(*alternatives: str) -> str:
    return rf"\b(?:{'|'.join(alternatives)})\b"


_LED_NAME = "|".join(
    sorted([*_DAY_NAMES, *_MONTH_NAMES, *SEASONS, _WEEKEND], key=len, reverse=True)
)
_DATE_LED = r"(?<![\d.])" + _NO_VERB + r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?"
_PATTERNS: tuple[tuple[str, Resolve], ...] = (
    (
        _words("day before yesterday|vorgestern|avant[- ]hier|anteayer|antier|antes de ayer"),
        _offset(-2),
    ),
    (_words("day after tomorrow|ubermorgen|apres-demain|pasado manana"), _offset(2)),
    (
        _words(
            r"(?<!before )yesterday|last night|(?<!vor )gestern|hier(?= soir| matin| apres|\W*$|[ ,?])|ayer|anoche"
        ),
        _offset(-1),
    ),
    (
        _words(
            "this (?:morning|afternoon)|heute (?:morgen|fruh|vormittag|mittag|nachmittag)",
            "ce matin|cet apres-midi|esta (?:manana|tarde)",
        ),
        _this_part_of_day,
    ),
    (_words("today|tonight|this evening|heute|aujourd'hui|ce soir|hoy|esta noche"), _offset(0)),
    (
        _words(
            "tomorrow|demain|(?<!la )(?<!esta )(?<!una )manana",
            "(?<!guten )(?<!am )(?<!jeden )(?<!der )(?<!den )(?<!diesen )(?<!good )morgen",
        ),
        _offset(1),
    ),
    (rf"\b{_COUNT}\s+(?:ago|zuvor)\b", _ago),
    (rf"\b(?:vor|il y a|hace)\s+{_COUNT}\b", _ago),
    (rf"\b(?:last|past|previous|letzten|vergangenen|ultim[oa]s)\s+{_COUNT}\b", _counted_last),
    (rf"\b(?P<n>{_NUMBER})\s+(?:dernier(?:e)?s|ultim[oa]s)\s+(?P<unit>{_UNIT})\b", _counted_last),
    (rf"\b(?:next|coming|nachsten|kommenden|proxim[oa]s)\s+{_COUNT}\b", _counted_next),
    (rf"\b(?P<n>{_NUMBER})\s+(?:prochain(?:e)?s|proxim[oa]s)\s+(?P<unit>{_UNIT})\b", _counted_next),
    (rf"\b(?:in|dans|en|dentro de)\s+{_COUNT}\b", _ahead),
    (r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b", _iso),
    (rf"{_DATE_LED}(?P<month>{_MONTH})\b(?:,?\s+(?:de\s+)?{_YEAR})?", _dated),
    (
        rf"\b{_NO_VERB}(?P<month>{_MONTH})\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*(?:{_UNIT}))(?:,?\s+{_YEAR})?",
        _dated,
    ),
    (
        r"(?<![\d.])(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?:\s?(?P<year>(?:19|20)\d{2}))?(?!\d)",
        _dated,
    ),
    (rf"\b(?P<month>{_MONTH})\s+(?:de\s+)?{_YEAR}\b", _of_year),
    (rf"\b{_LAST}\s+{_NAME}\b", _named),
    (rf"\b{_NEXT}\s+{_NAME}\b", _named),
    (rf"\b{_NAME}\s+{_TRAILING}\b", _named),
    (rf"\b{_THIS}\s+{_NO_VERB}{_NAME}\b", _named),
    (
        rf"\b(?:in|en|during|im jahre?|in the year|durant|durante|desde|seit|since|depuis)\s+{_YEAR}\b",
        _of_year,
    ),
    (
        rf"\b(?:in|on|during|over|at|since|im|am|ubers?|seit|wahrend|en|au|le|l'|depuis|el|los|durante|desde)(?:\s+(?:the|des|dem|der|la|le|el|early|late))?(?:\s+|(?<='))(?P<name>{_LED_NAME})\b(?!')",
        _named,
    ),
    (
        rf"\b(?:for|furs?|pour|para)(?:\s+(?:the|das|den|le|la|el))?\s+(?P<name>{'|'.join(_DAY_NAMES)}|{_WEEKEND})\b",
        _for_named,
    ),
    (
        r"\bon the (?P<day>\d{1,2})(?:st|nd|rd|th)(?=\s*(?:$|[?!.,;:]|(?:about|at|with)\b))",
        _day_of_month,
    ),
    (
        r"(?<!chaque )(?<!every )(?<!each )(?<!other )\b(?P<name>(?:lun|mar|mercre|jeu|vendre|same)di(?! gras)"
        r"|dimanche|(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=\W*$))\b",
        _named,
    ),
)
"""In this order: a longer phrase before a shorter one in it; those of ``_OWN_WORDS`` first."""
_READERS = tuple((re.compile(pattern), resolve) for pattern, resolve in _PATTERNS)


_f, _m, _c, _s = memories.c, messages.c, chunks.c, sources.c
_facts = select(_f.id).where(_f.active == 1)
# A message that is only a question says nothing.
_turns = (
    select(_m.id)
    .join(sessions, sessions.c.id == _m.session_id)
    .where(_m.role == "user", searched_messages)
    .where(~and_(_m.content.like("%?"), ~_m.content.like("%.%")))
)
_chunks = select(_c.id).join(sources, _s.id == _c.source_id)
_SAID: dict[keywords.Kind, tuple[Select[Any], Any, Any]] = {
    "fact": (_facts.order_by(_f.said_at.desc(), _f.id.desc()), _f.app_id, _f.said_at),
    "turn": (_turns.order_by(_m.id.desc()), sessions.c.app_id, _m.created_at),
    "chunk": (_chunks.order_by(_s.created_at.desc(), _c.id.desc()), _s.app_id, _s.created_at),
}
"""Each kind's rows, the newest first, with the columns of their scope and time."""


def said(
    tx: Tx,
    kind: keywords.Kind,
    app_ids: Sequence[int],
    period: tuple[datetime, datetime],
    limit: int,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of what was said from the start of a period until before its end, the newest first:
    active facts, the user's messages, or chunks of notes. Messages that were sent with memory off,
    that are copies, or that are only a question, are left out."""
    query, home, at = _SAID[kind]
    start, end = period
    query = query.where(home.in_(app_ids), at >= start, at < end)
    query = query.where(query.selected_columns[0].not_in(database.id_list(without)))
    return list(tx.execute(query.limit(limit)).scalars())


def ending(
    tx: Tx, app_ids: Sequence[int], first: date, limit: int, without: Collection[int] = ()
) -> list[int]:
    """The ids of active facts that end on ``first`` or later, the soonest first."""
    query = select(_f.id).where(_f.app_id.in_(app_ids), _f.active == 1, _f.expires_at >= first)
    query = query.where(_f.id.not_in(database.id_list(without)))
    return list(tx.execute(query.order_by(_f.expires_at, _f.id).limit(limit)).scalars())


SHARE = 0.2
"""Added to the score of a row on the days asked about: less than vector and words give it."""
DATED_SHARE = 0.05
"""The same where a date is asked for: texts hold theirs, so vector and words match it already."""
MOST = 50
ALL = -1
"""SQLite's limit for rows without a limit."""


@dataclass(frozen=True, slots=True)
class QuestionDates:
    """The days a question asks about, in the user's zone."""

    range: DateRange
    zone: ZoneInfo
    today: date

    @classmethod
    def of(cls, text: str, now: datetime, zone: ZoneInfo) -> QuestionDates | None:
        """The days that a question names, or None where it names none."""
        found = date_range(text, now, zone)
        return None if found is None else cls(found, zone, now.astimezone(zone).date())

    @property
    def words(self) -> frozenset[str]:
        """The search terms that name the days: no hit has to hold them."""
        return frozenset(keywords.query_terms(self.range.phrase))

    @property
    def only(self) -> bool:
        """Whether the question asks for a time alone, and no other word or vector counts."""
        return self.range.only

    def rows(
        self,
        tx: Tx,
        kind: keywords.Kind,
        app_ids: Sequence[int],
        without: Collection[int] = (),
        only: Collection[int] | None = None,
    ) -> list[int]:
        """The rows of those days, the nearest first; never one of ``without``, and none but those
        of ``only`` where that is given."""
        limit = MOST if only is None else ALL
        found: list[int] = []
        if kind == "fact" and self.range.kind == "future":
            found += ending(tx, app_ids, self.range.start, limit, without)
        if self.range.kind == "past" or self.range.start <= self.today:
            period = self._midnight(self.range.start), self._midnight(self._day_after())
            found += said(tx, kind, app_ids, period, limit, without)
        if only is not None:
            found = [i for i in found if i in only][:MOST]
        return list(dict.fromkeys(found))

    def shares(self, rows: Sequence[int]) -> dict[int, float]:
        """What is added to the score of each of those rows: a little more to the nearer ones."""
        share = DATED_SHARE if self.range.by_date else SHARE
        return {i: round(share * (1 - n / (10 * MOST)), 6) for n, i in enumerate(rows)}

    def _day_after(self) -> date:
        return self.range.end + timedelta(days=1) if self.range.end < date.max else date.max

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone)
