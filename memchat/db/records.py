"""Transactions, statements, and rows that become records.

A ``Tx`` is one transaction of one user's app: its connection, its scope, its time. Every function
that reads or writes the store takes it first, so that several calls see one snapshot and commit
together or not at all. Statements are SQLAlchemy's. One that is always the same is a constant of
its module with named parameters, and runs through the driver (``rows``): SQLAlchemy takes 300 µs to
build a statement and 30 µs to run a built one, SQLite itself about 5 µs for most of these. One that
depends on what is asked for is built where it is needed, and run by ``execute``. Rows become
records field by field, each by the type that the record declares; ``get`` and ``put`` are for
single values about the store itself.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from array import array
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import UTC, date, datetime
from functools import cache, lru_cache, partial
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import dialect as sqlite
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from memchat.types import NO_TYPES, Attachment, OwnTypes

UTC_ZONE = ZoneInfo("UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)


class UtcTime(sa.TypeDecorator[datetime]):
    """An aware UTC datetime, stored as ``2026-11-21T09:30:00.000000Z``."""

    impl = sa.String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else utc_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class _Vector(sa.types.UserDefinedType[str]):
    """pgvector's, of any length."""

    cache_ok = True

    def get_col_spec(self, **_how: Any) -> str:
        return "vector"


def vector_text(value: bytes) -> str:
    """The float32 numbers of a vector as PostgreSQL reads them."""
    return f"[{','.join(map(repr, array('f', value)))}]"


class VectorBytes(sa.TypeDecorator[bytes]):
    """The float32 numbers of a vector, as bytes; in PostgreSQL one of pgvector's."""

    impl = sa.LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return _Vector() if dialect.name == "postgresql" else sa.LargeBinary()

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "postgresql":
            return value
        return vector_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        if value is None or dialect.name != "postgresql":
            return value  # type: ignore[no-any-return]
        return array("f", map(float, value[1:-1].split(","))).tobytes()


@lru_cache(maxsize=16)
def utc_text(value: datetime) -> str:
    """The stored form of an aware datetime."""
    # No strftime: on Linux it writes the years before 1000 without their zeros.
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


