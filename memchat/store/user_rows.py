"""Rows of a scope row; for a user's shared row those of all the user's apps."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from memchat.store import raw_sql


def read(tx: Connection, table: str, columns: str, app_id: int) -> list[Any]:
    """These columns of a table's rows; each name of a column begins with ``t.``."""
    sql = (
        f"SELECT {columns} FROM apps here JOIN apps a ON a.user = here.user"
        f" JOIN {table} t ON t.app_id = a.id"
        " WHERE here.id = ? AND (a.id = here.id OR here.name = '')"
    )
    return raw_sql.rows(tx, sql, app_id)


def facts(tx: Connection, table: str, app_id: int) -> dict[int, tuple[str, str]]:
    """Key and value of a table's rows that have a value, by id."""
    rows = read(tx, table, "t.id, t.key, t.value", app_id)
    return {row_id: (key, value) for row_id, key, value in rows if value is not None}
