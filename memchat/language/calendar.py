"""Dates: the parts that a phrase such as "bis Ende Mai" names, and the days that codes stand for.

The extraction model gives a date as a code that is the same in every language, relative to the day
of the message (``coded_days``). What the user's own words name (``parse_phrase``) serves to check
such a code.

The names of days, months and units come from CLDR, the words around them from the list of each
language. In a language without a list only names and digits are read. Words are compared in the
form that ``unaccented`` gives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import pairwise

from dateutil.relativedelta import relativedelta

from memchat.errors import InputError
from memchat.language import lexicon
from memchat.language.text import NUMBER_WORDS, unaccented

# ruff: noqa: E501  (patterns are read along, not down)


def _listed(kind: str, first: int = 0) -> dict[str, int]:
    """The names of days or months in all languages, numbered from ``first`` on."""
    return {
        unaccented(word): number
        for names in lexicon.calendar().values()
        for number, words in enumerate(names[kind], first)
        for word in words
    }


_SHORT = _listed("short_weekdays") | _listed("short_months")
WEEKDAYS = _listed("short_weekdays") | _listed("weekdays")
"""0 is Monday."""
MONTHS = _listed("short_months", 1) | _listed("months", 1)
UNITS = {
    unaccented(word): unit
    for names in lexicon.calendar().values()
    for unit in "dwmy"
    for word in names[unit]
}
SEASONS: dict[str, str] = {}
NUMBERS = {unaccented(word): number for word, number in NUMBER_WORDS.items()}
NUMBERS |= {unaccented(word): 1 for word in lexicon.all_words("one")}
for _code in lexicon.codes():
    for _season, _words in zip(
        ("spring", "summer", "autumn", "winter"), lexicon.groups(_code, "seasons"), strict=False
    ):
        SEASONS |= {unaccented(word): _season for word in _words}
    for _pair in lexicon.entries(_code, "more_names"):  # other forms in use, such as "tues"
        _word, _name = map(unaccented, _pair.split("="))
        WEEKDAYS |= {_word: WEEKDAYS[_name]} if _name in WEEKDAYS else {}
        UNITS |= {_word: UNITS[_name]} if _name in UNITS else {}


def words_for(*kinds: str) -> str:
    """The entries of some kinds in all languages, as alternatives of a regular expression."""
    listed = (lexicon.alternatives(code, kind) for kind in kinds for code in lexicon.codes())
    return (
        "|".join(dict.fromkeys(unaccented(words) for words in listed if words != r"(?!)")) or "(?!)"
    )


@cache
def _any(*kinds: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{words_for(*kinds)})(?![a-z])")


def _has(text: str, *kinds: str) -> bool:
    """Whether a text without accents has an entry of these kinds."""
    return _any(*kinds).search(text) is not None


_FIRST = re.compile(r"first|ersten?r?|premier|primero|primo|primeiro|eerste")
_AMBIGUOUS = re.compile("may|march|mars|mai|mart|segunda|terca|quarta|quinta|sexta")
"""Names that are also other words, such as "may" and "segunda". Like short names they count as
dates only after a word that introduces one."""
_LED = re.compile(
    rf"(?:\b(?:{words_for('until', 'leads', 'before', 'early', 'middle', 'next', 'from', 'end')})"
    r"|\d(?:st|nd|rd|th|er|\.)?)[\s-]+$"
)
_MAYBE_LED = re.compile(r"(?:^\W*|\b(?:this|of|for|from|to|de|and|und|et|y|e|en)[\s-]+)$")
_DATE_ENDS = re.compile(
    r"\s*(?:$|[^\w\s']|-feira|\d|(?:and|or|at|in|of|this|next|then|when|because|with|for)\b)"
)
_UNTIL = re.compile(rf".*\b(?=(?:{words_for('until')}|to)\b)")
_RANGE = re.compile(r"(?<![\d-])\d{1,2}\.?\s?-\s?(?=\d{1,2}\b(?!-))")
_PART_OF_DAY = re.compile(r"(?<=tag|och)(?:s|abend|nacht|morgen|(?:vor|nach)?mittag|fruh)\b")
_CLOCK = re.compile(
    r"\b(?:at|um|om|alle|a las?|as) \d{1,2}(?:[:.]\d{2})?(?:\s?(?:[ap]\.?m\b\.?|uhr|uur))?(?![\d.])|"
    r"\b\d{1,2}(?:[:.h]\d{2})?\s?(?:a\.?m\b\.?|p\.?m\b\.?|uhr|o'clock|heures?|uur)|\b\d{1,2}(?::|h)\d{2}\b"
    r"|\b(?:noon|midnight|mittags?|mitternacht|midi|minuit|mediodia|medianoche|mezzogiorno|mezzanotte)\b"
)
_TO_THE_HOUR = re.compile(rf"\b(?:{words_for('until')})\s+(?:2[0-4]|1?\d|0\d)\s*$")
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_SLASHED = re.compile(r"\b(\d{1,2})[./](\d{1,2})(?:[./](\d{4}|\d{2}))?(?![\d/])")
_EAST_ASIAN = re.compile(r"(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월]\s*(?:(\d{1,2})\s*[日号일])?")
_COUNTED = re.compile(
    rf"(?<![\w.])([a-z]+|\d{{1,5}})\s+(?:(?:more|weitere|autres?|mas)\s+)?({'|'.join(sorted(UNITS, key=len, reverse=True))})\b"
)
_FORTNIGHT = re.compile(r"\bfortnight\b")
_HALF_YEAR = re.compile(
    r"\b(?:half a year|halbes jahr|halben jahres?|half jaar|medio ano|mezzo anno|meio ano)\b"
)
_BEGAN = re.compile(rf"\W*(?:{words_for('since')})\s(?!(?:el|ya) )")
"""Not "desde el lunes", which may lie ahead."""
_NUMBERED_QUARTER = re.compile(r"\bq([1-4])\b")
_NATIVE = {word: unit for word, unit in UNITS.items() if not re.match("[a-z]", word)}
_NATIVE_NAMES = re.compile(
    "|".join(sorted((w for w in (*WEEKDAYS, *MONTHS) if not w.isascii()), key=len, reverse=True))
)
_ONE_NATIVE = "|".join(sorted(_NATIVE, key=len, reverse=True))
_NEXT_NATIVE = re.compile(
    rf"(?:{words_for('next')})\s*({_ONE_NATIVE})|({_ONE_NATIVE})\s*(?:{words_for('next')})"
)
"""In scripts without spaces, a unit counts only next to the word for "next"."""


@dataclass(slots=True)
class NamedDate:
    """The parts of a date that a phrase names. Of several weekdays or months the last counts."""

    weekday: int | None = None
    """0 is Monday."""
    month: int | None = None
    day: int | None = None
    year: int | None = None
    dates: tuple[tuple[int, int], ...] = ()
    """(month, day) in all the ways in which digits such as 05/06 can be read."""
    near: int | None = None
    """Days after the message; 0 is today."""
    count: tuple[int, str] | None = None
    """A number of units: two weeks are ``(2, "w")``."""
    unit: str | None = None
    """A week, month, quarter (``q``) or year without a number."""
    season: str | None = None
    quarter: int | None = None
    clock: bool = False
    this: bool = False
    next: bool = False
    end: bool = False
    third: int | None = None
    """The third of a month: 0 is its first ten days."""
    before: bool = False
    """Whether the day before is meant."""
    over: bool = False
    """Whether it lies before the message."""
    since: bool = False
    """Whether it has begun and goes on: "for the last two weeks", "since October"."""
    endless: bool = False
    numbers: frozenset[int] = frozenset()
    """All numbers in the phrase, whatever they count."""
    led: bool = False
    """Whether it begins with a listed word such as "until"."""
    unread: bool = False
    """Whether it has a number that belongs to no date, or offers two dates."""

    @property
    def anything(self) -> bool:
        """Whether any part of a date or a time was recognised."""
        parts = (self.weekday, self.month, self.day, self.year, self.near, self.count, self.unit)
        more = (self.season, self.quarter, self.dates, self.clock)
        return any(part is not None for part in parts) or any(more)


def parse_phrase(phrase: str, before: str = "", after: str = "") -> NamedDate:
    """The parts of a date that a phrase names. ``before`` and ``after`` are the words around it in
    the message, which tell "May" from "may"."""
    whole = unaccented(phrase)
    text = _PART_OF_DAY.sub("", _RANGE.sub("", _UNTIL.sub("", whole)))
    named = NamedDate(
        numbers=frozenset(int(n) for n in re.findall(r"\d+", whole)[:20] if len(n) < 10),
        this=_has(text, "this"),
        endless=_has(text, "for_good", "every"),
        clock=bool(_CLOCK.search(text) or _TO_THE_HOUR.search(text)),
        led=_has(text, "until", "leads", "this", "next"),
    )
    text = _TO_THE_HOUR.sub(" ", _CLOCK.sub(" ", text))
    for read in (_numeric_date, _idioms, _counted):  # what each has read is cut out
        text = read(named, text)
    for word in _names(text, unaccented(before), unaccented(after)):
        if word in WEEKDAYS:
            named.weekday = WEEKDAYS[word]
        elif word in MONTHS:
            named.month = MONTHS[word]
        elif word in SEASONS:
            named.season = SEASONS[word]
        elif word in UNITS and word not in ("an", "day", "dag", "dia"):
            named.unit = UNITS[word]
    _past(named, text)
    if named.anything:
        named.unread = named.unread or _has(text, "either")
        named.before = _has(text, "before")
        named.third = 0 if _has(text, "early") else 1 if _has(text, "middle") else None
    _bare_numbers(named, text)
    return named


def _numeric_date(named: NamedDate, text: str) -> str:
    if match := _ISO.search(text):
        named.year, named.dates = int(match[1]), ((int(match[2]), int(match[3])),)
    elif match := _SLASHED.search(text):
        one, two = int(match[1]), int(match[2])
        named.dates = tuple(p for p in ((two, one), (one, two)) if p[0] <= 12)
        named.year = (int(match[3]) + 2000 * (len(match[3]) == 2) or None) if match[3] else None
        named.unread = not named.dates
    elif match := _EAST_ASIAN.search(text):
        named.year, named.month, named.day = (
            int(part) if part else None for part in match.groups()
        )
    return text[: match.start()] + " " + text[match.end() :] if match else text


def _idioms(named: NamedDate, text: str) -> str:
    """Expressions of several words, none of which may be read alone."""
    named.next, named.end = _has(text, "next"), _has(text, "end")
    for pattern, parts in (
        (_HALF_YEAR, {"count": (6, "m")}),
        (_FORTNIGHT, {"count": (2, "w")}),
        (_any("weekend"), {"unit": "w", "end": True}),
        (_any("quarter"), {"unit": "q"}),
        (_any("after_tomorrow"), {"near": 2}),
        (_any("festivals"), {"dates": ((12, 24), (12, 25), (12, 26))}),
    ):
        if pattern.search(text):
            for part, value in parts.items():
                setattr(named, part, value)
            text = pattern.sub(" ", text)
    if match := _NUMBERED_QUARTER.search(text):
        named.quarter, text = int(match[1]), _NUMBERED_QUARTER.sub(" ", text)
    if named.near is None and _has(text, "today", "tomorrow"):
        named.near = 0 if _has(text, "today") else 1
    if ahead := _NEXT_NATIVE.search(text):
        named.next, named.unit = True, _NATIVE[ahead[1] or ahead[2]]
    return text


def _counted(named: NamedDate, text: str) -> str:
    for match in _COUNTED.finditer(text):
        number = int(match[1]) if match[1].isdigit() else NUMBERS.get(match[1])
        if number is not None:
            named.count = (number, UNITS[match[2]])
            return text[: match.start()] + " " + text[match.end() :]
    return text


def _names(text: str, before: str, after: str) -> Iterator[str]:
    """The words of a phrase that may be calendar names."""
    around, shift = f"{before} {text}{after}", len(before) + 1
    for match in re.finditer(r"[a-z]+", text):
        word = match[0]
        doubtful = word in _SHORT or _AMBIGUOUS.fullmatch(word)
        if not doubtful or _is_date(around, match.start() + shift, match.end() + shift):
            yield word
    yield from _NATIVE_NAMES.findall(text)


def _is_date(text: str, start: int, end: int) -> bool:
    before = text[:start]
    numbered = re.match(r"\.?\s+(?:the\s+)?\d", text[end:])
    if numbered or _LED.search(before):
        return True
    return bool(_MAYBE_LED.search(before) and _DATE_ENDS.match(text, end))


def _past(named: NamedDate, text: str) -> None:
    so_far = _has(text, "since") if named.count is not None else _BEGAN.match(text)
    if so_far and not _has(text, "before"):
        named.since = True
    elif _has(text, "yesterday"):
        named.over = True
    elif _has(text, "last"):
        parts = (named.weekday, named.month, named.unit, named.season)
        named.since = named.count is not None
        named.over = not named.since and sum(part is not None for part in parts) == 1


def _bare_numbers(named: NamedDate, text: str) -> None:
    """Numbers without a unit: a day or a year. A number in words counts only with a month."""
    for number in map(int, re.findall(r"\d{1,9}", text)):
        if 1 <= number <= 31 and named.day is None and not named.dates:
            named.day = number
        elif 1900 <= number <= 9999 and named.year is None:
            named.year = number
        else:
            named.unread = True
    if named.month is not None and named.day is None and named.count is None:
        words = re.findall(r"[a-z]+", text)
        days = [w for w in words if _FIRST.fullmatch(w) or NUMBERS.get(w, 0) > 1]
        if len(days) == 1:
            named.day = NUMBERS.get(days[0], 1)


Days = tuple[date, date]
"""The first and the last."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTH_CODES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""The names of days and months in codes."""
SEASON_STARTS = {"spring": (3, 20), "summer": (6, 21), "autumn": (9, 23), "winter": (12, 21)}
"""Their first days, in their order: each lasts until the day before the next one begins."""
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
PERIODS = {"w": "week", "m": "month", "q": "quarter", "y": "year"}
_NINE_YEARS = 9 * 366
"""A 29 February may be eight years away."""


