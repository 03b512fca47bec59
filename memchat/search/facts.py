"""Finds the facts to show: those that answer a question, and those that every chat is given.

Where a replaced value is found, the fact in use now gets its score. Where very many facts are
pinned, a cheap model may choose those that fit a message; this is off by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import chain

from pydantic import BaseModel, ConfigDict, ValidationError

from memchat.db import Tx
from memchat.errors import ConfigError, ProviderError
from memchat.facts import changes, memories
from memchat.facts.changes import ReplacedValue
from memchat.facts.in_force import as_of
from memchat.facts.memories import ValuesInForce, holds_on, is_over
from memchat.language.text import normal_value
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import render
from memchat.search.ranking import CANDIDATES, ScoredSearch, ScoreParts
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Hit, Memory, Usage, Wanted

PINNED_MOST = 100
NO_MATCH = ScoreParts(0.0, None, None, confident=False)
"""Of a fact that has nothing in common with the question."""
ALWAYS = ScoreParts(1.0, None, None)
"""Of a fact that is shown for every question."""
REPLACED_MOST = 3
"""Replaced values that a line names."""


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that was found, before it is written as a line."""

    memory: Memory
    parts: ScoreParts
    channel: str
    matched: Collection[int] = ()
    """Ids of all that the question found confidently, replaced values among them."""

    @property
    def score(self) -> float:
        """From 0 to 1."""
        return round(self.parts.score, 6)

    @property
    def confident(self) -> bool:
        """Whether it passes the floor."""
        return self.parts.confident


