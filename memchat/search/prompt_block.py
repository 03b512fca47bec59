"""Chooses the memories for a prompt, within a token budget.

Where all facts of the scope fit their share of the budget, all are given, as one list that does not
depend on the message, and what was found for the message follows. Otherwise the best are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memchat.config import Settings
from memchat.db import Tx, messages, sessions
from memchat.db.database import Database
from memchat.facts import changes, memories
from memchat.facts.changes import Taught
from memchat.facts.memories import FORGOTTEN
from memchat.language.text import normal_value
from memchat.prompts import Prompts
from memchat.search import render
from memchat.search.embed import Question
from memchat.search.facts import ALWAYS, FactSearch, FoundFact, distinct
from memchat.search.ranking import CANDIDATES, ScoredSearch
from memchat.search.search import Recall, degraded_reason
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Recalled, Scope, Wanted

RETURNING = 5
"""Turns of this very conversation that come back into its prompt, at most."""
PAST_TOKENS = 300
"""The tokens kept for past turns; of a small budget no more than ``PAST_SHARE``."""
PAST_SHARE = 0.3
_FOUND_MOST = 10
"""Facts of the list that are named as found for the message."""
_LEAST_LINE = 4
"""Tokens of the shortest line of a fact."""
_USUAL_LINE = 10
"""Tokens of which most lines have more."""
_WEAK = 0.5
"""Past turns that were read are left out below this share of the best one's score."""
KeyValue = tuple[str, str]
"""A fact's key and plain value: another row may have the same."""
TurnsBeside = Callable[[Sequence[Hit]], list[Hit]]
"""The past turns to show beside these facts, the best first."""


