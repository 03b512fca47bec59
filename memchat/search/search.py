"""Search: the facts and the turns of past conversations that answer a question, as one list.

Each turn comes with its date and with what has changed since. That nothing is above the floor is a
normal answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from memchat.config import Settings
from memchat.db import Tx, messages, sessions
from memchat.db.database import Database
from memchat.facts import changes
from memchat.facts.changes import Taught
from memchat.facts.in_force import as_of
from memchat.facts.memories import FORGOTTEN, ValuesInForce, is_over
from memchat.forget.wording import is_blanked
from memchat.language import text
from memchat.language.lexicon import KEYS, WORDS
from memchat.language.text import content_words, normal_value
from memchat.search import embeddings, keywords, ranking, render
from memchat.search.embed import QUESTION_LIMIT, EmbeddingSpace, Question, shortened
from memchat.search.facts import NO_MATCH, FactSearch, FoundFact, distinct
from memchat.search.question_dates import date_range
from memchat.search.ranking import (
    CANDIDATES,
    DEFAULT_SECONDS,
    MissingVectors,
    ScoredSearch,
    ScoreParts,
)
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Message, Recalled, Scope, Wanted, clean_text

PRIOR = 0.3
"""What the summary of its conversation adds to the score of a turn, at most."""
_ONLY_PROOF = 0.6
"""The share of a turn's words within quotes of shown facts from which on it may only prove them."""
_RESTING = timedelta(days=1)
_RESTING_MOST = 8
"""Turns that are not read yet and do not match, at most; none that speaks of sensitive things."""
_SAYS_MORE = 3
"""With so many words that the facts' lines lack a turn says more than they: "I moved from Lisbon to
Porto for a job at Sonae" beside "city: Porto". Fewer are the sentence around the value."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn that was found, before it is written as a line, and the facts drawn from it."""

    turn: Message
    parts: ScoreParts
    prior: float
    title: str | None
    changed: tuple[str, ...]
    """The keys of the facts in it that are out of date."""
    facts: tuple[Taught, ...]
    taught: tuple[int, ...]
    """For each of the facts the memory that replaces it today, or itself."""
    query_words: Set[str]
    unread: bool
    """Whether no extraction has read it yet."""

    @property
    def score(self) -> float:
        return round(self.parts.score + self.prior, 6)

    @property
    def confident(self) -> bool:
        """Whether it passes the floor."""
        return self.parts.confident

    def taught_any(self, memory_ids: Collection[int]) -> bool:
        """Whether one of these memories, or what they replaced, was drawn from it."""
        return any(i in memory_ids for i in self.taught)

    def only_proves(self, shown: Mapping[int, Memory]) -> bool:
        """Whether it adds nothing to these memories, which it taught or which replaced what it
        taught: their quotes are most of it, and the question did not ask for the rest."""
        mine = _words(self.turn.content)
        linked = [(i, fact) for i, fact in zip(self.taught, self.facts, strict=True) if i in shown]
        proof = {word for _, fact in linked for word in _words(fact.quote)}
        if not linked or len(proof & mine) < _ONLY_PROOF * len(mine):
            return False
        # A line holds what its fact says, and after it what the fact replaced.
        lines = [(one.key, one.value) for i, fact in linked for one in (shown[i], fact.memory)]
        more = mine - _words(" ".join(f"{key.replace('_', ' ')} {value}" for key, value in lines))
        if len(more) >= _SAYS_MORE:
            more -= _naming(self.turn.content, {key for key, _ in lines})
        return len(more) < _SAYS_MORE or not more & self.query_words

    def as_hit(self, zone: ZoneInfo) -> Hit:
        """The turn as a line."""
        line = render.past_turn(
            self.turn, zone, title=self.title, changed=self.changed, unread=self.unread
        )
        return Hit(
            kind="message",
            id=self.turn.id,
            text=line,
            score=self.score,
            cosine=self.parts.cosine,
            bm25=self.parts.bm25,
            channel="newest" if self.parts is NO_MATCH else self.parts.channel,
            tokens=estimate_tokens(f"- {line}\n"),
            said_at=self.turn.created_at,
            session_id=self.turn.session_id,
            session_title=self.title,
            since_changed=self.changed,
            unread=self.unread,
            prior=round(self.prior, 6),
            dated=self.parts.dated,
            confident=self.confident,
            tells=tuple(fact.as_told() for fact in self.facts),
        )


