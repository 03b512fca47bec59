"""Search: the facts and the turns of past conversations that answer a question, as one list.

Nothing above the floor is a normal answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.language.text import normal_value
from memchat.memory.context import Context
from memchat.memory.embedding.space import EmbeddingSpace, Question, shortened
from memchat.memory.facts.in_force import as_of
from memchat.memory.recall import missing_vectors, past_turns
from memchat.memory.recall.fact_search import FactSearch, FoundFact, distinct
from memchat.memory.recall.missing_vectors import DEFAULT_SECONDS, MissingVectors
from memchat.memory.recall.past_turns import PastTurn
from memchat.memory.recall.question_dates.search import QuestionDates
from memchat.memory.recall.ranking import CANDIDATES, ScoredSearch
from memchat.store import apps, embeddings, keywords, services, sessions
from memchat.store.database import Database
from memchat.types import Recalled, Scope, clean_text

SpaceOrReason = tuple[EmbeddingSpace | None, str | None]
"""The store's embedding space, or None and the reason why there is none."""


class Recall:
    """Search over one store. What it returns says how each hit was found.

    It writes nothing but the vectors of a few rows that had none, and waits for no writer.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], datetime],
        space: Callable[[], SpaceOrReason],
        loaded_space: Callable[[Connection], SpaceOrReason | None],
    ) -> None:
        """``space`` gives the store's embedding space and makes it where it must; ``loaded_space``
        gives the one that is made already."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._space = space
        self._loaded_space = loaded_space
        self._missing_vectors = MissingVectors(database, clock)

    def question(self, text: str) -> Question:
        """The question with its vector, or with the reason why only words are searched."""
        with self._database.read() as tx:
            loaded = self._loaded_space(tx)
            question = None if loaded is None else _cached(tx, text, loaded)
        if question is None:
            made = self._space()
            with self._database.read() as tx:
                question = _cached(tx, text, made)
        return question.with_vector()

    def store_vector(self, tx: Connection, question: Question, now: datetime) -> None:
        """Store a question's vector among the rows, where it is not there yet."""
        if question.space is not None and question.vector is not None and not question.stored:
            key = embeddings.query_hash(question.text)
            embeddings.put(tx, question.space.service_id, [(key, question.vector)], now)

    def search(self, scope: Scope, question: Question, limit: int) -> Recalled:
        """The facts that answer a question confidently, best first."""
        seconds = self._settings.embed_patience
        with self.open_search(scope, question, seconds) as search:
            facts = FactSearch(search.context)
            hits = facts.hits(facts.find(search, limit))
            degraded = degraded_reason(search)
        return Recalled(tuple(hits), degraded, 0, sum(hit.tokens for hit in hits))

    def find(
        self,
        scope: Scope,
        question: Question,
        limit: int,
        seconds: float = DEFAULT_SECONDS,
        *,
        tags: tuple[str, ...] = (),
    ) -> Recalled:
        """The facts and the past turns that answer a question, best first; with ``tags`` only the
        facts that have each of them.

        Confident ones come first; where they are fewer than ``limit`` the others follow. A turn
        that only proves facts of the list gives the best of them its place. ``seconds`` is how long
        rows without a vector may take to get theirs.
        """
        with self.open_search(scope, question, seconds, turns=not tags) as search:
            wide = max(limit, CANDIDATES)
            facts = FactSearch(search.context, tags=tags)
            found = distinct(facts.find(search, wide, least=limit))
            said = [] if tags else self.past_turns(search, wide, least=limit)
            turns = _without_proofs(found, said)
            both: list[FoundFact | PastTurn] = [*found, *turns]
            ranked = sorted(both, key=lambda one: (not one.confident, -one.score))[:limit]
            fact_hits = iter(facts.hits([one for one in ranked if isinstance(one, FoundFact)]))
            zone = self._settings.zone
            hits = [
                next(fact_hits) if isinstance(one, FoundFact) else one.as_hit(zone)
                for one in ranked
            ]
            degraded = degraded_reason(search, turns=not tags)
        return Recalled(tuple(hits), degraded, 0, sum(hit.tokens for hit in hits))

    @contextmanager
    def open_search(
        self,
        scope: Scope,
        question: Question,
        seconds: float,
        *,
        turns: bool = False,
        keep: bool = True,
    ) -> Iterator[ScoredSearch]:
        """A search over one snapshot of a scope. A few rows that had no vector are given one within
        ``seconds``, with ``turns`` past turns among them; with ``keep`` these are stored after it.
        """
        with self._database.read() as tx:
            context = self.context(tx, scope)
            search = self._scored_search(context, _current(tx, question))
            made = self._missing_vectors.made(search, seconds, turns=turns)
            yield replace(search, made=made) if made.gaps else search
        if keep:
            self._missing_vectors.keep(made)

    def context(self, tx: Connection, scope: Scope) -> Context:
        """The scope in a transaction, now."""
        return Context(tx, apps.find(tx, scope), self._clock(), self._settings.zone)

    def _scored_search(self, context: Context, question: Question) -> ScoredSearch:
        words = keywords.query_terms(question.text)
        dates = QuestionDates.of(question.text, context.now, context.zone)
        date_words = dates.words if dates else frozenset()
        required = frozenset(word for word in words if word not in date_words)
        ids, ranking = context.scope.ids, self._settings.ranking
        return ScoredSearch(context, ids, question, words, required, dates, ranking)

    def past_turns(
        self,
        search: ScoredSearch,
        limit: int,
        without_session: int | None = None,
        least: int = 0,
    ) -> list[PastTurn]:
        """What was said in other conversations of the app, each thing once."""
        own = search.context.scope.own
        if own is None or not sessions.any_in_app(search.tx, own):
            return []
        search = replace(search, ids=[own])
        standing = as_of(search.tx, search.ids, search.context.today)
        first: dict[str, PastTurn] = {}
        for found in past_turns.find(
            search, standing, limit=limit, without_session=without_session, least=least
        ):
            first.setdefault(normal_value(found.turn.content), found)
        return list(first.values())