def later(day: date, count: int, unit: str) -> date:
    """The day so many days (``d``), weeks, months, quarters or years after another, or before."""
    if unit in "dw":
        return day + timedelta(days=count * (7 if unit == "w" else 1))
    return day + relativedelta(months=count * _MONTHS_OF[PERIODS[unit]])


def period(name: str, day: date, ahead: int = 0) -> Days:
    """The first and the last day of the week, month, quarter or year that a day is in, or of the
    one so many further on."""
    if name == "week":
        first = day - timedelta(days=day.weekday() - 7 * ahead)
        return first, first + timedelta(days=6)
    months = _MONTHS_OF[name]
    first = day.replace(day=1, month=day.month - (day.month - 1) % months)
    first += relativedelta(months=months * ahead)
    return first, first + relativedelta(months=months - 1, day=31)


def coded_days(code: str, day: date) -> Days:
    """The first and the last day that a code names, counted from a day.

    Forms: ``+3d +2w +1m +1y``, ``weekday:fri``, ``day:21``, ``month:05`` (also ``month:may``),
    ``q2``, ``summer``, ``today``, ``tomorrow``, ``next:week|month|quarter|year`` (also
    ``year:next``), ``YYYY-MM-DD``, ``MM-DD``; ``end:week|month|quarter|year|q2|summer`` (also
    ``end:next_week``), which is the last day alone; and ``before:<form>``. What has no year is the
    next that is not over, which may be the present one. Seasons are those of the northern
    hemisphere. Raises InputError for any other code.
    """
    form = code.strip()
    try:
        found = _days(form.casefold(), day)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InputError(f"{form[:40]!r} is not a date form such as +2w, end:month or 2027-03-14")
    return found


