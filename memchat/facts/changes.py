"""Changes of memories: each writes its event, the history that people read and undoing replays.

An event is of the scope row that the memory is in, and the passage is written in the same
transaction. Evidence says which words of which message prove a memory. A deleted memory is hidden
from everybody until it is purged, so that the deletion can be undone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, insert, select, update

from memchat.db import Tx, database, records
from memchat.db.records import from_row, from_text
from memchat.db.schema import (
    memories,
    memory_events,
    memory_sources,
    memory_tags,
    searched,
    utc_text,
)
from memchat.facts import memories as stored
from memchat.facts.memories import FORGOTTEN, NewMemory, app_id_of, by_ids
from memchat.search import passages
from memchat.types import TAGS_MOST, Event, Evidence, Memory, clean_tags

_e = memory_events.c
UPKEEP = ("reindex",)
"""Kinds of events that the index writes; they tell nothing of the memory itself."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Who makes a change and why; stored with each event."""

    at: datetime
    actor: str
    """user, model, system, or client: a program over MCP."""
    cause: str = ""
    session_id: int | None = None
    message_id: int | None = None
    detail: dict[str, Any] | None = None
    """The second look's ``verdict``, ``reason`` and ``model``, where there was one."""


class Values(NamedTuple):
    """The fields that an event changed, before and after."""

    old: dict[str, Any] | None = None
    new: dict[str, Any] | None = None


def record(
    tx: Tx,
    memory_id: int,
    app_id: int,
    kind: str,
    cause: Cause,
    values: Values = Values(),  # noqa: B008  (it cannot change)
    *,
    related_id: int | None = None,
) -> None:
    """Write one event, in the transaction of the change itself."""
    tx.insert(
        "memory_events",
        memory_id=memory_id,
        app_id=app_id,
        kind=kind,
        at=cause.at,
        actor=cause.actor,
        cause=cause.cause,
        session_id=cause.session_id,
        message_id=cause.message_id,
        related_id=related_id,
        old=_dump(values.old),
        new=_dump(values.new),
        detail=_dump(cause.detail),
    )


def events_of_memory(tx: Tx, memory_id: int) -> list[Event]:
    """The memory's events, oldest first."""
    return events_of_memories(tx, [memory_id]).get(memory_id, [])


def events_of_memories(tx: Tx, memory_ids: Iterable[int]) -> dict[int, list[Event]]:
    """The events of each of these memories, the oldest first."""
    sql = (
        "SELECT id, memory_id, kind, at, actor, cause, session_id, message_id, related_id, old,"
        " new, detail FROM memory_events WHERE memory_id IN (SELECT value FROM json_each(?))"
        " ORDER BY id"
    )
    found: dict[int, list[Event]] = {}
    for row in tx.rows(sql, database.json_list(memory_ids)):
        found.setdefault(row[1], []).append(from_text(Event, row))
    return found


def events_of_messages(tx: Tx, message_ids: Collection[int]) -> list[Event]:
    """The events of all memories that these messages caused, in order."""
    query = select(memory_events).where(_e.message_id.in_(list(message_ids)))
    return [from_row(Event, row) for row in tx.execute(query.order_by(_e.id))]


def value_edits(tx: Tx, memory_ids: Sequence[int]) -> dict[int, datetime]:
    """When the user last edited the value of each of these memories; others are left out."""
    sql = (
        "SELECT memory_id, max(at) FROM memory_events"
        " WHERE memory_id IN (SELECT value FROM json_each(?)) AND kind = 'edit' AND actor = 'user'"
        " AND json_extract(old, '$.value') IS NOT json_extract(new, '$.value') GROUP BY memory_id"
    )
    return {
        row[0]: database.parse_time(row[1]) for row in tx.rows(sql, database.json_list(memory_ids))
    }


def former_wordings(tx: Tx, app_id: int) -> list[tuple[int, dict[str, Any]]]:
    """What the memories of a scope said before the user edited them: their ids, and the values as
    the events have them."""
    sql = (
        "SELECT e.memory_id, e.old FROM memory_events e JOIN memories m ON m.id = e.memory_id"
        " WHERE e.app_id = ? AND e.kind = 'edit' AND json_extract(e.old, '$.value') IS NOT NULL"
    )
    return [(row[0], json.loads(row[1])) for row in tx.rows(sql, app_id)]


