"""Keeping the store clean: what a new fact does to the facts that are there.

In this order, first match wins: ends a known fact; said before, to the letter or in equal words;
forgotten on request; takes the place of the fact it updates; takes the place of another value of a
key that holds one; merges with a near copy whose guards agree; is new. The loser always stays,
inactive, with the reason and a link, and can be brought back. Nearness alone never decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory import buried
from memchat.memory.gate import guards, keys, text
from memchat.memory.gate.candidate import Relation
from memchat.store import evidence, inbox, memories, succession
from memchat.store.events import Cause
from memchat.store.inbox import Held
from memchat.store.memories import NewMemory
from memchat.types import EVERY_APP, Change, CreatedBy, Memory, MemoryType


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
    starts_at: date | None = None
    cues: tuple[str, ...] = ()
    detail: dict[str, str] | None = None
    """What a second look said of it, for its events."""

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


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One writer's transaction over one scope: facts go in one after another."""

    tx: Connection
    own: int
    shared: int
    cause: Cause
    merge_threshold: float
    zone: ZoneInfo
    written: list[int] = field(default_factory=list)
    """Ids of rows that are new or have new words, whose vectors are to be kept."""

    def apply(self, fact: Fact) -> Change:
        """Put one fact in; what that did."""
        target = self._target(fact)
        if fact.relation == "ends":
            return self._end(fact, target)
        known = self._same_words(fact)
        if known is not None and known.active:
            return self._repeat(fact, known)
        if fact.created_by != "manual" and (forgotten := self._forgotten(fact)) is not None:
            return forgotten
        if known is not None:
            return self._revive(fact, known, target)
        if fact.relation == "same" and target is not None:
            return self._restate(fact, target)
        return self._insert(fact, target)

    def _forgotten(self, fact: Fact) -> Change | None:
        """What becomes of a fact that the person had forgotten; None for any other."""
        proofs = [(message_id, quote) for message_id, _, quote in fact.proofs]
        ids = (self.own, self.shared)
        stand = buried.stand(self.tx, ids, fact.key, fact.value, proofs, fact.said_at)
        if stand == "refuse":
            return Change("refused", None, fact.quotes, reason="it was forgotten on request")
        if stand == "ask":
            reason = "you had it forgotten, and it was said again: learn it again?"
            inbox.add(self.tx, self.own, _proposal(fact, reason), self.cause.at)
            return Change("review", None, fact.quotes, reason=reason)
        return None

    def _target(self, fact: Fact) -> Memory | None:
        if fact.target_id is None:
            return None
        target = memories.get(self.tx, (self.own, self.shared), fact.target_id)
        return target if target is not None and target.active else None

    def _end(self, fact: Fact, target: Memory | None) -> Change:
        if target is None:
            return Change("refused", None, fact.quotes, reason="the fact it ends is not there")
        if self._is_beyond(fact, target):
            reason = "it may be over; you keep it for every app"
            inbox.add(self.tx, self.own, Held(reason, memory_id=target.id), self.cause.at)
            return Change("review", target, fact.quotes, reason=reason)
        scope = self._scope_of(target)
        memories.deactivate(self.tx, target, scope, "ended", self.cause, said_at=fact.said_at)
        evidence.add(self.tx, target.id, fact.proofs)
        return Change("ended", target, fact.quotes, before=target.value)

    def _same_words(self, fact: Fact) -> Memory | None:
        sha1 = memories.sha1_of(fact.memory_type, fact.key, fact.value)
        known = memories.by_sha1(self.tx, (self.own, self.shared), sha1)
        if known is not None and not known.active and self._is_beyond(fact, known):
            known = memories.by_sha1(self.tx, (self.own,), sha1)
        if known is not None:
            return known
        normal = text.normal_value(fact.value)
        for other_id, value in memories.values_of(self.tx, (self.own, self.shared), fact.key):
            if text.normal_value(value) == normal:
                return memories.get(self.tx, (self.own, self.shared), other_id)
        return None

    def _repeat(self, fact: Fact, known: Memory) -> Change:
        scope = self._scope_of(known)
        messages = {message_id for message_id, _, _ in fact.proofs}
        # Words that were read before, as by "remember that …", are not said once more.
        if not messages or messages - evidence.messages_of(self.tx, known.id):
            memories.repeat(self.tx, known, scope, fact.said_at, self.cause)
        if fact.said_at >= known.said_at and not self._is_beyond(fact, known):
            self._prolong(fact, known, scope)
        evidence.add(self.tx, known.id, fact.proofs)
        return Change("repeated", self._fresh(known.id), fact.quotes)

    def _restate(self, fact: Fact, known: Memory) -> Change:
        """The same in other words. Both rows stay, the fuller in use: it can be undone."""
        if guards.covers(known.value, fact.value) or self._is_beyond(fact, known):
            return self._repeat(fact, known)
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        until = fact.expires_at if fact.expires_at or over else known.expires_at
        new = self._fresh(self._add_row(replace(fact, expires_at=until)))
        fuller = len(text.content_words(fact.value)) >= len(text.content_words(known.value))
        if fact.said_at < known.said_at or not fuller:
            memories.deactivate(self.tx, new, self.own, "merged", self.cause, replaced_by=known.id)
            return self._repeat(fact, known)
        scope = self._scope_of(known)
        memories.deactivate(self.tx, known, scope, "merged", self.cause, replaced_by=new.id)
        return Change("merged", self._fresh(new.id), fact.quotes, before=known.value)

    def _prolong(self, fact: Fact, known: Memory, scope: int) -> None:
        """Take over a new last day. Silence about it ends only one that is over, or a hand's."""
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        told = fact.expires_at is not None or fact.created_by == "manual" or over
        if told and fact.expires_at != known.expires_at:
            memories.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)

    def _revive(self, fact: Fact, known: Memory, target: Memory | None) -> Change:
        winner = self._winner(known)
        if winner is not None and known.inactive_reason == "merged":
            return self._repeat(fact, winner)
        overtaken = winner if winner is not None else self._newer_rival(fact)
        late = overtaken is not None and overtaken.said_at > fact.said_at
        if late or (known.inactive_reason == "ended" and known.last_seen_at > fact.said_at):
            evidence.add(self.tx, known.id, fact.proofs)
            return Change("repeated", known, fact.quotes)
        before = self._supersede_rivals(fact, known.id)
        if fact.relation == "updates" and target is not None and target.id != known.id:
            before = self._replace(fact, target, known.id) or before
        scope = self._scope_of(known)
        memories.reactivate(self.tx, known, scope, self.cause)
        memories.repeat(self.tx, known, scope, fact.said_at, self.cause)
        if fact.expires_at != known.expires_at:
            memories.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)
        evidence.add(self.tx, known.id, fact.proofs)
        self.written.append(known.id)
        kind = "superseded" if before else "revived"
        return Change(kind, self._fresh(known.id), fact.quotes, before=before)

    def _winner(self, known: Memory) -> Memory | None:
        """The active memory that took a replaced one's place, if there is one by now."""
        seen = {known.id}
        next_id = known.replaced_by
        while next_id is not None and next_id not in seen:
            seen.add(next_id)
            found = memories.get(self.tx, (self.own, self.shared), next_id)
            if found is None or found.active:
                return found
            next_id = found.replaced_by
        return None

    def _insert(self, fact: Fact, target: Memory | None) -> Change:
        memory_id = self._add_row(fact)
        newer = self._newer_than(fact, target, memory_id)
        if newer is not None:
            new = self._fresh(memory_id)
            memories.deactivate(
                self.tx, new, self.own, "superseded", self.cause, replaced_by=newer.id
            )
            return Change("added", self._fresh(memory_id), fact.quotes)
        before = self._supersede_rivals(fact, memory_id)
        if fact.relation == "updates" and target is not None and target.id != memory_id:
            before = self._replace(fact, target, memory_id) or before
        if before is not None:
            return Change("superseded", self._fresh(memory_id), fact.quotes, before=before)
        merged = self._merge_near(fact, memory_id)
        kind = "added" if merged is None else "merged"
        return Change(kind, self._fresh(memory_id), fact.quotes, before=merged)

    def _add_row(self, fact: Fact) -> int:
        memory_id = memories.insert_new(
            self.tx,
            self.own,
            NewMemory(
                memory_type=fact.memory_type,
                key=fact.key,
                value=fact.value,
                many=self._many(fact),
                search_text=fact.search_text,
                said_at=fact.said_at,
                created_by=fact.created_by,
                expires_at=fact.expires_at,
                starts_at=fact.starts_at,
                cues=fact.cues,
            ),
            self.cause,
        )
        self.written.append(memory_id)
        evidence.add(self.tx, memory_id, fact.proofs)
        return memory_id

    def _newer_than(self, fact: Fact, target: Memory | None, new_id: int) -> Memory | None:
        """What was said later than this fact and stands in its place, as when read late."""
        if fact.relation == "updates" and target is not None and target.said_at > fact.said_at:
            return target
        return self._newer_rival(fact, new_id)

    def _replace(self, fact: Fact, old: Memory, new_id: int) -> str | None:
        """Retire an older memory in favour of a new one; its value, or None where it stays."""
        if self._is_beyond(fact, old):
            # What holds in every app is not one conversation's to change: a person decides.
            held = Held("it may replace what you keep for every app", related_id=old.id)
            self._hold(held, new_id)
            return None
        if not self._fresh(old.id).active:
            return None  # retired a moment ago, as a rival
        scope = self._scope_of(old)
        memories.deactivate(self.tx, old, scope, "superseded", self.cause, replaced_by=new_id)
        return old.value

    def _supersede_rivals(self, fact: Fact, new_id: int) -> str | None:
        """Retire other, older values of a key that holds one; the newest of them."""
        before = None
        for rival in self._rivals(fact, new_id):
            if rival.said_at <= fact.said_at:
                replaced = self._replace(fact, rival, new_id)
                before = before or replaced
        return before

    def _newer_rival(self, fact: Fact, new_id: int | None = None) -> Memory | None:
        return next((r for r in self._rivals(fact, new_id) if r.said_at > fact.said_at), None)

    def _rivals(self, fact: Fact, new_id: int | None) -> list[Memory]:
        """The other active values in the scope of a built-in key that holds one."""
        if keys.cardinality(fact.key) != "one":
            return []
        found = memories.with_key(self.tx, (self.own,), fact.key)
        return [memory for memory in found if memory.id != new_id]

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

    def _is_beyond(self, fact: Fact, memory: Memory) -> bool:
        """Whether a memory is the user's in every app, where only they may change it."""
        return memory.app == EVERY_APP and fact.created_by == "auto"

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.zone).date()

    def _scope_of(self, memory: Memory) -> int:
        return self.own if memory.app else self.shared

    def _fresh(self, memory_id: int) -> Memory:
        found = memories.get(self.tx, (self.own, self.shared), memory_id)
        assert found is not None
        return found