def degraded_reason(search: ScoredSearch, *, turns: bool = False) -> str | None:
    """Why vectors took no part, or for what they could not; with ``turns`` for past turns too."""
    if search.question.degraded is not None:
        return search.question.degraded
    own = search.context.scope.own
    lacking = replace(search, ids=[own]).unembedded("messages") if turns and own else ()
    return missing_vectors.reason(len(search.unembedded("memories")), len(lacking))


def _cached(tx: Connection, text: str, found: SpaceOrReason) -> Question:
    """The question as far as it is known without asking the embedding service."""
    text, (space, why_not) = shortened(clean_text(text)), found
    return Question(text, degraded=why_not) if space is None else space.cached(tx, text)


def _current(tx: Connection, question: Question) -> Question:
    """The question, without its vector where that is of a service removed since it was made."""
    space = question.space
    if space is None or services.exists(tx, space.service_id):
        return question
    why = "searched by words only: the embedding service was changed just now; ask again"
    return Question(question.text, degraded=why)


def _without_proofs(facts: list[FoundFact], turns: Sequence[PastTurn]) -> list[PastTurn]:
    """The turns to show beside these facts. One that only proves some of them is left out: the best
    of these facts takes its place. An unsure fact takes no confident turn's."""
    sure = {fact.memory.id: fact.memory for fact in facts if fact.confident}
    every = {fact.memory.id: fact.memory for fact in facts}
    places = {fact.memory.id: n for n, fact in enumerate(facts)}
    kept = []
    for turn in turns:
        known = sure if turn.confident else every
        if not turn.only_proves(known):
            kept.append(turn)
            continue
        best = min(places[i] for i in turn.taught if i in known)
        if turn.confident or not facts[best].confident:
            fact = facts[best]
            parts = replace(fact.parts, score=max(fact.score, turn.score))
            facts[best] = replace(fact, parts=parts)
    return kept
