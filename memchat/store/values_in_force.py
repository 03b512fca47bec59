"""Which facts hold on a day, as far as dates alone decide it.

A row says what was true when it was written. A day that has come since may have let a value begin,
and another end: ``Standing`` says so to whoever reads, before anybody has written it down.
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
# Two queries in one: each has an index of its own.
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
    """How memories in use stand on a day, where that is not what their rows say."""

    today: date
    displaced: Mapping[int, int] = field(default_factory=dict)
    """In use by their row, but another has their place today: id → that one's id."""
    back: Mapping[int, int] = field(default_factory=dict)
    """Over: id → the id of what it had replaced, which holds again."""

    def holds(self, memory: Memory) -> bool:
        """Whether a memory is in force today; one that is still to come is not."""
        active = memory.active or memory.id in self.back.values()
        return active and memory.id not in self.displaced and holds_on(memory, self.today)

    def as_of_today(self, memory: Memory) -> Memory:
        """The memory as its row will read when the day is written down."""
        winner = self.displaced.get(memory.id)
        if winner is not None:
            return replace(memory, active=False, inactive_reason="superseded", replaced_by=winner)
        if memory.id in self.back.values():
            return replace(memory, active=True, inactive_reason=None, replaced_by=None)
        return memory

    def current_id(self, memory_id: int) -> int:
        """The memory that has this one's place today, or itself."""
        found = memory_id
        while found in self.displaced or found in self.back:
            found = self.displaced[found] if found in self.displaced else self.back[found]
        return found

    def replaced(self, ids: Iterable[int]) -> dict[int, int]:
        """What these memories displaced, though no row says so yet: id → the one in its place."""
        places = set(ids)
        found = ((i, self.current_id(i)) for i in self.displaced)
        return {i: winner for i, winner in found if winner in places}

    def in_use(self) -> ColumnElement[bool]:
        """Told as a fact today: in force, or still to come."""
        over = and_(_m.expires_at.is_not(None), _m.expires_at < self.today)
        there = and_(_m.active == 1, ~over, _m.id.not_in(self.displaced))
        return or_(there, _m.id.in_(self.back.values())) if self.back else there

    def begun(self) -> ColumnElement[bool]:
        """Not still to come."""
        return or_(_m.starts_at.is_(None), _m.starts_at <= self.today)

    def out_of_use(self) -> ColumnElement[bool]:
        """Out of use by its row, or displaced today."""
        gone = and_(_m.active == 0, _m.id.not_in(self.back.values()))
        return or_(gone, _m.id.in_(self.displaced)) if self.displaced else gone


def holds_on(memory: Memory, day: date) -> bool:
    """Whether a day lies between a memory's first and last day."""
    begun = memory.starts_at is None or memory.starts_at <= day
    return begun and (memory.expires_at is None or memory.expires_at >= day)


def with_due_date(tx: Connection, app_ids: Sequence[int], today: date) -> list[Memory]:
    """The rows in use that a date says something about: over, or with a first day that has come;
    the earliest to begin first."""
    found = raw_sql.rows(tx, _DUE, raw_sql.json_list(app_ids), today.isoformat())
    return [memory_of_text(row) for row in found]


def of_key(tx: Connection, app_ids: Sequence[int], key: str) -> list[Memory]:
    """Every memory with this key, in use or not, hidden ones too."""
    return [
        memory_of_text(row) for row in raw_sql.rows(tx, _OF_KEY, raw_sql.json_list(app_ids), key)
    ]
