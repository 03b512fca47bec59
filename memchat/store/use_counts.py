"""How often memories were found for a message, and how often they were sent to a model."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select, update

from memchat.store.schema import memories

_m = memories.c


def add(tx: Connection, *, matched: Collection[int], read: Collection[int]) -> None:
    """Add one to the counts of these memories; ids that no longer exist are ignored."""
    for ids, column in ((matched, _m.match_count), (read, _m.read_count)):
        if ids:
            tx.execute(update(memories).where(_m.id.in_(ids)).values({column: column + 1}))


def get(tx: Connection, memory_id: int) -> tuple[int, int]:
    """How often a memory was found for a message, and how often it was sent to a model."""
    row = tx.execute(select(_m.match_count, _m.read_count).where(_m.id == memory_id)).one()
    return row.match_count, row.read_count
