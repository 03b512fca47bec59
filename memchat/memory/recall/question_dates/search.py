"""A question that names days: what was said, or still holds, on them is looked at too, and first.

It is a third list of candidates beside those by meaning and by words, and a share of the score.
Only where a question is about the time alone, and something lies there, is the rest left out: a
misread date costs some places and never the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.recall.question_dates.parse import Range, asked_about
from memchat.store import by_day, keywords

SHARE = 0.2
"""What lies on the days asked about has this more: less than meaning and words, more than a tie."""
DATED_SHARE = 0.05
"""The same where a date is asked for: texts carry theirs, so meaning and words see it already."""
MOST = 50


@dataclass(frozen=True, slots=True)
class QuestionDates:
    """The days a question asks about, in the user's zone."""

    asked: Range
    zone: ZoneInfo
    today: date

    @classmethod
    def of(cls, text: str, now: datetime, zone: ZoneInfo) -> QuestionDates | None:
        """The days that a question names, or None where it names none."""
        asked = asked_about(text, now, zone)
        return None if asked is None else cls(asked, zone, now.astimezone(zone).date())

    @property
    def words(self) -> frozenset[str]:
        """The words that name the days, as search takes them: no hit has to hold them."""
        return frozenset(keywords.query_terms(self.asked.phrase))

    @property
    def only(self) -> bool:
        """Whether the time is all that is asked about, and no other word or meaning counts."""
        return self.asked.only

    def rows(
        self,
        tx: Connection,
        kind: Literal["memories", "messages"],
        app_ids: Sequence[int],
        without: Collection[int] = (),
    ) -> list[int]:
        """What lies on those days, the nearest first; never one of ``without``."""
        found: list[int] = []
        if kind == "memories" and self.asked.kind == "future":
            found += by_day.ending(tx, app_ids, self.asked.start, MOST, without)
        if self.asked.kind == "past" or self.asked.start <= self.today:
            look = by_day.facts if kind == "memories" else by_day.turns
            start, end = self._midnight(self.asked.start), self._midnight(self._behind())
            found += look(tx, app_ids, start, end, MOST, without)
        return list(dict.fromkeys(found))

    def shares(self, rows: Sequence[int]) -> dict[int, float]:
        """What each of those rows has more: the nearer to the days, or to now, a little more."""
        share = DATED_SHARE if self.asked.by_date else SHARE
        return {i: round(share * (1 - n / (10 * MOST)), 6) for n, i in enumerate(rows)}

    def _behind(self) -> date:
        return self.asked.end + timedelta(days=1) if self.asked.end < date.max else date.max

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone)
