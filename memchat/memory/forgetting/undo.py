"""Taking back what a conversation taught, exactly: its events undone, the last one first.

What it added goes, unless words said elsewhere prove it too or a person took it into their own
hands; what it retired comes back, unless something newer stands in that place; what it revived is
retired again; a day it changed is as before. Of the values of a key that holds one, that one holds
afterwards which would, had the deleted words never been said (``slot``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.facts.consolidation import ADDED_BY_HAND
from memchat.memory.facts.in_force import holds_one
from memchat.memory.facts.value_replay import ValueReplay
from memchat.store import events, evidence, memories, memory_changes, replacements, values_in_force
from memchat.store.events import Cause
from memchat.types import Event, Evidence, Memory, Undone

DELETED = "conversation deleted"
TAKEN_BACK = "taken back"
_UNDONE = (DELETED, TAKEN_BACK)
_BY_HAND = ("add", "edit", "restore", "repeat")
_SAID_BY_HAND = (ADDED_BY_HAND, "restored by hand")
RETIRING = {"supersede": "superseded", "merge": "merged", "end": "ended"}
_REASONS = RETIRING | {"expire": "expired"}


@dataclass(slots=True)
class ConversationUndo:
    """One conversation, or some of its messages, about to be deleted in the caller's transaction.

    The memories of ``gone`` are left for the caller to forget.
    """

    tx: Connection
    app_ids: Sequence[int]
    message_ids: Collection[int]
    now: datetime
    zone: ZoneInfo
    gone: dict[int, Memory] = field(default_factory=dict)
    back: dict[int, Memory] = field(default_factory=dict)
    kept: dict[int, Memory] = field(default_factory=dict)

    def run(self) -> Undone:
        """Undo it all; what that did."""
        for memory_id in evidence.proved_memories(self.tx, list(self.message_ids)):
            memory = memories.get(self.tx, self.app_ids, memory_id)
            if memory is not None:
                stays = self._proved_since(memory_id, 0) or self._is_their_own(memory)
                (self.kept if stays else self.gone)[memory_id] = memory
        past = events.of_messages(self.tx, self.message_ids)
        slots = self._slots({*self.gone, *self.kept, *(e.memory_id for e in past)})
        for event in reversed(past):
            if event.memory_id not in self.gone and self._undo(event):
                events.set_cause(self.tx, event.id, TAKEN_BACK)
        self._reinstate_the_rest()
        for memory_id in self.kept:
            self._date_anew(memory_id)
        for app_id, key in slots:
            self._settle(app_id, key)
        return Undone(*(tuple(d.values()) for d in (self.gone, self.back, self.kept)))

    @property
    def _cause(self) -> Cause:
        return Cause(self.now, "user", DELETED)

    def _slots(self, memory_ids: Collection[int]) -> list[tuple[int, str]]:
        """The keys that hold one value, with their scope row, of these memories."""
        rows = memories.by_ids(self.tx, self.app_ids, sorted(memory_ids)).values()
        found = ((self._scope(m), m.key) for m in rows if holds_one(m.key))
        return sorted(set(found))

    def _settle(self, app_id: int, key: str) -> None:
        rows = values_in_force.of_key(self.tx, [app_id], key)
        theirs = {m.id for m in rows if self._is_their_own(m)}
        slot = ValueReplay(
            self.tx, app_id, key, self.message_ids, self.gone, self.zone, self._cause
        )
        self.back |= {memory.id: memory for memory in slot.settle(theirs)}
        still = memories.by_ids(self.tx, self.app_ids, list(self.back))
        self.back = {i: m for i, m in self.back.items() if still[i].active}

    def _undo(self, event: Event) -> bool:
        """Undo one event; False where that is not to be done."""
        memory = memories.get(self.tx, self.app_ids, event.memory_id)
        if memory is None:
            return False
        if event.kind == "repeat":
            memory_changes.set_columns(self.tx, memory.id, seen_count=max(memory.seen_count - 1, 1))
            return True
        if holds_one(memory.key) and self._is_settled_later(event):
            return True
        if self._overtaken(event):
            return self._leave_out(event)
        if event.kind in RETIRING and memory.inactive_reason == RETIRING[event.kind]:
            self._reinstate(memory)
        elif event.kind == "restore" and memory.active:
            return self._retire_again(memory, event)
        elif event.kind == "edit" and event.old is not None and event.new is not None:
            self._set_day(memory, event.old)
        else:
            return False
        return True

    def _is_settled_later(self, event: Event) -> bool:
        """Whether the values of the key, taken together, say what undoing an event comes to."""
        if event.kind == "restore":
            before = self._retired_before(event)
            return before is not None and before.kind == "supersede"
        return event.kind == "supersede" or (
            event.kind == "edit" and "starts_at" in (event.old or {})
        )

    def _set_day(self, memory: Memory, old: dict[str, Any]) -> None:
        """The first or last day as it was before."""
        scope = self._scope(memory)
        for name, change in (
            ("expires_at", memory_changes.set_expiry),
            ("starts_at", memory_changes.set_start),
        ):
            if name in old:
                day = date.fromisoformat(old[name]) if old[name] else None
                change(self.tx, memory, scope, day, self._cause)

    def _overtaken(self, event: Event) -> bool:
        """Whether the memory changed since, by other words or hands: that is not ours to undo."""
        changes = {*RETIRING, "restore", "edit", "expire"}
        later = [
            e
            for e in events.of_memory(self.tx, event.memory_id)
            if e.id > event.id and e.kind in changes and e.cause not in _UNDONE
        ]
        return any(e.message_id not in self.message_ids for e in later)

    def _leave_out(self, event: Event) -> bool:
        """A last day that was changed again since: undoing that change must not bring this one
        back, which only the deleted words prove."""
        if event.kind != "edit" or event.old is None or event.new is None:
            return False
        for later in events.of_memory(self.tx, event.memory_id):
            if later.id > event.id and later.kind == "edit" and later.old == event.new:
                events.set_old(self.tx, later.id, event.old)
                return True
        return False

    def _reinstate_the_rest(self) -> None:
        """What something that goes had retired, by whatever words or hands that was done."""
        for goes in self.gone:
            for memory in replacements.replaced_memories(self.tx, goes):
                known = memory.id in self.gone or memory.id in self.back
                settled = holds_one(memory.key) and memory.inactive_reason == "superseded"
                if not known and not settled and memory.inactive_reason in ("superseded", "merged"):
                    self._reinstate(memory)

    def _reinstate(self, memory: Memory) -> None:
        """What was retired comes back, or is retired by what stands in its place by now."""
        winner = self._winner(memory)
        if winner is None:
            memory_changes.reactivate(self.tx, memory, self._scope(memory), self._cause)
            self.back[memory.id] = memory
        elif winner.id != memory.replaced_by:
            memory_changes.set_columns(self.tx, memory.id, replaced_by=winner.id)

    def _winner(self, memory: Memory) -> Memory | None:
        """What stands in a retired memory's place and is not about to go: one in use, or one that
        came to its own end there."""
        seen, next_id = {memory.id}, memory.replaced_by
        while next_id is not None and next_id not in seen:
            seen.add(next_id)
            found = memories.get(self.tx, self.app_ids, next_id)
            if found is None or found.active:
                return None if found is None or next_id in self.gone else found
            if found.inactive_reason in ("ended", "expired") and next_id not in self.gone:
                return found
            next_id = found.replaced_by
        return None

    def _retire_again(self, memory: Memory, event: Event) -> bool:
        """What was revived is retired as it was before; False where it was said again since."""
        before = self._retired_before(event)
        if before is None or self._proved_since(memory.id, max(self.message_ids)):
            return False
        memory_changes.deactivate(
            self.tx,
            memory,
            self._scope(memory),
            _REASONS[before.kind],
            self._cause,
            replaced_by=before.related_id,
        )
        return True

    def _retired_before(self, event: Event) -> Event | None:
        """The event that had retired what this one brought back."""
        past = reversed(events.of_memory(self.tx, event.memory_id))
        return next(
            (e for e in past if e.id < event.id and e.kind in _REASONS and e.cause not in _UNDONE),
            None,
        )

    def _date_anew(self, memory_id: int) -> None:
        """When it was said is when the words that still prove it were, or a person's own hand."""
        left = [p.said_at for p in self._others(memory_id)]
        past = events.of_memory(self.tx, memory_id)
        left += [e.at for e in past if e.actor == "user" and e.cause in _SAID_BY_HAND and left]
        if left:
            memory_changes.set_columns(
                self.tx, memory_id, said_at=max(left), last_seen_at=max(left)
            )

    def _others(self, memory_id: int) -> list[Evidence]:
        proofs = evidence.of_memory(self.tx, memory_id)
        return [p for p in proofs if p.role == "user" and p.message_id not in self.message_ids]

    def _proved_since(self, memory_id: int, message_id: int) -> bool:
        return any(p.message_id > message_id for p in self._others(memory_id))

    def _is_their_own(self, memory: Memory) -> bool:
        past = events.of_memory(self.tx, memory.id)
        by_hand = any(
            e.actor == "user" and e.kind in _BY_HAND and e.cause not in _UNDONE for e in past
        )
        return memory.created_by != "auto" or by_hand

    def _scope(self, memory: Memory) -> int:
        return memories.app_id_of(self.tx, memory.id)
