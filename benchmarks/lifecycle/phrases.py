"""Expiry phrases right: every phrase of the file, in five zones, at instants chosen to hurt.

The right day is found here by counting days on the calendar from the local day that is written
beside each instant, so it shares nothing with the code it judges.
"""

from __future__ import annotations

import json
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.lifecycle.figure import Figure
from memchat.learn.candidate import Candidate, Quote, Turn, Verdict
from memchat.learn.gate import judge

PHRASES = Path(__file__).parents[2] / "tests" / "data" / "expiry_phrases.jsonl"
INSTANTS = {
    "Europe/Berlin": """
        2026-11-20T10:00 2026-11-20  2026-03-29T00:30 2026-03-29  2026-10-25T00:30 2026-10-25
        2026-12-31T22:59 2026-12-31  2026-12-31T23:00 2027-01-01  2026-01-31T12:00 2026-01-31
        2024-02-29T12:00 2024-02-29  2019-06-15T08:00 2019-06-15  2026-05-31T21:59 2026-05-31
    """,
    "Pacific/Auckland": """
        2026-11-20T10:59 2026-11-20  2026-11-20T11:00 2026-11-21  2026-04-04T14:30 2026-04-05
        2026-09-26T14:30 2026-09-27  2026-12-31T10:59 2026-12-31  2026-12-31T11:00 2027-01-01
        2024-02-28T12:00 2024-02-29  2018-07-01T11:59 2018-07-01
    """,
    "Asia/Kolkata": """
        2026-11-20T18:29 2026-11-20  2026-11-20T18:30 2026-11-21  2026-12-31T18:30 2027-01-01
        2024-02-29T18:29 2024-02-29  2017-05-31T18:30 2017-06-01  2026-03-08T06:00 2026-03-08
    """,
    "America/New_York": """
        2026-11-20T04:59 2026-11-19  2026-11-20T05:00 2026-11-20  2026-03-08T04:59 2026-03-07
        2026-03-08T07:30 2026-03-08  2026-11-01T05:30 2026-11-01  2026-11-02T04:59 2026-11-01
        2027-01-01T04:59 2026-12-31  2024-03-01T04:59 2024-02-29  2015-08-09T15:00 2015-08-09
    """,
    "Pacific/Honolulu": """
        2026-11-20T09:59 2026-11-19  2026-11-20T10:00 2026-11-20  2027-01-01T09:59 2026-12-31
        2024-03-01T09:59 2024-02-29  2016-10-31T23:00 2016-10-31  2026-08-14T10:00 2026-08-14
    """,
}
"""UTC instants, each with the day it is there, written by hand: midnights, summer time beginning
and ending, the year's end, 29 February, and chats of years ago."""


@dataclass(frozen=True, slots=True)
class Instant:
    """When something was said, where, and which day that was there."""

    zone: str
    said_at: datetime
    day: date


def instants() -> Iterator[Instant]:
    for zone, table in INSTANTS.items():
        words = table.split()
        for at, day in zip(words[::2], words[1::2], strict=True):
            yield Instant(zone, datetime.fromisoformat(f"{at}:00+00:00"), date.fromisoformat(day))


def phrases() -> list[dict[str, Any]]:
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def expected(rule: str, day: date) -> date:
    """The last day by a rule of the file, such as ``weekday 5``, ``month 5`` or ``date 08-14``."""
    name, _, number = rule.partition(" ")
    if name == "on":
        return date.fromisoformat(number)
    if name == "days":
        return day + timedelta(days=int(number))
    if name in ("months", "years"):
        return _same_day(day, int(number) * (12 if name == "years" else 1))
    ends: dict[str, Callable[[date], bool]] = {
        "weekday": lambda d: d.isoweekday() == int(number),
        "week-end": lambda d: d.isoweekday() == 7,
        "month-end": lambda d: _last_of_month(d),
        "year-end": lambda d: f"{d:%m-%d}" == "12-31",
        "month": lambda d: d.month == int(number) and _last_of_month(d),
        "quarter": lambda d: d.month == 3 * int(number) and _last_of_month(d),
        "date": lambda d: f"{d:%m-%d}" == number,
    }
    while not ends[name](day):
        day += timedelta(days=1)
    return day


def _last_of_month(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


def _same_day(day: date, months: int) -> date:
    year, month = day.year, day.month
    for _ in range(months):
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def verdict(row: dict[str, Any], when: Instant) -> Verdict:
    """What the whole gate says of a phrase, said then and there."""
    candidate = Candidate(
        quotes=(Quote(msg="u1", text=row["quote"]),),
        type="fact",
        key=row["key"],
        value=row["value"],
        until_said=row["until_said"],
        until=row["until"],
        from_said=row.get("from_said"),
        starts=row.get("from"),
    )
    turn = Turn("u1", "user", row["text"], when.said_at.astimezone(ZoneInfo(when.zone)), 1)
    return judge(candidate, [turn], (), prompt_text="", injected=())


def is_right(row: dict[str, Any], when: Instant) -> bool:
    """Whether the gate's answer is the one the file asks for, to the day. ``review`` stands for
    whatever asks: a person, or the second look."""
    given, expect = verdict(row, when), row["expect"]
    if expect == "refuse":
        return given.outcome == "refuse" and given.until is None and bool(given.reasons)
    if expect == "review":
        return given.outcome != "refuse" and given.until is None
    last = None if expect is None else expected(expect, when.day)
    return given.outcome == "accept" and given.until == last


def measure() -> list[Figure]:
    """Expiry phrases right, counted over phrases, zones and instants."""
    moments, rows = list(instants()), phrases()
    right = sum(is_right(row, when) for row in rows for when in moments)
    total = len(rows) * len(moments)
    languages = len({row["lang"] for row in rows})
    note = f"{len(rows)} phrases in {languages} languages, {len(moments)} instants in 5 zones"
    return [Figure("expiry phrases right", f"{right} of {total}", "all", right == total, note=note)]
