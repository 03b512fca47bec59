"""Finding what a person said in earlier conversations: dated moments, each with what became of it.

A moment's score is that of its words and meaning, and a share for the summary of its conversation:
what was said in the right conversation is more likely meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memchat.language import numbers, text
from memchat.memory.recall import render
from memchat.memory.recall.ranking import Parts, ScoredSearch
from memchat.store import events, evidence, keywords, messages, replacements, sessions
from memchat.store.evidence import LearnedFact
from memchat.store.memories import FORGOTTEN
from memchat.store.values_in_force import ValuesInForce
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Message

PRIOR = 0.3
"""What the summary of its conversation adds to a moment, at most."""
_ONLY_PROOF = 0.6
"""Of a moment's words those that quotes of shown facts hold, from which on it may only prove."""
_SAYS_MORE = 3
"""Words that the facts' own lines lack, from which on it says more than they: "I moved from Lisbon
to Porto for a job at Sonae" beside "city: Porto". Fewer are the sentence around the value."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A found moment before it is put into words, and the facts that were drawn from it."""

    turn: Message
    parts: Parts
    prior: float
    title: str | None
    changed: tuple[str, ...]
    """The keys of what it said that holds no more."""
    facts: tuple[LearnedFact, ...]
    taught: tuple[int, ...]
    """For each of the facts the memory that stands in its place today."""
    asked: Set[str]
    """The words of the question."""

    @property
    def score(self) -> float:
        return round(self.parts.score + self.prior, 6)

    @property
    def confident(self) -> bool:
        """Whether it passes the floor."""
        return self.parts.confident

    def tells(self, memory_ids: Collection[int]) -> bool:
        """Whether one of these memories, or what they replaced, was drawn from it."""
        return any(i in memory_ids for i in self.taught)

    def only_proves(self, shown: Mapping[int, Memory]) -> bool:
        """Whether these memories, in whose place or for which it was said, leave nothing of it to
        tell: their quotes are most of it, and what their lines do not hold was not asked for."""
        mine = _words(self.turn.content)
        linked = [(i, fact) for i, fact in zip(self.taught, self.facts, strict=True) if i in shown]
        proof = {word for _, fact in linked for word in _words(fact.quote)}
        if not linked or len(proof & mine) < _ONLY_PROOF * len(mine):
            return False
        # A line tells what its fact says, and behind it what it replaced.
        lines = [(one.key, one.value) for i, fact in linked for one in (shown[i], fact)]
        more = mine - _words(" ".join(f"{key.replace('_', ' ')} {value}" for key, value in lines))
        if len(more) >= _SAYS_MORE:
            more -= _naming(self.turn.content, {key for key, _ in lines})
        return len(more) < _SAYS_MORE or not more & self.asked

    def told(self, zone: ZoneInfo) -> Hit:
        """The moment in words."""
        line = render.moment(self.turn, zone, title=self.title, changed=self.changed)
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
    now: ValuesInForce,
    *,
    limit: int,
    without_session: int | None = None,
    least: int = 0,
) -> list[PastTurn]:
    """The moments that answer a question confidently, best first; none of the conversation that
    goes on. Where they are fewer than ``least`` others follow, the best of them.

    ``search`` is over the app's own scope alone: conversations belong to no other.
    """
    here: Sequence[int] = ()
    if without_session is not None:
        here = messages.ids_of(search.tx, without_session)
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
    present = {i: now.current_id(m.id) for i, m in heirs.items()}
    reworded = events.value_edits(search.tx, ids)
    moments, asked = [], search.question.text
    words = _words(asked)
    for i, turn in turns.items():
        facts = drawn[i]
        if any(fact.inactive_reason == FORGOTTEN for fact in facts):
            continue  # its purge is on its way, and takes words of this turn
        if _asks_the_same(turn.content, asked):
            continue
        over = [
            f.key
            for f in facts
            if f.over(now.today)
            or f.memory_id in now.displaced
            or reworded.get(f.memory_id, turn.created_at) > turn.created_at
        ]
        taught = tuple(present.get(fact.memory_id, fact.memory_id) for fact in facts)
        prior, title = priors[turn.session_id], titles[turn.session_id]
        changed = tuple(dict.fromkeys(over))
        moments.append(PastTurn(turn, found[i], prior, title, changed, tuple(facts), taught, words))
    moments.sort(key=lambda m: (not m.confident, -m.score, -m.turn.id))
    return moments


def _asks_the_same(content: str, asked: str) -> bool:
    """Whether it is the question itself, or part of it, as it was asked before."""
    if text.normal_value(content) == text.normal_value(asked):
        return True
    return content.rstrip().endswith(("?", "？")) and _words(content) <= _words(asked)


def _naming(content: str, keys: Collection[str]) -> set[str]:
    """The words of a text that write a key in another way: "time zone" and "time-zone" are the
    words of the key ``timezone``."""
    spelt = (r"[\s_-]?".join(map(re.escape, key.replace("_", ""))) for key in keys)
    found = [re.findall(rf"(?<!\w){one}(?!\w)", content, re.IGNORECASE) for one in spelt]
    return {word for places in found for place in places for word in _words(place)}


def _words(content: str) -> set[str]:
    return text.content_words(content) | numbers.numbers(content)


def _priors(search: ScoredSearch, session_ids: Collection[int]) -> Mapping[int, float]:
    """What the summary of each of these conversations says for it."""
    ids = sorted(session_ids)
    bm25 = keywords.matches(search.tx, "sessions", search.ids, search.words).of(ids)
    cosine: dict[int, float] = {}
    if search.meaning is not None and search.question.vector is not None:
        vector = search.question.vector
        cosine = search.meaning.index.scores(search.tx, search.ids, vector, ids, "sessions")
    best = max(bm25.values(), default=0.0)
    return {i: PRIOR * search.weighed(cosine.get(i), bm25.get(i), best) for i in ids}