def _days(form: str, day: date) -> Days | None:
    name, _, rest = form.partition(":")
    if match := re.fullmatch(r"(?:next:|end:|end:next_)(week|month|quarter|year)|year:next", form):
        found = period(match[1] or "year", day, ahead="next" in form)
    elif match := re.fullmatch("(?:end:)?q([1-4])", form):
        found = period("quarter", _next(day, lambda one: one.month == 3 * int(match[1])))
    elif form.removeprefix("end:") in (*SEASON_STARTS, "fall"):
        found = _season_around(
            "autumn" if form.endswith("fall") else form.removeprefix("end:"), day
        )
    elif name == "month" and re.fullmatch("[a-z]{3,}|0?[1-9]|1[0-2]", rest):
        month = int(rest) if rest.isdigit() else MONTH_CODES.index(rest[:3]) + 1
        found = period("month", _next(day, lambda one: one.month == month))
    else:
        one = _before(rest, day) if name == "before" else _one_day(form, day)
        return None if one is None else (one, one)
    return (found[1], found[1]) if name == "end" else found


def _season_around(name: str, day: date) -> Days:
    years = range(day.year - 1, day.year + 2)
    starts = [(one, date(year, *at)) for year in years for one, at in SEASON_STARTS.items()]
    return next(
        (start, after - timedelta(days=1))
        for (one, start), (_, after) in pairwise(starts)
        if one == name and after > day
    )


