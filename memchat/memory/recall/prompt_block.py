"""What a prompt is given of the memories, under a token budget.

Where all facts of the scope fit their share of it, all are in it, as one list that does not depend
on the message; what was found for the message stands behind. Else the best of them are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.language.text import normal_value
from memchat.memory.embedding.space import Question
from memchat.memory.recall import render
from memchat.memory.recall.fact_search import FactSearch, FoundFact, distinct
from memchat.memory.recall.ranking import CANDIDATES, Parts, ScoredSearch
from memchat.memory.recall.search import Recall, degraded
from memchat.prompts import Prompts
from memchat.store import apps, evidence, memories, memory_lists, messages, muted, replacements
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.evidence import LearnedFact
from memchat.store.memories import FORGOTTEN
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Recalled, Scope

RETURNING = 5
"""Turns of this very conversation that come back into its prompt, at most."""
PAST_TOKENS = 300
"""Of the budget what past turns have at least; of a small one no more than ``PAST_SHARE``."""
PAST_SHARE = 0.3
_POINTED_MOST = 10
"""Facts of the list that are pointed to as found for the message."""
_LEAST_LINE = 4
"""Tokens of the shortest line of a fact."""
_WEAK = 0.5
"""Of the best moment's score that below which others are left out, though there were room."""
_ALWAYS = Parts(1.0, None, None)
Words = tuple[str, str]
"""A fact's key and plain value: what another row may say as well."""
Turns = Callable[[Sequence[Hit]], list[Hit]]
"""The past turns to tell of beside these facts, the best first."""


@dataclass(slots=True)
class _Filling:
    """Tokens that are left, and the lines that took some."""

    left: int
    taken: dict[tuple[str, int], Hit] = field(default_factory=dict)

    def take(self, hits: Iterable[Hit], most: int | None = None) -> int:
        """Take those that fit one after another, within ``most`` tokens; how many that took.

        A shorter one may take the place that a longer one left.
        """
        before = self.left
        least = 0 if most is None else max(before - most, 0)
        for hit in hits:
            if (hit.kind, hit.id) not in self.taken and hit.tokens <= self.left - least:
                self.taken[hit.kind, hit.id] = hit
                self.left -= hit.tokens
        return before - self.left

    def of(self, hits: Iterable[Hit]) -> list[Hit]:
        """Those of these that were taken, in this order and as they were taken."""
        return [self.taken[hit.kind, hit.id] for hit in hits if (hit.kind, hit.id) in self.taken]