def find(
    search: ScoredSearch,
    standing: ValuesInForce,
    *,
    limit: int,
    without_session: int | None = None,
    least: int = 0,
) -> list[PastTurn]:
    """The turns that answer a question confidently, best first; none of ``without_session``, and
    none that it has a copy of. Where they are fewer than ``least`` the best of the others follow.

    ``search`` is over the app's own scope alone: conversations belong to no other. The score of a
    turn is the hybrid score of its text, and a share for the summary of its conversation: what was
    said in the right conversation is more likely meant.
    """
    here: list[int] = []
    if without_session is not None:
        here = messages.ids_of(search.tx, without_session)
        here += sessions.originals(search.tx, without_session)
    found = search.found("turn", limit, frozenset(here))
    if sum(parts.confident for parts in found.values()) >= least:
        found = {i: parts for i, parts in found.items() if parts.confident}
    if not found:
        return []
    turns = messages.by_ids(search.tx, list(found))
    priors = _priors(search, {turn.session_id for turn in turns.values()})
    homes = sessions.known(search.tx, list(priors))
    drawn = defaultdict(list)
    for one in changes.taught_by(search.tx, turns):
        drawn[one.message_id].append(one)
    ids = sorted({fact.memory.id for facts in drawn.values() for fact in facts})
    heirs = changes.current(search.tx, search.ids, ids)
    present = {i: standing.current_id(m.id) for i, m in heirs.items()}
    reworded = changes.value_edits(search.tx, ids)
    past_turns, question = [], search.question.text
    words = _words(question)
    for i, turn in turns.items():
        facts = drawn[i]
        if any(fact.memory.inactive_reason == FORGOTTEN for fact in facts):
            continue  # its purge is queued, and removes words of this turn
        if is_blanked(turn.content):
            continue
        if _asks_the_same(turn.content, question):
            continue
        over = [
            m.key
            for m in (fact.memory for fact in facts)
            if m.inactive_reason not in (None, "merged")
            or is_over(m, standing.today)
            or m.id in standing.displaced
            or reworded.get(m.id, turn.created_at) > turn.created_at
        ]
        taught = tuple(present.get(fact.memory.id, fact.memory.id) for fact in facts)
        prior, home = priors[turn.session_id], homes[turn.session_id]
        changed, unread = tuple(dict.fromkeys(over)), turn.id > home.extracted_to
        about = (prior, home.title, changed, tuple(facts), taught, words, unread)
        past_turns.append(PastTurn(turn, found[i], *about))
    past_turns.sort(key=lambda one: (not one.confident, -one.score, -one.turn.id))
    return past_turns


def _asks_the_same(content: str, question: str) -> bool:
    """Whether it is the question itself, or part of it, as it was asked before."""
    if text.normal_value(content) == text.normal_value(question):
        return True
    return content.rstrip().endswith(("?", "？")) and _words(content) <= _words(question)


def _naming(content: str, keys: Collection[str]) -> set[str]:
    """The words of a text that write a key in another way: "time zone" and "time-zone" are the
    words of the key ``timezone``."""
    spelt = (r"[\s_-]?".join(map(re.escape, key.replace("_", ""))) for key in keys)
    found = [re.findall(rf"(?<!\w){one}(?!\w)", content, re.IGNORECASE) for one in spelt]
    return {word for places in found for place in places for word in _words(place)}


def _words(content: str) -> set[str]:
    return text.content_words(content) | text.numbers(content)


