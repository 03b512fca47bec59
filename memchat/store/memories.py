"""Single memories, and those with one key, read within a scope.

A memory is unique by scope and sha1, active or not: a fact that is said again after another took
its place gets its old row back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, or_, select

from memchat.store import raw_sql
from memchat.store.memory_rows import SELECT, memory_of_text
from memchat.store.schema import memories
from memchat.types import Memory

_m = memories.c
FORGOTTEN = "forgotten"
"""The reason of inactive rows that wait for their purge. They are hidden everywhere."""
visible = or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN)
_VISIBLE = f"{SELECT} WHERE (m.inactive_reason IS NULL OR m.inactive_reason != '{FORGOTTEN}')"
_BY_IDS = f"""
    {_VISIBLE} AND m.id IN (SELECT value FROM json_each(?))
        AND +m.app_id IN (SELECT value FROM json_each(?))
"""
"""The plus sign keeps SQLite from using the index of the scope."""
_IN_SCOPES = f"{_VISIBLE} AND m.app_id IN (SELECT value FROM json_each(?))"


def get(tx: Connection, app_ids: Sequence[int], memory_id: int) -> Memory | None:
    """One memory, active or not; None if it does not belong to these scope rows."""
    found = by_ids(tx, app_ids, [memory_id])
    return found.get(memory_id)


def by_ids(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of these scope rows by id. Ids that are unknown or of other scopes are left out."""
    if not ids or not app_ids:
        return {}
    rows = raw_sql.rows(tx, _BY_IDS, raw_sql.json_list(ids), raw_sql.json_list(app_ids))
    return {row[0]: memory_of_text(row) for row in rows}


def app_id_of(tx: Connection, memory_id: int) -> int:
    """The scope row of an existing memory."""
    return int(raw_sql.rows(tx, "SELECT app_id FROM memories WHERE id = ?", memory_id)[0][0])


def by_sha1(tx: Connection, app_ids: Sequence[int], sha1: str) -> Memory | None:
    """The memory with this sha1, active or not: rather an active one, then rather the app's own."""
    found = raw_sql.rows(tx, f"{_IN_SCOPES} AND m.sha1 = ?", raw_sql.json_list(app_ids), sha1)
    rows = map(memory_of_text, found)
    return min(rows, key=lambda m: (not m.active, m.app == ""), default=None)


def id_of(tx: Connection, app_id: int, sha1: str) -> tuple[int, bool] | None:
    """The id of the memory of a scope row with this sha1, also of one that waits for its purge, and
    whether it does; None if there is none."""
    query = select(_m.id, _m.inactive_reason).where(_m.app_id == app_id, _m.sha1 == sha1)
    row = tx.execute(query).first()
    return None if row is None else (row.id, row.inactive_reason == FORGOTTEN)


def made_at(tx: Connection, app_ids: Sequence[int], sha1: str, created_at: datetime) -> int | None:
    """The id of the memory of these scope rows with this sha1 that was made at this time."""
    query = select(_m.id).where(
        _m.sha1 == sha1, _m.app_id.in_(app_ids), _m.created_at == created_at, visible
    )
    return tx.execute(query).scalar()


def with_key(tx: Connection, app_ids: Sequence[int], key: str) -> list[Memory]:
    """The active memories with this key, the one said last first."""
    sql = f"{_IN_SCOPES} AND m.active = 1 AND m.key = ? ORDER BY m.said_at DESC, m.id DESC"
    return [memory_of_text(row) for row in raw_sql.rows(tx, sql, raw_sql.json_list(app_ids), key)]


def values_with_key(tx: Connection, app_ids: Sequence[int], key: str) -> list[tuple[int, str]]:
    """The ids and values of the active memories with this key, the one said last first."""
    sql = (
        "SELECT id, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND key = ? ORDER BY said_at DESC, id DESC"
    )
    return raw_sql.rows(tx, sql, raw_sql.json_list(app_ids), key)


def holds_many(tx: Connection, app_ids: Sequence[int], key: str) -> bool | None:
    """Whether this key holds several values, by its newest memory; None for a key without any."""
    sql = (
        "SELECT many FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active IN (0, 1) AND key = ? ORDER BY id DESC LIMIT 1"
    )
    found = raw_sql.rows(tx, sql, raw_sql.json_list(app_ids), key)
    return bool(found[0][0]) if found else None


def hash_of(tx: Connection, memory_id: int) -> str:
    """The hash of an existing memory's search text."""
    return str(tx.execute(select(_m.text_hash).where(_m.id == memory_id)).scalar_one())