def former_values(tx: Tx, memory_id: int) -> list[tuple[str, str]]:
    """The keys and values that a memory had before the user edited them."""
    edits = (e.old or {} for e in events_of_memory(tx, memory_id) if e.kind == "edit")
    return [(old["key"], old["value"]) for old in edits if old.get("value") is not None]


def events_of_session(tx: Tx, session_id: int) -> list[Event]:
    """The events of all memories that a conversation caused, in order."""
    query = select(memory_events).where(_e.session_id == session_id).order_by(_e.id)
    return [from_row(Event, row) for row in tx.execute(query)]


def latest_event(tx: Tx, app_id: int) -> int:
    """The id of the scope's newest event; 0 if there is none."""
    sql = "SELECT max(id) FROM memory_events WHERE app_id = ?"
    return tx.rows(sql, app_id)[0][0] or 0


def changed_since(tx: Tx, app_id: int, event_id: int) -> list[int]:
    """The ids of the scope's memories that have an event newer than ``event_id``."""
    query = select(_e.memory_id).where(_e.app_id == app_id, _e.id > event_id).distinct()
    return list(tx.execute(query).scalars())


def app_ids_of(tx: Tx, memory_ids: Sequence[int]) -> set[int]:
    """The scope rows to which these memories belong or once belonged."""
    sql = (
        "SELECT DISTINCT app_id FROM memory_events"
        " WHERE memory_id IN (SELECT value FROM json_each(?))"
    )
    return {row[0] for row in tx.rows(sql, database.json_list(memory_ids))}


def record_move(tx: Tx, memory_id: int, before: int, after: int, cause: Cause) -> None:
    """Move a memory's history to another scope; the old scope gets a ``move`` event."""
    mine = update(memory_events).where(_e.memory_id == memory_id, _e.kind != "move")
    tx.execute(mine.values(app_id=after))
    record(tx, memory_id, before, "move", cause)


def set_cause(tx: Tx, event_id: int, cause: str) -> None:
    """Replace the cause of a past event, e.g. by why it no longer counts."""
    tx.execute(update(memory_events).where(_e.id == event_id).values(cause=cause))


def set_related(tx: Tx, event_id: int, memory_id: int) -> None:
    """Replace the memory that a past event names beside its own."""
    tx.execute(update(memory_events).where(_e.id == event_id).values(related_id=memory_id))


def blank_events(tx: Tx, memory_ids: Iterable[int]) -> None:
    """Remove values, causes and details from these memories' events; the events stay."""
    tx.execute(
        update(memory_events)
        .where(_e.memory_id.in_(list(memory_ids)))
        .values(old=None, new=None, cause="", detail=None)
    )


def detach_session(tx: Tx, session_id: int) -> None:
    """Remove references to a deleted conversation and its messages from the events."""
    tx.execute(
        update(memory_events)
        .where(_e.session_id == session_id)
        .values(session_id=None, message_id=None)
    )


def remove_app(tx: Tx, app_id: int) -> None:
    """Delete all events of a deleted app."""
    tx.execute(delete(memory_events).where(_e.app_id == app_id))


