"""Which memory stands in whose place: what each replaced, and what replaced it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from memchat.store.memories import WITH_SCOPE, by_ids, to_memory
from memchat.store.schema import memories
from memchat.types import Memory

_m = memories.c


@dataclass(frozen=True, slots=True)
class Past:
    """A value that was replaced, and until when it held: what replaced it was said then."""

    id: int
    value: str
    until: datetime


def after(tx: Connection, memory_id: int) -> list[int]:
    """The memories that took this one's place, one after another."""
    found: list[int] = []
    query = select(_m.replaced_by)
    next_id = tx.execute(query.where(_m.id == memory_id)).scalar()
    while next_id is not None and next_id not in found:
        found.append(next_id)
        next_id = tx.execute(query.where(_m.id == next_id)).scalar()
    return found


def replaced_by(tx: Connection, memory_id: int) -> list[Memory]:
    """The inactive memories that this one replaced."""
    return [to_memory(row) for row in tx.execute(WITH_SCOPE.where(_m.replaced_by == memory_id))]


def replaced(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, list[Past]]:
    """For each of these memories the values that it and its predecessors replaced; newest first."""
    after, old = memories.alias(), memories.alias()
    stands = select(_m.id, _m.id.label("head")).where(_m.id.in_(ids)).cte("stands", recursive=True)
    stands = stands.union(
        select(old.c.id, stands.c.head)
        .join(stands, old.c.replaced_by == stands.c.id)
        .where(old.c.app_id.in_(app_ids), old.c.inactive_reason == "superseded")
    )
    query = (
        select(_m.id, _m.value, _m.updated_at, after.c.said_at, stands.c.head)
        .join(stands, stands.c.id == _m.id)
        .join(after, after.c.id == _m.replaced_by)
        .where(_m.id.not_in(ids))
        .order_by(_m.said_at.desc(), _m.id.desc())
    )
    found: dict[int, list[Past]] = {}
    for row in tx.execute(query):
        # What replaced it may have been said again since; it was retired at the first time.
        until = min(row.said_at, row.updated_at)
        found.setdefault(row.head, []).append(Past(row.id, row.value, until))
    return found


def chains(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> set[int]:
    """Every replaced value of those chains that any of these replaced values belongs to; of
    memories in use nothing."""
    old = select(_m.id).where(_m.id.in_(ids), _m.inactive_reason == "superseded")
    stale = list(tx.execute(old).scalars())
    if not stale:
        return set()
    heads = {memory.id for memory in present(tx, app_ids, stale).values()}
    told = replaced(tx, app_ids, sorted(heads)).values()
    return {*stale, *(past.id for pasts in told for past in pasts)}


def present(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """For each of these memories the active one that is it, or has taken its place by now."""
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