def _before(form: str, day: date) -> date | None:
    """The day before the first day that a form names. "Before Friday", said on a Friday, means the
    next Friday."""
    found = None if form.startswith("before") else _days(form, day)
    if found is None:
        return None
    same_day = found[0] == day and form.startswith("weekday")
    return found[0] + timedelta(days=6 if same_day else -1)


def _one_day(form: str, day: date) -> date | None:
    name, _, rest = form.partition(":")
    if form in ("today", "tomorrow"):
        return day + timedelta(days=form == "tomorrow")
    if match := re.fullmatch(r"\+([0-9]{1,4})([dwmy])", form):
        return later(day, int(match[1]), match[2])
    if name == "weekday" and rest[:3] in DAYS:
        return _next(day, lambda one: DAYS[one.weekday()] == rest[:3])
    if name == "day" and re.fullmatch("[0-9]{1,2}", rest):
        return _next(day, lambda one: one.day == int(rest))
    if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", form):
        return date.fromisoformat(form)
    if re.fullmatch("[0-9]{2}-[0-9]{2}", form):
        return _next(day, lambda one: f"{one:%m-%d}" == form)
    return None


def _next(day: date, fits: Callable[[date], bool]) -> date:
    """The first day that fits, from a day on. Raises ValueError if there is none."""
    for ahead in range(_NINE_YEARS):
        if fits(found := day + timedelta(days=ahead)):
            return found
    raise ValueError("no such day")
