"""What helps with a message: pinned facts, then hybrid search, under a token budget.

``facts`` and ``past`` find, ``scoring`` ranks; here both become one list, or what a prompt is
given. Nothing above the floor is a normal answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.language.text import normal_value
from memchat.memory import fresh, past, render
from memchat.memory.facts import Facts, Found, distinct
from memchat.memory.fresh import UNHURRIED, Fresh
from memchat.memory.meaning import Meaning, Question, shortened
from memchat.memory.past import Moment
from memchat.memory.scoring import CANDIDATES, Search
from memchat.memory.timely import Timely
from memchat.memory.today import as_of
from memchat.prompts import Prompts
from memchat.store import (
    apps,
    embeddings,
    evidence,
    keywords,
    messages,
    muted,
    services,
    sessions,
    succession,
)
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.evidence import Drawn
from memchat.store.memories import FORGOTTEN
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Recalled, Scope, clean_text

RETURNING = 5
"""Turns of this very conversation that come back into its prompt, at most."""
Sense = tuple[Meaning | None, str | None]
"""The store's meaning, or None and the reason why there is none."""
_WEAK = 0.5
"""Of the best moment's score that below which others are left out, though there were room."""


class Recall:
    """Search over one store. What it returns says how each hit was found.

    It writes nothing but the vectors of a few rows that it met without, and waits for no writer.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        prompts: Prompts,
        clock: Callable[[], datetime],
        meaning: Callable[[], Sense],
        at_hand: Callable[[Connection], Sense | None],
    ) -> None:
        """``meaning`` gives the store's meaning, made where it must be; ``at_hand`` the one that is
        made already."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._meaning = meaning
        self._at_hand = at_hand
        self._prompts = prompts
        self._fresh = Fresh(database, clock)

    def question(self, text: str) -> Question:
        """The question with its vector, or with the reason why only words are searched."""
        with self._database.read() as tx:
            known = self.known(tx, text)
        if known is not None:
            return known.answered()
        sense = self._meaning()
        with self._database.read() as tx:
            known = _known(tx, text, sense)
        return known.answered()

    def known(self, tx: Connection, text: str) -> Question | None:
        """The question as far as it is known without asking the embedding service; None where that
        service is not made yet."""
        sense = self._at_hand(tx)
        return None if sense is None else _known(tx, text, sense)

    def keep(self, tx: Connection, question: Question, now: datetime) -> None:
        """Keep a question's vector among the rows, where it is not there yet."""
        if question.meaning is not None and question.vector is not None and not question.kept:
            key = embeddings.query_hash(question.text)
            embeddings.put(tx, question.meaning.service_id, [(key, question.vector)], now)

    def search(self, scope: Scope, question: Question, limit: int) -> Recalled:
        """The facts that answer a question, best first."""
        with self._asking(scope, question, self._settings.embed_patience) as (scope_ids, search):
            facts = self._facts(search.tx, scope_ids)
            hits = facts.told(facts.find(search, limit))
            degraded = _degraded(search)
        return Recalled(tuple(hits), degraded, 0, sum(hit.tokens for hit in hits))

    def find(
        self, scope: Scope, question: Question, limit: int, patience: float = UNHURRIED
    ) -> Recalled:
        """The facts and the moments of past conversations that answer a question, best first.

        A moment that only proves facts of the list gives the best of them its place. ``patience``
        is how many seconds rows without a vector may take to get theirs.
        """
        with self._asking(scope, question, patience, turns=True) as (scope_ids, search):
            wide = max(limit, CANDIDATES)
            facts = self._facts(search.tx, scope_ids)
            found = distinct(facts.find(search, wide))
            place = {fact.memory.id: n for n, fact in enumerate(found)}
            known = {fact.memory.id: fact.memory for fact in found}
            moments = []
            for moment in self._past(scope_ids, search, wide):
                if moment.only_proves(known):
                    best = min(place[i] for i in moment.taught if i in place)
                    score = max(found[best].score, moment.score)
                    found[best] = replace(found[best], score=score)
                else:
                    moments.append(moment)
            both: list[Found | Moment] = [*found, *moments]
            ranked = sorted(both, key=lambda one: -one.score)[:limit]
            told = iter(facts.told([one for one in ranked if isinstance(one, Found)]))
            zone = self._settings.zone
            hits = [next(told) if isinstance(one, Found) else one.told(zone) for one in ranked]
            degraded = _degraded(search, scope_ids.own)
        return Recalled(tuple(hits), degraded, 0, sum(hit.tokens for hit in hits))

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
        patience, keep = self._settings.embed_patience, session_id is not None
        asking = self._asking(scope, question, patience, turns=True, keep=keep)
        with asking as (scope_ids, search):
            tx = search.tx
            room = self._settings.budget_tokens - render.frame_tokens(self._prompts)
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            facts = self._facts(tx, scope_ids, mute)
            place = {memory_id: n for n, memory_id in enumerate(first)}
            profile = distinct(_unmuted(facts.pinned(), mute))
            profile.sort(
                key=lambda fact: (not fact.memory.pinned, place.get(fact.memory.id, len(place)))
            )
            pinned = facts.told(profile)
            kept = _fitting(pinned, min(room, self._settings.pinned_tokens))
            given = {hit.id for hit in kept}
            # A pinned fact without room there may still earn its place by fitting the question.
            limit = max(CANDIDATES, self._settings.top_k) + len(kept) + len(mute)
            hits = _unmuted(facts.find(search, limit), mute)
            others = distinct(hits, besides=[f for f in profile if f.memory.id in given])
            found = facts.told(others[: self._settings.top_k])
            given |= {hit.id for hit in found}
            known = {hit.id: hit.memory for hit in (*kept, *found) if hit.memory is not None}
            said = self._past(scope_ids, search, CANDIDATES, session_id)
            moments = self._moments(scope_ids, search, dropped, mute)
            moments += [
                one.told(self._settings.zone)
                for one in said
                if one.score >= _WEAK * said[0].score
                and not (one.only_proves(known) or one.tells(mute))
                and not any(fact.memory_id in mute for fact in one.facts)
            ]
            degraded = _degraded(search, scope_ids.own)
        shown = _fitting([*kept, *found, *moments], room)
        wanted = {(hit.kind, hit.id) for hit in (*pinned, *found, *moments)}
        used = sum(hit.tokens for hit in shown)
        matched = tuple(fact.memory.id for fact in hits if fact.memory.id in given)
        return Recalled(tuple(shown), degraded, len(wanted) - len(shown), used, matched)

    def pinned(self, scope: Scope, session_id: int | None = None) -> list[Hit]:
        """The profile and preferences that may be pinned, the most confirmed first."""
        with self._database.read() as tx:
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            facts = self._facts(tx, apps.find(tx, scope), mute)
            return facts.told(distinct(_unmuted(facts.pinned(), mute)))

    def _facts(
        self, tx: Connection, scope_ids: ScopeIds, mute: Collection[int] = frozenset()
    ) -> Facts:
        return Facts(tx, scope_ids, self._today(), self._settings.zone, mute)

    @contextmanager
    def _asking(
        self,
        scope: Scope,
        question: Question,
        patience: float,
        *,
        turns: bool = False,
        keep: bool = True,
    ) -> Iterator[tuple[ScopeIds, Search]]:
        """A search over one snapshot of a scope, in which a few rows that had no vector have one;
        these are kept when it is over, where ``keep`` says so."""
        with self._database.read() as tx:
            scope_ids = apps.find(tx, scope)
            search = self._searching(tx, scope_ids, _standing(tx, question))
            made = self._fresh.made(search, scope_ids.own if turns else None, patience)
            yield scope_ids, replace(search, fresh=made) if made.gaps else search
        if keep:
            self._fresh.keep(made)

    def _searching(self, tx: Connection, scope_ids: ScopeIds, question: Question) -> Search:
        words = keywords.query_terms(question.text)
        timely = Timely.of(question.text, self._clock(), self._settings.zone)
        days = timely.words if timely else frozenset()
        return Search(
            tx,
            scope_ids.ids,
            question,
            words,
            frozenset(word for word in words if word not in days),
            question.meaning,
            timely,
            self._settings.ranking,
        )

    def _past(
        self, scope_ids: ScopeIds, search: Search, limit: int, session_id: int | None = None
    ) -> list[Moment]:
        """What was said in other conversations of the app, each thing once."""
        if scope_ids.own is None or not sessions.any_in(search.tx, scope_ids.own):
            return []
        search = replace(search, ids=[scope_ids.own])
        first: dict[str, Moment] = {}
        now = as_of(search.tx, search.ids, self._today())
        found = past.find(search, now, limit=limit, without_session=session_id)
        for moment in found:
            first.setdefault(normal_value(moment.turn.content), moment)
        return list(first.values())

    def _moments(
        self, scope_ids: ScopeIds, search: Search, dropped: Sequence[int], mute: Collection[int]
    ) -> list[Hit]:
        """Turns of this very conversation that no longer fit its window, by their words."""
        if not dropped or scope_ids.own is None:
            return []
        tx, search = search.tx, replace(search, ids=[scope_ids.own])
        matches = search.matches("messages", replies=True)
        scores = matches.of(search.by_words(matches, dropped))
        drawn = evidence.drawn(tx, list(scores))
        barred = _barred(tx, scope_ids, drawn, mute)
        scores = {i: score for i, score in scores.items() if i not in barred}
        best = sorted(scores, key=lambda i: (-scores[i], -i))[:RETURNING]
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
                    tells=tuple((f.memory_id, f.key, f.value) for f in drawn if f.message_id == i),
                )
            )
        return hits

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()


