"""One transaction of one user's app: its connection, its scope, its time.

Every function that reads or writes the store takes it first, so that several calls see one snapshot
and commit together or not at all. Statements that run often are plain SQL through the driver:
SQLAlchemy takes 300 µs to build a statement and 30 µs to run a built one, SQLite itself about 5 µs
for most of these. They are constants, so the driver keeps them prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

_BATCH = 4_096
UTC_ZONE = ZoneInfo("UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)


class Tx:
    """A transaction. ``now`` is when the work is done, ``zone`` where its days are counted.

    ``own`` and ``shared`` are the rows of ``apps`` that it is about: the app's own, and that of all
    apps of the user. Each is 0 where there is none yet, and under 0 nothing is found. ``embeds``
    tells whether there is an embedding model.
    """

    def __init__(
        self,
        connection: Connection,
        now: datetime = _EPOCH,
        zone: ZoneInfo = UTC_ZONE,
        own: int = 0,
        shared: int = 0,
        embeds: Callable[[], bool] = bool,
    ) -> None:
        self.connection = connection
        self.driver: Any = connection.connection.driver_connection
        """The connection of the sqlite3 module below that of SQLAlchemy."""
        self.execute = connection.execute
        self.now = now
        self.zone = zone
        self.own = own
        self.shared = shared
        self.embeds = embeds

    def within(self, own: int, shared: int = 0) -> Tx:
        """The same transaction, about other rows of ``apps``."""
        return Tx(self.connection, self.now, self.zone, own, shared, self.embeds)

    @property
    def ids(self) -> tuple[int, ...]:
        """The rows of ``apps`` that may be read, the app's own first."""
        return tuple(filter(None, (self.own, self.shared)))

    @property
    def today(self) -> date:
        """The day of ``now`` in ``zone``."""
        return self.now.astimezone(self.zone).date()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a statement. Raises the driver's own errors."""
        found: list[Any] = self.driver.execute(sql, values).fetchall()
        return found

    def batches(self, sql: str, *values: Any) -> Iterator[list[Any]]:
        """The rows of a statement in lists of some thousands."""
        cursor = self.driver.execute(sql, values)
        while found := cursor.fetchmany(_BATCH):
            yield found

    def each_row(self, sql: str, *values: Any) -> Iterator[Any]:
        """The rows of a statement one at a time, so that the caller may stop early."""
        yield from self.driver.execute(sql, values)

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each tuple of values."""
        self.driver.executemany(sql, values)

    def insert(self, table: str, **values: Any) -> int:
        """Insert one row; returns its id."""
        places = ", ".join("?" * len(values))
        names = ", ".join(f'"{name}"' for name in values)
        sql = f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING rowid"
        return int(self.rows(sql, *map(_stored, values.values()))[0][0])


def _stored(value: Any) -> Any:
    from memchat.db.schema import utc_text

    if isinstance(value, datetime):
        return utc_text(value)
    return value.isoformat() if isinstance(value, date) else value
