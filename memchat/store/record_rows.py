"""Rows from the records of an export."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.sqlite import insert

from memchat.store.record_kinds import OBJECTS, RecordKind


def add(tx: Connection, kind: RecordKind, columns: Mapping[str, Any]) -> int | None:
    """Insert a row of this kind; returns its id, or None where the table does not take it, because
    one with the same key is there."""
    stored = {name: _stored(name, value) for name, value in columns.items()}
    table = kind.table
    key = next(iter(table.primary_key.columns))
    statement = insert(table).values(**stored).on_conflict_do_nothing().returning(key)
    return tx.execute(statement).scalar()


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if name in OBJECTS and value is not None:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value
