"""Finding what a person said in earlier conversations: dated turns, each with what changed since.

The score of a turn is the hybrid score of its text, and a share for the summary of its
conversation: what was said in the right conversation is more likely meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memchat.language import numbers, text
from memchat.memory.forgetting.redaction import is_blanked
from memchat.memory.recall import render
from memchat.memory.recall.ranking import ScoredSearch, ScoreParts
from memchat.store import copies, events, evidence, keywords, messages, replacements, sessions
from memchat.store.evidence import LearnedFact
from memchat.store.memories import FORGOTTEN
from memchat.store.values_in_force import ValuesInForce
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Message

PRIOR = 0.3
"""What the summary of its conversation adds to the score of a turn, at most."""
_ONLY_PROOF = 0.6
"""The share of a turn's words within quotes of shown facts from which on it may only prove them."""
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
    facts: tuple[LearnedFact, ...]
    taught: tuple[int, ...]
    """For each of the facts the memory that replaces it today, or itself."""
    query_words: Set[str]

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
        lines = [(one.key, one.value) for i, fact in linked for one in (shown[i], fact)]
        more = mine - _words(" ".join(f"{key.replace('_', ' ')} {value}" for key, value in lines))
        if len(more) >= _SAYS_MORE:
            more -= _naming(self.turn.content, {key for key, _ in lines})
        return len(more) < _SAYS_MORE or not more & self.query_words

    def as_hit(self, zone: ZoneInfo) -> Hit:
        """The turn as a line."""
        line = render.past_turn(self.turn, zone, title=self.title, changed=self.changed)
        return Hit(
            kind="message",
            id=self.turn.id,
            text=line,
            score=self.score,
            cosine=self.parts.cosine,
            bm25=self.parts.bm25,
            channel=self.parts.channel,
            tokens=estimate_tokens(f"- {line}\n"),
            said_at=self.turn.created_at,
            session_id=self.turn.session_id,
            session_title=self.title,
            since_changed=self.changed,
            prior=round(self.prior, 6),
            dated=self.parts.dated,
            confident=self.confident,
            tells=tuple((fact.memory_id, fact.key, fact.value) for fact in self.facts),
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

    ``search`` is over the app's own scope alone: conversations belong to no other.
    """
    here: list[int] = []
    if without_session is not None:
        here = messages.ids_of(search.tx, without_session)
        here += copies.originals(search.tx, without_session)
    found = search.found("messages", limit, frozenset(here))
    if sum(parts.confident for parts in found.values()) >= least:
        found = {i: parts for i, parts in found.items() if parts.confident}
    if not found:
        return []
    turns = messages.by_ids(search.tx, list(found))
    priors = _priors(search, {turn.session_id for turn in turns.values()})
    titles = sessions.titles(search.tx, list(priors))
    drawn = defaultdict(list)
    for one in evidence.learned_from(search.tx, list(turns)):
        drawn[one.message_id].append(one)
    ids = sorted({fact.memory_id for facts in drawn.values() for fact in facts})
    heirs = replacements.current(search.tx, search.ids, ids)
    present = {i: standing.current_id(m.id) for i, m in heirs.items()}
    reworded = events.value_edits(search.tx, ids)
    past_turns, question = [], search.question.text
    words = _words(question)
    for i, turn in turns.items():
        facts = drawn[i]
        if any(fact.inactive_reason == FORGOTTEN for fact in facts):
            continue  # its purge is queued, and removes words of this turn
        if is_blanked(turn.content):
            continue
        if _asks_the_same(turn.content, question):
            continue
        over = [
            f.key
            for f in facts
            if f.over(standing.today)
            or f.memory_id in standing.displaced
            or reworded.get(f.memory_id, turn.created_at) > turn.created_at
        ]
        taught = tuple(present.get(fact.memory_id, fact.memory_id) for fact in facts)
        prior, title = priors[turn.session_id], titles[turn.session_id]
        changed = tuple(dict.fromkeys(over))
        past_turns.append(
            PastTurn(turn, found[i], prior, title, changed, tuple(facts), taught, words)
        )
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
    return text.content_words(content) | numbers.numbers(content)


def _priors(search: ScoredSearch, session_ids: Collection[int]) -> Mapping[int, float]:
    """What the summary of each of these conversations adds to the score of its turns."""
    ids = sorted(session_ids)
    bm25 = keywords.matches(search.tx, "sessions", search.ids, search.words).of(ids)
    cosine: dict[int, float] = {}
    vector = search.question.vector
    if search.space is not None and vector is not None:
        cosine = search.space.index.scores(search.tx, search.ids, vector, ids, "sessions")
    scores = search.blended(cosine, bm25)
    return {i: PRIOR * scores.get(i, 0.0) for i in ids}
