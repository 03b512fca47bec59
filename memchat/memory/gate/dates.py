"""Dates from the language-free forms the extraction model gives, counted from the message's day."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

from memchat.errors import InputError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SEASON_ENDS = {"spring": (6, 20), "summer": (9, 22), "autumn": (12, 20), "fall": (12, 20)}
_SEASON_ENDS["winter"] = (3, 19)
_LAST_YEAR = 9999


def until_date(code: str, said_at: datetime, zone: ZoneInfo) -> date:
    """The last day a code names, seen from the day of ``said_at`` in ``zone``.

    Forms: ``+3d +2w +1m +1y``, ``weekday:fri``, ``end:week|month|year|q2|summer``, ``month:may``,
    ``today``, ``tomorrow``, ``YYYY-MM-DD``, ``MM-DD``. A weekday and a day without a year are the
    next ones, that day included. Seasons are the northern ones. Raises InputError for the rest.
    """
    day = said_at.astimezone(zone).date()
    form = code.strip().casefold()
    try:
        found = _resolve(form, day)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InputError(
            f"{code.strip()[:40]!r} is not a date form such as +2w, end:month or 2027-03-14"
        )
    return found


def _resolve(form: str, day: date) -> date | None:
    if form in ("today", "tomorrow"):
        return day + timedelta(days=form == "tomorrow")
    if match := re.fullmatch(r"\+([0-9]{1,4})([dwmy])", form):
        return _ahead(day, int(match[1]), match[2])
    if match := re.fullmatch(r"weekday:([a-z]{3})[a-z]*", form):
        return _next_weekday(day, _DAYS.index(match[1]))
    if match := re.fullmatch(r"month:([a-z]{3})[a-z]*", form):
        return _next_end(day, _MONTHS.index(match[1]) + 1)
    if match := re.fullmatch(r"end:([a-z]+[1-4]?)", form):
        return _end(day, match[1])
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", form):
        return date.fromisoformat(form)
    if match := re.fullmatch(r"([0-9]{2})-([0-9]{2})", form):
        return _next_day(day, int(match[1]), int(match[2]))
    return None


def _ahead(day: date, count: int, unit: str) -> date:
    if unit in "dw":
        return day + timedelta(days=count * (7 if unit == "w" else 1))
    return day + (relativedelta(months=count) if unit == "m" else relativedelta(years=count))


def _next_weekday(day: date, weekday: int) -> date:
    return day + timedelta(days=(weekday - day.weekday()) % 7)


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
    if match := re.fullmatch(r"q([1-4])", what):
        return _next_end(day, 3 * int(match[1]))
    if what in ("quarter", "q"):
        return _month_end(day.year, (day.month + 2) // 3 * 3)
    if what in _SEASON_ENDS:
        return _next_day(day, *_SEASON_ENDS[what])
    return None


def _next_day(day: date, month: int, of_month: int) -> date | None:
    date(2000, month, of_month)  # a leap year: refuses 13-01 and 02-30, allows 02-29
    for year in range(day.year, min(day.year + 9, _LAST_YEAR + 1)):
        if of_month <= monthrange(year, month)[1] and date(year, month, of_month) >= day:
            return date(year, month, of_month)
    return None