def _dump(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


_s = memory_sources.c
_OF_MEMORIES = """
    SELECT s.memory_id, m.session_id, s.message_id, m.role, s.quote, s.start, m.created_at, t.title,
        (SELECT c.name FROM clients c WHERE c.session_id = m.session_id)
    FROM memory_sources s JOIN messages m ON m.id = s.message_id
    JOIN sessions t ON t.id = m.session_id
    WHERE s.memory_id IN (SELECT value FROM json_each(?)) ORDER BY s.message_id, s.start
"""
"""The columns in the order of an Evidence's fields."""


def add_evidence(tx: Tx, memory_id: int, proofs: Iterable[tuple[int, int, str]]) -> None:
    """Store (message id, start, quote) as evidence of a memory. What is stored already stays."""
    for message_id, start, quote in proofs:
        known = select(_s.id).where(
            _s.memory_id == memory_id,
            _s.message_id == message_id,
            _s.start == start,
            _s.quote == quote,
        )
        if tx.execute(known).first() is None:
            tx.execute(
                insert(memory_sources).values(
                    memory_id=memory_id, message_id=message_id, start=start, quote=quote
                )
            )


def evidence_of_memory(tx: Tx, memory_id: int) -> list[Evidence]:
    """The evidence of a memory, the oldest first."""
    return evidence_of_memories(tx, [memory_id]).get(memory_id, [])


def evidence_of_memories(tx: Tx, memory_ids: Iterable[int]) -> dict[int, list[Evidence]]:
    """The evidence of each of these memories, the oldest first."""
    found: dict[int, list[Evidence]] = {}
    for row in tx.rows(_OF_MEMORIES, database.json_list(memory_ids)):
        one = from_text(Evidence, row)
        found.setdefault(one.memory_id, []).append(one)
    return found


def messages_of(tx: Tx, memory_id: int) -> set[int]:
    """The ids of the messages that prove a memory."""
    query = select(_s.message_id).where(_s.memory_id == memory_id)
    return set(tx.execute(query).scalars())


def proved_memories(tx: Tx, message_ids: Sequence[int]) -> list[int]:
    """The ids of the memories that these messages prove."""
    query = select(_s.memory_id).where(_s.message_id.in_(message_ids)).distinct()
    return sorted(tx.execute(query).scalars())


def update_quotes(tx: Tx, message_id: int, content: str) -> None:
    """Update the quotes from a message after some of its words were blanked in place."""
    rows = tx.execute(select(memory_sources).where(_s.message_id == message_id)).all()
    for row in rows:
        quote = content[row.start : row.start + len(row.quote)]
        tx.execute(update(memory_sources).where(_s.id == row.id).values(quote=quote))


@dataclass(frozen=True, slots=True)
class LearnedFact:
    """A fact that was learned from a message, and its state."""

    message_id: int
    memory_id: int
    key: str
    value: str
    inactive_reason: str | None
    expires_at: date | None
    quote: str

    def over(self, today: date) -> bool:
        """Whether the fact no longer holds: it ended, was replaced, or its last day is past."""
        gone = self.inactive_reason is not None and self.inactive_reason != "merged"
        return gone or (self.expires_at is not None and self.expires_at < today)


def learned_from(tx: Tx, message_ids: Sequence[int]) -> list[LearnedFact]:
    """The facts learned from these messages, the oldest first, hidden ones too."""
    m = memories.c
    query = (
        select(_s.message_id, m.id, m.key, m.value, m.inactive_reason, m.expires_at, _s.quote)
        .join(memories, m.id == _s.memory_id)
        .where(_s.message_id.in_(message_ids))
        .order_by(m.id, _s.id)
    )
    return [LearnedFact(*row) for row in tx.execute(query)]


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
    record(tx, memory_id, app_id, "add", cause, Values(new=_state(new)), related_id=instead_of)
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
        inherit_tags(tx, replaced_by, memory.tags, cause)
    kinds = {"superseded": "supersede", "merged": "merge", "expired": "expire", "ended": "end"}
    record(
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
    record(tx, memory.id, row.app_id, "restore", cause, values, related_id=instead_of)


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
    record(tx, memory.id, app_id, "repeat", cause, Values(new=new))


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
    record(tx, memory.id, app_id, "edit", cause, values)


def pin(tx: Tx, memory_id: int, cause: Cause, *, on: bool = True) -> None:
    """Pin or unpin a memory; nothing happens if it is in that state already."""
    changed = update(memories).where(_m.id == memory_id, _m.pinned == int(not on))
    changed = changed.values(pinned=int(on), updated_at=cause.at)
    for app_id in tx.execute(changed.returning(_m.app_id)).scalars().all():
        record(tx, memory_id, app_id, "pin" if on else "unpin", cause)


def rewrite(tx: Tx, memory: Memory, app_id: int, new: NewMemory, cause: Cause) -> None:
    """Store a person's edit in the same row, which may move to another scope."""
    before = app_id_of(tx, memory.id)
    if before != app_id:
        record_move(tx, memory.id, before, app_id, cause)
    values = {"app_id": app_id, "updated_at": cause.at, **_columns(new)}
    tx.execute(update(memories).where(_m.id == memory.id).values(**values))
    found = memory.active or memory.inactive_reason == "superseded"
    passages.put_text(tx, "fact", memory.id, app_id, new.search_text, searched=found)
    record(tx, memory.id, app_id, "edit", cause, Values(_state(memory), _state(new)))


def reindex(tx: Tx, memory_id: int, app_id: int, search_text: str, cause: Cause) -> None:
    """Replace the search text of an unchanged fact, for example after a quote was blanked."""
    found = tx.execute(select(_m.id).where(_m.id == memory_id, searched)).first() is not None
    passages.put_text(tx, "fact", memory_id, app_id, search_text, searched=found)
    record(tx, memory_id, app_id, "reindex", cause)


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


def hide(tx: Tx, memory: Memory, app_id: int, cause: Cause) -> None:
    """Hide a memory until it is purged or shown again."""
    passages.hide(tx, memory.id)
    before = {"inactive_reason": memory.inactive_reason, "replaced_by": memory.replaced_by}
    sql = "UPDATE memories SET active = 0, inactive_reason = ?, updated_at = ? WHERE id = ?"
    tx.rows(sql, FORGOTTEN, utc_text(cause.at), memory.id)
    record(tx, memory.id, app_id, "hide", cause, Values(before))


def unhide(tx: Tx, memory_id: int, app_id: int, cause: Cause) -> None:
    """Restore a hidden memory to the state it had before."""
    past = events_of_memory(tx, memory_id)
    before = next(event.old for event in reversed(past) if event.kind == "hide") or {}
    active = before.get("inactive_reason") is None
    set_columns(tx, memory_id, active=int(active), updated_at=cause.at, **before)
    if active or before.get("inactive_reason") == "superseded":
        passages.show(tx, memory_id, app_id)
    record(tx, memory_id, app_id, "show", cause, Values(new={"active": active}))


def existing(tx: Tx, ids: Collection[int]) -> set[int]:
    """Which of these memories still exist, in any scope, hidden ones included."""
    return {*stored.homes_of(tx, ids)}


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
    condition = "m.replaced_by IN (SELECT value FROM json_each(?))"
    return stored.where(tx, condition, database.json_list(memory_ids))


def replaced_values(
    tx: Tx, app_ids: Sequence[int], ids: Sequence[int]
) -> dict[int, list[ReplacedValue]]:
    """For each of these memories the values that it and its predecessors replaced, the newest
    first."""
    found: dict[int, list[ReplacedValue]] = {}
    if not tx.rows(_REPLACED_ANY, database.json_list(ids)):
        return found  # true for most memories, and ten times cheaper than the whole query
    rows = tx.rows(_REPLACED, database.json_list(ids), database.json_list(app_ids))
    for row_id, value, retired_at, said_at, starts_at, head in rows:
        # The replacement may have been said again later; the value ended when it was said first.
        until = database.parse_day(starts_at) or database.parse_time(min(said_at, retired_at))
        found.setdefault(head, []).append(ReplacedValue(row_id, value, until))
    return found


def whole_chains(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> set[int]:
    """The ids of all replaced values in the chains of these replaced values. Memories in use are
    left out."""
    stale = [row[0] for row in tx.rows(_STALE, database.json_list(ids))]
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


def put_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags and no others, with an event; nothing happens where it has them
    already. Raises InputError for more than it may have."""
    before, after = stored.tags_of(tx, memory_id), clean_tags(tags)
    if after == before:
        return
    tx.execute(delete(memory_tags).where(memory_tags.c.memory_id == memory_id))
    stored.write_tags(tx, memory_id, after)
    changed = update(memories).where(_m.id == memory_id).values(updated_at=cause.at)
    app_id = int(tx.execute(changed.returning(_m.app_id)).scalar_one())
    values = Values({"tags": before}, {"tags": after})
    record(tx, memory_id, app_id, "tag", cause, values)


def add_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags beside its own, as ``put_tags``."""
    put_tags(tx, memory_id, (*stored.tags_of(tx, memory_id), *tags), cause)


def inherit_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory the tags of one that it replaces beside its own, as far as it may have them."""
    own = stored.tags_of(tx, memory_id)
    more = [tag for tag in tags if tag not in own]
    put_tags(tx, memory_id, (*own, *more)[:TAGS_MOST], cause)
