"""Undoing what a conversation taught: its events are undone, the last one first.

Memories that it added go, unless other messages prove them too or the user changed them by hand;
so do those that a program asked to forget, about which nothing is left to ask.
What it retired is restored, unless something newer replaced it; what it restored is retired again;
a day it changed is set back. Of a key that holds one value, the value holds that would hold had the
deleted messages never been sent (``value_replay``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from memchat.memory.context import Context
from memchat.memory.facts.fact import ADDED_BY_HAND
from memchat.memory.facts.in_force import is_single_valued
from memchat.memory.facts.value_replay import ValueReplay
from memchat.store import (
    events,
    evidence,
    hidden_memories,
    jobs,
    memories,
    memory_changes,
    messages,
    replacements,
    tags,
    tombstones,
    values_in_force,
)
from memchat.store.events import Cause
from memchat.types import LEARNED, Event, Evidence, Memory, Undone

DELETED = "conversation deleted"
TAKEN_BACK = "taken back"
_UNDONE = (DELETED, TAKEN_BACK)
_BY_HAND = ("add", "edit", "restore", "repeat")
_SAID_BY_HAND = (ADDED_BY_HAND, "restored by hand")
RETIRING = {"supersede": "superseded", "merge": "merged", "end": "ended"}
_REASONS = RETIRING | {"expire": "expired"}


@dataclass(slots=True)
class ConversationUndo:
    """A conversation, or some of its messages, that is deleted in the caller's transaction.

    The caller forgets the memories of ``gone``.
    """

    ctx: Context
    message_ids: Collection[int]
    only: int | None = None
    """The one memory that is undone, of all that the messages taught; None for each of them."""
    keeps_marked: bool = False
    """Whether a memory that the user pinned or tagged stays, as one that they changed does."""
    gone: dict[int, Memory] = field(default_factory=dict)
    back: dict[int, Memory] = field(default_factory=dict)
    kept: dict[int, Memory] = field(default_factory=dict)

    def run(self) -> Undone:
        """Undo all of it; the memories that are gone, restored and kept."""
        asked = self._asked_to_forget()
        for memory_id in evidence.proved_memories(self.ctx.tx, list(self.message_ids)):
            if self.only not in (None, memory_id):
                continue
            memory = memories.get(self.ctx.tx, self.ctx.scope.ids, memory_id)
            if memory is not None:
                stays = bool(self._other_proofs(memory_id)) or self._is_user_owned(memory)
                (self.kept if stays else self.gone)[memory_id] = memory
            elif memory_id in asked:
                tombstones.remove_of_memory(self.ctx.tx, memory_id)
                self.gone[memory_id] = asked[memory_id]
        past = [
            event
            for event in events.of_messages(self.ctx.tx, self.message_ids)
            if self.only in (None, event.memory_id, event.related_id)
        ]
        slots = self._single_valued_keys({*self.gone, *self.kept, *(e.memory_id for e in past)})
        for event in reversed(past):
            if event.memory_id not in self.gone and self._undo(event):
                events.set_cause(self.ctx.tx, event.id, TAKEN_BACK)
        self._restore_replaced()
        for memory_id in self.kept:
            self._update_said_at(memory_id)
        for app_id, key in slots:
            self._replay_values(app_id, key)
        return Undone(*(tuple(d.values()) for d in (self.gone, self.back, self.kept)))

    @property
    def _cause(self) -> Cause:
        return Cause(self.ctx.now, "user", DELETED)

    def _asked_to_forget(self) -> dict[int, Memory]:
        """The memories that are hidden because a program asked to forget them, and that nothing
        else holds. Those that the user deleted are purged soon."""
        return {
            memory.id: memory
            for memory in hidden_memories.listed(self.ctx.tx, self.ctx.scope.ids)
            if not jobs.is_unfinished(self.ctx.tx, "forget", memory.id)
            and not self._other_proofs(memory.id)
            and not self._is_user_owned(memory)
        }

    def _single_valued_keys(self, memory_ids: Collection[int]) -> list[tuple[int, str]]:
        """(scope row, key) of these memories, for keys that hold one value."""
        rows = memories.by_ids(self.ctx.tx, self.ctx.scope.ids, sorted(memory_ids)).values()
        found = ((self._scope(m), m.key) for m in rows if is_single_valued(m.key))
        return sorted(set(found))

    def _replay_values(self, app_id: int, key: str) -> None:
        rows = values_in_force.of_key(self.ctx.tx, [app_id], key)
        user_owned = {m.id for m in rows if self._is_user_owned(m)}
        replay = ValueReplay(self.ctx, app_id, key, self.message_ids, self.gone, self._cause)
        self.back |= {memory.id: memory for memory in replay.apply(user_owned)}
        still = memories.by_ids(self.ctx.tx, self.ctx.scope.ids, list(self.back))
        self.back = {i: m for i, m in self.back.items() if still[i].active}

    def _undo(self, event: Event) -> bool:
        """Undo one event; False where that must not be done."""
        memory = memories.get(self.ctx.tx, self.ctx.scope.ids, event.memory_id)
        if memory is None:
            return False
        if event.kind == "repeat":
            left = max(memory.seen_count - 1, 1)
            memory_changes.set_columns(self.ctx.tx, memory.id, seen_count=left)
            return True
        if event.kind == "tag":
            self._remove_tags(memory, event)
            return True
        if is_single_valued(memory.key) and self._is_replayed(event):
            return True
        if self._changed_since(event):
            return self._remove_old_day(event)
        if event.kind in RETIRING and memory.inactive_reason == RETIRING[event.kind]:
            self._restore(memory)
        elif event.kind == "restore" and memory.active:
            return self._retire_again(memory, event)
        elif event.kind == "edit" and event.old is not None and event.new is not None:
            self._set_day(memory, event.old)
        else:
            return False
        return True

    def _remove_tags(self, memory: Memory, event: Event) -> None:
        """Remove the tags that an event gave, but for those that were given again since."""
        given = _given_tags(event)
        for later in events.of_memory(self.ctx.tx, memory.id):
            if later.id > event.id and later.kind == "tag" and later.cause not in _UNDONE:
                given -= _given_tags(later)
        left = [tag for tag in memory.tags if tag not in given]
        tags.put(self.ctx.tx, memory.id, left, self._cause)

    def _is_replayed(self, event: Event) -> bool:
        """Whether ``value_replay`` decides about an event, instead of undoing it by itself."""
        if event.kind == "restore":
            before = self._retired_before(event)
            return before is not None and before.kind == "supersede"
        return event.kind == "supersede" or (
            event.kind == "edit" and "starts_at" in (event.old or {})
        )

    def _set_day(self, memory: Memory, old: dict[str, Any]) -> None:
        """Set the first or last day back."""
        for name, change in (
            ("expires_at", memory_changes.set_expiry),
            ("starts_at", memory_changes.set_start),
        ):
            if name in old:
                day = date.fromisoformat(old[name]) if old[name] else None
                change(self.ctx.tx, memory, day, self._cause)

    def _changed_since(self, event: Event) -> bool:
        """Whether a later event changed the memory that is not of this conversation: then it
        stays."""
        changes = {*RETIRING, "restore", "edit", "expire"}
        later = [
            e
            for e in events.of_memory(self.ctx.tx, event.memory_id)
            if e.id > event.id and e.kind in changes and e.cause not in _UNDONE
        ]
        return any(e.message_id not in self.message_ids for e in later)

    def _remove_old_day(self, event: Event) -> bool:
        """Where a last day was changed again later, undoing the later change must not restore this
        one, which only deleted messages prove."""
        if event.kind != "edit" or event.old is None or event.new is None:
            return False
        for later in events.of_memory(self.ctx.tx, event.memory_id):
            if later.id > event.id and later.kind == "edit" and later.old == event.new:
                events.set_old(self.ctx.tx, later.id, event.old)
                return True
        return False

    def _restore_replaced(self) -> None:
        """Restore what a memory that goes had replaced, whoever caused that."""
        for goes in self.gone:
            for memory in replacements.replaced_memories(self.ctx.tx, goes):
                known = memory.id in self.gone or memory.id in self.back
                settled = is_single_valued(memory.key) and memory.inactive_reason == "superseded"
                if not known and not settled and memory.inactive_reason in ("superseded", "merged"):
                    self._restore(memory)

    def _restore(self, memory: Memory) -> None:
        """Restore a retired memory, or link it to the memory that replaces it now."""
        winner = self._successor(memory)
        if winner is None:
            memory_changes.reactivate(self.ctx.tx, memory, self._cause)
            self.back[memory.id] = memory
        elif winner.id != memory.replaced_by:
            memory_changes.set_columns(self.ctx.tx, memory.id, replaced_by=winner.id)

    def _successor(self, memory: Memory) -> Memory | None:
        """The memory that replaces a retired one and does not go: an active one, or one that ended
        or expired."""
        seen, next_id = {memory.id}, memory.replaced_by
        while next_id is not None and next_id not in seen:
            seen.add(next_id)
            found = memories.get(self.ctx.tx, self.ctx.scope.ids, next_id)
            if found is None or found.active:
                return None if found is None or next_id in self.gone else found
            if found.inactive_reason in ("ended", "expired") and next_id not in self.gone:
                return found
            next_id = found.replaced_by
        return None

    def _retire_again(self, memory: Memory, event: Event) -> bool:
        """Retire a restored memory as before; False where it was said again since."""
        before = self._retired_before(event)
        if before is None or self._proved_since(memory.id):
            return False
        memory_changes.deactivate(
            self.ctx.tx,
            memory,
            _REASONS[before.kind],
            self._cause,
            replaced_by=before.related_id,
        )
        return True

    def _retired_before(self, event: Event) -> Event | None:
        """The event that had retired what this one restored."""
        past = reversed(events.of_memory(self.ctx.tx, event.memory_id))
        return next(
            (e for e in past if e.id < event.id and e.kind in _REASONS and e.cause not in _UNDONE),
            None,
        )

    def _update_said_at(self, memory_id: int) -> None:
        """Date a memory by the messages that still prove it, or by what the user did by hand."""
        left = [p.said_at for p in self._other_proofs(memory_id)]
        past = events.of_memory(self.ctx.tx, memory_id)
        left += [e.at for e in past if e.actor == "user" and e.cause in _SAID_BY_HAND and left]
        if left:
            memory_changes.set_columns(
                self.ctx.tx, memory_id, said_at=max(left), last_seen_at=max(left)
            )

    def _other_proofs(self, memory_id: int) -> list[Evidence]:
        proofs = evidence.of_memory(self.ctx.tx, memory_id)
        left = [p for p in proofs if p.message_id not in self.message_ids]
        return [p for p in left if p.role == "user" or p.client is not None]

    def _proved_since(self, memory_id: int) -> bool:
        """Whether it was said again after these messages. A copy has a higher id than what was said
        after its original, so times are compared first."""
        turns = messages.by_ids(self.ctx.tx, list(self.message_ids)).values()
        last = max(((turn.created_at, turn.id) for turn in turns), default=None)
        proofs = self._other_proofs(memory_id)
        return last is not None and any((p.said_at, p.message_id) > last for p in proofs)

    def _is_user_owned(self, memory: Memory) -> bool:
        past = events.of_memory(self.ctx.tx, memory.id)
        kinds = (*_BY_HAND, "tag") if self.keeps_marked else _BY_HAND
        by_hand = any(
            e.actor == "user" and e.kind in kinds and e.cause not in _UNDONE for e in past
        )
        pinned = self.keeps_marked and memory.pinned
        return memory.created_by not in LEARNED or by_hand or pinned

    def _scope(self, memory: Memory) -> int:
        return memories.app_id_of(self.ctx.tx, memory.id)


def _given_tags(event: Event) -> set[str]:
    """The tags that an event gave."""
    return {*(event.new or {}).get("tags", ())} - {*(event.old or {}).get("tags", ())}
