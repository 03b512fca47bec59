"""Undoing what a conversation taught: its events are undone, the last one first.

Memories that it added go, unless other messages prove them too or the user changed them by hand;
so do those that a program asked to forget, about which nothing is left to ask.
What it retired is restored, unless something newer replaced it; what it restored is retired again;
a day it changed is set back. Of a key that holds one value, the value holds that would hold had the
deleted messages never been sent (``value_replay``).

Which value of a key that holds one would hold, had some messages never been sent.

Deleting turns of a conversation, with what only they taught.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from memchat.db import apps, jobs, messages, sessions
from memchat.db.apps import Context
from memchat.facts import changes, history, memories
from memchat.facts.fact import ADDED_BY_HAND
from memchat.facts.history import Cause
from memchat.facts.in_force import drop_replacement_question, is_single_valued, said_order
from memchat.forget import purge, tombstones
from memchat.search import turns as search_turns
from memchat.types import LEARNED, Event, Evidence, Memory, Message, Scope, Undone


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a value: when it was said, its first day, and the day on which it was
    read."""

    memory_id: int
    said_at: datetime
    read_on: date
    starts_at: date | None


def start_dates(
    statements: Iterable[Statement], until: dict[int, date | None]
) -> dict[int, date | None]:
    """The first day of each value after these statements; ``until`` are the last days.

    A value that holds already keeps its first day, whatever later day is said.
    """
    values: dict[int, tuple[datetime, date | None]] = {}
    for statement in statements:
        i, start = statement.memory_id, statement.starts_at
        if start is not None and start <= statement.read_on:
            start = None
        said_at, before = values.get(i, (statement.said_at, start))
        if statement.said_at >= said_at:
            said_at = statement.said_at
            holds = _in_force(values, until, statement.read_on) == i
            before = before if start is not None and holds else start
        values[i] = said_at, before
    return {i: start for i, (_, start) in values.items()}


def _in_force(
    values: dict[int, tuple[datetime, date | None]], until: dict[int, date | None], day: date
) -> int | None:
    holding = [
        (said_at, start or date.min, i)
        for i, (said_at, start) in values.items()
        if (start is None or start <= day) and (until.get(i) or day) >= day
    ]
    return max(holding)[-1] if holding else None


@dataclass(frozen=True, slots=True)
class ValueReplay:
    """The values of a key that holds one, in a scope row, while messages are deleted."""

    ctx: Context
    app_id: int
    key: str
    deleted_messages: Collection[int]
    """Ids of the messages that are deleted."""
    deleted_memories: Collection[int]
    """Ids of the memories that are deleted with them."""
    cause: Cause

    def apply(self, user_owned: Collection[int]) -> list[Memory]:
        """Activate the value that holds by the remaining messages; the memories that are active
        again.

        The days of ``user_owned`` memories, which the user set, stay as they are.
        """
        self._update_start_dates(user_owned)
        rows = self._rows()
        today = self.ctx.today
        coming = [m for m in rows if m.starts_at is not None and m.starts_at > today]
        back = [
            m
            for m in coming
            if m.inactive_reason == "superseded" and not self._replaced_before_start(m)
        ]
        begun = [m for m in rows if m not in coming]
        chain = sorted((m for m in begun if _takes_part(m)), key=said_order)
        holding = [m for m in chain if memories.holds_on(m, today)]
        ended = [m for m in begun if m.inactive_reason == "ended"]
        if holding and all(said_order(m) < said_order(holding[-1]) for m in ended):
            back += [m for m in holding[-1:] if not m.active]
            self._link_successors(chain[: chain.index(holding[-1]) + 1])
        for memory in back:
            changes.reactivate(self.ctx.tx, memory, self.cause)
            drop_replacement_question(self.ctx.tx, self.app_id, memory)
        return back

    def _link_successors(self, chain: Sequence[Memory]) -> None:
        """Let each value be replaced by the one that was said next; the last one holds."""
        place = {m.id: n for n, m in enumerate(chain)}
        for n, memory in enumerate(chain[:-1]):
            heir = chain[n + 1]
            if memory.active:
                changes.deactivate(
                    self.ctx.tx, memory, "superseded", self.cause, replaced_by=heir.id
                )
            elif place.get(memory.replaced_by or 0, -1) <= n:
                changes.set_columns(self.ctx.tx, memory.id, replaced_by=heir.id)

    def _update_start_dates(self, user_owned: Collection[int]) -> None:
        """Give each value the first day that the remaining messages give it."""
        rows = {m.id: m for m in self._rows() if m.id not in user_owned}
        until = {i: m.expires_at for i, m in rows.items()}
        for i, start in start_dates(self._statements(rows), until).items():
            if start != rows[i].starts_at:
                changes.set_start(self.ctx.tx, rows[i], start, self.cause)

    def _statements(self, ids: Iterable[int]) -> list[Statement]:
        """The remaining statements of these memories, in the order in which they were read."""
        past = [
            e
            for i in ids
            for e in history.events_of_memory(self.ctx.tx, i)
            if e.kind in ("add", "repeat")
            and e.message_id
            and e.message_id not in self.deleted_messages
        ]
        turns = messages.by_ids(self.ctx.tx, sorted({e.message_id for e in past if e.message_id}))
        found = sorted((e for e in past if e.message_id in turns), key=lambda e: e.id)
        return [
            Statement(
                e.memory_id, turns[e.message_id].created_at, self._day(e.at), _start_of(e.new)
            )
            for e in found
            if e.message_id is not None
        ]

    def _rows(self) -> list[Memory]:
        found = memories.of_key(self.ctx.tx, [self.app_id], self.key)
        out = ("merged", "forgotten", "expired")
        return [
            m for m in found if m.id not in self.deleted_memories and m.inactive_reason not in out
        ]

    def _replaced_before_start(self, memory: Memory) -> bool:
        """Whether a value was replaced before its first day, by a message that remains."""
        past = [
            e for e in history.events_of_memory(self.ctx.tx, memory.id) if e.kind == "supersede"
        ]
        if not past or past[-1].related_id in self.deleted_memories:
            return False
        first = _start_of(past[-1].old)
        stays = past[-1].message_id is not None and past[-1].message_id not in self.deleted_messages
        return stays and first is not None and first > self._day(past[-1].at)

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.ctx.zone).date()


