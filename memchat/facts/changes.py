"""Changes of memories, and which replaced which.

Each change writes its event, of the scope row that the memory is in, and the passage in the same
transaction. A deleted memory is hidden from everybody until it is purged, so that the deletion
can be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import Row, delete, select, update

from memchat.db import Tx, records
from memchat.db.schema import memories, searched, utc_text
from memchat.facts import history
from memchat.facts import memories as facts_memories
from memchat.facts.history import Cause, Values
from memchat.facts.memories import (
    FORGOTTEN,
    SELECT,
    NewMemory,
    app_id_of,
    by_ids,
    memory_of_text,
)
from memchat.search import passages
from memchat.types import Memory

_m = memories.c


def add(tx: Tx, app_id: int, new: NewMemory, cause: Cause, *, instead_of: int | None = None) -> int:
    """Store an active memory with its passage and ``add`` event; returns its id.

    ``instead_of`` is the memory that it is to replace on its first day.
    """
    memory_id = tx.insert(
        "memories",
        app_id=app_id,
        created_at=cause.at,
        updated_at=cause.at,
        last_seen_at=new.said_at,
        created_by=new.created_by,
        **_columns(new),
    )
    passages.put_text(tx, "fact", memory_id, app_id, new.search_text)
    history.record(
        tx, memory_id, app_id, "add", cause, Values(new=_state(new)), related_id=instead_of
    )
    return memory_id


def deactivate(
    tx: Tx,
    memory: Memory,
    reason: str,
    cause: Cause,
    *,
    replaced_by: int | None = None,
    said_at: datetime | None = None,
) -> None:
    """Make a memory inactive for a reason: superseded, merged, expired or ended.

    A superseded value can still be found by search. ``said_at`` is when the change was said, if it
    was.
    """
    if reason != "superseded":
        passages.hide(tx, memory.id)
    app_id = _set(
        tx,
        memory.id,
        active=0,
        inactive_reason=reason,
        replaced_by=replaced_by,
        updated_at=cause.at,
        last_seen_at=max(said_at or memory.last_seen_at, memory.last_seen_at),
    ).app_id
    if memory.pinned and replaced_by is not None:
        pin(tx, replaced_by, Cause(cause.at, "system"))
    if memory.sensitive and replaced_by is not None:
        set_columns(tx, replaced_by, sensitive=1)  # the new value is as sensitive
    if memory.tags and replaced_by is not None:
        facts_memories.inherit_tags(tx, replaced_by, memory.tags, cause)
    kinds = {"superseded": "supersede", "merged": "merge", "expired": "expire", "ended": "end"}
    history.record(
        tx, memory.id, app_id, kinds[reason], cause, Values(_state(memory)), related_id=replaced_by
    )


def reactivate(
    tx: Tx,
    memory: Memory,
    cause: Cause,
    *,
    said_at: datetime | None = None,
    instead_of: int | None = None,
) -> None:
    """Make an inactive memory active again; ``said_at`` is when it was said again, if it was.

    ``instead_of`` is the memory that it is to replace on its first day.
    """
    row = _set(
        tx,
        memory.id,
        active=1,
        inactive_reason=None,
        replaced_by=None,
        updated_at=cause.at,
        said_at=said_at or memory.said_at,
    )
    passages.show(tx, memory.id, row.app_id)
    # Its first and last day may have been changed just before.
    now = replace(memory, expires_at=row.expires_at, starts_at=row.starts_at)
    values = Values(new=_state(now))
    history.record(tx, memory.id, row.app_id, "restore", cause, values, related_id=instead_of)


def count_repeat(
    tx: Tx,
    memory: Memory,
    said_at: datetime,
    cause: Cause,
    *,
    starts_at: date | None = None,
) -> None:
    """Count that the fact was said once more. ``starts_at`` is the first day that was named this
    time; it is only stored in the event."""
    app_id = _set(
        tx,
        memory.id,
        seen_count=_m.seen_count + 1,
        last_seen_at=max(said_at, memory.last_seen_at),
        said_at=max(said_at, memory.said_at),
    ).app_id
    new = {"starts_at": starts_at.isoformat()} if starts_at else None
    history.record(tx, memory.id, app_id, "repeat", cause, Values(new=new))


def set_columns(tx: Tx, memory_id: int, **columns: Any) -> None:
    """Set columns without an event, for changes that are no change of the fact itself."""
    tx.execute(update(memories).where(_m.id == memory_id).values(**columns))


def set_expiry(tx: Tx, memory: Memory, expires_at: date | None, cause: Cause) -> None:
    """Change the last day of a fact."""
    _set_day(tx, memory, "expires_at", expires_at, cause)


def set_start(tx: Tx, memory: Memory, starts_at: date | None, cause: Cause) -> None:
    """Change the first day of a fact."""
    _set_day(tx, memory, "starts_at", starts_at, cause)


def _set_day(tx: Tx, memory: Memory, name: str, day: date | None, cause: Cause) -> None:
    app_id = _set(tx, memory.id, updated_at=cause.at, **{name: day}).app_id
    values = Values({name: _iso(getattr(memory, name))}, {name: _iso(day)})
    history.record(tx, memory.id, app_id, "edit", cause, values)


def pin(tx: Tx, memory_id: int, cause: Cause, *, on: bool = True) -> None:
    """Pin or unpin a memory; nothing happens if it is in that state already."""
    changed = update(memories).where(_m.id == memory_id, _m.pinned == int(not on))
    changed = changed.values(pinned=int(on), updated_at=cause.at)
    for app_id in tx.execute(changed.returning(_m.app_id)).scalars().all():
        history.record(tx, memory_id, app_id, "pin" if on else "unpin", cause)


def rewrite(tx: Tx, memory: Memory, app_id: int, new: NewMemory, cause: Cause) -> None:
    """Store a person's edit in the same row, which may move to another scope."""
    before = app_id_of(tx, memory.id)
    if before != app_id:
        history.record_move(tx, memory.id, before, app_id, cause)
    values = {"app_id": app_id, "updated_at": cause.at, **_columns(new)}
    tx.execute(update(memories).where(_m.id == memory.id).values(**values))
    found = memory.active or memory.inactive_reason == "superseded"
    passages.put_text(tx, "fact", memory.id, app_id, new.search_text, searched=found)
    history.record(tx, memory.id, app_id, "edit", cause, Values(_state(memory), _state(new)))