class Tx:
    """A transaction. ``now`` is when the work is done, ``zone`` where its days are counted.

    ``own`` and ``shared`` are the rows of ``apps`` that it is about: the app's own, and that of all
    apps of the user. Each is 0 where there is none yet, and under 0 nothing is found. ``embeds``
    tells whether there is an embedding model. ``types`` are those of memories beside the usual.
    """

    def __init__(
        self,
        connection: sa.Connection,
        now: datetime = _EPOCH,
        zone: ZoneInfo = UTC_ZONE,
        own: int = 0,
        shared: int = 0,
        embeds: Callable[[], bool] = bool,
        scrub: Callable[[], object] = lambda: None,
        types: OwnTypes = NO_TYPES,
    ) -> None:
        self.connection = connection
        self.driver: Any = connection.connection.driver_connection
        """The connection of the sqlite3 module, or of psycopg, below that of SQLAlchemy."""
        self.on_postgres = connection.dialect.name == "postgresql"
        self._dialect = connection.dialect.name
        self.execute = connection.execute
        self.now = now
        self.zone = zone
        self.own = own
        self.shared = shared
        self.embeds = embeds
        self.types = types
        self._scrub = scrub
        self._latest: dict[Any, tuple[int, Any]] = {}
        self.only_reads = False
        """Whether it is known from its beginning that it writes nothing."""
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
        words the store's, its vectors the saved index of these rows of ``apps``. Names that a model
        gave topics of these users may hold a word of it, and go as well."""
        self.run_many(_SCRUB, ({"app_id": i} for i in app_ids or (None,)))
        self.run_many(_UNNAME, ({"scope": i} for i in app_ids))
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

    def rows(self, statement: sa.Executable, **values: Any) -> list[Any]:
        """All rows of a constant statement, with these values for its parameters and columns.
        Raises the driver's own errors."""
        compiled = _compiled(self._dialect, statement, *values)
        cursor = self.driver.execute(compiled.text, compiled.bind(values))
        # psycopg has no rows to give where a statement returns none.
        return compiled.read(cursor.fetchall()) if cursor.description else []

    def column(self, statement: sa.Executable, **values: Any) -> list[Any]:
        """The first column of the rows."""
        return [row[0] for row in self.rows(statement, **values)]

    def value(self, statement: sa.Executable, **values: Any) -> Any:
        """The first column of the first row; None where there is no row."""
        return next(iter(self.column(statement, **values)), None)

    def latest(self, statement: sa.Executable, **values: Any) -> Any:
        """``value``, asked for once as long as this transaction writes nothing."""
        asked = (statement, *values.items())
        return self.once(asked, lambda: self.value(statement, **values))

    def once(self, asked: Hashable, read: Callable[[], Any]) -> Any:
        """What ``read`` gives, read once as long as this transaction writes nothing."""
        if self.on_postgres and not self.only_reads:  # it does not count what was written
            return read()
        written = 0 if self.on_postgres else self.driver.total_changes
        known = self._latest.get(asked)
        if known is None or known[0] != written:
            known = self._latest[asked] = written, read()
        return known[1]

    def batches(
        self, statement: sa.Executable, most: int = 4_096, /, **values: Any
    ) -> Iterator[list[Any]]:
        """The rows in lists of so many at most."""
        compiled = _compiled(self._dialect, statement, *values)
        cursor = self.driver.execute(compiled.text, compiled.bind(values))
        while found := cursor.fetchmany(most):
            yield compiled.read(found)

    def run_many(self, statement: sa.Executable, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a constant statement once for each row of values; all of them name the same."""
        every = list(rows)
        if every:
            compiled = _compiled(self._dialect, statement, *every[0])
            self.driver.cursor().executemany(compiled.text, [*map(compiled.bind, every)])

    def insert(self, table: sa.Table, **values: Any) -> int:
        """Insert one row; returns its id."""
        return int(self.value(_inserting(table), **values))

    def insert_new(self, table: sa.Table, **values: Any) -> int | None:
        """Insert one row; returns its id, or None where another has its key or its id."""
        found = self.value(_inserting_new(table), **values)
        if self.on_postgres and found is not None and "id" in values:
            from memchat.db import postgres

            postgres.go_on_after(self, table.name, found)
        return None if found is None else int(found)


_SCRUB = sa.insert(sa.table("scrubs", sa.column("app_id")))
_topics = sa.table("topics", sa.column("app_id"), sa.column("name"))
_apps = sa.table("apps", sa.column("id"), sa.column("user"))
_user = sa.select(_apps.c.user).where(_apps.c.id == sa.bindparam("scope")).scalar_subquery()
_UNNAME = sa.update(_topics).values(name=sa.null()).where(_topics.c.name.is_not(None))
_UNNAME = _UNNAME.where(_topics.c.app_id.in_(sa.select(_apps.c.id).where(_apps.c.user == _user)))


@cache
def _inserting(table: sa.Table) -> sa.Executable:
    return sa.insert(table).returning(*table.primary_key)


@cache
def _inserting_new(table: sa.Table) -> sa.Executable:
    return insert(table).on_conflict_do_nothing().returning(*table.primary_key)


def upsert(
    table: sa.Table, *columns: str, key: Sequence[str] = (), where: Any = None, **values: Any
) -> Any:
    """A statement that inserts a row with these values and those that it is given, or sets these
    columns of the row that has its key (the table's, unless another is named) and of which a
    condition holds. Without columns it leaves that row as it is."""
    new = insert(table).values(**values) if values else insert(table)
    if not columns:
        return new.on_conflict_do_nothing()
    found = key or [column.name for column in table.primary_key]
    changed = {name: new.excluded[name] for name in columns}
    return new.on_conflict_do_update(found, set_=changed, where=where)


class _Constants:
    """Writes constants into the statement: no partial index is used for a bound value."""

    def visit_bindparam(self, bindparam: Any, **how: Any) -> str:
        how["literal_binds"] = not bindparam.required
        return str(super().visit_bindparam(bindparam, **how))  # type: ignore[misc]


class _Compiler(_Constants, sqlite.statement_compiler):  # type: ignore[misc, name-defined]
    def get_from_hint_text(self, table: Any, text: str) -> str:
        return text  # INDEXED BY, which SQLAlchemy leaves out for SQLite


class _Statement:
    """A statement as the driver takes it."""

    def __init__(self, name: str, statement: Any, names: tuple[str, ...]) -> None:
        dialect = _with_constants(name)
        self._strict = name == "postgresql"
        compiled: Any = statement.compile(dialect=dialect, column_keys=names)
        self.text = str(compiled)
        self._names: list[str] = compiled.positiontup or []
        bound = {name: compiled.binds[name].type.dialect_impl(dialect) for name in self._names}
        stored = ((name, one.bind_processor(dialect)) for name, one in bound.items())
        self._stored = [(name, process) for name, process in stored if process is not None]
        made = compiled._result_columns
        impls = enumerate(column.type.dialect_impl(dialect) for column in made)
        readers = ((n, impl.result_processor(dialect, None)) for n, impl in impls)
        self._readers = [(n, process) for n, process in readers if process is not None]
        row: Any = namedtuple("row", [c.keyname for c in made], rename=True)  # type: ignore[misc]
        self._make = partial(tuple.__new__, row)

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        if self._stored:
            values = {**values}
            for name, process in self._stored:
                values[name] = process(values[name])
        bound = [values[name] for name in self._names]
        # No column is of truth values, and PostgreSQL makes no number of one.
        return [int(v) if isinstance(v, bool) else v for v in bound] if self._strict else bound

    def read(self, found: list[tuple[Any, ...]]) -> list[Any]:
        if not self._readers:
            return [*map(self._make, found)]
        rows = [*map(list, found)]
        for n, process in self._readers:
            for row in rows:
                row[n] = process(row[n])
        return [*map(self._make, rows)]


@lru_cache(maxsize=2_048)
def _compiled(dialect: str, statement: sa.Executable, *names: str) -> _Statement:
    return _Statement(dialect, statement, names)


@cache
def _with_constants(name: str) -> Dialect:
    if name == "sqlite":
        writes = sqlite()
        writes.statement_compiler = _Compiler
        return writes
    from memchat.db import postgres

    return postgres.dialect(_Constants)


class _List(sa.TypeDecorator[Any]):
    """A list as one bound value, so that the statement is the same for any length."""

    impl = sa.String
    cache_ok = True

    def __init__(self, of: Any = sa.BigInteger) -> None:
        super().__init__()
        self.of = of

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return sa.String() if dialect.name == "sqlite" else sa.ARRAY(self.of)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Raises OverflowError for a number that is too large for an id."""
        values = [*value]
        words = bool(values) and isinstance(values[0], str)
        if values and not words and not -(2**63) <= min(values) <= max(values) < 2**63:
            raise OverflowError("no id is so large")
        if dialect.name != "sqlite":
            return values
        return json.dumps(values) if words else str(values)


class _Elements(FunctionElement[Any]):
    inherit_cache = True


@compiles(_Elements)
def _elements(element: _Elements, compiler: Any, **how: Any) -> str:
    return f"(SELECT value FROM json_each({compiler.process(element.clauses, **how)}))"


@compiles(_Elements, "postgresql")
def _unnested(element: _Elements, compiler: Any, **how: Any) -> str:
    return f"(SELECT unnest({compiler.process(element.clauses, **how)}))"


def among(column: sa.ColumnElement[Any], values: str | Iterable[Any]) -> sa.ColumnElement[bool]:
    """A condition: the column is one of a list, that of a parameter or this one."""
    of = _List(sa.Text if isinstance(column.type, sa.String) else sa.BigInteger)
    if isinstance(values, str):
        return column.bool_op("IN")(_Elements(sa.bindparam(values, type_=of)))
    return column.bool_op("IN")(_Elements(sa.literal([*values], of)))


T = TypeVar("T", bound=Hashable)
Reader = Callable[[Any], Any]


def _words(value: str | None) -> tuple[str, ...]:
    return tuple(value.split()) if value else ()


def _object(value: str | None) -> Any:
    return None if value is None else json.loads(value)


def _attachments(value: str | None) -> tuple[Attachment, ...]:
    return tuple(Attachment(**one) for one in json.loads(value)) if value else ()


_READERS: dict[str, Reader] = {
    "tuple[Attachment, ...]": _attachments,
    "bool": bool,
    "tuple[str, ...]": _words,
    "dict[str, Any] | None": _object,
    "ExternalId": json.loads,
}
"""By the type of the field."""


def from_row(record: type[T], row: Any, **given: Any) -> T:
    """The record that the columns of its fields' names give; ``given`` fields are taken as they
    are, and those without a column keep their defaults."""
    for name, place, reader in _places(record, row._fields):
        if name not in given:
            given[name] = reader(row[place]) if reader else row[place]
    return record(**given)


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
def _places(record: Any, names: tuple[str, ...]) -> list[tuple[str, int, Reader | None]]:
    """The fields of a record that are among these columns, with their place and reader."""
    there = ((f, names.index(f.name)) for f in dataclasses.fields(record) if f.name in names)
    return [(f.name, place, _READERS.get(str(f.type))) for f, place in there]


_meta = sa.table("meta", sa.column("key"), sa.column("value"))
_OF_KEY = _meta.c.key == sa.bindparam("key")
_GET = sa.select(_meta.c.value).where(_OF_KEY)
_PUT = insert(_meta).on_conflict_do_update(["key"], set_={"value": insert(_meta).excluded.value})
_REMOVE = sa.delete(_meta).where(_OF_KEY)


def get(tx: Tx, key: str) -> str | None:
    """The value of a key, or None."""
    found: str | None = tx.value(_GET, key=key)
    return found


def put(tx: Tx, key: str, value: str) -> None:
    """Set the value of a key."""
    tx.rows(_PUT, key=key, value=value)


def remove(tx: Tx, key: str) -> None:
    """Remove a key."""
    tx.rows(_REMOVE, key=key)


def hash_key(tx: Tx) -> bytes:
    """The secret key under which the store hashes forgotten texts. It is made when first needed."""
    return bytes.fromhex(_drawn_once(tx, "hash_key", 32))


def has_hash_key(tx: Tx) -> bool:
    """Whether that key is there already, so that who only reads can use it."""
    return get(tx, "hash_key") is not None


def store_id(tx: Tx) -> str:
    """A random id of this store. It is made when first needed."""
    return _drawn_once(tx, "store_id", 16)


def _drawn_once(tx: Tx, key: str, size: int) -> str:
    found = get(tx, key)
    if found is None:
        found = secrets.token_hex(size)
        put(tx, key, found)
    return found
