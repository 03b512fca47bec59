"""Searches notes: for the person, for a question to be answered from them, and for a chat's prompt.

Chunks are scored as facts are, by vectors and words together. What a filter leaves out takes no
place of what it lets through. A chat's prompt is given only passages that surely fit the message,
as nobody asked for them, and under a token limit of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from memchat.config import Settings
from memchat.db.database import Database
from memchat.language.secrets import mask
from memchat.language.text import content_words, holds_word
from memchat.notes import rows
from memchat.notes.chunking import SMALLEST, Profile, chunks
from memchat.notes.rows import Filter
from memchat.prompts import Prompts
from memchat.search import ranking as search_ranking
from memchat.search import render
from memchat.search.embed import Question
from memchat.search.question_dates import DateRange, date_range
from memchat.search.ranking import CANDIDATES, ScoreParts
from memchat.search.search import Recall
from memchat.tokens import estimate_tokens
from memchat.types import Hit, NoteHit, NotesFound, Scope


def find(
    recall: Recall,
    scope: Scope,
    question: Question,
    limit: int,
    *,
    wanted: Filter,
    ranking: str | None = None,
    min_score: float | None = None,
    with_text: bool = False,
) -> NotesFound:
    """The chunks that answer a question, best first, confident ones before the others. ``ranking``
    is weighted or rrf; None for what the settings say."""
    with recall.open_search(scope, question, 0.0) as search:
        own = search.tx.own
        if not own or limit < 1:
            return NotesFound((), search.question.degraded)
        search = replace(search, ids=[own], ranking=ranking or search.ranking)
        if wanted != Filter():
            only = frozenset(rows.chunk_ids(search.tx, [own], wanted))
            search = replace(search, only=only)
        found = search.found("chunk", max(limit, CANDIDATES))
        best = sorted(found, key=lambda i: (not found[i].confident, -found[i].score, i))
        good = [i for i in best if min_score is None or found[i].score >= min_score]
        hits = rows.hits(search.tx, {i: found[i] for i in good[:limit]}, with_text=with_text)
        lacking = len(search.unembedded("chunk"))
        degraded = search.question.degraded or search_ranking.reason(passages=lacking)
        return NotesFound(tuple(hits), degraded)


MOST_PASSAGES = 999
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
    """Finds what to read for one question, in the notes that a filter lets through.

    A search gives what surely has to do with a question, and for short memos often misses what
    does. So less sure chunks are read as well, and the model leaves out what does not belong; but
    where nothing has a word or the meaning of the question, no model is asked. Days that the
    question names come first. They are never the only ones, as the days may be those of the thing
    and not of the note.
    """

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
        if self.wanted.topic is not None:  # it is the subject, whatever words the question has
            return Relevant(self._completed([], self.wanted, confident=True))
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
        days = date_range(self.question.text, self.now, self.zone)
        today = self.now.astimezone(self.zone).date()
        return days if days is not None and days.start <= today else None

    def _search(self, wanted: Filter) -> list[NoteHit]:
        found = find(self.recall, self.scope, self.question, MOST_PASSAGES, wanted=wanted)
        self.degraded = found.degraded
        return list(found.hits)

    def _elsewhere(self, days: DateRange) -> list[NoteHit]:
        """What other days have on the question."""
        found = self._search(self.wanted)
        elsewhere = [hit for hit in found if not days.holds(hit.created_at, self.zone)]
        return [hit for hit in elsewhere if speaks(hit)]

    def _readable(self, hits: Iterable[NoteHit]) -> list[NoteHit]:
        space = self.question.space
        near = _NEAR * space.service.message_floor if space is not None else 1.0
        return [hit for hit in hits if speaks(hit) or (hit.cosine or 0.0) >= near]

    def _completed(
        self, found: Sequence[NoteHit], wanted: Filter, *, confident: bool = False
    ) -> list[NoteHit]:
        """These, and behind them all others that the filter lets through, the latest first."""
        known = {hit.chunk_id for hit in found}
        parts = ScoreParts(0.0, None, None, confident=confident)
        with self.recall.open_search(self.scope, self.question, 0.0, keep=False) as opened:
            own = opened.tx.own
            ids = rows.chunk_ids(opened.tx, [own], wanted) if own else []
            lacking = dict.fromkeys((i for i in ids if i not in known), parts)
            others = rows.hits(opened.tx, lacking, with_text=False)
        others.sort(key=lambda hit: (hit.created_at, hit.note_id, -hit.offset), reverse=True)
        return [*found, *others][:MOST_PASSAGES]

    def _within(self, days: DateRange) -> Filter:
        start, end = days.instants(self.zone)
        return replace(self.wanted, since=start, until=end - timedelta(microseconds=1))


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


def excerpt(text: str, question: str, most_tokens: int, title: str = "") -> str:
    """The part of a text that holds most words of a question, with no more than ``most_tokens``
    (estimated); a word that few parts hold counts more. Words that the note's ``title`` holds count
    only where there are no others: they say which note is meant, not where in it."""
    if estimate_tokens(text) <= most_tokens:
        return text
    profile = Profile(max(most_tokens, SMALLEST), 0)
    parts = [text[one.start : one.end] for one in chunks(text, profile, estimate_tokens)]
    words = content_words(question)
    among = [
        [holds_word(part, word) for part in parts]
        for word in [word for word in words if not holds_word(title, word)] or words
    ]
    scores = [sum(1 / sum(held) for held in among if held[n]) for n in range(len(parts))]
    return parts[scores.index(max(scores))]


MOST_TOKENS = 300
"""Tokens of the whole block, as they are estimated."""
MOST_NOTES = 3
"""Passages, each of another note."""
_SEARCHED = 10
_SURE = 1.5
"""So many times the floor of the service is near enough without a word in common."""
_WORDS = 0.4
"""The share of the message's words that is enough above the floor, or without vectors."""
_LEAST_WORDS = 2
"""Words in common that are enough without vectors."""
_WEAK = 0.5
"""Passages are left out below this share of the best one's score."""


