"""Changes of memories. Each writes its event, and the keyword row, in the same transaction.

The event is of the scope row that the memory is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from memchat.store import events, keywords, raw_sql, records, tags
from memchat.store.events import Cause, Values
from memchat.store.memories import app_id_of
from memchat.store.new_memory import NewMemory, text_hash
from memchat.store.schema import memories, searched
from memchat.types import Memory

_m = memories.c


def add(
    tx: Connection, app_id: int, new: NewMemory, cause: Cause, *, instead_of: int | None = None
) -> int:
    """Store an active memory with its keyword row and ``add`` event; returns its id.

    ``instead_of`` is the memory that it is to replace on its first day.
    """
    memory_id = raw_sql.insert(
        tx,
        "memories",
        app_id=app_id,
        created_at=cause.at,
        updated_at=cause.at,
        last_seen_at=new.said_at,
        created_by=new.created_by,
        **_columns(new),
    )
    keywords.write(tx, "memories", memory_id, app_id, new.search_text)
    events.record(
        tx, memory_id, app_id, "add", cause, Values(new=_state(new)), related_id=instead_of
    )
    return memory_id


def deactivate(
    tx: Connection,
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
        keywords.remove(tx, "memories", [memory.id])
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
        tags.inherit(tx, replaced_by, memory.tags, cause)
    kinds = {"superseded": "supersede", "merged": "merge", "expired": "expire", "ended": "end"}
    events.record(
        tx, memory.id, app_id, kinds[reason], cause, Values(_state(memory)), related_id=replaced_by
    )


def reactivate(
    tx: Connection,
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
    keywords.write(tx, "memories", memory.id, row.app_id, row.search_text)
    # Its first and last day may have been changed just before.
    now = replace(memory, expires_at=row.expires_at, starts_at=row.starts_at)
    values = Values(new=_state(now))
    events.record(tx, memory.id, row.app_id, "restore", cause, values, related_id=instead_of)


def count_repeat(
    tx: Connection,
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
    events.record(tx, memory.id, app_id, "repeat", cause, Values(new=new))


def set_columns(tx: Connection, memory_id: int, **columns: Any) -> None:
    """Set columns without an event, for changes that are no change of the fact itself."""
    tx.execute(update(memories).where(_m.id == memory_id).values(**columns))


def set_expiry(tx: Connection, memory: Memory, expires_at: date | None, cause: Cause) -> None:
    """Change the last day of a fact."""
    _set_day(tx, memory, "expires_at", expires_at, cause)


def set_start(tx: Connection, memory: Memory, starts_at: date | None, cause: Cause) -> None:
    """Change the first day of a fact."""
    _set_day(tx, memory, "starts_at", starts_at, cause)


def _set_day(tx: Connection, memory: Memory, name: str, day: date | None, cause: Cause) -> None:
    app_id = _set(tx, memory.id, updated_at=cause.at, **{name: day}).app_id
    values = Values({name: _iso(getattr(memory, name))}, {name: _iso(day)})
    events.record(tx, memory.id, app_id, "edit", cause, values)


def pin(tx: Connection, memory_id: int, cause: Cause, *, on: bool = True) -> None:
    """Pin or unpin a memory; nothing happens if it is in that state already."""
    changed = update(memories).where(_m.id == memory_id, _m.pinned == int(not on))
    changed = changed.values(pinned=int(on), updated_at=cause.at)
    for app_id in tx.execute(changed.returning(_m.app_id)).scalars().all():
        events.record(tx, memory_id, app_id, "pin" if on else "unpin", cause)


def rewrite(tx: Connection, memory: Memory, app_id: int, new: NewMemory, cause: Cause) -> None:
    """Store a person's edit in the same row, which may move to another scope."""
    before = app_id_of(tx, memory.id)
    if before != app_id:
        events.move(tx, memory.id, before, app_id, cause)
    values = {"app_id": app_id, "updated_at": cause.at, **_columns(new)}
    tx.execute(update(memories).where(_m.id == memory.id).values(**values))
    if memory.active or memory.inactive_reason == "superseded":
        keywords.write(tx, "memories", memory.id, app_id, new.search_text)
    events.record(tx, memory.id, app_id, "edit", cause, Values(_state(memory), _state(new)))


def reindex(tx: Connection, memory_id: int, app_id: int, search_text: str, cause: Cause) -> None:
    """Replace the search text of an unchanged fact, for example after a quote was blanked."""
    changed = update(memories).where(_m.id == memory_id)
    tx.execute(changed.values(search_text=search_text, text_hash=text_hash(search_text)))
    if tx.execute(select(_m.id).where(_m.id == memory_id, searched)).first() is not None:
        keywords.write(tx, "memories", memory_id, app_id, search_text)
    events.record(tx, memory_id, app_id, "reindex", cause)


def mark_embedded(tx: Connection, ids: Sequence[int], cause: Cause) -> None:
    """Write an event that these memories, if they still exist, have their vectors. The indexes of
    all processes read it."""
    events.record_all(tx, select(_m.id, _m.app_id).where(_m.id.in_(ids)), "embed", cause)


def remove(tx: Connection, memory_ids: Sequence[int]) -> None:
    """Delete memories with their keyword rows and evidence. Forgetting has to delete the rest."""
    keywords.remove(tx, "memories", memory_ids)
    tx.execute(delete(memories).where(_m.id.in_(memory_ids)))


def _set(tx: Connection, memory_id: int, **columns: Any) -> Row[Any]:
    changed = update(memories).where(_m.id == memory_id).values(**columns)
    after = changed.returning(_m.app_id, _m.search_text, _m.expires_at, _m.starts_at)
    return tx.execute(after).one()


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _columns(new: NewMemory) -> dict[str, Any]:
    """The columns that a new or edited fact sets. ``created_by`` is not among them, as an edit
    keeps it."""
    hashes = {"sha1": new.sha1, "text_hash": text_hash(new.search_text)}
    columns = records.columns(new, NewMemory) | hashes
    del columns["created_by"]
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
