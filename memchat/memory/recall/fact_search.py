"""Finding facts: those in use that a question means, and the profile that every chat is given.

A replaced value is found behind the one that is there now, which takes its scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language.text import normal_value
from memchat.memory.facts.in_force import as_of
from memchat.memory.recall import render
from memchat.memory.recall.ranking import CANDIDATES, Parts, ScoredSearch
from memchat.store import memories, memory_lists, replacements
from memchat.store.apps import ScopeIds
from memchat.store.replacements import ReplacedValue
from memchat.store.values_in_force import ValuesInForce, holds_on
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Wanted

PINNED_MOST = 100
NEWEST = Parts(0.0, None, None, confident=False)
"""Of a fact that nothing of the question speaks for."""
PAST_MOST = 3
"""Replaced values that a line tells of."""


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that was found, before it is put into words."""

    memory: Memory
    score: float
    parts: Parts
    channel: str
    asked: Collection[int] = ()
    """What the question found, replaced values among it."""

    @property
    def confident(self) -> bool:
        """Whether it passes the floor."""
        return self.parts.confident


@dataclass(frozen=True, slots=True)
class FactSearch:
    """The facts of some scopes as they stand on a day."""

    tx: Connection
    scope: ScopeIds
    today: date
    zone: ZoneInfo
    mute: Collection[int] = frozenset()
    """Replaced values that no line names."""
    standing: ValuesInForce = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "standing", as_of(self.tx, self.scope.ids, self.today))

    def sensitive_words(self) -> set[tuple[str, str]]:
        """The keys and plain values of the sensitive facts in use: another row may say the same."""
        back = [*self.standing.back.values()]
        rows = memory_lists.sensitive_words(self.tx, self.scope.ids, self.today, back)
        return {(key, normal_value(value)) for key, value in rows}

    def find(self, search: ScoredSearch, limit: int, least: int = 0) -> list[FoundFact]:
        """The facts that answer a question confidently, best first, of equal ones the newest.

        Where these are fewer than ``least`` the best of the others follow, and where nothing speaks
        for any more of them the newest.
        """
        ids = self.scope.ids
        if not ids or limit < 1:
            return []
        over = memory_lists.expired_ids(self.tx, ids, self.today)
        found = search.found("memories", max(CANDIDATES, limit), frozenset(over))
        sure = {i: parts for i, parts in found.items() if parts.confident}
        facts = self._ranked(sure)
        if len(facts) < least:
            facts = self._ranked(found)
        if len(facts) < least:
            facts += self._newest(facts, least - len(facts))
        return facts[:limit]

    def _ranked(self, found: dict[int, Parts]) -> list[FoundFact]:
        """What was found as facts in use, best first, confident ones before the others."""
        asked = frozenset(i for i, parts in found.items() if parts.confident)
        facts = [
            FoundFact(memory, round(parts.score, 6), parts, parts.channel, asked)
            for memory in self.unshadowed(self._credited(found))
            for parts in (found[memory.id],)
        ]
        facts.sort(key=lambda fact: fact.memory.id)
        facts.sort(key=lambda fact: (fact.confident, fact.score, fact.memory.said_at), reverse=True)
        return facts

    def _newest(self, besides: Sequence[FoundFact], count: int) -> list[FoundFact]:
        """The newest facts in use but for those that were found."""
        known = {fact.memory.id for fact in besides}
        rows = memory_lists.listed(
            self.tx, self.scope.ids, Wanted(), self.standing, limit=count + len(known)
        )
        others = [m for m in self.unshadowed(rows) if m.id not in known]
        return [FoundFact(memory, 0.0, NEWEST, "newest") for memory in others[:count]]

    def pinned(self) -> list[FoundFact]:
        """What a person pinned, and the profile and preferences that may stand behind it, the most
        confirmed first."""
        rows = memory_lists.pinned_first(self.tx, self.scope.ids, self.standing, PINNED_MOST)
        always = Parts(1.0, None, None)
        return [FoundFact(memory, 1.0, always, "pinned") for memory in self.unshadowed(rows)]

    def told(self, facts: Sequence[FoundFact]) -> list[Hit]:
        """The facts in words, each with what it replaced."""
        ids = [fact.memory.id for fact in facts]
        before = self._replaced(ids) if ids else {}
        return [self._hit(fact, before.get(fact.memory.id, [])) for fact in facts]

    def for_model(self, facts: Sequence[FoundFact]) -> list[Hit]:
        """The facts as a chat model is told them: in short, and of what they replaced only what
        was asked for."""
        ids = [fact.memory.id for fact in facts if fact.asked]
        replaced = self._replaced(ids) if ids else {}
        hits = []
        for fact in facts:
            before = [p for p in replaced.get(fact.memory.id, []) if p.id in fact.asked]
            before = [p for p in before if p.id not in self.mute][:PAST_MOST]
            text = render.fact(fact.memory, self.zone, self.today, before)
            hits.append(_as_hit(fact, text, f"- #{fact.memory.id} {text}\n", before))
        return hits

    def in_force(self) -> Iterator[Memory]:
        """What holds today or is still to come, the app's own first, as it is read."""
        back = memories.by_ids(self.tx, self.scope.ids, list(self.standing.back.values()))
        own_keys: set[str] = set()
        for app_id in self.scope.ids:
            own = app_id == self.scope.own
            again = [m for m in back.values() if bool(m.app) == own]
            for row in chain(memory_lists.each_active(self.tx, app_id), again):
                memory = self.standing.as_of_today(row)
                over = memory.expires_at is not None and memory.expires_at < self.today
                if over or not memory.active:
                    continue
                if not own and not memory.many and memory.key in own_keys:
                    continue  # the app itself knows better
                if own and not memory.many and holds_on(memory, self.today):
                    own_keys.add(memory.key)
                yield memory

    def _replaced(self, ids: Sequence[int]) -> dict[int, list[ReplacedValue]]:
        """What these memories replaced, newest first; what they did only today among it."""
        today = self.standing.replaced(ids)
        found = replacements.replaced_values(self.tx, self.scope.ids, [*ids, *today])
        if today:
            rows = memories.by_ids(self.tx, self.scope.ids, [*today, *today.values()])
            for i in sorted(today, key=lambda i: rows[i].said_at):
                winner = rows[today[i]]
                past = ReplacedValue(i, rows[i].value, winner.starts_at or winner.said_at)
                chain = [past, *found.pop(i, [])]
                found[winner.id] = chain + found.get(winner.id, [])
        return found

    def _credited(self, found: dict[int, Parts]) -> list[Memory]:
        """The memories in use that were found, or stand in the place of a replaced value that was:
        that value's scores are theirs where they are higher."""
        now = self._present(sorted(found))
        for found_id, memory in now.items():
            parts = found[found_id]
            if memory.id not in found or parts.order > found[memory.id].order:
                found[memory.id] = parts
        distinct = {memory.id: memory for memory in now.values()}
        return [m for m in distinct.values() if m.expires_at is None or m.expires_at >= self.today]

    def _present(self, ids: Sequence[int]) -> dict[int, Memory]:
        """For each of these memories the one that stands in its place today."""
        now = replacements.current(self.tx, self.scope.ids, ids)
        places = {i: self.standing.current_id(memory.id) for i, memory in now.items()}
        moved = sorted({place for i, place in places.items() if place != now[i].id})
        rows = memories.by_ids(self.tx, self.scope.ids, moved)
        return {i: self.standing.as_of_today(rows.get(places[i], m)) for i, m in now.items()}

    def unshadowed(self, rows: Sequence[Memory]) -> list[Memory]:
        """Without what the app itself knows better: its own value of a key that holds one."""
        shared = {memory.key for memory in rows if not memory.app and not memory.many}
        if not shared or self.scope.own is None:
            return list(rows)
        own = memory_lists.single_valued_keys(
            self.tx, self.scope.own, sorted(shared), self.standing
        )
        return [m for m in rows if m.app or m.many or m.key not in own]

    def _hit(self, fact: FoundFact, past: Sequence[ReplacedValue]) -> Hit:
        memory = fact.memory
        # Of the values a memory replaced the latest is told, and those that were asked for.
        before = [p for n, p in enumerate(past) if n == 0 or p.id in fact.asked]
        before = [p for p in before if p.id not in self.mute][:PAST_MOST]
        text = render.line(memory, self.zone, before)
        return _as_hit(fact, text, f"- {text}\n", before)


def _as_hit(fact: FoundFact, text: str, sent: str, before: Sequence[ReplacedValue]) -> Hit:
    """A fact as a hit; ``sent`` is its line in a prompt, ``before`` what the line tells besides."""
    memory, parts = fact.memory, fact.parts
    return Hit(
        kind="memory",
        id=memory.id,
        text=text,
        score=fact.score,
        cosine=parts.cosine,
        bm25=parts.bm25,
        channel=fact.channel,
        tokens=estimate_tokens(sent),
        memory=memory,
        said_at=memory.said_at,
        dated=parts.dated,
        confident=fact.confident,
        tells=tuple((p.id, memory.key, p.value) for p in before),
    )


def distinct(facts: Sequence[FoundFact], besides: Sequence[FoundFact] = ()) -> list[FoundFact]:
    """Without those that say what an earlier one says, or one of ``besides``: the same key and,
    but for case, value."""
    said = {_said(fact) for fact in besides}
    kept = []
    for fact in facts:
        if (words := _said(fact)) not in said:
            said.add(words)
            kept.append(fact)
    return kept


def _said(fact: FoundFact) -> tuple[str, str]:
    return fact.memory.key, normal_value(fact.memory.value)