def _priors(search: ScoredSearch, session_ids: Collection[int]) -> Mapping[int, float]:
    """What the summary of each of these conversations adds to the score of its turns."""
    ids = sorted(session_ids)
    bm25 = keywords.matches(search.tx, "summary", search.ids, search.words).of(ids)
    cosine: dict[int, float] = {}
    vector = search.question.vector
    if search.space is not None and vector is not None:
        cosine = search.space.index.scores(search.tx, search.ids, vector, ids, "summary")
    scores = search.blended(cosine, bm25)
    return {i: PRIOR * scores.get(i, 0.0) for i in ids}


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
        space: Callable[[], SpaceOrReason],
        loaded_space: Callable[[Tx], SpaceOrReason | None],
    ) -> None:
        """``space`` gives the store's embedding space and makes it where it must; ``loaded_space``
        gives the one that is made already."""
        self._database = database
        self._settings = settings
        self._space = space
        self._loaded_space = loaded_space
        self._missing_vectors = MissingVectors(database)

    def question(self, text: str) -> Question:
        """The question with its vector, or with the reason why only words are searched."""
        with self._database.read() as tx:
            loaded = self._loaded_space(tx)
            question = None if loaded is None else _cached(tx, text, loaded)
        if question is None:
            made = self._space()
            with self._database.read() as tx:
                question = _cached(tx, text, made)
        if question.space is None or question.vector is not None:
            return question
        return question.space.embed_query(question.text)

    def store_vector(self, tx: Tx, question: Question) -> None:
        """Store a question's vector among the rows, where it is not there yet."""
        if question.space is not None and question.vector is not None and not question.stored:
            key = embeddings.query_hash(question.text)
            embeddings.put(tx, question.space.service_id, [(key, question.vector)])

    def search(self, scope: Scope, question: Question, limit: int) -> Recalled:
        """The facts that answer a question confidently, best first."""
        seconds = self._settings.embed_patience
        with self.open_search(scope, question, seconds) as search:
            facts = FactSearch(search.tx)
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
        only: Wanted | None = None,
    ) -> Recalled:
        """The facts and the past turns that answer a question, best first; of these those that
        match ``only``.

        Confident ones come first; where they are fewer than ``limit`` the others follow. A turn
        that only proves facts of the list gives the best of them its place. ``seconds`` is how long
        rows without a vector may take to get theirs.
        """
        turns_too = may_be_turns(only)
        with self.open_search(scope, question, seconds, turns=turns_too) as search:
            wide = max(limit, CANDIDATES)
            facts = FactSearch(search.tx, only=only)
            found = distinct(facts.find(search, wide, least=limit))
            said = self.past_turns(search, wide, least=limit, only=only)
            turns = _without_proofs(found, said)
            both: list[FoundFact | PastTurn] = [*found, *turns]
            both.sort(key=lambda one: one.score == 0 and isinstance(one, FoundFact))
            both.sort(key=lambda one: (not one.confident, -one.score))
            ranked = _unread_first(both[:limit])
            fact_hits = iter(facts.hits([one for one in ranked if isinstance(one, FoundFact)]))
            zone = self._settings.zone
            hits = [
                next(fact_hits) if isinstance(one, FoundFact) else one.as_hit(zone)
                for one in ranked
            ]
            degraded = degraded_reason(search, turns=turns_too)
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
        with self._database.read(scope) as tx:
            search = self._scored_search(tx, _current(tx, question))
            made = self._missing_vectors.made(search, seconds, turns=turns)
            yield replace(search, made=made) if made.gaps else search
        if keep:
            self._missing_vectors.keep(made)

    def _scored_search(self, tx: Tx, question: Question) -> ScoredSearch:
        words = keywords.query_terms(question.text)
        dates = date_range(question.text, tx.now, tx.zone)
        date_words = dates.words if dates else frozenset()
        required = frozenset(word for word in words if word not in date_words)
        ids, ranking = tx.ids, self._settings.ranking
        return ScoredSearch(tx, ids, question, words, required, dates, ranking)

    def past_turns(
        self,
        search: ScoredSearch,
        limit: int,
        without_session: int | None = None,
        least: int = 0,
        only: Wanted | None = None,
    ) -> list[PastTurn]:
        """What was said in other conversations of the app and answers the question, each thing
        once; then what was said there in the last day and is not read yet, the newest first: a fact
        may be out of date, whatever its words."""
        own = search.tx.own
        if not may_be_turns(only) or not sessions.any_in_app(search.tx, own):
            return []
        fitting = frozenset(messages.ids_that_fit(search.tx, own, only)) if only else None
        search = replace(search, ids=[own], only=fitting)
        standing = as_of(search.tx, search.ids)
        first: dict[str, PastTurn] = {}
        for found in find(
            search, standing, limit=limit, without_session=without_session, least=least
        ):
            first.setdefault(normal_value(found.turn.content), found)
        words, since = _words(search.question.text), search.tx.now - _RESTING
        for turn in sessions.resting(search.tx, own, without_session, since, _RESTING_MOST):
            said = turn.content
            private = not (KEYS | WORDS).isdisjoint(content_words(said))
            if fitting is not None and turn.id not in fitting:
                continue
            if not (private or _asks_the_same(said, search.question.text) or is_blanked(said)):
                new = PastTurn(turn, NO_MATCH, 0.0, None, (), (), (), words, unread=True)
                first.setdefault(normal_value(said), new)
        return list(first.values())