def _takes_part(memory: Memory) -> bool:
    return memory.active or memory.inactive_reason == "superseded"


def _start_of(state: dict[str, object] | None) -> date | None:
    day = (state or {}).get("starts_at")
    return date.fromisoformat(day) if isinstance(day, str) else None


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
        for memory_id in history.proved_memories(self.ctx.tx, list(self.message_ids)):
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
            for event in history.events_of_messages(self.ctx.tx, self.message_ids)
            if self.only in (None, event.memory_id, event.related_id)
        ]
        slots = self._single_valued_keys({*self.gone, *self.kept, *(e.memory_id for e in past)})
        for event in reversed(past):
            if event.memory_id not in self.gone and self._undo(event):
                history.set_cause(self.ctx.tx, event.id, TAKEN_BACK)
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
            for memory in changes.listed(self.ctx.tx, self.ctx.scope.ids)
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
        rows = memories.of_key(self.ctx.tx, [app_id], key)
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
            changes.set_columns(self.ctx.tx, memory.id, seen_count=left)
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
        for later in history.events_of_memory(self.ctx.tx, memory.id):
            if later.id > event.id and later.kind == "tag" and later.cause not in _UNDONE:
                given -= _given_tags(later)
        left = [tag for tag in memory.tags if tag not in given]
        memories.put_tags(self.ctx.tx, memory.id, left, self._cause)

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
            ("expires_at", changes.set_expiry),
            ("starts_at", changes.set_start),
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
            for e in history.events_of_memory(self.ctx.tx, event.memory_id)
            if e.id > event.id and e.kind in changes and e.cause not in _UNDONE
        ]
        return any(e.message_id not in self.message_ids for e in later)

    def _remove_old_day(self, event: Event) -> bool:
        """Where a last day was changed again later, undoing the later change must not restore this
        one, which only deleted messages prove."""
        if event.kind != "edit" or event.old is None or event.new is None:
            return False
        for later in history.events_of_memory(self.ctx.tx, event.memory_id):
            if later.id > event.id and later.kind == "edit" and later.old == event.new:
                history.set_old(self.ctx.tx, later.id, event.old)
                return True
        return False

    def _restore_replaced(self) -> None:
        """Restore what a memory that goes had replaced, whoever caused that."""
        for goes in self.gone:
            for memory in changes.replaced_memories(self.ctx.tx, goes):
                known = memory.id in self.gone or memory.id in self.back
                settled = is_single_valued(memory.key) and memory.inactive_reason == "superseded"
                if not known and not settled and memory.inactive_reason in ("superseded", "merged"):
                    self._restore(memory)

    def _restore(self, memory: Memory) -> None:
        """Restore a retired memory, or link it to the memory that replaces it now."""
        winner = self._successor(memory)
        if winner is None:
            changes.reactivate(self.ctx.tx, memory, self._cause)
            self.back[memory.id] = memory
        elif winner.id != memory.replaced_by:
            changes.set_columns(self.ctx.tx, memory.id, replaced_by=winner.id)

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
        changes.deactivate(
            self.ctx.tx,
            memory,
            _REASONS[before.kind],
            self._cause,
            replaced_by=before.related_id,
        )
        return True

    def _retired_before(self, event: Event) -> Event | None:
        """The event that had retired what this one restored."""
        past = reversed(history.events_of_memory(self.ctx.tx, event.memory_id))
        return next(
            (e for e in past if e.id < event.id and e.kind in _REASONS and e.cause not in _UNDONE),
            None,
        )

    def _update_said_at(self, memory_id: int) -> None:
        """Date a memory by the messages that still prove it, or by what the user did by hand."""
        left = [p.said_at for p in self._other_proofs(memory_id)]
        past = history.events_of_memory(self.ctx.tx, memory_id)
        left += [e.at for e in past if e.actor == "user" and e.cause in _SAID_BY_HAND and left]
        if left:
            changes.set_columns(self.ctx.tx, memory_id, said_at=max(left), last_seen_at=max(left))

    def _other_proofs(self, memory_id: int) -> list[Evidence]:
        proofs = history.evidence_of_memory(self.ctx.tx, memory_id)
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
        past = history.events_of_memory(self.ctx.tx, memory.id)
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