def reindex(tx: Tx, memory_id: int, app_id: int, search_text: str, cause: Cause) -> None:
    """Replace the search text of an unchanged fact, for example after a quote was blanked."""
    found = tx.execute(select(_m.id).where(_m.id == memory_id, searched)).first() is not None
    passages.put_text(tx, "fact", memory_id, app_id, search_text, searched=found)
    history.record(tx, memory_id, app_id, "reindex", cause)


def remove(tx: Tx, memory_ids: Sequence[int]) -> None:
    """Delete memories with their passages and evidence. Forgetting has to delete the rest."""
    passages.drop(tx, "fact", memory_ids)
    tx.execute(delete(memories).where(_m.id.in_(memory_ids)))


def _set(tx: Tx, memory_id: int, **columns: Any) -> Row[Any]:
    changed = update(memories).where(_m.id == memory_id).values(**columns)
    after = changed.returning(_m.app_id, _m.expires_at, _m.starts_at)
    return tx.execute(after).one()


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _columns(new: NewMemory) -> dict[str, Any]:
    """The columns that a new or edited fact sets. ``created_by`` is not among them, as an edit
    keeps it."""
    columns = records.columns(new, NewMemory) | {"sha1": new.sha1}
    del columns["created_by"], columns["search_text"]
    return columns


def _state(fact: NewMemory | Memory) -> dict[str, Any]:
    return {
        "memory_type": fact.memory_type,
        "key": fact.key,
        "value": fact.value,
        "expires_at": _iso(fact.expires_at),
        "many": fact.many,
        **({"starts_at": fact.starts_at.isoformat()} if fact.starts_at else {}),
        **({"sensitive": True} if fact.sensitive else {}),
    }


_THERE = "SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?))"