@dataclass(frozen=True, slots=True)
class Block:
    """The memories that a prompt is given. Reads only."""

    database: Database
    settings: Settings
    prompts: Prompts
    recall: Recall

    def for_prompt(
        self,
        scope: Scope,
        question: Question,
        *,
        dropped: Sequence[int] = (),
        session_id: int | None = None,
        first: Sequence[int] = (),
    ) -> Recalled:
        """What to inject for a message: facts, then earlier turns that fit.

        ``dropped`` are the ids of turns of this very conversation, ``session_id``, that no longer
        fit the window; they come back here when the message speaks of them. What a person called
        not relevant in it is left out. ``first`` are pinned facts to take before the others, where
        not all fit. Never above the token budget.
        """
        patience, keep = self.settings.embed_patience, session_id is not None
        asking = self.recall.asking(scope, question, patience, turns=True, keep=keep)
        with asking as (scope_ids, search):
            tx = search.tx
            mute = _muted(tx, scope_ids, session_id)
            facts = self.recall.facts(tx, scope_ids, mute)
            private = facts.sensitive_words()
            listed = self._every(facts, mute, private)
            limit = max(CANDIDATES, self.settings.top_k) + len(mute)
            # Where not all fit, those that nothing is sure of fill the room, the best first.
            least = 0 if listed is not None else self._most + len(mute)
            ranked = distinct(_unmuted(facts.find(search, max(limit, least), least), mute))
            found = [fact for fact in ranked if fact.confident]

            def turns(told: Sequence[Hit]) -> list[Hit]:
                known = {hit.id: hit.memory for hit in told if hit.memory is not None}
                moments = self._moments(scope_ids, search, dropped, mute)
                return moments + self._said(scope_ids, search, session_id, mute, known)

            if listed is not None:
                shown = self._trimmed(self._behind(listed, facts.for_model(found), turns))
            else:
                pinned = self._first(facts, mute, private, first)
                others = _told_always([f for f in ranked if not f.confident], private)
                shown = self._chosen(facts, pinned, found, others, turns, mute)
                shown = replace(self._trimmed(shown), degraded=degraded(search, scope_ids.own))
        given = {hit.id for hit in (*shown.hits, *shown.listed) if hit.kind == "memory"}
        matched = tuple(fact.memory.id for fact in found if fact.memory.id in given)
        return replace(shown, matched=matched)

    def pinned(self, scope: Scope, session_id: int | None = None) -> list[Hit]:
        """The facts among which pinning chooses, the most confirmed first; none where all facts fit
        and nothing is chosen."""
        with self.database.read() as tx:
            scope_ids = apps.find(tx, scope)
            mute = _muted(tx, scope_ids, session_id)
            facts = self.recall.facts(tx, scope_ids, mute)
            private = facts.sensitive_words()
            if self._every(facts, mute, private) is not None:
                return []
            return facts.for_model(self._first(facts, mute, private))

    @property
    def _room(self) -> int:
        """Tokens for lines, whatever they tell."""
        return self.settings.budget_tokens - render.frame_tokens(self.prompts)

    @property
    def _most(self) -> int:
        """Facts that may fit at most."""
        return max(self._room, 0) // _LEAST_LINE

    @property
    def _share(self) -> int:
        """Tokens for facts before past turns have theirs."""
        return self._room - min(PAST_TOKENS, int(self.settings.budget_tokens * PAST_SHARE))

    def _every(
        self, facts: FactSearch, mute: Collection[int], private: Collection[Words]
    ) -> list[Hit] | None:
        """Each fact by its id, or None where they do not all fit their share.

        None of it hangs on the message, so the prompts of a conversation begin alike.
        """
        left = max(self._share, 0)
        said = {*private}
        lines = []
        for memory in facts.in_force():
            words = _words(memory)
            if memory.sensitive or memory.id in mute or words in said:
                continue
            said.add(words)
            lines += facts.for_model([FoundFact(memory, 1.0, _ALWAYS, "all")])
            left -= lines[-1].tokens
            if left < 0:
                return None
        listed = sorted(lines, key=lambda hit: hit.id)
        return listed if self._fits(Recalled(listed=tuple(listed))) else None

    def _fits(self, shown: Recalled) -> bool:
        """Whether a whole block is within the budget: an estimate of lines alone may be lower, as
        it takes each for English or not by itself."""
        block = render.block(self.prompts, render.WIDEST_MARK, shown)
        return estimate_tokens(block) <= max(self.settings.budget_tokens, 0)

    def _trimmed(self, shown: Recalled) -> Recalled:
        """Without the last lines where the whole is above the budget all the same."""
        while shown.hits and not self._fits(shown):
            used = shown.tokens - shown.hits[-1].tokens
            shown = replace(shown, hits=shown.hits[:-1], dropped=shown.dropped + 1, tokens=used)
        return shown

    def _behind(
        self, listed: list[Hit], found: list[Hit], turns: Callable[[Sequence[Hit]], list[Hit]]
    ) -> Recalled:
        """The whole list, and for the message at hand what search found."""
        shown = _Filling(self._room - sum(hit.tokens for hit in listed))
        lines = {hit.id: hit.text for hit in listed}
        found = _as_listed(found, listed)[:_POINTED_MOST]
        if found:
            shown.left -= estimate_tokens(render.pointer([hit.id for hit in found]) + "\n")
        said = turns([*listed, *found])
        more = [hit for hit in found if not render.is_told(hit, lines)]
        shown.take([*more, *said])
        there = [hit for hit in found if render.is_told(hit, lines) or shown.of([hit])]
        hits = (*there, *shown.of(said))
        used, left_out = self._room - shown.left, len(more) + len(said) - len(shown.taken)
        return Recalled(hits, dropped=left_out, tokens=used, listed=tuple(listed))

    def _first(
        self,
        facts: FactSearch,
        mute: Collection[int],
        private: Collection[Words],
        first: Sequence[int] = (),
    ) -> list[FoundFact]:
        """What a person pinned, then profile and preferences, those of ``first`` before others."""
        place = {memory_id: n for n, memory_id in enumerate(first)}
        pinned = distinct(_told_always(_unmuted(facts.pinned(), mute), private))
        pinned.sort(key=lambda f: (not f.memory.pinned, place.get(f.memory.id, len(place))))
        return pinned

    def _chosen(
        self,
        facts: FactSearch,
        pinned: Sequence[FoundFact],
        found: Sequence[FoundFact],
        others: Sequence[FoundFact],
        turns: Turns,
        mute: Collection[int],
    ) -> Recalled:
        """The best of more facts than fit, and beside them past turns.

        What a person pinned comes first, and the profile, as far as their share goes; then the best
        found, then all others by their scores until the facts' share is full. What past turns leave
        is the facts' again.
        """
        asked = {fact.memory.id: fact for fact in found}
        first = [asked.get(f.memory.id) or replace(f, channel="newest") for f in pinned]
        lines = facts.for_model(distinct([*first, *found, *others]))
        numbered = {line.id: line for line in lines}
        best = [numbered[f.memory.id] for f in found if f.memory.id in numbered]
        profile = {fact.memory.id for fact in pinned}
        always = [replace(line, channel="pinned") for line in lines if line.id in profile]
        among = _Filling(max(self._share, 0))
        among.take(always, self.settings.pinned_tokens)
        rest = [*best[: self.settings.top_k], *lines]
        among.take(rest)
        shown = _Filling(self._room - max(self._share, 0) + among.left, among.taken)
        said = turns([*shown.taken.values()])
        shown.take(said)
        shown.take(always, self.settings.pinned_tokens if not among.taken else 0)
        shown.take(rest)
        facts_in = [hit for hit in shown.taken.values() if hit.kind == "memory"]
        there = memory_lists.count_for_prompts(facts.tx, facts.scope.ids, facts.today, mute)
        dropped = max(there - len(facts_in), 0) + len(said) - len(shown.of(said))
        hits = (*facts_in, *shown.of(said))
        return Recalled(hits, dropped=dropped, tokens=self._room - shown.left)

    def _said(
        self,
        scope_ids: ScopeIds,
        search: ScoredSearch,
        session_id: int | None,
        mute: Collection[int],
        known: Mapping[int, Memory],
    ) -> list[Hit]:
        """What was said in earlier conversations and is more than the proof of facts shown."""
        said = self.recall.past(scope_ids, search, CANDIDATES, session_id)
        return [
            one.told(self.settings.zone)
            for one in said
            if one.score >= _WEAK * said[0].score
            and not (one.only_proves(known) or one.tells(mute))
            and not any(fact.memory_id in mute for fact in one.facts)
        ]

    def _moments(
        self,
        scope_ids: ScopeIds,
        search: ScoredSearch,
        dropped: Sequence[int],
        mute: Collection[int],
    ) -> list[Hit]:
        """Turns of this very conversation that no longer fit its window, by their words."""
        if not dropped or scope_ids.own is None:
            return []
        tx, search = search.tx, replace(search, ids=[scope_ids.own])
        matches = search.matches("messages", replies=True)
        scores = matches.of(search.by_words(matches, dropped))
        drawn = evidence.learned_from(tx, list(scores))
        barred = _barred(tx, scope_ids, drawn, mute)
        scores = {i: score for i, score in scores.items() if i not in barred}
        best = sorted(scores, key=lambda i: (-scores[i], -i))[:RETURNING]
        turns = messages.by_ids(tx, best)
        zone = self.settings.zone
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


