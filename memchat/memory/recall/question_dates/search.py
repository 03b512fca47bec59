"""Questions that name days: the rows of those days are candidates too, and score higher.

They are a third list of candidates beside those by vector and by words, and a share of the score.
Only where a question asks for a time alone, and there are rows at that time, are other rows left
out: a misread date costs some places and never the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.recall.question_dates.parse import DateRange, date_range
from memchat.store import by_day, keywords

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
        tx: Connection,
        kind: by_day.Kind,
        app_ids: Sequence[int],
        without: Collection[int] = (),
        only: Collection[int] | None = None,
    ) -> list[int]:
        """The rows of those days, the nearest first; never one of ``without``, and none but those
        of ``only`` where that is given."""
        limit = MOST if only is None else ALL
        found: list[int] = []
        if kind == "memories" and self.range.kind == "future":
            found += by_day.ending(tx, app_ids, self.range.start, limit, without)
        if self.range.kind == "past" or self.range.start <= self.today:
            period = self._midnight(self.range.start), self._midnight(self._day_after())
            found += by_day.said(tx, kind, app_ids, period, limit, without)
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