def _proposal(fact: Fact, reason: str) -> Held:
    message_id, start, quote = fact.proofs[0] if fact.proofs else (None, None, None)
    return Held(
        reason,
        message_id=message_id,
        memory_type=fact.memory_type,
        key=fact.key,
        value=fact.value,
        quote=quote,
        start=start,
        expires_at=fact.expires_at,
        many=fact.many,
    )


def may_merge(old: Memory, new: Fact) -> bool:
    """Whether two near facts may be merged unasked: type, key and every guard must agree."""
    return (
        old.memory_type == new.memory_type
        and old.key == new.key
        and old.expires_at == new.expires_at
        and guards.agree(old.value, new.value)
    )


def bring_back(
    tx: Connection, memory: Memory, app_id: int, today: date, cause: Cause
) -> Memory | None:
    """What an expired value of a key that holds one had replaced, in use again; None for nothing.

    "In Porto until the end of the month" must not cost the city that was there before.
    """
    if keys.cardinality(memory.key) != "one" or memories.with_key(tx, [app_id], memory.key):
        return None
    latest, over = None, [memory]
    while latest is None and over:
        # What it replaced may be over by now itself, and had replaced something that is not.
        before = [
            old
            for past in over
            for old in succession.replaced_by(tx, past.id)
            if old.inactive_reason == "superseded"
        ]
        holding = [old for old in before if (old.expires_at or today) >= today]
        latest = max(holding, key=lambda old: (old.said_at, old.id), default=None)
        over = before
    if latest is not None:
        memories.reactivate(tx, latest, app_id, cause)
    return latest