def _barred(
    tx: Connection, scope_ids: ScopeIds, drawn: Sequence[LearnedFact], mute: Collection[int]
) -> set[int]:
    """The turns that taught what is being forgotten, or what a person called not relevant here."""
    now = replacements.current(tx, scope_ids.ids, sorted({fact.memory_id for fact in drawn}))
    out = {i for i, memory in now.items() if memory.id in mute}.union(mute)
    return {f.message_id for f in drawn if f.inactive_reason == FORGOTTEN or f.memory_id in out}


def _as_listed(found: Sequence[Hit], listed: Sequence[Hit]) -> list[Hit]:
    """What was found, under the number it has in the list where that says the same; what it does
    not say must be sensitive."""
    there = {hit.id for hit in listed}
    twins = {_words_of(hit): hit for hit in listed}
    same = (hit if hit.id in there else twins.get(_words_of(hit), hit) for hit in found)
    distinct_hits = {hit.id: hit for hit in same}
    return list(distinct_hits.values())


def _words_of(hit: Hit) -> Words:
    assert hit.memory is not None
    return _words(hit.memory)


def _words(memory: Memory) -> Words:
    return memory.key, normal_value(memory.value)


def _muted(tx: Connection, scope_ids: ScopeIds, session_id: int | None) -> set[int]:
    """What a person called not relevant in a conversation, and other rows that say the same."""
    if session_id is None:
        return set()
    mute = muted.of_session(tx, session_id)
    for memory in memories.by_ids(tx, scope_ids.ids, sorted(mute)).values():
        there = memories.values_with_key(tx, scope_ids.ids, memory.key)
        normal = normal_value(memory.value)
        mute.update(i for i, value in there if normal_value(value) == normal)
    return mute


def _told_always(facts: Sequence[FoundFact], private: Collection[Words]) -> list[FoundFact]:
    """Those that may be told whatever is asked: neither sensitive nor in the words of one that
    is, all of which ``private`` holds."""
    return [fact for fact in facts if _words(fact.memory) not in private]


def _unmuted(facts: Sequence[FoundFact], mute: Collection[int]) -> list[FoundFact]:
    """Without those that a person called not relevant here."""
    return [fact for fact in facts if fact.memory.id not in mute]