def hide(tx: Tx, memory: Memory, app_id: int, cause: Cause) -> None:
    """Hide a memory until it is purged or shown again."""
    passages.hide(tx, memory.id)
    before = {"inactive_reason": memory.inactive_reason, "replaced_by": memory.replaced_by}
    sql = "UPDATE memories SET active = 0, inactive_reason = ?, updated_at = ? WHERE id = ?"
    tx.rows(sql, FORGOTTEN, utc_text(cause.at), memory.id)
    history.record(tx, memory.id, app_id, "hide", cause, Values(before))


def unhide(tx: Tx, memory_id: int, app_id: int, cause: Cause) -> None:
    """Restore a hidden memory to the state it had before."""
    past = history.events_of_memory(tx, memory_id)
    before = next(event.old for event in reversed(past) if event.kind == "hide") or {}
    active = before.get("inactive_reason") is None
    set_columns(tx, memory_id, active=int(active), updated_at=cause.at, **before)
    if active or before.get("inactive_reason") == "superseded":
        passages.show(tx, memory_id, app_id)
    history.record(tx, memory_id, app_id, "show", cause, Values(new={"active": active}))


def existing(tx: Tx, ids: Collection[int]) -> set[int]:
    """Which of these memories still exist, in any scope, hidden ones included."""
    return {row[0] for row in tx.rows(_THERE, records.json_list(ids))}


def listed(tx: Tx, app_ids: Sequence[int], *, sha1: str | None = None) -> list[Memory]:
    """The hidden memories of these scope rows; with ``sha1`` only that fact."""
    # The reason is part of the text: with a bound value SQLite would plan the query each time.
    hidden = (
        f"{SELECT} WHERE m.app_id IN (SELECT value FROM json_each(?))"
        f" AND m.inactive_reason = '{FORGOTTEN}'"
    )
    scopes = records.json_list(app_ids)
    if sha1 is None:
        found = tx.rows(f"{hidden} ORDER BY m.id", scopes)
    else:
        found = tx.rows(f"{hidden} AND m.sha1 = ?", scopes, sha1)
    return [memory_of_text(row) for row in found]


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


def successors(tx: Tx, memory: Memory) -> list[int]:
    """The ids of the memories that replaced this one, one after another."""
    found: list[int] = []
    query, next_id = select(_m.replaced_by), memory.replaced_by
    while next_id is not None and next_id not in found:
        found.append(next_id)
        next_id = tx.execute(query.where(_m.id == next_id)).scalar()
    return found


def replaced_memories(tx: Tx, *memory_ids: int) -> list[Memory]:
    """The inactive memories that these replaced."""
    sql = f"{SELECT} WHERE m.replaced_by IN (SELECT value FROM json_each(?))"
    return [memory_of_text(row) for row in tx.rows(sql, records.json_list(memory_ids))]


def replaced_values(
    tx: Tx, app_ids: Sequence[int], ids: Sequence[int]
) -> dict[int, list[ReplacedValue]]:
    """For each of these memories the values that it and its predecessors replaced, the newest
    first."""
    found: dict[int, list[ReplacedValue]] = {}
    if not tx.rows(_REPLACED_ANY, records.json_list(ids)):
        return found  # true for most memories, and ten times cheaper than the whole query
    rows = tx.rows(_REPLACED, records.json_list(ids), records.json_list(app_ids))
    for row_id, value, retired_at, said_at, starts_at, head in rows:
        # The replacement may have been said again later; the value ended when it was said first.
        until = records.parse_day(starts_at) or records.parse_time(min(said_at, retired_at))
        found.setdefault(head, []).append(ReplacedValue(row_id, value, until))
    return found


def whole_chains(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> set[int]:
    """The ids of all replaced values in the chains of these replaced values. Memories in use are
    left out."""
    stale = [row[0] for row in tx.rows(_STALE, records.json_list(ids))]
    if not stale:
        return set()
    heads = {memory.id for memory in current(tx, app_ids, stale).values()}
    told = replaced_values(tx, app_ids, sorted(heads)).values()
    return {*stale, *(past.id for pasts in told for past in pasts)}


def current(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
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
