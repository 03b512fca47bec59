"""Plain SQL for the statements that run often.

SQLAlchemy takes 300 µs to build a statement and 30 µs to run a built one; SQLite itself takes about
5 µs for most of these. The statements are constants, so the driver keeps them prepared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from memchat.store.schema import utc_text

_BATCH = 4_096


def driver(tx: Connection) -> Any:
    """The connection of the sqlite3 module below a connection of SQLAlchemy."""
    raw = tx.connection.driver_connection
    assert raw is not None
    return raw


def rows(tx: Connection, sql: str, *values: Any) -> list[Any]:
    """All rows of a statement, run in the caller's transaction. Raises the driver's own errors."""
    found: list[Any] = driver(tx).execute(sql, values).fetchall()
    return found


def batches(tx: Connection, sql: str, *values: Any) -> Iterator[list[Any]]:
    """The rows of a statement in lists of some thousands."""
    cursor = driver(tx).execute(sql, values)
    while found := cursor.fetchmany(_BATCH):
        yield found


def each_row(tx: Connection, sql: str, *values: Any) -> Iterator[Any]:
    """The rows of a statement one at a time, so that the caller may stop early."""
    yield from driver(tx).execute(sql, values)


def run_many(tx: Connection, sql: str, values: Iterable[Sequence[Any]]) -> None:
    """Run a statement once for each tuple of values."""
    driver(tx).executemany(sql, values)


def insert(tx: Connection, table: str, **values: Any) -> int:
    """Insert one row; returns its id."""
    places = ", ".join("?" * len(values))
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places}) RETURNING rowid"
    return int(rows(tx, sql, *map(_stored, values.values()))[0][0])


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    return value.isoformat() if isinstance(value, date) else value


def json_list(ids: Iterable[int] | Iterable[str]) -> str:
    """A list as one bound value, for ``IN (SELECT value FROM json_each(?))``, so that the statement
    is the same for any length.

    Raises OverflowError for a number that is too large for an id.
    """
    values: list[Any] = [*ids]
    if values and isinstance(values[0], str):
        return json.dumps(values)
    if values and not -(2**63) <= min(values) <= max(values) < 2**63:
        raise OverflowError("no id is so large")
    return str(values)


def id_list(ids: Iterable[int]) -> Select[tuple[int]]:
    """The same for a statement of SQLAlchemy: ``column.in_(id_list(ids))``."""
    return select(func.json_each(json_list(ids)).table_valued("value").c.value)


def parse_time(value: str) -> datetime:
    """A time from its stored text."""
    return datetime.fromisoformat(value)


def parse_day(value: str | None) -> date | None:
    """A day from its stored text."""
    return None if value is None else date.fromisoformat(value)
