"""Whether a date is the one that a phrase names, as far as the phrase names one.

The model gives dates as codes, and nobody sees when a code is wrong. So it is compared with the
words that the user said.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta

from dateutil.relativedelta import relativedelta

from memchat.language.calendar import NamedDate

_SEASON_MONTHS = {
    "spring": (3, 4, 5, 6),
    "summer": (6, 7, 8, 9),
    "autumn": (9, 10, 11, 12),
    "winter": (12, 1, 2, 3),
}
_STEPS = {
    "d": relativedelta(days=1),
    "w": relativedelta(weeks=1),
    "m": relativedelta(months=1),
    "y": relativedelta(years=1),
}
_A_WEEK, _A_YEAR, _A_SEASON = 7, 366, 92
_MOST_WEEKS = 520
_A_THIRD = 10
_NEXT_OF_MONTH = 62
"""Days ahead in which a day of the month such as the 31st comes at the latest."""


def agrees(named: NamedDate, found: date, day: date, *, first: bool = False) -> bool:
    """Whether ``found``, as understood on ``day``, fits every part of a date that a phrase names.
    ``first`` is set if it is the first day of the period and not the last."""
    if named.before:
        first, found = True, found + timedelta(days=1)
        if found.year == date.max.year:
            return False
    return all(_checks(named, found, day, first))


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
        yield until == day + timedelta(days=named.near)
    elif named.clock and not _has_day(named):
        yield until <= day + timedelta(days=1)
    if named.weekend:
        yield until.weekday() >= 4 and (until - day).days <= _A_WEEK * (2 if named.next else 1)
    if named.season is not None:
        yield until.month in _SEASON_MONTHS[named.season]
        yield not named.next or (until - day).days >= _A_SEASON
    if named.quarter is not None:
        ahead = _begins_quarter(named.quarter, until) if first else named.next
        yield until == _quarter_end(named.quarter, day) or (ahead and until > day)
    if named.weekday is not None and (named.count or named.unit):
        yield _in_that_week(named, until, day)
    elif named.count is not None and not _has_day(named) and named.month is None:
        number, unit = named.count
        yield number <= 9_999 and until == day + _STEPS[unit] * number
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
        yield not named.end or named.day is not None or _is_month_end(until)
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
    if unit != "w" or number > _MOST_WEEKS:
        return False
    if named.this or named.end:
        return _period("w", until) == _period("w", day)
    if named.count is None and not named.next:
        return until >= day + _STEPS["w"]
    return _period("w", until) == _period("w", day + _STEPS["w"] * number)


def _in_period(named: NamedDate, until: date, day: date) -> bool:
    """Whether it lies in this or the next week, month or year, and at its end if the phrase says
    so."""
    unit = named.unit or "d"
    if unit == "d":
        return day <= until <= day + timedelta(days=31)
    if named.year is not None:
        return not named.end or (until.month, until.day) == (12, 31)
    step = _STEPS[unit]
    here, there = _period(unit, day), _period(unit, until)
    if named.next:
        at_its_end = not named.end or _at_end(unit, until)
        return (there == _period(unit, day + step) and at_its_end) or (
            not named.end and until == day + step
        )
    if named.end:
        return there == here and _at_end(unit, until)
    if named.this:
        return there == here
    return (there == here and _at_end(unit, until)) or until >= day + step


def _period(unit: str, day: date) -> tuple[int, ...]:
    if unit == "w":
        return tuple(day.isocalendar())[:2]
    return (day.year, day.month) if unit == "m" else (day.year,)


def _at_end(unit: str, until: date) -> bool:
    if unit == "w":
        return until.weekday() >= 4
    return _is_month_end(until) if unit == "m" else (until.month, until.day) == (12, 31)


def _is_month_end(day: date) -> bool:
    return day.day == monthrange(day.year, day.month)[1]


def _quarter_end(quarter: str, day: date) -> date:
    month = int(quarter[1]) * 3 if quarter != "quarter" else (day.month + 2) // 3 * 3
    end = date(day.year, month, monthrange(day.year, month)[1])
    return end if end >= day else end + relativedelta(years=1)


def _begins_quarter(quarter: str, day: date) -> bool:
    number, month = divmod(day.month + 2, 3)
    return day.day == 1 and month == 0 and quarter in ("quarter", f"q{number}")