@dataclass(frozen=True)
class FactSearch:
    """The facts of a scope as they stand today."""

    tx: Tx
    mute: Collection[int] = frozenset()
    """Replaced values that no line names."""
    only: Wanted | None = None
    """Only facts that match this are found."""
    fitting: frozenset[int] | None = field(init=False)
    """The ids of all that do, active or not; None where all may be found."""
    today: date = field(init=False)
    standing: ValuesInForce = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "today", self.tx.today)
        object.__setattr__(self, "standing", as_of(self.tx, self.tx.ids))
        ids = self.only and frozenset(memories.ids_that_fit(self.tx, self.tx.ids, self.only))
        object.__setattr__(self, "fitting", ids)

    @cached_property
    def count(self) -> int:
        """How many facts a prompt could contain, whatever is asked."""
        return memories.count_for_prompts(self.tx, self.tx.ids, self.today, self.mute)

    def sensitive_words(self) -> set[tuple[str, str]]:
        """Key and plain value of each sensitive fact in use: another row may have the same."""
        back = [*self.standing.back.values()]
        rows = memories.sensitive_words(self.tx, self.tx.ids, self.today, back)
        return {(key, normal_value(value)) for key, value in rows}

    def find(self, search: ScoredSearch, limit: int, least: int = 0) -> list[FoundFact]:
        """The facts that answer a question confidently, best first, of equal ones the newest.

        Where these are fewer than ``least`` the best of the others follow, and then the newest of
        those that match nothing.
        """
        if not self.tx.ids or limit < 1:
            return []
        if self.fitting is not None:
            search = replace(search, only=self._leading(self.fitting))
        found = search.found("fact", max(CANDIDATES, limit), self.standing.over)
        sure = {i: parts for i, parts in found.items() if parts.confident}
        wanted = found if len(sure) < least else sure
        now = self._present(sorted(wanted))
        facts = self._ranked(sure, now)
        if len(facts) < least:
            now = now if wanted is found else self._present(sorted(found))
            facts = self._ranked(found, now)
        if len(facts) < least:
            facts += self._newest(facts, least - len(facts))
        return facts[:limit]

    def _leading(self, fitting: frozenset[int]) -> frozenset[int]:
        """The rows that lead to one of these facts: its own, and those of the values that it
        replaced."""
        past = changes.replaced_values(self.tx, self.tx.ids, [*fitting])
        return fitting.union(value.id for values in past.values() for value in values)

    def fits(self, memory: Memory) -> bool:
        """Whether it may be found."""
        return self.fitting is None or memory.id in self.fitting

    def _ranked(self, found: dict[int, ScoreParts], now: Mapping[int, Memory]) -> list[FoundFact]:
        """What was found as facts in use, best first, confident ones before the others; ``now`` has
        for each the memory that stands for it today."""
        matched = frozenset(i for i, parts in found.items() if parts.confident)
        facts = [
            FoundFact(memory, found[memory.id], found[memory.id].channel, matched)
            for memory in self.unshadowed(self._credited(found, now))
        ]
        facts.sort(key=lambda fact: fact.memory.id)
        facts.sort(key=lambda fact: (fact.confident, fact.score, fact.memory.said_at), reverse=True)
        return facts

    def _newest(self, besides: Sequence[FoundFact], count: int) -> list[FoundFact]:
        """The newest facts in use but for those that were found."""
        known = {fact.memory.id for fact in besides}
        most, wanted = count + len(known), self.only or Wanted()
        # Of each row of the scope by itself: an index has those in their order.
        rows = [
            memory
            for app_id in self.tx.ids
            for memory in memories.listed(self.tx, [app_id], wanted, self.standing, limit=most)
        ]
        rows.sort(key=lambda memory: (memory.said_at, memory.id), reverse=True)
        others = [m for m in self.unshadowed(rows[:most]) if m.id not in known]
        return [FoundFact(memory, NO_MATCH, "newest") for memory in others[:count]]

    def pinned(self) -> list[FoundFact]:
        """The pinned facts, then profile and preferences, the most confirmed first."""
        rows = memories.pinned_first(self.tx, self.tx.ids, self.standing, PINNED_MOST)
        there = filter(self.fits, self.unshadowed(rows))
        return [FoundFact(memory, ALWAYS, "pinned") for memory in there]

    def hits(self, facts: Sequence[FoundFact]) -> list[Hit]:
        """The facts as full lines, each with the latest value it replaced and those found."""
        replaced = self._replaced([fact.memory.id for fact in facts])
        hits = []
        for fact in facts:
            past = replaced.get(fact.memory.id, [])
            before = self._shown([p for n, p in enumerate(past) if n == 0 or p.id in fact.matched])
            text = render.line(fact.memory, self.tx.zone, before)
            hits.append(_as_hit(fact, text, f"- {text}\n", before))
        return hits

    def for_model(self, facts: Sequence[FoundFact]) -> list[Hit]:
        """The facts as short lines of a prompt, each with the replaced values that were found."""
        replaced = self._replaced([fact.memory.id for fact in facts if fact.matched])
        hits = []
        for fact in facts:
            past = replaced.get(fact.memory.id, [])
            before = self._shown([p for p in past if p.id in fact.matched])
            text = render.fact(fact.memory, self.tx.zone, self.today, before)
            hits.append(_as_hit(fact, text, f"- #{fact.memory.id} {text}\n", before))
        return hits

    def _shown(self, replaced: Sequence[ReplacedValue]) -> list[ReplacedValue]:
        return [past for past in replaced if past.id not in self.mute][:REPLACED_MOST]

    def in_force(self) -> Iterator[Memory]:
        """The facts in force today or later, the app's own first, read one by one."""
        back = memories.by_ids(self.tx, self.tx.ids, list(self.standing.back.values()))
        own_keys: set[str] = set()
        for app_id in self.tx.ids:
            own = app_id == self.tx.own
            again = [m for m in back.values() if bool(m.app) == own]
            for row in chain(memories.each_active(self.tx, app_id), again):
                memory = self.standing.as_of_today(row)
                if is_over(memory, self.today) or not memory.active:
                    continue
                if not own and not memory.many and memory.key in own_keys:
                    continue  # the app has a value of its own
                if own and not memory.many and holds_on(memory, self.today):
                    own_keys.add(memory.key)
                if self.fits(memory):
                    yield memory

    def _replaced(self, ids: Sequence[int]) -> dict[int, list[ReplacedValue]]:
        """What these memories replaced, newest first, including what they replaced only today."""
        if not ids:
            return {}
        today = self.standing.replaced(ids)
        found = changes.replaced_values(self.tx, self.tx.ids, [*ids, *today])
        if today:
            rows = memories.by_ids(self.tx, self.tx.ids, [*today, *today.values()])
            for i in sorted(today, key=lambda i: rows[i].said_at):
                winner = rows[today[i]]
                newest = ReplacedValue(i, rows[i].value, winner.starts_at or winner.said_at)
                chain = [newest, *found.pop(i, [])]
                found[winner.id] = chain + found.get(winner.id, [])
        return found

    def _credited(self, found: dict[int, ScoreParts], now: Mapping[int, Memory]) -> list[Memory]:
        """The memories in use that were found, or that replaced a value that was: its scores are
        theirs where they are higher."""
        now = {found_id: memory for found_id, memory in now.items() if found_id in found}
        for found_id, memory in now.items():
            parts = found[found_id]
            if memory.id not in found or parts.order > found[memory.id].order:
                found[memory.id] = parts
        distinct = {m.id: m for m in now.values() if self.fits(m)}
        return [m for m in distinct.values() if not is_over(m, self.today)]

    def _present(self, ids: Sequence[int]) -> dict[int, Memory]:
        """For each of these memories the one that replaces it today, or itself."""
        now = changes.current(self.tx, self.tx.ids, ids)
        places = {i: self.standing.current_id(memory.id) for i, memory in now.items()}
        moved = sorted({place for i, place in places.items() if place != now[i].id})
        rows = memories.by_ids(self.tx, self.tx.ids, moved)
        return {i: self.standing.as_of_today(rows.get(places[i], m)) for i, m in now.items()}

    def unshadowed(self, rows: Sequence[Memory]) -> list[Memory]:
        """Without values shared by every app whose key has a value of the app's own."""
        shared = {memory.key for memory in rows if not memory.app and not memory.many}
        if not shared or not self.tx.own:
            return list(rows)
        own = memories.single_valued_keys(self.tx, self.tx.own, sorted(shared), self.standing)
        return [m for m in rows if m.app or m.many or m.key not in own]


