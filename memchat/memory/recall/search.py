"""What answers a question: ``facts`` and ``past`` find, ``scoring`` ranks; here both are one list.

Nothing above the floor is a normal answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.language.text import normal_value
from memchat.memory.embedding.space import EmbeddingSpace, Question, shortened
from memchat.memory.facts.in_force import as_of
from memchat.memory.recall import missing_vectors, past_turns
from memchat.memory.recall.fact_search import FactSearch, FoundFact, distinct
from memchat.memory.recall.missing_vectors import UNHURRIED, MissingVectors
from memchat.memory.recall.past_turns import PastTurn
from memchat.memory.recall.question_dates.search import QuestionDates
from memchat.memory.recall.ranking import CANDIDATES, ScoredSearch
from memchat.store import apps, embeddings, keywords, services, sessions
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.types import Recalled, Scope, clean_text

Sense = tuple[EmbeddingSpace | None, str | None]
"""The store's meaning, or None and the reason why there is none."""


class Recall:
    """Search over one store. What it returns says how each hit was found.

    It writes nothing but the vectors of a few rows that it met without, and waits for no writer.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
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
        self._fresh = MissingVectors(database, clock)

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
        """The facts that answer a question confidently, best first."""
        with self.asking(scope, question, self._settings.embed_patience) as (scope_ids, search):
            facts = self.facts(search.tx, scope_ids)
            hits = facts.told(facts.find(search, limit))
            why = degraded(search)
        return Recalled(tuple(hits), why, 0, sum(hit.tokens for hit in hits))

    def find(
        self, scope: Scope, question: Question, limit: int, patience: float = UNHURRIED
    ) -> Recalled:
        """The facts and the moments of past conversations that answer a question, best first.

        Confident ones come first; where they are fewer than ``limit`` the others follow. A moment
        that only proves facts of the list gives the best of them its place. ``patience`` is how
        many seconds rows without a vector may take to get theirs.
        """
        with self.asking(scope, question, patience, turns=True) as (scope_ids, search):
            wide = max(limit, CANDIDATES)
            facts = self.facts(search.tx, scope_ids)
            found = distinct(facts.find(search, wide, least=limit))
            moments = _placed(found, self.past(scope_ids, search, wide, least=limit))
            both: list[FoundFact | PastTurn] = [*found, *moments]
            ranked = sorted(both, key=lambda one: (not one.confident, -one.score))[:limit]
            told = iter(facts.told([one for one in ranked if isinstance(one, FoundFact)]))
            zone = self._settings.zone
            hits = [next(told) if isinstance(one, FoundFact) else one.told(zone) for one in ranked]
            why = degraded(search, scope_ids.own)
        return Recalled(tuple(hits), why, 0, sum(hit.tokens for hit in hits))

    def facts(
        self, tx: Connection, scope_ids: ScopeIds, mute: Collection[int] = frozenset()
    ) -> FactSearch:
        return FactSearch(tx, scope_ids, self._today(), self._settings.zone, mute)

    @contextmanager
    def asking(
        self,
        scope: Scope,
        question: Question,
        patience: float,
        *,
        turns: bool = False,
        keep: bool = True,
    ) -> Iterator[tuple[ScopeIds, ScoredSearch]]:
        """A search over one snapshot of a scope, in which a few rows that had no vector have one;
        these are kept when it is over, where ``keep`` says so."""
        with self._database.read() as tx:
            scope_ids = apps.find(tx, scope)
            search = self._searching(tx, scope_ids, _standing(tx, question))
            made = self._fresh.made(search, scope_ids.own if turns else None, patience)
            yield scope_ids, replace(search, fresh=made) if made.gaps else search
        if keep:
            self._fresh.keep(made)

    def _searching(self, tx: Connection, scope_ids: ScopeIds, question: Question) -> ScoredSearch:
        words = keywords.query_terms(question.text)
        timely = QuestionDates.of(question.text, self._clock(), self._settings.zone)
        days = timely.words if timely else frozenset()
        return ScoredSearch(
            tx,
            scope_ids.ids,
            question,
            words,
            frozenset(word for word in words if word not in days),
            question.meaning,
            timely,
            self._settings.ranking,
        )

    def past(
        self,
        scope_ids: ScopeIds,
        search: ScoredSearch,
        limit: int,
        session_id: int | None = None,
        least: int = 0,
    ) -> list[PastTurn]:
        """What was said in other conversations of the app, each thing once."""
        if scope_ids.own is None or not sessions.any_in_app(search.tx, scope_ids.own):
            return []
        search = replace(search, ids=[scope_ids.own])
        first: dict[str, PastTurn] = {}
        now = as_of(search.tx, search.ids, self._today())
        found = past_turns.find(search, now, limit=limit, without_session=session_id, least=least)
        for moment in found:
            first.setdefault(normal_value(moment.turn.content), moment)
        return list(first.values())

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()


def _known(tx: Connection, text: str, sense: Sense) -> Question:
    text, (meaning, why_not) = shortened(clean_text(text)), sense
    return Question(text, degraded=why_not) if meaning is None else meaning.known(tx, text)


def degraded(search: ScoredSearch, own: int | None = None) -> str | None:
    """Why meaning did not take part, or for what it could not; with ``own`` for its turns too."""
    if search.question.degraded is not None:
        return search.question.degraded
    turns = () if own is None else replace(search, ids=[own]).waiting("messages")
    return missing_vectors.lacking(len(search.waiting("memories")), len(turns))


def _standing(tx: Connection, question: Question) -> Question:
    """The question, without its vector where that is of a service removed since it was made."""
    meaning = question.meaning
    if meaning is None or services.exists(tx, meaning.service_id):
        return question
    why = "searched by words only: the embedding service was changed just now; ask again"
    return Question(question.text, degraded=why)


def _placed(found: list[FoundFact], moments: Sequence[PastTurn]) -> list[PastTurn]:
    """The moments that are to be shown beside these facts. One that only proves some of them is
    not: the best of these facts takes its place. An unsure fact takes no confident moment's."""
    sure = {fact.memory.id: fact.memory for fact in found if fact.confident}
    every = {fact.memory.id: fact.memory for fact in found}
    place = {fact.memory.id: n for n, fact in enumerate(found)}
    kept = []
    for moment in moments:
        known = sure if moment.confident else every
        if not moment.only_proves(known):
            kept.append(moment)
            continue
        best = min(place[i] for i in moment.taught if i in known)
        if moment.confident or not found[best].confident:
            found[best] = replace(found[best], score=max(found[best].score, moment.score))
    return kept
