"""Rows from the records of an export."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from memchat.store import raw_sql
from memchat.store.record_kinds import EXTERNAL_IDS, OBJECTS, RecordKind
from memchat.store.schema import utc_text


def add(tx: Connection, kind: RecordKind, columns: Mapping[str, Any]) -> int | None:
    """Insert a row of this kind; returns its rowid, or None where the table does not take it,
    because one with the same key is there."""
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join("?" * len(columns))
    sql = (
        f"INSERT INTO {kind.table.name} ({names}) VALUES ({places})"
        " ON CONFLICT DO NOTHING RETURNING rowid"
    )
    found = raw_sql.rows(tx, sql, *(_stored(name, value) for name, value in columns.items()))
    return found[0][0] if found else None


def is_unused(tx: Connection, kind: RecordKind) -> bool:
    """Whether the table of this kind never had a row: then the ids of a file can be kept."""
    name = kind.table.name
    if raw_sql.rows(tx, f"SELECT 1 FROM {name} LIMIT 1"):
        return False
    return not raw_sql.rows(tx, "SELECT seq FROM sqlite_sequence WHERE name = ?", name)


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if name in OBJECTS and value is not None:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return json.dumps(value) if name in EXTERNAL_IDS else value
