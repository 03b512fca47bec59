"""Keeping the store clean: what a new fact does to the facts that are there.

In this order, first match wins: ends a known fact; said before, to the letter or in equal words;
forgotten on request; would change what is a person's own, and waits for their yes; takes the place
of the fact it updates; takes the place of another value of a key that holds one; merges with a near
copy whose guards agree; is new. What starts later takes no place before its day. The loser always
stays, inactive, with the reason and a link, and can be brought back. Nearness alone never decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language import text
from memchat.language.sensitive import is_sensitive
from memchat.memory.facts import cues
from memchat.memory.facts.fact import REJECTED, in_the_slot_of, last_day, without_cues
from memchat.memory.facts.fact import Fact as Fact
from memchat.memory.facts.fact import proposal as proposal
from memchat.memory.facts.fact import search_text as search_text
from memchat.memory.facts.in_force import holds_one, link_of, question, settle
from memchat.memory.forgetting import tombstone_marks
from memchat.memory.gate.checks import guards, keys
from memchat.store import (
    events,
    evidence,
    inbox,
    memories,
    memory_changes,
    new_memory,
    replacements,
    values_in_force,
)
from memchat.store.events import Cause
from memchat.store.inbox import NewInboxItem
from memchat.store.new_memory import NewMemory
from memchat.types import EVERY_APP, Change, Memory

ADDED_BY_HAND = "added by hand"
ENDS_FIRST = "it would end before it starts"


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
        settle(self.tx, (self.own, self.shared), self.zone, self.cause.at)
        if fact.detail is not None:
            explained = replace(self.cause, detail=fact.detail)
            return replace(self, cause=explained)._apply(replace(fact, detail=None))
        return self._apply(fact)

    def _apply(self, fact: Fact) -> Change:
        if fact.starts_at is not None and fact.starts_at <= self._today:
            fact = replace(fact, starts_at=None)
        common = set(fact.cues).difference(cues.telling(self.tx, self.own, fact.cues))
        if common:
            fact = without_cues(fact, common)
        if fact.starts_at and fact.expires_at and fact.expires_at < fact.starts_at:
            return Change("refused", None, fact.quotes, reason=ENDS_FIRST)
        target = self._target(fact)
        if fact.relation == "ends":
            return self._end(fact, target)
        if fact.relation == "updates" and target is not None:
            fact = in_the_slot_of(fact, target)
        known = self._same_words(fact)
        if known is not None and known.active:
            return self._repeat(fact, known, target)
        if fact.created_by != "manual" and (forgotten := self._forgotten(fact, target)) is not None:
            return forgotten
        if (asked := self._asked(fact, target)) is not None:
            return asked
        if known is not None:
            return self._revive(fact, known, target)
        if fact.relation == "same" and target is not None:
            return self._restate(fact, target)
        return self._insert(fact, target)

    def _asked(self, fact: Fact, target: Memory | None) -> Change | None:
        """The question that a change of a person's own waits for; None where it waits for none."""
        old = target if fact.relation == "updates" else None
        if old is None:
            old = next(iter(self._rivals(fact, None)), None)
        if old is None or old.said_at > fact.said_at or not self._is_theirs(fact, old):
            return None
        reason = question("updates", " … ".join(fact.quotes), old)
        asked = replace(fact, relation="updates")
        waits = Change("review", None, fact.quotes, before=old.value, reason=reason)
        return self._ask(proposal(asked, reason, old), waits)

    def _ask(self, held: NewInboxItem, waits: Change) -> Change:
        """Put a question to the person, unless they said no to it before."""
        if inbox.add(self.tx, self.own, held, self.cause.at) == "rejected":
            return Change("refused", None, waits.quotes, reason=REJECTED)
        return waits

    def _forgotten(self, fact: Fact, target: Memory | None) -> Change | None:
        """What becomes of a fact that the person had forgotten; None for any other."""
        proofs = [(message_id, quote) for message_id, _, quote in fact.proofs]
        ids = (self.own, self.shared)
        stand = tombstone_marks.stand(self.tx, ids, fact.key, fact.value, proofs, fact.said_at)
        if stand == "refuse":
            return Change("refused", None, fact.quotes, reason="it was forgotten on request")
        if stand == "ask":
            reason = "you had it forgotten, and it was said again: learn it again?"
            old = target if fact.relation == "updates" else None
            waits = Change("review", None, fact.quotes, reason=reason)
            return self._ask(proposal(fact, reason, old), waits)
        return None

    def _target(self, fact: Fact) -> Memory | None:
        if fact.target_id is None:
            return None
        target = memories.get(self.tx, (self.own, self.shared), fact.target_id)
        return target if target is not None and target.active else None

    def _end(self, fact: Fact, target: Memory | None) -> Change:
        if target is None:
            return Change("refused", None, fact.quotes, reason="the fact it ends is not there")
        if self._is_theirs(fact, target):
            reason = question("ends", " … ".join(fact.quotes), target)
            waits = Change("review", target, fact.quotes, reason=reason)
            return self._ask(proposal(fact, reason, target), waits)
        scope = self._scope_of(target)
        evidence.add(self.tx, target.id, fact.proofs)
        last = last_day(fact.starts_at, fact.expires_at, target, self._today)
        if last is not None:
            memory_changes.set_expiry(self.tx, target, scope, last, self.cause)
            return Change("ended", self._fresh(target.id), fact.quotes, before=target.value)
        memory_changes.deactivate(self.tx, target, scope, "ended", self.cause, said_at=fact.said_at)
        return Change("ended", target, fact.quotes, before=target.value)

    def _same_words(self, fact: Fact) -> Memory | None:
        sha1 = new_memory.sha1_of(fact.memory_type, fact.key, fact.value)
        known = memories.by_sha1(self.tx, (self.own, self.shared), sha1)
        if known is not None and not known.active and self._is_beyond(fact, known):
            known = memories.by_sha1(self.tx, (self.own,), sha1)
        if known is not None:
            return known
        normal = text.normal_value(fact.value)
        for other_id, value in memories.values_with_key(self.tx, (self.own, self.shared), fact.key):
            if text.normal_value(value) == normal:
                return memories.get(self.tx, (self.own, self.shared), other_id)
        return None

    def _repeat(self, fact: Fact, known: Memory, target: Memory | None = None) -> Change:
        moves = self._moves(fact, known)
        if moves and (planned := self._planned(fact, known, target)) is not None:
            fact, target = replace(fact, relation="updates"), planned
        updates = fact.relation == "updates" and target is not None and target.id != known.id
        asked = self._asked(fact, target) if moves or updates else None
        if asked is None and moves:
            asked = self._asked_when(fact, known, target if updates else None)
        if asked is not None:
            return asked
        scope = self._scope_of(known)
        messages = {message_id for message_id, _, _ in fact.proofs}
        # Words that were read before, as by "remember that …", are not said once more.
        if not messages or messages - evidence.messages_of(self.tx, known.id):
            start = known.starts_at if fact.relation == "same" else fact.starts_at
            memory_changes.count_repeat(
                self.tx, known, scope, fact.said_at, self.cause, starts_at=start
            )
        if fact.said_at >= known.said_at and not self._is_beyond(fact, known):
            self._prolong(fact, known, scope)
        evidence.add(self.tx, known.id, fact.proofs)
        before = self._move(fact, known, target, scope)
        kind = "repeated" if before is None else "superseded"
        return Change(kind, self._fresh(known.id), fact.quotes, before=before)

    def _moves(self, fact: Fact, known: Memory) -> bool:
        """Whether saying a fact in use once more says anew from when it holds."""
        coming = known.starts_at is not None and known.starts_at > self._today
        return coming and fact.relation != "same" and fact.said_at >= known.said_at

    def _planned(self, fact: Fact, known: Memory, target: Memory | None) -> Memory | None:
        """What a value that was to come was to replace, where it is said to be there already."""
        spoken_of = target is not None and target.id != known.id
        linked = link_of(self.tx, known.id)
        if fact.starts_at is not None or holds_one(known.key) or spoken_of or linked is None:
            return None
        found = replacements.current(self.tx, (self.own, self.shared), [linked]).get(linked)
        there = (
            found is not None
            and found.id != known.id
            and values_in_force.holds_on(found, self._today)
        )
        return found if there else None

    def _asked_when(self, fact: Fact, known: Memory, target: Memory | None) -> Change | None:
        """The question whether a person's own is to hold from another day; None for any other."""
        if fact.starts_at == known.starts_at or not self._is_theirs(fact, known):
            return None
        since = f"from {fact.starts_at.isoformat()}" if fact.starts_at else "already"
        words = " ".join(" … ".join(fact.quotes).split())
        reason = f"You said “{words}”. Does {known.key}: {known.value} hold {since}?"
        waits = Change("review", known, fact.quotes, reason=reason)
        return self._ask(proposal(fact, reason, target), waits)

    def _move(self, fact: Fact, known: Memory, target: Memory | None, scope: int) -> str | None:
        """What was to come may come on another day, or be there now; what that replaces."""
        moves = self._moves(fact, known)
        if moves and fact.starts_at != known.starts_at:
            memory_changes.set_start(self.tx, known, scope, fact.starts_at, self.cause)
        if fact.starts_at is not None:
            return None
        before = self._supersede_rivals(fact, known.id) if moves else None
        return self._take_place(fact, target, known.id) or before

    def _restate(self, fact: Fact, known: Memory) -> Change:
        """The same in other words. Both rows stay, the fuller in use: it can be undone."""
        if guards.covers(known.value, fact.value) or self._is_theirs(fact, known, pins=False):
            return self._repeat(fact, known)
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        until = fact.expires_at if fact.expires_at or over else known.expires_at
        start = fact.starts_at or known.starts_at
        new = self._fresh(self._add_row(replace(fact, expires_at=until, starts_at=start)))
        fuller = len(text.content_words(fact.value)) >= len(text.content_words(known.value))
        if fact.said_at < known.said_at or not fuller:
            memory_changes.deactivate(
                self.tx, new, self.own, "merged", self.cause, replaced_by=known.id
            )
            return self._repeat(fact, known)
        scope = self._scope_of(known)
        memory_changes.deactivate(self.tx, known, scope, "merged", self.cause, replaced_by=new.id)
        return Change("merged", self._fresh(new.id), fact.quotes, before=known.value)

    def _prolong(self, fact: Fact, known: Memory, scope: int) -> None:
        """Take over a new last day. Silence about it ends only one that is over, or a hand's."""
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        told = fact.expires_at is not None or fact.created_by == "manual" or over
        if told and fact.expires_at != known.expires_at:
            memory_changes.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)

    def _revive(self, fact: Fact, known: Memory, target: Memory | None) -> Change:
        winner = self._winner(known)
        if winner is not None and known.inactive_reason == "merged":
            return self._repeat(fact, winner)
        overtaken = winner if winner is not None else self._newer_rival(fact)
        late = overtaken is not None and overtaken.said_at > fact.said_at
        over = known.inactive_reason == "ended" and known.last_seen_at > fact.said_at
        if over or (late and fact.starts_at is None):
            evidence.add(self.tx, known.id, fact.proofs)
            return Change("repeated", known, fact.quotes)
        scope = self._scope_of(known)
        if fact.starts_at != known.starts_at:
            memory_changes.set_start(self.tx, known, scope, fact.starts_at, self.cause)
        before = self._supersede_rivals(fact, known.id)
        before = self._take_place(fact, target, known.id) or before
        memory_changes.reactivate(
            self.tx, known, scope, self.cause, instead_of=self._linked(fact, target)
        )
        memory_changes.count_repeat(
            self.tx, known, scope, fact.said_at, self.cause, starts_at=fact.starts_at
        )
        if fact.expires_at != known.expires_at:
            memory_changes.set_expiry(self.tx, known, scope, fact.expires_at, self.cause)
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
        memory_id = self._add_row(fact, self._linked(fact, target))
        newer = self._newer_than(fact, target, memory_id)
        if newer is not None:
            new = self._fresh(memory_id)
            memory_changes.deactivate(
                self.tx, new, self.own, "superseded", self.cause, replaced_by=newer.id
            )
            return Change("added", self._fresh(memory_id), fact.quotes)
        before = self._supersede_rivals(fact, memory_id)
        before = self._take_place(fact, target, memory_id) or before
        if before is not None:
            return Change("superseded", self._fresh(memory_id), fact.quotes, before=before)
        merged = self._merge_near(fact, memory_id)
        kind = "added" if merged is None else "merged"
        return Change(kind, self._fresh(memory_id), fact.quotes, before=merged)

    def _linked(self, fact: Fact, target: Memory | None) -> int | None:
        """The memory whose place a fact is to take on its first day."""
        if fact.starts_at is None or fact.relation != "updates" or target is None:
            return None
        if target.starts_at is not None and target.starts_at > self._today:
            # One plan replaces another at once; what is in force now waits for the new plan.
            return link_of(self.tx, target.id) or target.id
        return target.id

    def _add_row(self, fact: Fact, instead_of: int | None = None) -> int:
        memory_id = memory_changes.add(
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
                sensitive=fact.sensitive or is_sensitive(fact.key),
            ),
            self.cause,
            instead_of=instead_of,
        )
        self.written.append(memory_id)
        evidence.add(self.tx, memory_id, fact.proofs)
        return memory_id

    def _newer_than(self, fact: Fact, target: Memory | None, new_id: int) -> Memory | None:
        """What was said later than this fact and stands in its place, as when read late."""
        if fact.starts_at is not None:
            return None  # on its day the two are compared
        if fact.relation == "updates" and target is not None and target.said_at > fact.said_at:
            return target
        return self._newer_rival(fact, new_id)

    def _take_place(self, fact: Fact, target: Memory | None, new_id: int) -> str | None:
        """Retire what a fact updates; its value, or None where nothing is to be retired yet. Of two
        that are still to come the one that was said later replaces the other at once."""
        if fact.relation != "updates" or target is None or target.id == new_id:
            return None
        if target.said_at > fact.said_at:
            return None
        if fact.starts_at is not None and values_in_force.holds_on(target, self._today):
            return None
        return self._replace(target, new_id)

    def _replace(self, old: Memory, new_id: int) -> str | None:
        """Retire an older memory in favour of a new one; its value, or None where it is retired
        already."""
        if not self._fresh(old.id).active:
            return None  # a moment ago, as a rival
        scope = self._scope_of(old)
        memory_changes.deactivate(self.tx, old, scope, "superseded", self.cause, replaced_by=new_id)
        return old.value

    def _supersede_rivals(self, fact: Fact, new_id: int) -> str | None:
        """Retire other, older values of a key that holds one; the newest of them."""
        before = None
        for rival in self._rivals(fact, new_id) if fact.starts_at is None else ():
            if rival.said_at <= fact.said_at:
                replaced = self._replace(rival, new_id)
                before = before or replaced
        return before

    def _newer_rival(self, fact: Fact, new_id: int | None = None) -> Memory | None:
        return next((r for r in self._rivals(fact, new_id) if r.said_at > fact.said_at), None)

    def _rivals(self, fact: Fact, new_id: int | None) -> list[Memory]:
        """The other values in force in the scope of a built-in key that holds one."""
        if not holds_one(fact.key):
            return []
        found = memories.with_key(self.tx, (self.own,), fact.key)
        return [m for m in found if m.id != new_id and values_in_force.holds_on(m, self._today)]

    def _merge_near(self, fact: Fact, new_id: int) -> str | None:
        if fact.relation == "beside":
            return None
        close = [i for i, cosine in fact.near if cosine >= self.merge_threshold and i != new_id]
        for other in memories.by_ids(self.tx, (self.own,), close).values():
            if not other.active:
                continue
            if may_merge(other, fact):
                memory_changes.deactivate(
                    self.tx, other, self.own, "merged", self.cause, replaced_by=new_id
                )
                return other.value
            self._hold(
                NewInboxItem("close to another memory: the same, or not?", related_id=other.id),
                new_id,
            )
        return None

    def _hold(self, held: NewInboxItem, memory_id: int) -> None:
        pair = NewInboxItem(held.reason, memory_id=memory_id, related_id=held.related_id)
        inbox.add(self.tx, self.own, pair, self.cause.at)

    def _many(self, fact: Fact) -> bool:
        built_in = keys.cardinality(fact.key)
        if built_in is not None:
            return built_in == "many"
        so_far = memories.holds_many(self.tx, (self.own, self.shared), fact.key)
        return fact.many if so_far is None else so_far

    def _is_beyond(self, fact: Fact, memory: Memory) -> bool:
        """Whether a memory is the user's in every app, where only they may change it."""
        return memory.app == EVERY_APP and fact.created_by == "auto"

    def _is_theirs(self, fact: Fact, memory: Memory, *, pins: bool = True) -> bool:
        """Whether only a person may change a memory: they entered or reworded it, pinned it, or
        keep it for every app."""
        if fact.created_by != "auto":
            return False
        if memory.app == EVERY_APP or (pins and memory.pinned):
            return True
        past = events.of_memory(self.tx, memory.id)
        entered = any(e.actor == "user" and e.cause == ADDED_BY_HAND for e in past)
        unproven = memory.created_by == "manual" and not evidence.messages_of(self.tx, memory.id)
        return entered or unproven or memory.id in events.value_edits(self.tx, [memory.id])

    @property
    def _today(self) -> date:
        return self._day(self.cause.at)

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.zone).date()

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
        and old.starts_at == new.starts_at
        and guards.agree(old.value, new.value)
    )
