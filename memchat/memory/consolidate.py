"""Keeping the store clean: what a new fact does to the facts that are there.

In this order, first match wins: forgotten before; ends a known fact; said before, to the letter or
in equal words; takes the place of the fact it updates; takes the place of another value of a key
that holds one; merges with a near copy whose guards agree; is new. The loser always stays,
inactive, with the reason and a link, and can be brought back. Nearness alone never decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory import keys, markers, text
from memchat.memory.candidate import Relation
from memchat.store import evidence, inbox, memories, tombstones
from memchat.store.events import Cause
from memchat.store.inbox import Held
from memchat.store.memories import NewMemory
from memchat.types import Change, CreatedBy, Memory, MemoryType


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that passed the gate, or that a person entered by hand, on its way into the store."""

    memory_type: MemoryType
    key: str
    value: str
    said_at: datetime
    search_text: str
    created_by: CreatedBy
    many: bool = False
    expires_at: date | None = None
    relation: Relation = "new"
    target_id: int | None = None
    """The known fact that ``relation`` speaks of."""
    proofs: tuple[tuple[int, int, str], ...] = ()
    """(message id, start, quote)."""
    near: tuple[tuple[int, float], ...] = ()
    """(memory id, cosine) of its nearest neighbours."""

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(quote for _, _, quote in self.proofs)


def search_text(
    memory_type: str,
    key: str,
    value: str,
    user: str,
    said_at: datetime,
    zone: ZoneInfo,
    quote: str = "",
) -> str:
    """What is embedded and indexed: ``type | key | value``, then who said it, when and how."""
    day = said_at.astimezone(zone)
    sentence = keys.SENTENCES.get(key, "").replace("{}", value)
    if not sentence and not quote:
        sentence = f"{key.replace('_', ' ')} {value}"
    said = ": ".join(part for part in (sentence, quote) if part)
    return f"{memory_type} | {key} | {value}\n[{day.day} {day:%B %Y}] {user} {said}"


