"""Finding what helps with a message: pinned facts, then hybrid search, under a token budget.

Facts, and moments of past conversations: see ``scoring`` for how they are ranked and ``past`` for
what a moment is. Nothing above the floor is a normal answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.memory import past, render
from memchat.memory.gate.text import normal_value
from memchat.memory.meaning import Meaning, Question, shortened
from memchat.memory.past import Moment
from memchat.memory.scoring import CANDIDATES, Parts, Search
from memchat.memory.timely import Timely
from memchat.prompts import Prompts
from memchat.store import apps, embeddings, keywords, memories, messages, muted, succession
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.succession import Past
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Recalled, Scope, clean_text

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
            scope_ids = apps.find(tx, scope)
            hits = self._hits(scope_ids, self._searching(tx, scope_ids, question), limit)
        return Recalled(tuple(hits), question.degraded, 0, sum(hit.tokens for hit in hits))

    def find(self, scope: Scope, question: Question, limit: int) -> Recalled:
        """The facts and the moments of past conversations that answer a question, best first.

        A moment that only proves a fact of the list gives that fact its place.
        """
        with self._database.read() as tx:
            scope_ids = apps.find(tx, scope)
            wide = max(limit, CANDIDATES)
            search = self._searching(tx, scope_ids, question)
            facts = _distinct(self._hits(scope_ids, search, wide))
            moments = self._past(scope_ids, search, wide)
        there = {hit.id for hit in facts}
        proofs = [moment for moment in moments if moment.only_proves(there)]
        best: dict[int, float] = {}
        for moment in proofs:
            for fact_id in moment.now.values():
                best[fact_id] = max(best.get(fact_id, 0.0), moment.hit.score)
        hits = [
            replace(hit, score=best[hit.id]) if best.get(hit.id, 0.0) > hit.score else hit
            for hit in facts
        ]
        hits += [moment.hit for moment in moments if moment not in proofs]
        hits = sorted(hits, key=lambda hit: (-hit.score, hit.kind))[:limit]
        return Recalled(tuple(hits), question.degraded, 0, sum(hit.tokens for hit in hits))

    def for_prompt(
        self,
        scope: Scope,
        question: Question,
        *,
        dropped: Sequence[int] = (),
        session_id: int | None = None,
        first: Sequence[int] = (),
    ) -> Recalled:
        """What to inject for a message: pinned facts, found facts, then earlier turns that fit.

        ``dropped`` are the ids of turns of this very conversation, ``session_id``, that no longer
        fit the window; they come back here when the message speaks of them. What a person called
        not relevant in it is left out. ``first`` are pinned facts to take before the others. Never
        above the token budget.
        """
        with self._database.read() as tx:
            scope_ids = apps.find(tx, scope)
            room = self._settings.budget_tokens - render.frame_tokens(self._prompts)
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            pinned = _distinct(_unmuted(self._pinned(tx, scope_ids), mute))
            place = {memory_id: n for n, memory_id in enumerate(first)}
            pinned.sort(key=lambda hit: place.get(hit.id, len(place)))
            kept = _fitting(pinned, min(room, self._settings.pinned_tokens))
            # A pinned fact without room there may still earn its place by fitting the question.
            limit = max(CANDIDATES, self._settings.top_k) + len(kept) + len(mute)
            search = self._searching(tx, scope_ids, question)
            hits = _unmuted(self._hits(scope_ids, search, limit), mute)
            found = _distinct([*kept, *hits])
            found = found[len(kept) :][: self._settings.top_k]
            given = {hit.id for hit in (*kept, *found)}
            said = self._past(scope_ids, search, CANDIDATES, session_id)
            moments = self._moments(scope_ids, search, dropped)
            moments += [one.hit for one in said if not (one.only_proves(given) or one.tells(mute))]
            moments = moments[:MOMENTS]
        shown = _fitting([*kept, *found, *moments], room)
        wanted = {(hit.kind, hit.id) for hit in (*pinned, *found, *moments)}
        used = sum(hit.tokens for hit in shown)
        matched = tuple(hit.id for hit in hits if hit.id in given)
        return Recalled(tuple(shown), question.degraded, len(wanted) - len(shown), used, matched)

    def pinned(self, scope: Scope, session_id: int | None = None) -> list[Hit]:
        """The profile and preferences that may be pinned, the most confirmed first."""
        with self._database.read() as tx:
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            return _distinct(_unmuted(self._pinned(tx, apps.find(tx, scope)), mute))

    def _pinned(self, tx: Connection, scope_ids: ScopeIds) -> list[Hit]:
        rows = memories.pinned(tx, scope_ids.ids, self._today(), PINNED_MOST)
        before = succession.replaced(tx, scope_ids.ids, [m.id for m in rows])
        return [
            self._hit(m, before.get(m.id, [])[:1], Parts(1.0, None, None), "pinned")
            for m in self._unshadowed(tx, scope_ids, rows)
        ]

    def _hits(self, scope_ids: ScopeIds, search: Search, limit: int) -> list[Hit]:
        tx, ids = search.tx, scope_ids.ids
        if not ids or limit < 1:
            return []
        over = memories.expired_ids(tx, ids, self._today())
        found = search.found("memories", max(CANDIDATES, limit), frozenset(over))
        passing = set(found)
        asked = self._credited(tx, ids, found)
        rows = self._unshadowed(tx, scope_ids, asked)
        before = succession.replaced(tx, ids, [memory.id for memory in rows])
        hits = [
            self._hit(
                memory,
                _worth_telling(before.get(memory.id, []), passing),
                found[memory.id],
                found[memory.id].channel,
            )
            for memory in rows
        ]
        hits.sort(key=lambda h: (-h.score, -(h.said_at or self._clock()).timestamp(), h.id))
        return hits[:limit]

    def _searching(self, tx: Connection, scope_ids: ScopeIds, question: Question) -> Search:
        meaning, _ = self._meaning()
        words = keywords.query_terms(question.text)
        timely = Timely.of(question.text, self._clock(), self._settings.zone)
        ranking = self._settings.ranking
        return Search(tx, scope_ids.ids, question, words, meaning, timely, ranking)

    def _credited(
        self, tx: Connection, ids: Sequence[int], found: dict[int, Parts]
    ) -> list[Memory]:
        """The memories in use that were found, or stand in the place of a replaced value that was:
        that value's scores are theirs where they are higher."""
        now = succession.present(tx, ids, sorted(found))
        for found_id, memory in now.items():
            parts = found[found_id]
            if memory.id not in found or parts.score > found[memory.id].score:
                found[memory.id] = parts
        today = self._today()
        distinct = {memory.id: memory for memory in now.values()}
        return [m for m in distinct.values() if m.expires_at is None or m.expires_at >= today]

    def _past(
        self, scope_ids: ScopeIds, search: Search, limit: int, session_id: int | None = None
    ) -> list[Moment]:
        """What was said in other conversations of the app, each thing once."""
        if scope_ids.own is None:
            return []
        search = replace(search, ids=[scope_ids.own])
        zone = self._settings.zone
        first: dict[str, Moment] = {}
        found = past.find(search, zone, self._today(), limit=limit, without_session=session_id)
        for moment in found:
            first.setdefault(normal_value(moment.words), moment)
        return list(first.values())

    def _moments(self, scope_ids: ScopeIds, search: Search, dropped: Sequence[int]) -> list[Hit]:
        """Turns of this very conversation that no longer fit its window, by their words."""
        if not dropped or scope_ids.own is None:
            return []
        tx, search = search.tx, replace(search, ids=[scope_ids.own])
        scores = keywords.scores(tx, "messages", search.ids, search.words, dropped)
        scores = {i: scores[i] for i in search.by_words("messages", scores)}
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
        parts: Parts,
        channel: str,
    ) -> Hit:
        text = render.line(memory, self._settings.zone, before)
        return Hit(
            kind="memory",
            id=memory.id,
            text=text,
            score=round(parts.score, 6),
            cosine=parts.cosine,
            bm25=parts.bm25,
            channel=channel,
            tokens=estimate_tokens(f"- {text}\n"),
            memory=memory,
            said_at=memory.said_at,
            dated=parts.dated,
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


def _fitting(hits: Sequence[Hit], room: int) -> list[Hit]:
    """Those that fit one after another; a shorter one may take the place a longer one left."""
    kept = []
    for hit in hits:
        if hit.tokens <= room:
            kept.append(hit)
            room -= hit.tokens
    return kept


def _unmuted(hits: Sequence[Hit], mute: set[int]) -> list[Hit]:
    """Without the memories that a person called not relevant here."""
    return [hit for hit in hits if hit.kind != "memory" or hit.id not in mute]


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Without those that say what an earlier one says: the same key and, but for case, value."""
    first: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.memory is not None:
            first.setdefault((hit.memory.key, normal_value(hit.memory.value)), hit)
    return list(first.values())
