"""Which chunks are read to answer a question.

A search tells what surely has to do with a question, and for short memos often misses what does. So
less sure chunks are read as well, and the model leaves out what does not belong; but where nothing
has a word or the meaning of the question, no model is asked. Days that the question names come
first. They are never the only ones, as the days may be those of the thing and not of the note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memchat.memory.embedding.space import Question
from memchat.memory.recall.question_dates.parse import DateRange
from memchat.memory.recall.question_dates.search import QuestionDates
from memchat.memory.recall.search import Recall
from memchat.notes import search
from memchat.store import notes
from memchat.store.notes import Filter
from memchat.types import NoteHit, Scope

MOST = 999
"""Chunks that are read at most."""
PER_NOTE = 3
"""Chunks of one note among the best, so that a long document leaves room for others."""
FROM_OTHER_DAYS = 3
"""Chunks from other days that are read beside those of the days that a question names."""
_NEAR = 0.5
"""The share of the floor for confident hits from which a chunk is near enough to be read."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """The chunks to read, best first. ``days`` are those that the question names, or None; then
    ``hits`` are from these days and ``others`` from other ones."""

    hits: Sequence[NoteHit] = ()
    others: Sequence[NoteHit] = ()
    days: DateRange | None = None
    degraded: str | None = None

    @property
    def nothing(self) -> bool:
        """Whether no note speaks of what is asked."""
        return not self.hits and not self.others

    def of(self, note_ids: Container[int]) -> Relevant:
        """What is of these notes: others were deleted since they were found."""
        return replace(
            self,
            hits=[hit for hit in self.hits if hit.note_id in note_ids],
            others=[hit for hit in self.others if hit.note_id in note_ids],
        )


@dataclass
class Finder:
    """Finds what to read for one question, in the notes that a filter lets through."""

    recall: Recall
    scope: Scope
    question: Question
    wanted: Filter
    now: datetime
    zone: ZoneInfo
    degraded: str | None = None
    """Why the last search did not compare all vectors, or None."""

    def best(self, limit: int) -> Relevant:
        """The ``limit`` best chunks, for an answer; more where all of some days is asked for."""
        days = self._days()
        if days is None:
            found = self._search(self.wanted)
            hits = _capped(self._readable(found), limit) if any(map(speaks, found)) else []
            return Relevant(hits, degraded=self.degraded)
        if days.only:
            return self.all()
        hits = _capped(self._search(self._within(days)), limit)
        found = self._elsewhere(days)
        others = _capped(found, FROM_OTHER_DAYS if hits else limit)
        return Relevant(hits, others, days, self.degraded)

    def all(self) -> Relevant:
        """All chunks that may have to do with the question, for a summary. What the search did not
        find comes last, the latest first: search misses much of a subject."""
        days = self._days()
        if days is None:
            found = self._search(self.wanted)
            every = self._completed(found, self.wanted) if any(map(speaks, found)) else ()
            return Relevant(every, degraded=self.degraded)
        within = self._within(days)
        if days.only:
            return Relevant(self._completed([], within, confident=True), (), days)
        hits = self._completed(self._search(within), within)
        others = [hit for hit in self._elsewhere(days) if hit.confident]
        return Relevant(hits, others, days, self.degraded)

    def _days(self) -> DateRange | None:
        """The days that the question names, if they can be days of notes and no others are set."""
        if self.wanted.since is not None or self.wanted.until is not None:
            return None
        dates = QuestionDates.of(self.question.text, self.now, self.zone)
        return dates.range if dates is not None and dates.range.start <= dates.today else None

    def _search(self, wanted: Filter) -> list[NoteHit]:
        found = search.find(self.recall, self.scope, self.question, MOST, wanted=wanted)
        self.degraded = found.degraded
        return list(found.hits)

    def _elsewhere(self, days: DateRange) -> list[NoteHit]:
        """What other days have on the question."""
        found = self._search(self.wanted)
        elsewhere = [hit for hit in found if not days.holds(hit.created_at, self.zone)]
        return [hit for hit in elsewhere if speaks(hit)]

    def _readable(self, hits: Iterable[NoteHit]) -> list[NoteHit]:
        space = self.question.space
        near = _NEAR * space.embedder.service.message_floor if space is not None else 1.0
        return [hit for hit in hits if speaks(hit) or (hit.cosine or 0.0) >= near]

    def _completed(
        self, found: Sequence[NoteHit], wanted: Filter, *, confident: bool = False
    ) -> list[NoteHit]:
        """These, and behind them all others that the filter lets through, the latest first."""
        known = {hit.chunk_id for hit in found}
        parts = {"score": 0.0, "cosine": None, "bm25": None, "confident": confident}
        with self.recall.open_search(self.scope, self.question, 0.0, keep=False) as opened:
            own = opened.context.scope.own
            ids = notes.chunk_ids(opened.tx, [own], wanted) if own is not None else []
            lacking = dict.fromkeys((i for i in ids if i not in known), parts)
            others = notes.hits(opened.tx, lacking, with_text=False)
        others.sort(key=lambda hit: (hit.created_at, hit.note_id, -hit.offset), reverse=True)
        return [*found, *others][:MOST]

    def _within(self, days: DateRange) -> Filter:
        start = self._midnight(days.start)
        after = days.end + timedelta(days=1) if days.end < date.max else date.max
        end = self._midnight(after) - timedelta(microseconds=1)
        return replace(self.wanted, since=start, until=end)

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone)


def speaks(hit: NoteHit) -> bool:
    """Whether a chunk is sure to have to do with the question, or has a word of it."""
    return hit.confident or hit.bm25 is not None


def _capped(hits: Iterable[NoteHit], limit: int) -> list[NoteHit]:
    """The first ``limit``, few of each note; more of a note where other notes leave room."""
    counts: Counter[int] = Counter()
    first: list[NoteHit] = []
    rest: list[NoteHit] = []
    for hit in hits:
        (first if counts[hit.note_id] < PER_NOTE else rest).append(hit)
        counts[hit.note_id] += 1
    return [*first, *rest][:limit]
