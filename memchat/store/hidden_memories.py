"""Deleted memories that are not purged yet: nobody sees them, and the deletion can be undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, update

from memchat.store import events, keywords, raw_sql
from memchat.store.events import Cause, Values
from memchat.store.memories import FORGOTTEN
from memchat.store.memory_rows import SELECT, memory_of_text
from memchat.store.schema import memories as rows
from memchat.store.schema import utc_text
from memchat.types import Memory

_THERE = "SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?))"


def hide(tx: Connection, memory: Memory, app_id: int, cause: Cause) -> None:
    """Hide a memory until it is purged or shown again."""
    keywords.remove(tx, "memories", [memory.id])
    before = {"inactive_reason": memory.inactive_reason, "replaced_by": memory.replaced_by}
    sql = "UPDATE memories SET active = 0, inactive_reason = ?, updated_at = ? WHERE id = ?"
    raw_sql.rows(tx, sql, FORGOTTEN, utc_text(cause.at), memory.id)
    events.record(tx, memory.id, app_id, "hide", cause, Values(before))


def unhide(tx: Connection, memory_id: int, app_id: int, cause: Cause) -> None:
    """Restore a hidden memory to the state it had before."""
    past = events.of_memory(tx, memory_id)
    before = next(event.old for event in reversed(past) if event.kind == "hide") or {}
    active = before.get("inactive_reason") is None
    row = tx.execute(
        update(rows)
        .where(rows.c.id == memory_id)
        .values(active=int(active), updated_at=cause.at, **before)
        .returning(rows.c.search_text)
    ).one()
    if active or before.get("inactive_reason") == "superseded":
        keywords.write(tx, "memories", memory_id, app_id, row.search_text)
    events.record(tx, memory_id, app_id, "show", cause, Values(new={"active": active}))


def existing(tx: Connection, ids: Collection[int]) -> set[int]:
    """Which of these memories still exist, in any scope, hidden ones included."""
    return {row[0] for row in raw_sql.rows(tx, _THERE, raw_sql.json_list(ids))}


def listed(tx: Connection, app_ids: Sequence[int], *, sha1: str | None = None) -> list[Memory]:
    """The hidden memories of these scope rows; with ``sha1`` only that fact."""
    # The reason is part of the text: with a bound value SQLite would plan the query each time.
    hidden = (
        f"{SELECT} WHERE m.app_id IN (SELECT value FROM json_each(?))"
        f" AND m.inactive_reason = '{FORGOTTEN}'"
    )
    scopes = raw_sql.json_list(app_ids)
    if sha1 is None:
        found = raw_sql.rows(tx, f"{hidden} ORDER BY m.id", scopes)
    else:
        found = raw_sql.rows(tx, f"{hidden} AND m.sha1 = ?", scopes, sha1)
    return [memory_of_text(row) for row in found]
