"""Which value of a key that holds one would hold, had some messages never been sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from memchat.memory.context import Context
from memchat.memory.facts.in_force import drop_replacement_question, said_order
from memchat.store import events, memory_changes, messages, values_in_force
from memchat.store.events import Cause
from memchat.types import Memory


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
        holding = [m for m in chain if values_in_force.holds_on(m, today)]
        ended = [m for m in begun if m.inactive_reason == "ended"]
        if holding and all(said_order(m) < said_order(holding[-1]) for m in ended):
            back += [m for m in holding[-1:] if not m.active]
            self._link_successors(chain[: chain.index(holding[-1]) + 1])
        for memory in back:
            memory_changes.reactivate(self.ctx.tx, memory, self.cause)
            drop_replacement_question(self.ctx.tx, self.app_id, memory)
        return back

    def _link_successors(self, chain: Sequence[Memory]) -> None:
        """Let each value be replaced by the one that was said next; the last one holds."""
        place = {m.id: n for n, m in enumerate(chain)}
        for n, memory in enumerate(chain[:-1]):
            heir = chain[n + 1]
            if memory.active:
                memory_changes.deactivate(
                    self.ctx.tx, memory, "superseded", self.cause, replaced_by=heir.id
                )
            elif place.get(memory.replaced_by or 0, -1) <= n:
                memory_changes.set_columns(self.ctx.tx, memory.id, replaced_by=heir.id)

    def _update_start_dates(self, user_owned: Collection[int]) -> None:
        """Give each value the first day that the remaining messages give it."""
        rows = {m.id: m for m in self._rows() if m.id not in user_owned}
        until = {i: m.expires_at for i, m in rows.items()}
        for i, start in start_dates(self._statements(rows), until).items():
            if start != rows[i].starts_at:
                memory_changes.set_start(self.ctx.tx, rows[i], start, self.cause)

    def _statements(self, ids: Iterable[int]) -> list[Statement]:
        """The remaining statements of these memories, in the order in which they were read."""
        past = [
            e
            for i in ids
            for e in events.of_memory(self.ctx.tx, i)
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
        found = values_in_force.of_key(self.ctx.tx, [self.app_id], self.key)
        out = ("merged", "forgotten", "expired")
        return [
            m for m in found if m.id not in self.deleted_memories and m.inactive_reason not in out
        ]

    def _replaced_before_start(self, memory: Memory) -> bool:
        """Whether a value was replaced before its first day, by a message that remains."""
        past = [e for e in events.of_memory(self.ctx.tx, memory.id) if e.kind == "supersede"]
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
