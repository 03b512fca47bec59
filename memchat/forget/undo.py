"""Taking back what messages taught, by replaying the events that are left.

Memories that only these messages prove go, unless the user changed them by hand; so do those that a
program asked to forget, about which nothing is left to ask. Every other memory that they changed
becomes what its remaining events make of it. Of a key that holds one value, the value holds that
would hold had the deleted messages never been sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from memchat.db import Tx, apps, jobs, messages, sessions
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ACCEPTED, ADDED_BY_HAND, KEPT_ANYWAY
from memchat.facts.in_force import drop_replacement_question, is_single_valued, said_order
from memchat.forget import purge, tombstones
from memchat.search import turns as search_turns
from memchat.types import LEARNED, Event, Evidence, Memory, Message, Undone

DELETED = "conversation deleted"
TAKEN_BACK = "taken back"
_UNDONE = (DELETED, TAKEN_BACK)
_DELETION = Cause("user", DELETED)
_BY_HAND = ("add", "edit", "restore", "repeat")
_SAID_BY_HAND = (ADDED_BY_HAND, "restored by hand")
_RETIRING = {"supersede": "superseded", "merge": "merged", "end": "ended"}


@dataclass(slots=True)
class State:
    """What its events make of a memory."""

    starts_at: date | None = None
    expires_at: date | None = None
    reason: str | None = None
    """superseded, merged or ended; None where only its days decide whether it is in use."""
    replaced_by: int | None = None


def replayed(past: Iterable[Event]) -> State:
    """What these events, the oldest first, make of a memory."""
    now = State()
    for event in past:
        if event.kind in ("add", "edit", "restore"):
            new = event.new or {}
            if "value" in new or "starts_at" in new:
                now.starts_at = _day_in(new, "starts_at")
            if "expires_at" in new:
                now.expires_at = _day_in(new, "expires_at")
        if event.kind in ("restore", "repeat"):
            now.reason = now.replaced_by = None
        elif event.kind in _RETIRING:
            now.reason, now.replaced_by = _RETIRING[event.kind], event.related_id
    return now


def _day_in(state: dict[str, object] | None, name: str) -> date | None:
    day = (state or {}).get(name)
    return date.fromisoformat(day) if isinstance(day, str) else None


@dataclass(slots=True)
class ConversationUndo:
    """A conversation, or some of its messages, that is deleted in the caller's transaction.

    The caller forgets the memories of ``gone``.
    """

    tx: Tx
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
        self._find_gone_and_kept()
        touched = self._take_back()
        for memory_id in self.kept:
            self._update_said_at(memory_id)
        there = self._there({*self.gone, *self.kept, *touched})
        for memory in there:
            if memory.id in touched and not is_single_valued(memory.key):
                self._replay([memory])
        homes = memories.homes_of(self.tx, [m.id for m in there])
        for app_id, key in sorted({(homes[m.id], m.key) for m in there}):
            if is_single_valued(key):
                self._replay(self._values(app_id, key))
                self._let_one_hold(self._values(app_id, key))
        self.back = {m.id: self.back[m.id] for m in self._there(self.back) if m.active}
        return Undone(*(tuple(d.values()) for d in (self.gone, self.back, self.kept)))

    def _find_gone_and_kept(self) -> None:
        asked = self._asked_to_forget()
        for memory_id in changes.proved_memories(self.tx, self.message_ids):
            if self.only not in (None, memory_id):
                continue
            memory = memories.get(self.tx, self.tx.ids, memory_id)
            if memory is not None:
                stays = bool(self._other_proofs(memory_id)) or self._is_user_owned(memory)
                (self.kept if stays else self.gone)[memory_id] = memory
            elif memory_id in asked:
                tombstones.remove_of_memory(self.tx, memory_id)
                self.gone[memory_id] = asked[memory_id]

    def _asked_to_forget(self) -> dict[int, Memory]:
        """The memories that are hidden because a program asked to forget them, and that nothing
        else holds. Those that the user deleted are purged soon."""
        return {
            memory.id: memory
            for memory in memories.hidden(self.tx, self.tx.ids)
            if not jobs.due_at(self.tx, "forget", memory.id)
            and not self._other_proofs(memory.id)
            and not self._is_user_owned(memory)
        }

    def _take_back(self) -> set[int]:
        """Let the events of these messages count no more; the memories that this concerns. What
        replaced a memory that goes replaces what that one had replaced."""
        tx, touched = self.tx, set[int]()
        said = changes.events_by(tx, "message_id", self.message_ids)
        past = {e.id: e for e in said if self.only in (None, e.memory_id, e.related_id)}
        replaced = [m.id for i in self.gone for m in changes.replaced_memories(tx, i)]
        retired = [e for i in replaced for e in changes.events_of_memory(tx, i)]
        past |= {e.id: e for e in retired if self._retired_by_gone(e)}
        there = {m.id: m for m in self._there({e.memory_id for e in past.values()})}
        for event in past.values():
            memory = there.get(event.memory_id)
            if memory is None or memory.id in self.gone or event.cause in _UNDONE:
                continue
            touched.add(memory.id)
            heir = self._heir(event.related_id) if self._retired_by_gone(event) else None
            if heir not in (None, memory.id) and not is_single_valued(memory.key):
                changes.set_columns_of_event(tx, event.id, related_id=heir)
            else:
                self._take_back_one(event)
        return touched

    def _retired_by_gone(self, event: Event) -> bool:
        return event.kind in _RETIRING and event.related_id in self.gone

    def _take_back_one(self, event: Event) -> None:
        memory = memories.get(self.tx, self.tx.ids, event.memory_id)
        if memory is None or event.kind == "add":
            return  # what added a memory that stays is its beginning
        if event.kind == "repeat":
            left = max(memory.seen_count - 1, 1)
            changes.set_columns(self.tx, memory.id, seen_count=left)
        elif event.kind == "tag":
            self._remove_tags(memory, event)
        changes.set_columns_of_event(self.tx, event.id, cause=TAKEN_BACK)

    def _heir(self, memory_id: int | None) -> int | None:
        """What has replaced a memory that goes, and stays itself."""
        seen: set[int | None] = set()
        while memory_id in self.gone and memory_id not in seen:
            seen.add(memory_id)
            memory_id = self.gone[memory_id].replaced_by
        return None if memory_id in seen else memory_id

    def _remove_tags(self, memory: Memory, event: Event) -> None:
        """Remove the tags that an event gave, but for those that were given again since."""
        given = _given_tags(event)
        for later in changes.events_of_memory(self.tx, memory.id):
            if later.id > event.id and later.kind == "tag" and later.cause not in _UNDONE:
                given -= _given_tags(later)
        left = [tag for tag in memory.tags if tag not in given]
        changes.put_tags(self.tx, memory.id, left, _DELETION)

    def _replay(self, rows: Sequence[Memory]) -> None:
        """Make memories, all values of a key that holds one or a single other one, what their
        remaining events make of them. Which of several values holds is not decided here."""
        one_value = is_single_valued(rows[0].key) if rows else False
        past = {
            m.id: [e for e in changes.events_of_memory(self.tx, m.id) if e.cause not in _UNDONE]
            for m in rows
        }
        counts = self._was_coming if one_value else bool
        states = {
            i: replayed(e for e in events if e.kind != "supersede" or counts(e))
            for i, events in past.items()
        }
        if one_value:
            learned = [m.id for m in rows if not self._is_user_owned(m)]
            self._set_first_days([e for i in learned for e in past[i]], states)
        there = memories.homes_of(self.tx, filter(None, (s.replaced_by for s in states.values())))
        for memory in rows:
            state = states[memory.id]
            if not any(e.kind == "add" for e in past[memory.id]):
                continue  # its beginning is not known, so there is nothing to replay
            for name in ("expires_at", "starts_at"):
                if getattr(state, name) != getattr(memory, name):
                    changes.set_day(self.tx, memory, name, getattr(state, name), _DELETION)
            over = state.expires_at is not None and state.expires_at < self.tx.today
            begun = state.starts_at is None or state.starts_at <= self.tx.today
            if state.reason is None and one_value and begun and _is_superseded(memory):
                continue  # ``_let_one_hold`` decides
            reason = state.reason or ("expired" if over and not memory.active else None)
            self._put(memory, reason, state.replaced_by if state.replaced_by in there else None)

    def _put(self, memory: Memory, reason: str | None, replaced_by: int | None) -> None:
        """Bring a memory back, or retire it for a reason."""
        tx = self.tx
        if reason is not None and reason == memory.inactive_reason:
            if replaced_by != memory.replaced_by:
                changes.set_columns(tx, memory.id, replaced_by=replaced_by)
            return
        if not memory.active:
            changes.reactivate(tx, memory, _DELETION)
            drop_replacement_question(tx, memory)
            self.back[memory.id] = memory
        if reason is not None:
            changes.deactivate(tx, memory, reason, _DELETION, replaced_by=replaced_by)

    def _let_one_hold(self, rows: Sequence[Memory]) -> None:
        """Let the value of a key hold that was said last, each value being replaced by the one that
        was said next."""
        today = self.tx.today
        begun = [m for m in rows if m.starts_at is None or m.starts_at <= today]
        chain = [m for m in begun if m.active or _is_superseded(m)]
        chain.sort(key=said_order)
        holding = [m for m in chain if memories.holds_on(m, today)]
        ended = [m for m in begun if m.inactive_reason == "ended"]
        if not holding or any(said_order(m) > said_order(holding[-1]) for m in ended):
            return
        place = {m.id: n for n, m in enumerate(chain)}
        last = place[holding[-1].id]
        for n, memory in enumerate(chain[:last]):
            if memory.active or place.get(memory.replaced_by or 0, -1) <= n:
                self._put(memory, "superseded", chain[n + 1].id)
        self._put(chain[last], None, None)

    def _set_first_days(self, past: Iterable[Event], states: Mapping[int, State]) -> None:
        """Set the first day of each value of a key by what these events say that was said of it, in
        the order in which it was read.

        A value that holds already keeps its first day, whatever later day is said.
        """
        told = sorted((e for e in past if e.kind in ("add", "repeat")), key=lambda e: e.id)
        wanted = {e.message_id for e in told if e.message_id is not None} - {*self.message_ids}
        turns = messages.by_ids(self.tx, sorted(wanted))
        values: dict[int, tuple[datetime, date | None]] = {}
        for event in told:
            if (turn := turns.get(event.message_id or 0)) is None:
                continue
            i, said_at, day = event.memory_id, turn.created_at, self._day(event.at)
            starts_at = _day_in(event.new, "starts_at")
            start = starts_at if starts_at is not None and starts_at > day else None
            before, first = values.get(i, (said_at, start))
            if said_at >= before:
                holding = [
                    (at, begins or date.min, other)
                    for other, (at, begins) in values.items()
                    if (begins is None or begins <= day)
                    and (states[other].expires_at or day) >= day
                ]
                keeps = start is not None and bool(holding) and max(holding)[-1] == i
                values[i] = said_at, first if keeps else start
        for i, (_, start) in values.items():
            states[i].starts_at = start

    def _values(self, app_id: int, key: str) -> list[Memory]:
        """The values of a key, in use or not, but for those that are hidden or go."""
        found = memories.of_key(self.tx, [app_id], key)
        hidden = memories.FORGOTTEN
        return [m for m in found if m.id not in self.gone and m.inactive_reason != hidden]

    def _was_coming(self, event: Event) -> bool:
        """Whether a value was replaced before its first day."""
        first = _day_in(event.old, "starts_at")
        return first is not None and first > self._day(event.at)

    def _there(self, ids: Collection[int]) -> list[Memory]:
        return [*memories.by_ids(self.tx, self.tx.ids, sorted(ids)).values()]

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.tx.zone).date()

    def _update_said_at(self, memory_id: int) -> None:
        """Date a memory by the messages that still prove it, and by what the user did by hand; a
        yes from the inbox counts where no message is left."""
        left = [p.said_at for p in self._other_proofs(memory_id)]
        causes = _SAID_BY_HAND if left else (*_SAID_BY_HAND, ACCEPTED, KEPT_ANYWAY)
        past = changes.events_of_memory(self.tx, memory_id)
        left += [e.at for e in past if e.actor == "user" and e.cause in causes]
        left += changes.value_edits(self.tx, [memory_id]).values()
        if left:
            changes.set_columns(self.tx, memory_id, said_at=max(left), last_seen_at=max(left))

    def _other_proofs(self, memory_id: int) -> list[Evidence]:
        proofs = changes.evidence_of_memory(self.tx, memory_id)
        left = [p for p in proofs if p.message_id not in self.message_ids]
        return [p for p in left if p.role == "user" or p.client is not None]

    def _is_user_owned(self, memory: Memory) -> bool:
        past = changes.events_of_memory(self.tx, memory.id)
        kinds = (*_BY_HAND, "tag") if self.keeps_marked else _BY_HAND
        by_hand = any(
            e.actor == "user" and e.kind in kinds and e.cause not in _UNDONE for e in past
        )
        pinned = self.keeps_marked and memory.pinned
        return memory.created_by not in LEARNED or by_hand or pinned


def _is_superseded(memory: Memory) -> bool:
    return memory.inactive_reason == "superseded"


def _given_tags(event: Event) -> set[str]:
    """The tags that an event gave."""
    return {*(event.new or {}).get("tags", ())} - {*(event.old or {}).get("tags", ())}


def take_back(
    tx: Tx, turns: Sequence[Message], *, keep_memories: bool = False, keep_marked: bool = False
) -> Undone:
    """Undo what turns taught that are about to be deleted; what that did. With ``keep_memories``
    what they taught stays, and with ``keep_marked`` what the user pinned or tagged of it.

    What was only said there may be learnt again: it leaves no tombstone. Where a turn has a copy,
    the copy takes its place: what was said still stands in another conversation, and proves what it
    taught, or is read there where it was not read yet.
    """
    ids = [turn.id for turn in turns]
    proved = changes.proved_memories(tx, ids)
    _give_copies_their_place(tx, ids)
    if keep_memories:
        return Undone()
    undone = ConversationUndo(tx, set(ids), keeps_marked=keep_marked).run()
    told = {memory.id for memory in (*undone.gone, *undone.back, *undone.kept)}
    left = memories.by_ids(tx, tx.ids, [i for i in proved if i not in told])
    undone = replace(undone, kept=(*undone.kept, *left.values()))
    purge.forget(tx, undone.gone, tombstone=False)
    return undone


def delete_turns(tx: Tx, turns: Sequence[Message], *, keep_memories: bool = False) -> Undone:
    """Delete stored turns. Takes and returns the same as ``take_back``."""
    undone = take_back(tx, turns, keep_memories=keep_memories)
    for turn in sorted(turns, key=lambda turn: turn.id, reverse=True):
        purge.forget_message(tx, turn)
    return undone


def show_version(tx: Tx, session_id: int, old_id: int, new_id: int) -> Undone:
    """Show a message and what follows it in the place of another and what followed that; what that
    took back. What only the version that goes out of sight taught is taken back without a
    tombstone, as no message that is not shown is evidence; it comes back with it, read anew."""
    turns = {turn.id: turn for turn in messages.of_session(tx, session_id)}
    aside = messages.set_aside(tx, session_id, old_id, new_id)
    _give_copies_their_place(tx, aside)
    undone = ConversationUndo(tx, set(aside)).run()
    changes.drop_evidence(tx, aside)
    purge.forget(tx, undone.gone, tombstone=False)
    purge.leave_unsaid(tx, [turns[i] for i in aside])
    back = messages.bring_back(tx, session_id, new_id)
    search_turns.write(tx, session_id)
    if back:
        _have_read(tx, session_id, new_id)
    return undone


def _give_copies_their_place(tx: Tx, message_ids: Sequence[int]) -> None:
    """Let the copies of messages that go stand for them, read and searched in their place."""
    unread = sessions.heirs_of_unread(tx, message_ids)
    for session_id in sessions.take_place(tx, message_ids):
        search_turns.write(tx, session_id)
    for session_id, first in unread.items():
        _have_read(tx, session_id, first)


def _have_read(tx: Tx, session_id: int, message_id: int) -> None:
    """Have a conversation read from a message on: when it ends, or soon where it has ended."""
    sessions.mark_unread(tx, session_id, message_id)
    found = sessions.by_id(tx, session_id)
    if found is None or found[0].ended_at is None:
        return
    session, app_id = found
    if apps.memory_of(tx, session).on:
        jobs.enqueue(tx, "extract", app_id, session_id, tx.now)