def forgotten_form(key: str, value: str) -> str:
    """The form under which a forgotten fact is recognised."""
    return f"{key}|{text.normal_value(value)}"


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One writer's transaction over one scope: facts go in one after another."""

    tx: Connection
    own: int
    shared: int
    cause: Cause
    merge_threshold: float
    written: list[int] = field(default_factory=list)
    """Ids of rows that are new or have new words, whose vectors are to be kept."""

    def apply(self, fact: Fact) -> Change:
        """Put one fact in; what that did."""
        if fact.created_by != "manual" and self._forgotten(fact):
            return Change("refused", None, fact.quotes, reason="it was forgotten on request")
        target = self._target(fact)
        if fact.relation == "ends":
            return self._end(fact, target)
        known = self._same_words(fact)
        if known is not None and known.active:
            return self._repeat(fact, known)
        if known is not None:
            return self._revive(fact, known)
        if fact.relation == "same" and target is not None:
            return self._repeat(fact, target)
        return self._insert(fact, target)

    def _forgotten(self, fact: Fact) -> bool:
        ids = (self.own, self.shared)
        form = forgotten_form(fact.key, fact.value)
        if tombstones.buried(self.tx, ids, "value", form):
            return True
        return any(
            tombstones.buried(self.tx, ids, "source", f"{fact.key}|{message_id}")
            for message_id, _, _ in fact.proofs
        )

    def _target(self, fact: Fact) -> Memory | None:
        if fact.target_id is None:
            return None
        target = memories.get(self.tx, (self.own, self.shared), fact.target_id)
        return target if target is not None and target.active else None

    def _end(self, fact: Fact, target: Memory | None) -> Change:
        if target is None:
            return Change("refused", None, fact.quotes, reason="the fact it ends is not there")
        memories.deactivate(self.tx, target, self._scope_of(target), "ended", self.cause)
        evidence.add(self.tx, target.id, fact.proofs)
        return Change("ended", target, fact.quotes, before=target.value)

    def _same_words(self, fact: Fact) -> Memory | None:
        sha1 = memories.sha1_of(fact.memory_type, fact.key, fact.value)
        known = memories.by_sha1(self.tx, (self.own, self.shared), sha1)
        if known is not None:
            return known
        normal = text.normal_value(fact.value)
        for other in memories.with_key(self.tx, (self.own, self.shared), fact.key):
            if text.normal_value(other.value) == normal:
                return other
        return None

    def _repeat(self, fact: Fact, known: Memory) -> Change:
        scope = self._scope_of(known)
        memories.repeat(self.tx, known, scope, fact.said_at, self.cause)
        if fact.expires_at != known.expires_at and (fact.expires_at or fact.created_by == "manual"):
            memories.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)
        evidence.add(self.tx, known.id, fact.proofs)
        return Change("repeated", self._fresh(known.id), fact.quotes)

    def _revive(self, fact: Fact, known: Memory) -> Change:
        before = self._supersede_rivals(fact, known.id)
        if before is None and not known.many and self._newer_rival(fact):
            evidence.add(self.tx, known.id, fact.proofs)
            return Change("repeated", known, fact.quotes)
        scope = self._scope_of(known)
        memories.reactivate(self.tx, known, scope, self.cause)
        memories.repeat(self.tx, known, scope, fact.said_at, self.cause)
        if fact.expires_at != known.expires_at:
            memories.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)
        evidence.add(self.tx, known.id, fact.proofs)
        self.written.append(known.id)
        kind = "superseded" if before else "revived"
        return Change(kind, self._fresh(known.id), fact.quotes, before=before)

    def _insert(self, fact: Fact, target: Memory | None) -> Change:
        many = self._many(fact)
        memory_id = memories.insert_new(
            self.tx,
            self.own,
            NewMemory(
                memory_type=fact.memory_type,
                key=fact.key,
                value=fact.value,
                many=many,
                search_text=fact.search_text,
                said_at=fact.said_at,
                created_by=fact.created_by,
                expires_at=fact.expires_at,
            ),
            self.cause,
        )
        self.written.append(memory_id)
        evidence.add(self.tx, memory_id, fact.proofs)
        before = None
        if fact.relation == "updates" and target is not None:
            before = self._replace(target, memory_id, fact)
        if keys.cardinality(fact.key) == "one":
            before = self._supersede_rivals(fact, memory_id) or before
            rival = self._newer_rival(fact, memory_id)
            if rival is not None:
                new = self._fresh(memory_id)
                memories.deactivate(
                    self.tx, new, self.own, "superseded", self.cause, replaced_by=rival.id
                )
                return Change("added", self._fresh(memory_id), fact.quotes)
        if before is not None:
            return Change("superseded", self._fresh(memory_id), fact.quotes, before=before)
        merged = self._merge_near(fact, memory_id)
        kind = "added" if merged is None else "merged"
        return Change(kind, self._fresh(memory_id), fact.quotes, before=merged)

    def _replace(self, old: Memory, new_id: int, fact: Fact) -> str | None:
        if self._scope_of(old) != self.own:
            # What holds in every app is not this conversation's to change: a person decides.
            held = Held("it may replace what you keep for every app", related_id=old.id)
            self._hold(held, new_id)
            return None
        if old.said_at > fact.said_at:
            return None
        memories.deactivate(self.tx, old, self.own, "superseded", self.cause, replaced_by=new_id)
        return old.value

    def _supersede_rivals(self, fact: Fact, new_id: int) -> str | None:
        """Retire other, older values of a key that holds one; the newest of them."""
        if keys.cardinality(fact.key) != "one":
            return None
        before = None
        for rival in memories.with_key(self.tx, (self.own,), fact.key):
            if rival.id != new_id and rival.said_at <= fact.said_at:
                self._replace(rival, new_id, fact)
                before = before or rival.value
        return before

    def _newer_rival(self, fact: Fact, new_id: int | None = None) -> Memory | None:
        for rival in memories.with_key(self.tx, (self.own,), fact.key):
            if rival.id != new_id and rival.said_at > fact.said_at:
                return rival
        return None

    def _merge_near(self, fact: Fact, new_id: int) -> str | None:
        if fact.relation == "beside":
            return None
        close = [i for i, cosine in fact.near if cosine >= self.merge_threshold and i != new_id]
        for other in memories.by_ids(self.tx, (self.own,), close).values():
            if not other.active:
                continue
            if may_merge(other, fact):
                memories.deactivate(
                    self.tx, other, self.own, "merged", self.cause, replaced_by=new_id
                )
                return other.value
            self._hold(
                Held("close to another memory: the same, or not?", related_id=other.id), new_id
            )
        return None

    def _hold(self, held: Held, memory_id: int) -> None:
        pair = Held(held.reason, memory_id=memory_id, related_id=held.related_id)
        inbox.add(self.tx, self.own, pair, self.cause.at)

    def _many(self, fact: Fact) -> bool:
        built_in = keys.cardinality(fact.key)
        if built_in is not None:
            return built_in == "many"
        so_far = memories.many_so_far(self.tx, (self.own, self.shared), fact.key)
        return fact.many if so_far is None else so_far

    def _scope_of(self, memory: Memory) -> int:
        return self.own if memory.app else self.shared

    def _fresh(self, memory_id: int) -> Memory:
        found = memories.get(self.tx, (self.own, self.shared), memory_id)
        assert found is not None
        return found


def may_merge(old: Memory, new: Fact) -> bool:
    """Whether two near facts may be merged unasked: type, key and every guard must agree."""
    return (
        old.memory_type == new.memory_type
        and old.key == new.key
        and old.expires_at == new.expires_at
        and agree(old.value, new.value)
    )


def agree(one: str, other: str) -> bool:
    """Whether two values hold the same numbers, names and negation, and no noun of their own."""
    return (
        text.numbers(one) == text.numbers(other)
        and text.names(one, from_start=True) == text.names(other, from_start=True)
        and _negated(one) == _negated(other)
    )


def _negated(value: str) -> bool:
    return bool(markers.marked("negation", text.fold(value).text, ()))
