"""Transactions, and rows that become records.

A ``Tx`` is one transaction of one user's app: its connection, its scope, its time. Every function
that reads or writes the store takes it first, so that several calls see one snapshot and commit
together or not at all. Statements that run often are plain SQL through the driver: SQLAlchemy takes
300 µs to build a statement and 30 µs to run a built one, SQLite itself about 5 µs for most of
these. They are constants, so the driver keeps them prepared. Rows become records and back, field by
field, each by the type that the record declares; ``get`` and ``put`` are for single values about
the store itself.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, Select, delete, func, select
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.db.schema import meta, utc_text

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
        scrub: Callable[[], object] = lambda: None,
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
        self._scrub = scrub
        self.after_commit: list[Callable[[], object]] = []
        """What is done at once after the commit. A process may be killed before it, so a row stands
        for each that must be done."""

    def within(self, own: int, shared: int = 0) -> Tx:
        """The same transaction, about other rows of ``apps``."""
        other = copy(self)
        other.own, other.shared = own, shared
        return other

    def forget_bytes(self, *app_ids: int) -> None:
        """Have what this transaction deletes leave the bytes of the files after its commit: its
        words the store's, its vectors the saved index of these rows of ``apps``."""
        rows = ((i,) for i in app_ids or (None,))
        self.run_many("INSERT INTO scrubs (app_id) VALUES (?)", rows)
        if self._scrub not in self.after_commit:
            self.after_commit.append(self._scrub)

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
        return int(self.rows(sql, *map(_plain, values.values()))[0][0])


def _plain(value: Any) -> Any:
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


T = TypeVar("T", bound=Hashable)
Reader = Callable[[Any], Any]


def _words(value: str | None) -> tuple[str, ...]:
    return tuple(value.split()) if value else ()


def _time(value: str | None) -> datetime | None:
    return None if value is None else parse_time(value)


def _object(value: str | None) -> Any:
    return None if value is None else json.loads(value)


_READERS: dict[str, Reader] = {
    "bool": bool,
    "tuple[str, ...]": _words,
    "dict[str, Any] | None": _object,
}
_TEXT_READERS: dict[str, Reader] = _READERS | {
    "datetime": parse_time,
    "datetime | None": _time,
    "ExternalId": json.loads,
    "date | None": parse_day,
}
"""The same for rows of plain SQL, whose times and days are text."""


def from_row(record: type[T], row: Row[Any], **given: Any) -> T:
    """The record that the columns of its fields' names give; ``given`` fields are taken as they
    are, and those without a column keep their defaults."""
    values = row._mapping
    for name, reader in _fields(record):
        if name not in given and name in values:
            given[name] = reader(values[name]) if reader else values[name]
    return record(**given)


def from_text(record: type[T], values: Sequence[Any]) -> T:
    """The record of a plain SQL row, whose columns come in the order of the fields."""
    readers = _text_readers(record)
    read = zip(readers, values, strict=True)
    return record(*[reader(value) if reader else value for reader, value in read])


def columns(record: Any, shape: type[Any] | None = None) -> dict[str, Any]:
    """The fields of a record, or those that ``shape`` has of them, as its table stores them; days
    and times stay as they are."""
    fields = dataclasses.fields(shape or record)
    return {f.name: _stored(getattr(record, f.name)) for f in fields}


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, tuple) else value


@cache
def _fields(record: type[Any]) -> tuple[tuple[str, Reader | None], ...]:
    return tuple((f.name, _READERS.get(str(f.type))) for f in dataclasses.fields(record))


@cache
def _text_readers(record: type[Any]) -> tuple[Reader | None, ...]:
    return tuple(_TEXT_READERS.get(str(f.type)) for f in dataclasses.fields(record))


def get(tx: Tx, key: str) -> str | None:
    """The value of a key, or None."""
    found = tx.rows("SELECT value FROM meta WHERE key = ?", key)
    return found[0][0] if found else None


def put(tx: Tx, key: str, value: str) -> None:
    """Set the value of a key."""
    statement = upsert(meta).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def remove(tx: Tx, key: str) -> None:
    """Remove a key."""
    tx.execute(delete(meta).where(meta.c.key == key))


def hash_key(tx: Tx) -> bytes:
    """The secret key under which the store hashes forgotten texts. It is made when first needed."""
    found = get(tx, "hash_key")
    if found is None:
        found = secrets.token_hex(32)
        put(tx, "hash_key", found)
    return bytes.fromhex(found)


def store_id(tx: Tx) -> str:
    """A random id of this store. It is made when first needed."""
    found = get(tx, "store_id")
    if found is None:
        found = secrets.token_hex(16)
        put(tx, "store_id", found)
    return found