def take_back(
    ctx: Context,
    turns: Sequence[Message],
    *,
    keep_memories: bool = False,
    keep_marked: bool = False,
) -> tuple[Undone, set[int]]:
    """Undo what turns taught that are about to be deleted; what that did, and the scope rows whose
    saved vectors are out of date. With ``keep_memories`` what they taught stays, and with
    ``keep_marked`` what the user pinned or tagged of it.

    What was only said there may be learnt again: it leaves no tombstone. Where a turn has a copy,
    the copy takes its place: what was said still stands in another conversation, and proves what it
    taught, or is read there where it was not read yet.
    """
    ids = [turn.id for turn in turns]
    proved = history.proved_memories(ctx.tx, ids)
    unread = sessions.heirs_of_unread(ctx.tx, ids)
    search_turns.rewrite(ctx, sessions.take_place(ctx.tx, ids))
    for session_id, first in unread.items():
        _have_read(ctx, session_id, first)
    if keep_memories:
        return Undone(), set()
    undone = ConversationUndo(ctx, set(ids), keeps_marked=keep_marked).run()
    told = {memory.id for memory in (*undone.gone, *undone.back, *undone.kept)}
    left = memories.by_ids(ctx.tx, ctx.scope.ids, [i for i in proved if i not in told])
    undone = replace(undone, kept=(*undone.kept, *left.values()))
    return undone, purge.forget(ctx, undone.gone, tombstone=False)


def delete_turns(
    ctx: Context, turns: Sequence[Message], *, keep_memories: bool = False
) -> tuple[Undone, set[int]]:
    """Delete stored turns. Takes and returns the same as ``take_back``."""
    undone, stale = take_back(ctx, turns, keep_memories=keep_memories)
    for turn in sorted(turns, key=lambda turn: turn.id, reverse=True):
        stale |= purge.forget_message(ctx, turn)
    return undone, stale


def _have_read(ctx: Context, session_id: int, message_id: int) -> None:
    """Have a conversation read from a message on: when it ends, or soon where it has ended."""
    sessions.mark_unread(ctx.tx, session_id, message_id)
    found = sessions.by_id(ctx.tx, session_id)
    if found is None or found[0].ended_at is None:
        return
    session, app_id = found
    if apps.memory_switch(ctx.tx, Scope(session.user, session.app)).on:
        jobs.enqueue(ctx.tx, "extract", app_id, session_id, ctx.now)
