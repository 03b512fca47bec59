"""What happened to each memory, in order: history for people, catch-up for the vector index."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, insert, literal, select, update

from memchat.store import raw_sql
from memchat.store.records import from_row, from_text
from memchat.store.schema import UtcTime, memory_events
from memchat.types import Event


@dataclass(frozen=True, slots=True)
class Cause:
    """Who did it and why; written with each event of one piece of work."""

    at: datetime
    actor: str
    """user, model or system."""
    cause: str = ""
    session_id: int | None = None
    message_id: int | None = None
    detail: dict[str, Any] | None = None
    """What a second look said: its verdict, its reason and which model gave it."""


class Values(NamedTuple):
    """What an event changed: the fields before and after, as far as they tell anything."""

    old: dict[str, Any] | None = None
    new: dict[str, Any] | None = None


def record(
    tx: Connection,
    memory_id: int,
    app_id: int,
    kind: str,
    cause: Cause,
    values: Values = Values(),  # noqa: B008  (it cannot change)
    *,
    related_id: int | None = None,
) -> None:
    """Write one event, in the transaction of the change itself."""
    raw_sql.insert(
        tx,
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


def record_all(tx: Connection, of: Select[Any], kind: str, cause: Cause) -> None:
    """Write the same event for each memory that ``of`` selects, by its id and scope row."""
    same = (literal(kind), literal(cause.at, UtcTime), literal(cause.actor), literal(cause.cause))
    columns = ["memory_id", "app_id", "kind", "at", "actor", "cause"]
    tx.execute(insert(memory_events).from_select(columns, of.add_columns(*same)))


def of_memory(tx: Connection, memory_id: int) -> list[Event]:
    """The memory's events, oldest first."""
    sql = (
        "SELECT id, memory_id, kind, at, actor, cause, session_id, message_id, related_id, old,"
        " new, detail FROM memory_events WHERE memory_id = ? ORDER BY id"
    )
    return [from_text(Event, row) for row in raw_sql.rows(tx, sql, memory_id)]


def of_messages(tx: Connection, message_ids: Collection[int]) -> list[Event]:
    """What these messages did to any memory, in order."""
    e = memory_events.c
    query = select(memory_events).where(e.message_id.in_(list(message_ids)))
    return [from_row(Event, row) for row in tx.execute(query.order_by(e.id))]


def value_edits(tx: Connection, memory_ids: Sequence[int]) -> dict[int, datetime]:
    """Those of these memories that a person gave another value, and when they last did."""
    sql = (
        "SELECT memory_id, max(at) FROM memory_events"
        " WHERE memory_id IN (SELECT value FROM json_each(?)) AND kind = 'edit' AND actor = 'user'"
        " AND json_extract(old, '$.value') IS NOT json_extract(new, '$.value') GROUP BY memory_id"
    )
    return {
        row[0]: raw_sql.parse_time(row[1])
        for row in raw_sql.rows(tx, sql, raw_sql.json_list(memory_ids))
    }


def of_session(tx: Connection, session_id: int) -> list[Event]:
    """What a conversation did to any memory, in order."""
    e = memory_events.c
    query = select(memory_events).where(e.session_id == session_id).order_by(e.id)
    return [from_row(Event, row) for row in tx.execute(query)]


def latest(tx: Connection, app_id: int) -> int:
    """The id of the scope's newest event; 0 where there is none."""
    sql = "SELECT max(id) FROM memory_events WHERE app_id = ?"
    return raw_sql.rows(tx, sql, app_id)[0][0] or 0


def changed_since(tx: Connection, app_id: int, event_id: int) -> list[int]:
    """The memories of the scope with an event newer than ``event_id``."""
    e = memory_events.c
    query = select(e.memory_id).where(e.app_id == app_id, e.id > event_id).distinct()
    return list(tx.execute(query).scalars())


def app_ids_of(tx: Connection, memory_ids: Sequence[int]) -> set[int]:
    """The scope rows in which these memories are or ever were."""
    sql = (
        "SELECT DISTINCT app_id FROM memory_events"
        " WHERE memory_id IN (SELECT value FROM json_each(?))"
    )
    return {row[0] for row in raw_sql.rows(tx, sql, raw_sql.json_list(memory_ids))}


def move(tx: Connection, memory_id: int, before: int, after: int, cause: Cause) -> None:
    """A memory changes its scope: its history goes along, and the index it leaves is told."""
    e = memory_events.c
    mine = update(memory_events).where(e.memory_id == memory_id, e.kind != "move")
    tx.execute(mine.values(app_id=after))
    record(tx, memory_id, before, "move", cause)


def fingerprint(tx: Connection, event_id: int) -> str:
    """What tells this event from one of the same number in another past; empty for none."""
    e = memory_events.c
    row = tx.execute(select(e.memory_id, e.at).where(e.id == event_id)).first()
    return "" if row is None else f"{row.memory_id}@{row.at.isoformat()}"


def set_cause(tx: Connection, event_id: int, cause: str) -> None:
    """Say of a past event why it no longer counts."""
    e = memory_events.c
    tx.execute(update(memory_events).where(e.id == event_id).values(cause=cause))


def set_old(tx: Connection, event_id: int, old: dict[str, Any]) -> None:
    """Say anew what was before an event."""
    e = memory_events.c
    tx.execute(update(memory_events).where(e.id == event_id).values(old=_dump(old)))


def blank(tx: Connection, memory_ids: Iterable[int]) -> None:
    """Take the words out of these memories' events; that they happened stays."""
    e = memory_events.c
    tx.execute(
        update(memory_events)
        .where(e.memory_id.in_(list(memory_ids)))
        .values(old=None, new=None, cause="", detail=None)
    )


def detach_session(tx: Connection, session_id: int) -> None:
    """Let events no longer point at a conversation that is gone."""
    tx.execute(
        update(memory_events)
        .where(memory_events.c.session_id == session_id)
        .values(session_id=None, message_id=None)
    )


def drop_app(tx: Connection, app_id: int) -> None:
    """Remove every event of a deleted app."""
    tx.execute(delete(memory_events).where(memory_events.c.app_id == app_id))


def _dump(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
