"""The history of each memory, and which words of which message prove it.

People read the history, the vector index follows it to stay current, and undoing replays it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, insert, select, update

from memchat.db import Tx, records
from memchat.db.records import from_row, from_text
from memchat.db.schema import memories, memory_events, memory_sources
from memchat.types import Event, Evidence

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
    for row in tx.rows(sql, records.json_list(memory_ids)):
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
        row[0]: records.parse_time(row[1]) for row in tx.rows(sql, records.json_list(memory_ids))
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
    return {row[0] for row in tx.rows(sql, records.json_list(memory_ids))}


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
    for row in tx.rows(_OF_MEMORIES, records.json_list(memory_ids)):
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
