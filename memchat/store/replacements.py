"""Which memories replaced which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from memchat.store import raw_sql
from memchat.store.memories import by_ids
from memchat.store.memory_rows import SELECT, memory_of_text
from memchat.store.schema import memories
from memchat.types import Memory

_m = memories.c
_STALE = """
    SELECT id FROM memories INDEXED BY ix_memories_superseded
    WHERE id IN (SELECT value FROM json_each(?)) AND inactive_reason = 'superseded'
"""
_REPLACED_ANY = """
    SELECT 1 FROM memories WHERE replaced_by IN (SELECT value FROM json_each(?)) LIMIT 1
"""
_REPLACED = """
    WITH RECURSIVE stands(id, head) AS (
        SELECT value, value FROM json_each(?1)
        UNION SELECT m.id, stands.head FROM stands JOIN memories m ON m.replaced_by = stands.id
        WHERE m.inactive_reason = 'superseded' AND +m.app_id IN (SELECT value FROM json_each(?2)))
    SELECT m.id, m.value, m.updated_at, n.said_at, n.starts_at, stands.head
    FROM stands JOIN memories m ON m.id = stands.id JOIN memories n ON n.id = m.replaced_by
    WHERE m.id NOT IN (SELECT value FROM json_each(?1))
    ORDER BY m.said_at DESC, m.id DESC
"""


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """A replaced value, and until when it held: when its replacement was said, or the day from
    which the replacement was to hold."""

    id: int
    value: str
    until: datetime | date


def successors(tx: Connection, memory_id: int) -> list[int]:
    """The ids of the memories that replaced this one, one after another."""
    found: list[int] = []
    query = select(_m.replaced_by)
    next_id = tx.execute(query.where(_m.id == memory_id)).scalar()
    while next_id is not None and next_id not in found:
        found.append(next_id)
        next_id = tx.execute(query.where(_m.id == next_id)).scalar()
    return found


def replaced_memories(tx: Connection, memory_id: int) -> list[Memory]:
    """The inactive memories that this one replaced."""
    return [
        memory_of_text(row)
        for row in raw_sql.rows(tx, f"{SELECT} WHERE m.replaced_by = ?", memory_id)
    ]


def replaced_values(
    tx: Connection, app_ids: Sequence[int], ids: Sequence[int]
) -> dict[int, list[ReplacedValue]]:
    """For each of these memories the values that it and its predecessors replaced, the newest
    first."""
    found: dict[int, list[ReplacedValue]] = {}
    if not raw_sql.rows(tx, _REPLACED_ANY, raw_sql.json_list(ids)):
        return found  # true for most memories, and ten times cheaper than the whole query
    rows = raw_sql.rows(tx, _REPLACED, raw_sql.json_list(ids), raw_sql.json_list(app_ids))
    for row_id, value, retired_at, said_at, starts_at, head in rows:
        # The replacement may have been said again later; the value ended when it was said first.
        until = raw_sql.parse_day(starts_at) or raw_sql.parse_time(min(said_at, retired_at))
        found.setdefault(head, []).append(ReplacedValue(row_id, value, until))
    return found


def whole_chains(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> set[int]:
    """The ids of all replaced values in the chains of these replaced values. Memories in use are
    left out."""
    stale = [row[0] for row in raw_sql.rows(tx, _STALE, raw_sql.json_list(ids))]
    if not stale:
        return set()
    heads = {memory.id for memory in current(tx, app_ids, stale).values()}
    told = replaced_values(tx, app_ids, sorted(heads)).values()
    return {*stale, *(past.id for pasts in told for past in pasts)}


def current(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """For each of these memories the active one: itself, or the one that has replaced it by now."""
    found: dict[int, Memory] = {}
    rows: dict[int, Memory] = {}
    trails = {i: [i] for i in ids}
    while trails:
        rows |= by_ids(tx, app_ids, sorted({trail[-1] for trail in trails.values()} - rows.keys()))
        going: dict[int, list[int]] = {}
        for i, trail in trails.items():
            memory = rows.get(trail[-1])
            if memory is not None and memory.active:
                found[i] = memory
            elif memory is not None and memory.replaced_by and memory.replaced_by not in trail:
                going[i] = [*trail, memory.replaced_by]
        trails = going
    return found