def may_be_turns(only: Wanted | None) -> bool:
    """Whether past turns can match: they have no key, type or tags, and no program says them."""
    if only is None:
        return True
    return not (only.tags or only.key or only.memory_types or only.created_by == (PROGRAM,))


def degraded_reason(search: ScoredSearch, *, turns: bool = False) -> str | None:
    """Why vectors took no part, or for what they could not; with ``turns`` for past turns too."""
    if search.question.degraded is not None:
        return search.question.degraded
    own = search.tx.own
    lacking = replace(search, ids=[own]).unembedded("turn") if turns and own else ()
    return ranking.reason(len(search.unembedded("fact")), len(lacking))


def _cached(tx: Tx, text: str, found: SpaceOrReason) -> Question:
    """The question as far as it is known without asking the embedding service."""
    text, (space, why_not) = shortened(clean_text(text)), found
    return Question(text, degraded=why_not) if space is None else space.cached(tx, text)


def _current(tx: Tx, question: Question) -> Question:
    """The question, without its vector where that is of a service removed since it was made."""
    space = question.space
    if space is None or embeddings.service_exists(tx, space.service_id):
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


def _unread_first(ranked: Sequence[FoundFact | PastTurn]) -> list[FoundFact | PastTurn]:
    """What was found, each turn that was not read yet before the older facts that it may change:
    all of them where it answers the question with confidence, else those with a word of its own."""
    placed: list[FoundFact | PastTurn] = []
    for one in ranked:
        place = len(placed)
        if isinstance(one, PastTurn) and one.unread:
            said, at = _words(one.turn.content), one.turn.created_at
            older = (
                n
                for n, other in enumerate(placed)
                if isinstance(other, FoundFact)
                and other.memory.said_at < at
                and (one.confident or not said.isdisjoint(_words(other.memory.value)))
            )
            place = next(older, place)
        placed.insert(place, one)
    return placed


PROGRAM = "mcp"
"""By whom a memory was made that a program wrote."""
SHORT_WORDS = 3
"""Words up to which a message may continue the one before it."""
SHORT_CONTENT = 2
"""The most content words among these."""


def searched(message: str, turns: Sequence[Message]) -> str:
    """The message; with the user's message before it where it is too short to be searched alone, as
    "why?" and "and for Friday?" are. ``turns`` are the conversation, with or without this one."""
    if len(message.split()) > SHORT_WORDS or len(content_words(message)) > SHORT_CONTENT:
        return message
    before = [turn.content for turn in turns if turn.role == "user"]
    while before and before[-1] == message:
        before.pop()  # this message, or the same asked again
    if not before:
        return message
    # Both have to be within what a search reads: the older one is cut, not this one.
    return f"{before[-1][: QUESTION_LIMIT - len(message) - 1]}\n{message}"