@dataclass(slots=True)
class _Filling:
    """The tokens that are left, and the lines taken."""

    left: int
    taken: dict[tuple[str, int], Hit] = field(default_factory=dict)

    def take(self, hits: Iterable[Hit], most: int | None = None) -> int:
        """Take those that fit one after another, within ``most`` tokens; gives the tokens used.

        A shorter line may fit where a longer one did not.
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
class PromptBlock:
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
        only: Wanted | None = None,
    ) -> Recalled:
        """What to inject for a message: facts, then earlier turns that fit; of these those that
        match ``only``.

        ``dropped`` are the ids of turns of this very conversation, ``session_id``, that no longer
        fit the window; they are shown here where the message is about them. Memories that a person
        muted in it are left out. ``first`` are pinned facts to take before the others, where not
        all fit. Never above the token budget.
        """
        seconds, keep = self.settings.embed_patience, session_id is not None
        searching = self.recall.open_search(scope, question, seconds, turns=True, keep=keep)
        with searching as search:
            mute = _muted(search.tx, session_id)
            facts = FactSearch(search.tx, mute, only)
            private = facts.sensitive_words()
            listed = self._every(facts, private)
            limit = max(CANDIDATES, self.settings.top_k) + len(mute)

            def ranked(least: int) -> list[FoundFact]:
                some = facts.find(search, max(limit, least), least)
                return distinct(_unmuted(some, mute))

            def turns(shown_facts: Sequence[Hit]) -> list[Hit]:
                known = {hit.id: hit.memory for hit in shown_facts if hit.memory is not None}
                returning = self._returning_turns(search, dropped, mute)
                return returning + self._past_turns(search, session_id, mute, known, only)

            if listed is not None:
                found = [fact for fact in ranked(0) if fact.confident]
                shown = self._trimmed(self._with_list(listed, facts.for_model(found), turns))
            else:
                pinned = self._pinned_first(facts, private, first)
                # Where not all fit, facts that are not confident fill the room, the best first.
                for least in (self._room // _USUAL_LINE, self._most):
                    every = ranked(least + len(mute))
                    found = [fact for fact in every if fact.confident]
                    others = _without_sensitive([f for f in every if not f.confident], private)
                    shown = self._trimmed(self._chosen(facts, pinned, found, others, turns))
                    if not {f.memory.id for f in others} <= {hit.id for hit in shown.hits}:
                        break  # one of them did not fit: there is no room for more
                shown = replace(shown, degraded=degraded_reason(search, turns=True))
        given = {hit.id for hit in (*shown.hits, *shown.listed) if hit.kind == "memory"}
        matched = tuple(fact.memory.id for fact in found if fact.memory.id in given)
        return replace(shown, matched=matched)

    def pinned(self, scope: Scope, session_id: int | None = None) -> list[Hit]:
        """The facts among which pinning chooses, the most confirmed first; none where all facts fit
        and nothing is chosen."""
        with self.database.read(scope) as tx:
            facts = FactSearch(tx, _muted(tx, session_id))
            private = facts.sensitive_words()
            if self._every(facts, private) is not None:
                return []
            return facts.for_model(self._pinned_first(facts, private))

    @property
    def _room(self) -> int:
        """Tokens for lines of any kind."""
        return self.settings.budget_tokens - render.frame_tokens(self.prompts)

    @property
    def _most(self) -> int:
        """Facts that may fit at most."""
        return max(self._room, 0) // _LEAST_LINE

    @property
    def _share(self) -> int:
        """Tokens for facts before past turns get theirs."""
        return self._room - min(PAST_TOKENS, int(self.settings.budget_tokens * PAST_SHARE))

    def _every(self, facts: FactSearch, private: Collection[KeyValue]) -> list[Hit] | None:
        """Each fact by its id, or None where they do not all fit their share.

        None of it depends on the message, so the prompts of a conversation begin alike.
        """
        if facts.only is None and facts.count > self._most:
            return None
        left = max(self._share, 0)
        seen = {*private}
        lines = []
        for memory in facts.in_force():
            key_value = _key_value(memory)
            if memory.sensitive or memory.id in facts.mute or key_value in seen:
                continue
            seen.add(key_value)
            lines += facts.for_model([FoundFact(memory, ALWAYS, "all")])
            left -= lines[-1].tokens
            if left < 0:
                return None
        listed = sorted(lines, key=lambda hit: hit.id)
        return listed if self._fits(Recalled(listed=tuple(listed))) else None

    def _fits(self, shown: Recalled) -> bool:
        """Whether a whole block is within the budget: the sum of the lines' estimates may be lower,
        as each line is estimated as English or not."""
        block = render.block(self.prompts, render.WIDEST_MARK, shown)
        return estimate_tokens(block) <= max(self.settings.budget_tokens, 0)

    def _trimmed(self, shown: Recalled) -> Recalled:
        """Without the last lines where the whole is above the budget all the same."""
        while shown.hits and not self._fits(shown):
            used = shown.tokens - shown.hits[-1].tokens
            shown = replace(shown, hits=shown.hits[:-1], dropped=shown.dropped + 1, tokens=used)
        return shown

    def _with_list(self, listed: list[Hit], found: list[Hit], turns: TurnsBeside) -> Recalled:
        """The whole list, and after it what search found for the message."""
        shown = _Filling(self._room - sum(hit.tokens for hit in listed))
        lines = {hit.id: hit.text for hit in listed}
        found = _as_listed(found, listed)[:_FOUND_MOST]
        if found:
            shown.left -= estimate_tokens(render.pointer([hit.id for hit in found]) + "\n")
        past_turns = turns([*listed, *found])
        more = [hit for hit in found if not render.is_listed(hit, lines)]
        shown.take([*more, *past_turns])
        there = [hit for hit in found if render.is_listed(hit, lines) or shown.of([hit])]
        hits = (*there, *shown.of(past_turns))
        used = self._room - shown.left
        left_out = len(more) + len(past_turns) - len(shown.taken)
        return Recalled(hits, dropped=left_out, tokens=used, listed=tuple(listed))

    def _pinned_first(
        self, facts: FactSearch, private: Collection[KeyValue], first: Sequence[int] = ()
    ) -> list[FoundFact]:
        """What a person pinned, then profile and preferences, those of ``first`` before others."""
        place = {memory_id: n for n, memory_id in enumerate(first)}
        pinned = distinct(_without_sensitive(_unmuted(facts.pinned(), facts.mute), private))
        pinned.sort(key=lambda f: (not f.memory.pinned, place.get(f.memory.id, len(place))))
        return pinned

    def _chosen(
        self,
        facts: FactSearch,
        pinned: Sequence[FoundFact],
        found: Sequence[FoundFact],
        others: Sequence[FoundFact],
        turns: TurnsBeside,
    ) -> Recalled:
        """The best of more facts than fit, and past turns.

        Pinned facts and the profile come first, as far as their share goes; then the best found,
        then all others by their scores until the facts' share is full. Facts fill what past turns
        leave.
        """
        matched = {fact.memory.id: fact for fact in found}
        first = [matched.get(f.memory.id) or replace(f, channel="newest") for f in pinned]
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
        past_turns = turns([*shown.taken.values()])
        shown.take(past_turns)
        shown.take(always, self.settings.pinned_tokens if not among.taken else 0)
        shown.take(rest)
        facts_in = [hit for hit in shown.taken.values() if hit.kind == "memory"]
        there = facts.count if facts.only is None else sum(1 for _ in facts.in_force())
        turns_in = shown.of(past_turns)
        dropped = max(there - len(facts_in), 0) + len(past_turns) - len(turns_in)
        hits = (*facts_in, *turns_in)
        return Recalled(hits, dropped=dropped, tokens=self._room - shown.left)

    def _past_turns(
        self,
        search: ScoredSearch,
        session_id: int | None,
        mute: Collection[int],
        known: Mapping[int, Memory],
        only: Wanted | None,
    ) -> list[Hit]:
        """Turns of other conversations that are more than the proof of facts shown."""
        found = self.recall.past_turns(search, CANDIDATES, session_id, only=only)
        return [
            one.as_hit(self.settings.zone)
            for one in found
            if (one.unread or one.score >= _WEAK * found[0].score)
            and not (one.only_proves(known) or one.taught_any(mute))
            and not any(fact.memory.id in mute for fact in one.facts)
        ]

    def _returning_turns(
        self, search: ScoredSearch, dropped: Sequence[int], mute: Collection[int]
    ) -> list[Hit]:
        """Turns of this very conversation that no longer fit its window, by their words."""
        tx, own = search.tx, search.tx.own
        if not dropped or not own:
            return []
        search = replace(search, ids=[own])
        matches = search.matches("turn", replies=True)
        scores = matches.of(search.passing_by_words(matches, dropped))
        drawn = changes.taught_by(tx, scores)
        excluded = _excluded(search.tx, drawn, mute)
        scores = {i: score for i, score in scores.items() if i not in excluded}
        best = sorted(scores, key=lambda i: (-scores[i], -i))[:RETURNING]
        turns = messages.by_ids(tx, best)
        zone = self.settings.zone
        hits = []
        for i in best:
            text = render.past_turn(turns[i], zone)
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
                    tells=tuple(one.as_told() for one in drawn if one.message_id == i),
                )
            )
        return hits


def _excluded(tx: Tx, drawn: Sequence[Taught], mute: Collection[int]) -> set[int]:
    """The turns that taught a fact that is being forgotten, or one that is muted here."""
    now = changes.current(tx, tx.ids, sorted({one.memory.id for one in drawn}))
    out = {i for i, memory in now.items() if memory.id in mute}.union(mute)
    return {
        message_id
        for message_id, _, memory in drawn
        if memory.inactive_reason == FORGOTTEN or memory.id in out
    }


def _as_listed(found: Sequence[Hit], listed: Sequence[Hit]) -> list[Hit]:
    """What was found, each as the line of the list with the same key and value. Those that the list
    lacks are sensitive."""
    there = {hit.id for hit in listed}
    same_value = {_hit_key_value(hit): hit for hit in listed}
    same = (hit if hit.id in there else same_value.get(_hit_key_value(hit), hit) for hit in found)
    distinct_hits = {hit.id: hit for hit in same}
    return list(distinct_hits.values())


def _hit_key_value(hit: Hit) -> KeyValue:
    assert hit.memory is not None
    return _key_value(hit.memory)


def _key_value(memory: Memory) -> KeyValue:
    return memory.key, normal_value(memory.value)


def _muted(tx: Tx, session_id: int | None) -> set[int]:
    """The memories that a person muted in a conversation, and others with the same words."""
    if session_id is None:
        return set()
    ids = tx.ids
    mute = sessions.muted_of_session(tx, session_id)
    for memory in memories.by_ids(tx, ids, sorted(mute)).values():
        there = memories.with_key(tx, ids, memory.key)
        mute.update(one.id for one in there if _key_value(one) == _key_value(memory))
    return mute


def _without_sensitive(
    facts: Sequence[FoundFact], private: Collection[KeyValue]
) -> list[FoundFact]:
    """The facts that may be shown for any message: neither sensitive nor with the words of one that
    is, all of which ``private`` holds."""
    return [fact for fact in facts if _key_value(fact.memory) not in private]


def _unmuted(facts: Sequence[FoundFact], mute: Collection[int]) -> list[FoundFact]:
    """Without those that a person muted here."""
    return [fact for fact in facts if fact.memory.id not in mute]
