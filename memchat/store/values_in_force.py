"""Which facts hold on a day, as far as their first and last days decide it.

A row says what was true when it was written. Since then a value may have begun or ended.
``ValuesInForce`` has these changes before they are written to the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from sqlalchemy import ColumnElement, Connection, and_, or_

from memchat.store import raw_sql
from memchat.store.memory_rows import SELECT, memory_of_text
from memchat.store.schema import memories
from memchat.types import Memory

_m = memories.c
# A union, since each half uses an index of its own.
_DUE = f"""
    {SELECT} WHERE m.id IN (
        SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND expires_at < ?2
        UNION ALL SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND starts_at <= ?2)
    ORDER BY m.starts_at, m.id
"""
_OF_KEY = f"""
    {SELECT} WHERE m.app_id IN (SELECT value FROM json_each(?)) AND m.active IN (0, 1) AND m.key = ?
"""


@dataclass(frozen=True, slots=True)
class ValuesInForce:
    """What has changed by date alone since the rows were written."""

    today: date
    displaced: Mapping[int, int] = field(default_factory=dict)
    """Active by their rows, but replaced today by another memory: id → id of the other."""
    back: Mapping[int, int] = field(default_factory=dict)
    """Ended memories: id → id of the value that they had replaced and that holds again."""

    def holds(self, memory: Memory) -> bool:
        """Whether a memory is in force today. A future one is not."""
        active = memory.active or memory.id in self.back.values()
        return active and memory.id not in self.displaced and holds_on(memory, self.today)

    def as_of_today(self, memory: Memory) -> Memory:
        """The memory as its row will read once the changes are written."""
        winner = self.displaced.get(memory.id)
        if winner is not None:
            return replace(memory, active=False, inactive_reason="superseded", replaced_by=winner)
        if memory.id in self.back.values():
            return replace(memory, active=True, inactive_reason=None, replaced_by=None)
        return memory

    def current_id(self, memory_id: int) -> int:
        """The id of the memory that stands in the place of this one today, or its own."""
        found = memory_id
        while found in self.displaced or found in self.back:
            found = self.displaced[found] if found in self.displaced else self.back[found]
        return found

    def replaced(self, ids: Iterable[int]) -> dict[int, int]:
        """The memories that these replaced by date alone: id → id of the replacement."""
        places = set(ids)
        found = ((i, self.current_id(i)) for i in self.displaced)
        return {i: winner for i, winner in found if winner in places}

    def in_use(self) -> ColumnElement[bool]:
        """A condition: the memory is shown as a fact today, being in force or still to come."""
        over = and_(_m.expires_at.is_not(None), _m.expires_at < self.today)
        there = and_(_m.active == 1, ~over, _m.id.not_in(self.displaced))
        return or_(there, _m.id.in_(self.back.values())) if self.back else there

    def begun(self) -> ColumnElement[bool]:
        """A condition: the first day of the memory has come."""
        return or_(_m.starts_at.is_(None), _m.starts_at <= self.today)

    def out_of_use(self) -> ColumnElement[bool]:
        """A condition: the memory is inactive by its row, or replaced today."""
        gone = and_(_m.active == 0, _m.id.not_in(self.back.values()))
        return or_(gone, _m.id.in_(self.displaced)) if self.displaced else gone


def holds_on(memory: Memory, day: date) -> bool:
    """Whether a day lies between a memory's first and last day."""
    begun = memory.starts_at is None or memory.starts_at <= day
    return begun and (memory.expires_at is None or memory.expires_at >= day)


def with_due_date(tx: Connection, app_ids: Sequence[int], today: date) -> list[Memory]:
    """The active memories whose last day is past or whose first day has come, the earliest first
    day first."""
    found = raw_sql.rows(tx, _DUE, raw_sql.json_list(app_ids), today.isoformat())
    return [memory_of_text(row) for row in found]


def of_key(tx: Connection, app_ids: Sequence[int], key: str) -> list[Memory]:
    """All memories with this key, active or not, hidden ones too."""
    return [
        memory_of_text(row) for row in raw_sql.rows(tx, _OF_KEY, raw_sql.json_list(app_ids), key)
    ]