@dataclass(frozen=True, slots=True)
class NotesBlock:
    """The passages that a prompt is given. Reads only."""

    database: Database
    settings: Settings
    prompts: Prompts
    recall: Recall

    def for_prompt(
        self, scope: Scope, question: Question, *, most_tokens: int = MOST_TOKENS
    ) -> tuple[Hit, ...]:
        """What to give for a message, the best first; nothing where that is switched off.

        The block has no more than ``MOST_TOKENS``, nor than ``most_tokens``.
        """
        with self.database.read(scope) as tx:
            if not (self.settings.recall_notes and rows.any_in_app(tx, tx.own)):
                return ()
        found = find(self.recall, scope, question, _SEARCHED, wanted=Filter())
        hits = self._without_secrets([hit for hit in found.hits if hit.confident])
        sure = [hit for hit in hits if _is_sure(hit, question)]
        first: dict[int, NoteHit] = {}
        for hit in sure:
            if hit.score >= _WEAK * sure[0].score:
                first.setdefault(hit.note_id, hit)
        chosen = [*first.values()][:MOST_NOTES]
        return self._fitting(chosen, question.text, min(most_tokens, MOST_TOKENS))

    def render(self, mark: str, given: Sequence[Hit]) -> str:
        """The block as it stands in a prompt; empty without passages."""
        lines = "\n".join(render.bullet(hit) for hit in given)
        return self.prompts.render("notes", mark=mark, lines=lines) if given else ""

    def _without_secrets(self, hits: Sequence[NoteHit]) -> list[NoteHit]:
        """Hits with the texts of their chunks as a model may read them."""
        with self.database.read() as tx:
            texts = rows.masked_texts(tx, [hit.chunk_id for hit in hits])
        return [replace(h, text=texts[h.chunk_id]) for h in hits if h.chunk_id in texts]

    def _fitting(self, chosen: Sequence[NoteHit], question: str, most: int) -> tuple[Hit, ...]:
        """Each as long as its part of the tokens allows; what one leaves goes to the next."""
        given: list[Hit] = []
        left = most - estimate_tokens(self.render(render.WIDEST_MARK, [_EMPTY]))
        for number, hit in enumerate(chosen):
            one = self._as_hit(hit, question, left // (len(chosen) - number))
            block = self.render(render.WIDEST_MARK, [*given, one]) if one else ""
            if one is not None and estimate_tokens(block) <= most:
                given.append(one)
                left -= one.tokens
        return tuple(given)

    def _as_hit(self, hit: NoteHit, question: str, most: int) -> Hit | None:
        """A passage as a line of a prompt; None where nothing of it fits."""
        title = " ".join(mask(hit.title or "Untitled").split())
        head = f"“{title}”, {render.day(hit.created_at, self.settings.zone)}: "
        room = most - estimate_tokens(render.escaped(f"- {head}")) - 1
        words = " ".join(excerpt(hit.text or "", question, room, title).split())
        if room < 1 or not words:
            return None
        text = render.escaped(f"{head}{words}")
        return Hit(
            kind="note",
            id=hit.note_id,
            text=text,
            score=hit.score,
            cosine=hit.cosine,
            bm25=hit.bm25,
            channel=ScoreParts(hit.score, hit.cosine, hit.bm25).channel,
            tokens=estimate_tokens(f"- {text}\n"),
            said_at=hit.created_at,
            chunk_id=hit.chunk_id,
        )


_EMPTY = Hit("note", 0, "", 0.0, None, None, "", 0)


def _is_sure(hit: NoteHit, question: Question) -> bool:
    """Whether a hit is near by meaning, or less near and holds the message's words; or is of the
    days that a message asks about and nothing else.

    Measured with MiniLM on 50 memos and 250 messages: see docs/recall.md.
    """
    if hit.cosine is None and hit.bm25 is None:
        return True  # confident by its day alone
    words = content_words(question.text)
    held = sum(holds_word(f"{hit.title or ''}\n{hit.text or ''}", word) for word in words)
    share = held / len(words) if words else 0.0
    space = question.space if question.vector is not None else None
    if hit.cosine is None or space is None:
        return share >= _WORDS and held >= _LEAST_WORDS
    floor = space.service.message_floor
    return hit.cosine >= _SURE * floor or (hit.cosine >= floor and share >= _WORDS)