def _as_hit(fact: FoundFact, text: str, sent: str, before: Sequence[ReplacedValue]) -> Hit:
    """A fact as a hit; ``sent`` is its line in a prompt, ``before`` the replaced values in it."""
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


def distinct(facts: Sequence[FoundFact]) -> list[FoundFact]:
    """Without those that have the key and, but for case, the value of an earlier one."""
    first: dict[tuple[str, str], FoundFact] = {}
    for fact in facts:
        first.setdefault((fact.memory.key, normal_value(fact.memory.value)), fact)
    return list(first.values())


ABOVE = 50
"""Pinned facts up to which their order, most confirmed first, is good enough."""


class _Chosen(BaseModel):
    model_config = ConfigDict(strict=True)
    ids: list[int]


@dataclass(frozen=True, slots=True)
class ModelFilter:
    """Calls the model once; where its answer cannot be used, nothing is chosen."""

    prompts: Prompts
    model: Callable[[], ChatModel]

    def choose(self, message: str, facts: Sequence[Hit]) -> tuple[list[int], Usage | None]:
        """The ids of the facts that fit the message, the best first, and what the call took."""
        if len(facts) <= ABOVE or self.model().stand_in:
            return [], None
        data = {"message": message, "facts": [{"id": f.id, "fact": f.text} for f in facts]}
        sent = [
            ChatMessage("system", self.prompts.text("relevant")),
            ChatMessage("user", json.dumps(data, ensure_ascii=False)),
        ]
        try:
            answer = self.model().complete(sent, purpose="relevance")
        except (ProviderError, ConfigError):
            return [], None
        text = answer.text
        try:
            chosen = _Chosen.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        except ValidationError:
            return [], answer.usage
        known = {fact.id for fact in facts}
        return [i for i in dict.fromkeys(chosen.ids) if i in known], answer.usage
