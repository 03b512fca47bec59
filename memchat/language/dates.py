"""Dates from the language-independent codes of the extraction model, relative to the message's
day."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

from memchat.errors import InputError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SEASONS = {"spring": (3, 20), "summer": (6, 21), "autumn": (9, 23), "winter": (12, 21)}
"""Their first days, in their order: each lasts until the day before the next one begins."""
_LAST_YEAR = 9999
_TWO_MONTHS = 2
"""The 31st comes every other month at least."""


def until_date(code: str, said_at: datetime, zone: ZoneInfo) -> date:
    """The last day that a code names, counted from the day of ``said_at`` in ``zone``.

    Forms: ``+3d +2w +1m +1y``, ``weekday:fri``, ``day:21``, ``month:05`` (also ``month:may``),
    ``q2``, ``summer``, ``today``, ``tomorrow``, ``next:week|month|quarter|year`` (also
    ``end:next_week``, ``year:next``), ``end:week|month|quarter|year|q2|summer``, ``before:<form>``,
    ``YYYY-MM-DD``, ``MM-DD``. A weekday or a day without a year is the next one, which may be the
    same day. Seasons are those of the northern hemisphere. Raises InputError for any other code.
    """
    return _named(code, said_at, zone, last=True)


def from_date(code: str, said_at: datetime, zone: ZoneInfo) -> date:
    """The first day that a code names: of a month, quarter or season, or of the next week, month,
    quarter or year. For an ``end`` form it is the day itself."""
    return _named(code, said_at, zone, last=False)


def _named(code: str, said_at: datetime, zone: ZoneInfo, *, last: bool) -> date:
    day = said_at.astimezone(zone).date()
    try:
        found = _resolve(code.strip().casefold(), day, last)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InputError(
            f"{code.strip()[:40]!r} is not a date form such as +2w, end:month or 2027-03-14"
        )
    return found


def _resolve(form: str, day: date, last: bool) -> date | None:
    name, _, rest = form.partition(":")
    if form in ("today", "tomorrow"):
        return day + timedelta(days=form == "tomorrow")
    if match := re.fullmatch(r"\+([0-9]{1,4})([dwmy])", form):
        return _ahead(day, int(match[1]), match[2])
    if name == "weekday" and re.fullmatch("[a-z]{3,}", rest):
        return _next_weekday(day, _DAYS.index(rest[:3]))
    if name == "day" and re.fullmatch("[0-9]{1,2}", rest):
        return _day_of_month(day, int(rest))
    if name == "month" and re.fullmatch("[a-z]{3,}|0?[1-9]|1[0-2]", rest):
        month = int(rest) if rest.isascii() and rest.isdigit() else _MONTHS.index(rest[:3]) + 1
        end = _next_end(day, month)
        return end if last else end.replace(day=1)
    if name == "before":
        return _before(rest, day)
    if match := re.fullmatch(r"(?:next:|end:next_)(week|month|quarter|year)|year:(next)", form):
        return _next_period(day, match[1] or "year", last)
    if name == "end":
        return _end(day, rest)
    if named := _quarter_or_season(day, form):
        return named[last]
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", form):
        return date.fromisoformat(form)
    if match := re.fullmatch(r"([0-9]{2})-([0-9]{2})", form):
        return _next_day(day, int(match[1]), int(match[2]))
    return None


def _ahead(day: date, count: int, unit: str) -> date:
    if unit in "dw":
        return day + timedelta(days=count * (7 if unit == "w" else 1))
    return day + (relativedelta(months=count) if unit == "m" else relativedelta(years=count))


def _before(form: str, day: date) -> date | None:
    """The day before the first day that a form names. "Before Friday", said on a Friday, means the
    next Friday."""
    found = None if form.startswith("before") else _resolve(form, day, form.startswith("end"))
    if found == day and form.startswith("weekday"):
        found += timedelta(days=7)
    return found and found - timedelta(days=1)


def _next_weekday(day: date, weekday: int) -> date:
    return day + timedelta(days=(weekday - day.weekday()) % 7)


def _day_of_month(day: date, of_month: int) -> date | None:
    firsts = (day.replace(day=1) + relativedelta(months=n) for n in range(_TWO_MONTHS + 1))
    fitting = (
        first.replace(day=of_month)
        for first in firsts
        if of_month <= monthrange(first.year, first.month)[1]
    )
    return next((found for found in fitting if found >= day), None)


def _next_period(day: date, unit: str, last: bool) -> date:
    if unit == "week":
        return _next_weekday(day, 6) + timedelta(days=7 if last else 1)
    if unit == "year":
        return date(day.year + 1, 12, 31) if last else date(day.year + 1, 1, 1)
    months = 1 if unit == "month" else 3 - (day.month - 1) % 3
    first = day.replace(day=1) + relativedelta(months=months)
    end = first if unit == "month" else first + relativedelta(months=2)
    return _month_end(end.year, end.month) if last else first


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _next_end(day: date, month: int) -> date:
    end = _month_end(day.year, month)
    return end if end >= day else _month_end(day.year + 1, month)


def _end(day: date, what: str) -> date | None:
    if what == "week":
        return _next_weekday(day, 6)
    if what == "month":
        return _month_end(day.year, day.month)
    if what == "year":
        return date(day.year, 12, 31)
    if what in ("quarter", "q"):
        return _month_end(day.year, (day.month + 2) // 3 * 3)
    named = _quarter_or_season(day, what)
    return named and named[1]


def _quarter_or_season(day: date, name: str) -> tuple[date, date] | None:
    """The first and the last day of the one that is not over yet."""
    if match := re.fullmatch(r"q([1-4])", name):
        end = _next_end(day, 3 * int(match[1]))
        return end.replace(month=end.month - 2, day=1), end
    name = "autumn" if name == "fall" else name
    if name not in _SEASONS:
        return None
    place = list(_SEASONS).index(name)
    first, following = _SEASONS[name], list(_SEASONS.values())[place - 3]
    over = _next_day(day + timedelta(days=1), *following)
    if over is None:
        return None
    year = over.year - (first > following)
    return date(year, *first), over - timedelta(days=1)


def _next_day(day: date, month: int, of_month: int) -> date | None:
    date(2000, month, of_month)  # a leap year: refuses 13-01 and 02-30, allows 02-29
    for year in range(day.year, min(day.year + 9, _LAST_YEAR + 1)):
        if of_month <= monthrange(year, month)[1] and date(year, month, of_month) >= day:
            return date(year, month, of_month)
    return None