def _known(tx: Connection, text: str, sense: Sense) -> Question:
    text, (meaning, why_not) = shortened(clean_text(text)), sense
    return Question(text, degraded=why_not) if meaning is None else meaning.known(tx, text)


def _degraded(search: Search, own: int | None = None) -> str | None:
    """Why meaning did not take part, or for what it could not; with ``own`` for its turns too."""
    if search.question.degraded is not None:
        return search.question.degraded
    turns = () if own is None else replace(search, ids=[own]).waiting("messages")
    return fresh.lacking(len(search.waiting("memories")), len(turns))


def _standing(tx: Connection, question: Question) -> Question:
    """The question, without its vector where that is of a service removed since it was made."""
    meaning = question.meaning
    if meaning is None or services.stands(tx, meaning.service_id):
        return question
    why = "searched by words only: the embedding service was changed just now; ask again"
    return Question(question.text, degraded=why)


def _barred(
    tx: Connection, scope_ids: ScopeIds, drawn: Sequence[Drawn], mute: Collection[int]
) -> set[int]:
    """The turns that taught what is being forgotten, or what a person called not relevant here."""
    now = succession.present(tx, scope_ids.ids, sorted({fact.memory_id for fact in drawn}))
    out = {i for i, memory in now.items() if memory.id in mute}.union(mute)
    return {f.message_id for f in drawn if f.inactive_reason == FORGOTTEN or f.memory_id in out}


def _fitting(hits: Sequence[Hit], room: int) -> list[Hit]:
    """Those that fit one after another; a shorter one may take the place a longer one left."""
    kept = []
    for hit in hits:
        if hit.tokens <= room:
            kept.append(hit)
            room -= hit.tokens
    return kept


def _unmuted(facts: Sequence[Found], mute: set[int]) -> list[Found]:
    """Without those that a person called not relevant here."""
    return [fact for fact in facts if fact.memory.id not in mute]
