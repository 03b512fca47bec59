"""Finding what helps with a message: pinned facts, then hybrid search, under a token budget.

score = 0.7 x cosine + 0.3 x BM25 / the query's best BM25. Each list gives its candidates, and both
scores are filled in over their union: looking the missing one up is worth more than any tuning.
Nothing above the floor is a normal answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.memory import render
from memchat.memory.gate.text import normal_value
from memchat.memory.meaning import Meaning, Question, shortened
from memchat.prompts import Prompts
from memchat.store import apps, embeddings, keywords, memories, messages, succession
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.succession import Past
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Recalled, Scope, clean_text

CANDIDATES = 20
COSINE_WEIGHT = 0.7
PINNED_MOST = 100
MOMENTS = 5
PAST_MOST = 3
"""Replaced values that a line tells of."""


class Recall:
    """Search over one store. Reads only; what it returns says how each hit was found."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        prompts: Prompts,
        clock: Callable[[], datetime],
        meaning: Callable[[], tuple[Meaning | None, str | None]],
    ) -> None:
        """``meaning`` gives the store's meaning, or None and the reason why there is none."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._meaning = meaning
        self._prompts = prompts

    def question(self, text: str) -> Question:
        """The question with its vector, or with the reason why only words are searched."""
        text = clean_text(text)
        meaning, why_not = self._meaning()
        if meaning is None:
            return Question(shortened(text), degraded=why_not)
        return meaning.question(text)

    def keep(self, tx: Connection, question: Question, now: datetime) -> None:
        """Keep a question's fresh vector among the rows."""
        meaning, _ = self._meaning()
        if meaning is not None and question.vector is not None:
            key = embeddings.query_hash(question.text)
            embeddings.put(tx, meaning.service_id, [(key, question.vector)], now)

    def search(self, scope: Scope, question: Question, limit: int) -> Recalled:
        """The facts that answer a question, best first."""
        with self._database.read() as tx:
            hits = self._hits(tx, apps.find(tx, scope), question, limit)
        return Recalled(tuple(hits), question.degraded, 0, sum(hit.tokens for hit in hits))

    def for_prompt(
        self,
        scope: Scope,
        question: Question,
        *,
        dropped: Sequence[int] = (),
    ) -> Recalled:
        """What to inject for a message: pinned facts, found facts, then earlier turns that fit.

        ``dropped`` are the ids of turns of this very conversation that no longer fit the window;
        they come back here when the message speaks of them. Never above the token budget.
        """
        with self._database.read() as tx:
            scope_ids = apps.find(tx, scope)
            room = self._settings.budget_tokens - render.frame_tokens(self._prompts)
            pinned = _distinct(self._pinned(tx, scope_ids))
            kept = _fitting(pinned, min(room, self._settings.pinned_tokens))
            # A pinned fact without room there may still earn its place by fitting the question.
            limit = max(CANDIDATES, self._settings.top_k) + len(kept)
            found = _distinct([*kept, *self._hits(tx, scope_ids, question, limit)])
            found = found[len(kept) :][: self._settings.top_k]
            moments = self._moments(tx, scope_ids, question, dropped)
        shown = _fitting([*kept, *found, *moments], room)
        wanted = {(hit.kind, hit.id) for hit in (*pinned, *found, *moments)}
        used = sum(hit.tokens for hit in shown)
        return Recalled(tuple(shown), question.degraded, len(wanted) - len(shown), used)

    def _pinned(self, tx: Connection, scope_ids: ScopeIds) -> list[Hit]:
        rows = memories.pinned(tx, scope_ids.ids, self._today(), PINNED_MOST)
        before = succession.replaced(tx, scope_ids.ids, [m.id for m in rows])
        return [
            self._hit(m, before.get(m.id, [])[:1], 1.0, None, None, "pinned")
            for m in self._unshadowed(tx, scope_ids, rows)
        ]

    def _hits(
        self, tx: Connection, scope_ids: ScopeIds, question: Question, limit: int
    ) -> list[Hit]:
        ids = scope_ids.ids
        if not ids or limit < 1:
            return []
        over = memories.expired_ids(tx, ids, self._today())
        wide = max(CANDIDATES, limit)
        words = keywords.query_terms(question.text)
        bm25 = dict(keywords.search(tx, "memories", ids, words, wide + len(over)))
        bm25 = {i: score for i, score in bm25.items() if i not in set(over)}
        cosine: dict[int, float] = {}
        meaning, _ = self._meaning()
        if meaning is not None and question.vector is not None:
            cosine = dict(meaning.index.search(tx, ids, question.vector, wide, over))
            unscored = [i for i in bm25 if i not in cosine]
            cosine |= meaning.index.scores(tx, ids, question.vector, unscored)
            bm25 |= keywords.scores(
                tx, "memories", ids, words, [i for i in cosine if i not in bm25]
            )
        floor = meaning.embedder.service.floor if meaning is not None else 0.0
        passing = self._above_floor(tx, ids, words, cosine, bm25, floor)
        best = max(bm25.values(), default=0.0)
        asked = self._credited(tx, ids, passing, cosine, bm25)
        rows = self._unshadowed(tx, scope_ids, asked)
        before = succession.replaced(tx, ids, [memory.id for memory in rows])
        hits = [
            self._hit(
                memory,
                _worth_telling(before.get(memory.id, []), passing),
                _score(cosine.get(memory.id), bm25.get(memory.id), best, bool(cosine)),
                cosine.get(memory.id),
                bm25.get(memory.id),
                _channel(memory.id in cosine, memory.id in bm25),
            )
            for memory in rows
        ]
        hits.sort(key=lambda h: (-h.score, -(h.said_at or self._clock()).timestamp(), h.id))
        return hits[:limit]

    def _credited(
        self,
        tx: Connection,
        ids: Sequence[int],
        passing: set[int],
        cosine: dict[int, float],
        bm25: dict[int, float],
    ) -> list[Memory]:
        """The memories in use that were found, or stand in the place of a replaced value that was:
        that value's scores are theirs where they are higher."""
        now = succession.present(tx, ids, sorted(passing))
        for found, memory in now.items():
            for scores in (cosine, bm25):
                if found in scores:
                    scores[memory.id] = max(scores[found], scores.get(memory.id, scores[found]))
        today = self._today()
        distinct = {memory.id: memory for memory in now.values()}
        return [m for m in distinct.values() if m.expires_at is None or m.expires_at >= today]

    def _above_floor(
        self,
        tx: Connection,
        ids: Sequence[int],
        words: Sequence[str],
        cosine: dict[int, float],
        bm25: dict[int, float],
        floor: float,
    ) -> set[int]:
        if not cosine:
            return set(bm25)
        passing = {i for i, score in cosine.items() if score >= floor}
        # A row whose vector is still to come has its words to speak for it.
        passing |= {i for i in bm25 if i not in cosine}
        rest = sorted(set(bm25) - passing)
        passing |= keywords.matching_all(tx, "memories", ids, words, rest)
        for word in words:
            if any(c.isdigit() for c in word):
                passing |= keywords.matching_all(tx, "memories", ids, [word], rest)
        return passing

    def _moments(
        self, tx: Connection, scope_ids: ScopeIds, question: Question, dropped: Sequence[int]
    ) -> list[Hit]:
        if not dropped or scope_ids.own is None:
            return []
        words = keywords.query_terms(question.text)
        scores = keywords.scores(tx, "messages", [scope_ids.own], words, dropped)
        best = sorted(scores, key=lambda i: (-scores[i], -i))[:MOMENTS]
        turns = messages.by_ids(tx, best)
        zone = self._settings.zone
        hits = []
        for i in best:
            text = render.moment(turns[i], zone)
            hits.append(
                Hit(
                    kind="message",
                    id=i,
                    text=text,
                    score=scores[i] / scores[best[0]],
                    cosine=None,
                    bm25=scores[i],
                    channel="conversation",
                    tokens=estimate_tokens(f"- {text}\n"),
                    said_at=turns[i].created_at,
                )
            )
        return hits

    def _hit(
        self,
        memory: Memory,
        before: Sequence[Past],
        score: float,
        cosine: float | None,
        bm25: float | None,
        channel: str,
    ) -> Hit:
        text = render.line(memory, self._settings.zone, before)
        return Hit(
            kind="memory",
            id=memory.id,
            text=text,
            score=round(score, 6),
            cosine=cosine,
            bm25=bm25,
            channel=channel,
            tokens=estimate_tokens(f"- {text}\n"),
            memory=memory,
            said_at=memory.said_at,
        )

    def _unshadowed(
        self, tx: Connection, scope_ids: ScopeIds, rows: Sequence[Memory]
    ) -> list[Memory]:
        """Without what the app itself knows better: its own value of a key that holds one."""
        shared = {memory.key for memory in rows if not memory.app and not memory.many}
        if not shared or scope_ids.own is None:
            return list(rows)
        own = memories.single_keys(tx, scope_ids.own, sorted(shared), self._today())
        return [m for m in rows if m.app or m.many or m.key not in own]

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()


def _worth_telling(past: Sequence[Past], passing: set[int]) -> list[Past]:
    """Of the values a memory replaced the latest, and those that were asked for."""
    return [p for n, p in enumerate(past) if n == 0 or p.id in passing][:PAST_MOST]


def _score(cosine: float | None, bm25: float | None, best: float, with_meaning: bool) -> float:
    words = bm25 / best if bm25 is not None and best > 0 else 0.0
    if not with_meaning:
        return words
    return COSINE_WEIGHT * max(cosine or 0.0, 0.0) + (1 - COSINE_WEIGHT) * words


def _channel(by_meaning: bool, by_words: bool) -> str:
    return "both" if by_meaning and by_words else "meaning" if by_meaning else "words"


def _fitting(hits: Sequence[Hit], room: int) -> list[Hit]:
    """Those that fit one after another; a shorter one may take the place a longer one left."""
    kept = []
    for hit in hits:
        if hit.tokens <= room:
            kept.append(hit)
            room -= hit.tokens
    return kept


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Without those that say what an earlier one says: the same key and, but for case, value."""
    first: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.memory is not None:
            first.setdefault((hit.memory.key, normal_value(hit.memory.value)), hit)
    return list(first.values())
