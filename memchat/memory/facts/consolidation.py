"""What a new fact does to the facts that are stored.

The first rule that applies decides: it ends a known fact; it repeats one, in the same or equal
words; it was forgotten on request; it would change what the user entered, and waits for their yes;
it replaces the fact it updates; it replaces the other value of a key that holds one; it is merged
with a near copy of equal meaning; it is new. A fact that starts later replaces nothing before its
day. What is replaced or merged stays as an inactive row, with the reason and a link, and can be
restored. Nearness of vectors alone never decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime

from memchat.language import text
from memchat.language.sensitive import is_sensitive
from memchat.memory.context import Context
from memchat.memory.facts import cues
from memchat.memory.facts.confirmation import Confirmation
from memchat.memory.facts.fact import Fact, in_the_slot_of, last_day, without_cues
from memchat.memory.facts.in_force import (
    apply_due_dates,
    is_single_valued,
    planned_target,
    values_of_key,
)
from memchat.memory.facts.near_copies import may_merge
from memchat.memory.gate import keys
from memchat.memory.gate.value_comparison import contains_words
from memchat.store import (
    evidence,
    inbox,
    memories,
    memory_changes,
    new_memory,
    replacements,
    tags,
    values_in_force,
)
from memchat.store.events import Cause
from memchat.store.inbox import NewInboxItem
from memchat.types import EVERY_APP, LEARNED, Change, Memory

ENDS_FIRST = "it would end before it starts"
SAID_AGAIN = "what it ends was said again later"


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Stores facts one after another. ``merge_threshold`` is the cosine from which two may be near
    copies."""

    ctx: Context
    cause: Cause
    merge_threshold: float
    written: list[int] = field(default_factory=list)
    """Ids of memories that are new or have new words, and so need a vector."""

    def apply(self, fact: Fact) -> Change:
        """Store one fact, and say what that did."""
        apply_due_dates(self.ctx)
        if fact.detail is not None:
            explained = replace(self.cause, detail=fact.detail)
            return replace(self, cause=explained)._apply(replace(fact, detail=None))
        return self._apply(fact)

    def _apply(self, fact: Fact) -> Change:
        if fact.starts_at is not None and fact.starts_at <= self.ctx.today:
            fact = replace(fact, starts_at=None)
        common = set(fact.cues).difference(cues.distinctive(self.ctx.tx, self._own, fact.cues))
        if common:
            fact = without_cues(fact, common)
        if fact.starts_at and fact.expires_at and fact.expires_at < fact.starts_at:
            return Change("refused", None, fact.quotes, reason=ENDS_FIRST)
        target = self._target(fact)
        if fact.relation == "ends":
            return self._end(fact, target)
        if fact.relation == "updates" and target is not None:
            fact = in_the_slot_of(fact, target)
        known = self._find_same_value(fact)
        if known is not None and known.active:
            return self._repeat(fact, known, target)
        waits = self._confirm.of_forgotten(fact, target) or self._confirm.of_change(fact, target)
        if waits is not None:
            return waits
        if known is not None:
            return self._confirm.of_program(fact, known) or self._reactivate(fact, known, target)
        if fact.relation == "same" and target is not None:
            return self._merge_restatement(fact, target)
        return self._insert(fact, target)

    def _target(self, fact: Fact) -> Memory | None:
        if fact.target_id is None:
            return None
        target = memories.get(self.ctx.tx, self.ctx.scope.ids, fact.target_id)
        return target if target is not None and target.active else None

    def _end(self, fact: Fact, target: Memory | None) -> Change:
        if target is None:
            return Change("refused", None, fact.quotes, reason="the fact it ends is not there")
        if target.last_seen_at > fact.said_at:
            return Change("refused", None, fact.quotes, reason=SAID_AGAIN)
        if (waits := self._confirm.of_end(fact, target)) is not None:
            return waits
        evidence.add(self.ctx.tx, target.id, fact.proofs)
        last = last_day(fact.starts_at, fact.expires_at, target, self.ctx.today)
        if last is not None:
            memory_changes.set_expiry(self.ctx.tx, target, last, self.cause)
            return Change("ended", self._reload(target.id), fact.quotes, before=target.value)
        memory_changes.deactivate(self.ctx.tx, target, "ended", self.cause, said_at=fact.said_at)
        return Change("ended", target, fact.quotes, before=target.value)

    def _find_same_value(self, fact: Fact) -> Memory | None:
        sha1 = new_memory.sha1_of(fact.memory_type, fact.key, fact.value)
        known = memories.by_sha1(self.ctx.tx, self.ctx.scope.ids, sha1)
        if known is not None and not known.active and self._is_protected_in_every_app(fact, known):
            known = memories.by_sha1(self.ctx.tx, (self._own,), sha1)
        if known is not None:
            return known
        normal = text.normal_value(fact.value)
        for other_id, value in memories.values_with_key(self.ctx.tx, self.ctx.scope.ids, fact.key):
            if text.normal_value(value) == normal:
                return memories.get(self.ctx.tx, self.ctx.scope.ids, other_id)
        return None

    def _repeat(self, fact: Fact, known: Memory, target: Memory | None = None) -> Change:
        moves = self._reschedules(fact, known)
        if moves and (planned := self._planned_replacement(fact, known, target)) is not None:
            fact, target = replace(fact, relation="updates"), planned
        updates = fact.relation == "updates" and target is not None and target.id != known.id
        asked = self._confirm.of_change(fact, target) if moves or updates else None
        if asked is None and moves:
            asked = self._confirm.of_start(fact, known, target if updates else None)
        if asked is None and self._changes_last_day(fact, known):
            asked = self._confirm.of_program(fact, known)
        if asked is not None:
            return asked
        messages = {message_id for message_id, _, _ in fact.proofs}
        # A message that was read before, as by "remember that …", does not count twice.
        if not messages or messages - evidence.messages_of(self.ctx.tx, known.id):
            start = known.starts_at if fact.relation == "same" else fact.starts_at
            memory_changes.count_repeat(
                self.ctx.tx, known, fact.said_at, self.cause, starts_at=start
            )
        if self._changes_last_day(fact, known):
            memory_changes.set_expiry(self.ctx.tx, known, fact.expires_at, self.cause)
        evidence.add(self.ctx.tx, known.id, fact.proofs)
        before = self._reschedule(fact, known, target)
        kind = "repeated" if before is None else "superseded"
        return Change(kind, self._reload(known.id), fact.quotes, before=before)

    def _reschedules(self, fact: Fact, known: Memory) -> bool:
        """Whether a fact gives another first day to a known memory that has not started yet."""
        coming = known.starts_at is not None and known.starts_at > self.ctx.today
        return coming and fact.relation != "same" and fact.said_at >= known.said_at

    def _planned_replacement(
        self, fact: Fact, known: Memory, target: Memory | None
    ) -> Memory | None:
        """The memory that a planned value was to replace, where that value is now said to hold
        already."""
        spoken_of = target is not None and target.id != known.id
        linked = planned_target(self.ctx.tx, known.id)
        if fact.starts_at is not None or is_single_valued(known.key) or spoken_of or linked is None:
            return None
        found = replacements.current(self.ctx.tx, self.ctx.scope.ids, [linked]).get(linked)
        there = (
            found is not None
            and found.id != known.id
            and values_in_force.holds_on(found, self.ctx.today)
        )
        return found if there else None

    def _reschedule(self, fact: Fact, known: Memory, target: Memory | None) -> str | None:
        """Move the first day of a memory that has not started; the value that it replaces by
        that."""
        moves = self._reschedules(fact, known)
        if moves and fact.starts_at != known.starts_at:
            memory_changes.set_start(self.ctx.tx, known, fact.starts_at, self.cause)
        if fact.starts_at is not None:
            return None
        before = self._supersede_rivals(fact, known.id) if moves else None
        return self._replace_target(fact, target, known.id) or before

    def _merge_restatement(self, fact: Fact, known: Memory) -> Change:
        """Merge a fact with a memory that says the same in other words. Both rows stay, the fuller
        one active, so that it can be undone."""
        if contains_words(known.value, fact.value) or self._confirm.is_user_owned(
            fact, known, pins=False
        ):
            return self._repeat(fact, known)
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        until = fact.expires_at if fact.expires_at or over else known.expires_at
        start = fact.starts_at or known.starts_at
        new = self._reload(self._add_row(replace(fact, expires_at=until, starts_at=start)))
        fuller = len(text.content_words(fact.value)) >= len(text.content_words(known.value))
        if fact.said_at < known.said_at or not fuller:
            memory_changes.deactivate(self.ctx.tx, new, "merged", self.cause, replaced_by=known.id)
            return self._repeat(fact, known)
        memory_changes.deactivate(self.ctx.tx, known, "merged", self.cause, replaced_by=new.id)
        return Change("merged", self._reload(new.id), fact.quotes, before=known.value)

    def _changes_last_day(self, fact: Fact, known: Memory) -> bool:
        """Whether a known memory gets the last day of a fact. A fact without one removes a last day
        that has passed; one that the user entered removes any."""
        if fact.said_at < known.said_at or self._is_protected_in_every_app(fact, known):
            return False
        over = known.expires_at is not None and known.expires_at < self._day(fact.said_at)
        changes = fact.expires_at is not None or fact.created_by == "manual" or over
        return changes and fact.expires_at != known.expires_at

    def _reactivate(self, fact: Fact, known: Memory, target: Memory | None) -> Change:
        winner = replacements.current(self.ctx.tx, self.ctx.scope.ids, [known.id]).get(known.id)
        if winner is not None and known.inactive_reason == "merged":
            return self._repeat(fact, winner)
        overtaken = winner if winner is not None else self._newer_rival(fact)
        late = overtaken is not None and overtaken.said_at > fact.said_at
        over = known.inactive_reason == "ended" and known.last_seen_at > fact.said_at
        if over or (late and fact.starts_at is None):
            evidence.add(self.ctx.tx, known.id, fact.proofs)
            return Change("repeated", known, fact.quotes)
        if fact.starts_at != known.starts_at:
            memory_changes.set_start(self.ctx.tx, known, fact.starts_at, self.cause)
        before = self._supersede_rivals(fact, known.id)
        before = self._replace_target(fact, target, known.id) or before
        memory_changes.reactivate(
            self.ctx.tx, known, self.cause, instead_of=self._replaced_on_start(fact, target)
        )
        memory_changes.count_repeat(
            self.ctx.tx, known, fact.said_at, self.cause, starts_at=fact.starts_at
        )
        if fact.expires_at != known.expires_at:
            memory_changes.set_expiry(self.ctx.tx, known, fact.expires_at, self.cause)
        evidence.add(self.ctx.tx, known.id, fact.proofs)
        self.written.append(known.id)
        kind = "superseded" if before else "revived"
        return Change(kind, self._reload(known.id), fact.quotes, before=before)

    def _insert(self, fact: Fact, target: Memory | None) -> Change:
        memory_id = self._add_row(fact, self._replaced_on_start(fact, target))
        for rival in self._rivals(fact.key, memory_id) if fact.starts_at is not None else ():
            tags.inherit(self.ctx.tx, memory_id, rival.tags, self.cause)
        newer = self._newer_statement(fact, target, memory_id)
        if newer is not None:
            new = self._reload(memory_id)
            memory_changes.deactivate(
                self.ctx.tx, new, "superseded", self.cause, replaced_by=newer.id
            )
            return Change("added", self._reload(memory_id), fact.quotes)
        before = self._supersede_rivals(fact, memory_id)
        before = self._replace_target(fact, target, memory_id) or before
        if before is not None:
            return Change("superseded", self._reload(memory_id), fact.quotes, before=before)
        merged = self._merge_near(fact, memory_id)
        kind = "added" if merged is None else "merged"
        return Change(kind, self._reload(memory_id), fact.quotes, before=merged)

    def _replaced_on_start(self, fact: Fact, target: Memory | None) -> int | None:
        """The memory that a fact is to replace on its first day."""
        if fact.starts_at is None or fact.relation != "updates" or target is None:
            return None
        if target.starts_at is not None and target.starts_at > self.ctx.today:
            # A plan replaces another at once; what holds now is replaced when the new one starts.
            return planned_target(self.ctx.tx, target.id) or target.id
        return target.id

    def _add_row(self, fact: Fact, instead_of: int | None = None) -> int:
        new = replace(
            fact,
            many=self._holds_many(fact),
            sensitive=fact.sensitive or is_sensitive(fact.key),
        )
        memory_id = memory_changes.add(
            self.ctx.tx, self._own, new, self.cause, instead_of=instead_of
        )
        self.written.append(memory_id)
        evidence.add(self.ctx.tx, memory_id, fact.proofs)
        return memory_id

    def _newer_statement(self, fact: Fact, target: Memory | None, new_id: int) -> Memory | None:
        """A memory that was said later than this fact and replaces it, as when an old session is
        read late."""
        if fact.starts_at is not None:
            return None  # they are compared on its first day
        if fact.relation == "updates" and target is not None and target.said_at > fact.said_at:
            return target
        return self._newer_rival(fact, new_id)

    def _replace_target(self, fact: Fact, target: Memory | None, new_id: int) -> str | None:
        """Retire the memory that a fact updates; its value, or None where nothing is retired yet.
        Of two that both start later, the one said later replaces the other at once."""
        if fact.relation != "updates" or target is None or target.id == new_id:
            return None
        if target.said_at > fact.said_at:
            return None
        if fact.starts_at is not None and values_in_force.holds_on(target, self.ctx.today):
            return None
        return self._supersede(target, new_id)

    def _supersede(self, old: Memory, new_id: int) -> str | None:
        """Retire a memory in favour of a new one; its value, None where it was retired before."""
        if not self._reload(old.id).active:
            return None  # it was retired as a rival before
        memory_changes.deactivate(self.ctx.tx, old, "superseded", self.cause, replaced_by=new_id)
        return old.value

    def _supersede_rivals(self, fact: Fact, new_id: int) -> str | None:
        """Retire the older values of a key that holds one; the value of the newest of them."""
        before = None
        rivals = self._rivals(fact.key, new_id) if fact.starts_at is None else ()
        for rival in rivals:
            if rival.said_at <= fact.said_at:
                replaced = self._supersede(rival, new_id)
                before = before or replaced
        return before

    def _newer_rival(self, fact: Fact, new_id: int | None = None) -> Memory | None:
        rivals = self._rivals(fact.key, new_id)
        return next((rival for rival in rivals if rival.said_at > fact.said_at), None)

    def _rivals(self, key: str, new_id: int | None) -> list[Memory]:
        """The other values of a key that holds one."""
        return [m for m in values_of_key(self.ctx, self._own, key) if m.id != new_id]

    def _merge_near(self, fact: Fact, new_id: int) -> str | None:
        if fact.relation == "beside":
            return None
        close = [i for i, cosine in fact.near if cosine >= self.merge_threshold and i != new_id]
        for other in memories.by_ids(self.ctx.tx, (self._own,), close).values():
            if not other.active:
                continue
            if may_merge(other, fact):
                memory_changes.deactivate(
                    self.ctx.tx, other, "merged", self.cause, replaced_by=new_id
                )
                return other.value
            reason = "close to another memory: the same, or not?"
            pair = NewInboxItem(reason, memory_id=new_id, related_id=other.id)
            inbox.add(self.ctx.tx, self._own, pair, self.ctx.now)
        return None

    def _holds_many(self, fact: Fact) -> bool:
        built_in = keys.cardinality(fact.key)
        if built_in is not None:
            return built_in == "many"
        so_far = memories.holds_many(self.ctx.tx, self.ctx.scope.ids, fact.key)
        return fact.many if so_far is None else so_far

    def _is_protected_in_every_app(self, fact: Fact, memory: Memory) -> bool:
        """Whether a learned fact may not change a memory that the user keeps for every app."""
        return memory.app == EVERY_APP and fact.created_by in LEARNED

    @property
    def _confirm(self) -> Confirmation:
        return Confirmation(self.ctx, self._own)

    @property
    def _own(self) -> int:
        assert self.ctx.scope.own is not None
        return self.ctx.scope.own

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.ctx.zone).date()

    def _reload(self, memory_id: int) -> Memory:
        found = memories.get(self.ctx.tx, self.ctx.scope.ids, memory_id)
        assert found is not None
        return found
