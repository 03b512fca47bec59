"""A store in PostgreSQL: its connections and transactions, its tables, and the dialect of what
``memchat.db`` writes with SQLAlchemy.

A writing transaction about one person holds that person's lock until it ends, so that no other
process changes what it has read; one about the store as a whole waits for all others. A reading one
sees one snapshot. All locks are the database's, so any number of hosts may share a store; times are
those of the host that writes. Everything is in a schema of its own.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import psycopg
import sqlalchemy as sa
from psycopg import errors
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg

from memchat import disk
from memchat.db import Tx, records, schema
from memchat.db.database import BUSY_SECONDS, Database, utc_now
from memchat.db.records import UTC_ZONE
from memchat.errors import ConfigError, InputError, StoreError, StoreFull
from memchat.types import Scope, Service

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from memchat.db.database import VectorSearch

SCHEMA = "memchat"
"""The name of its schema, unless the URL has another: ``?schema=name``."""
BRIEFLY_MS = 20
_NOW = "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS000\"Z\"')"
_HOLDS_ALL = """
CREATE FUNCTION memchat_folded(given text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(lower(normalize(given, NFKD) COLLATE "default"), '[̀-ͯ]', '', 'g')
$$;
CREATE FUNCTION memchat_holds_all(words text, VARIADIC texts text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(bool_and(position(memchat_folded(word) IN whole) > 0), true)
    FROM (SELECT memchat_folded(array_to_string(texts, E'\\n')) AS whole) AS held,
        unnest(string_to_array(trim(words), ' ')) AS word WHERE word != ''
$$;
"""
_WORDS = """
CREATE TABLE passage_words (
    passage_id bigint PRIMARY KEY, text tsvector NOT NULL, context tsvector NOT NULL
);
CREATE INDEX ix_passage_words_text ON passage_words USING gin (text) WITH (fastupdate = off);
CREATE INDEX ix_passage_words_context ON passage_words USING gin (context) WITH (fastupdate = off);
"""
_VIEW = """
CREATE VIEW app_memories AS SELECT id, app_id, content,
    extract(epoch FROM created_at::timestamptz)::bigint AS created_at,
    extract(epoch FROM updated_at::timestamptz)::bigint AS updated_at FROM memories
"""

_FUNCTIONS = {
    "substr": "substr({0}, ({1})::int, ({2})::int)",
    "json": "({0})::json",
    "json_group_object": "json_object_agg({0}, {1} ORDER BY {0})::text",
    "json_array": "json_build_array({0}, {1})",
    "json_each": "jsonb_array_elements(({0})::jsonb)",
    "json_valid": "({0} IS JSON)::int",
    "json_extract": "({0})::jsonb #>> string_to_array(ltrim({1}, '$.'), '.')",
    "json_remove": "(({0})::jsonb #- string_to_array(ltrim({1}, '$.'), '.'))::text",
    "aggregate_strings": "string_agg({0}, {1})",
}
"""What SQLite calls otherwise."""


class _Types(PGTypeCompiler):
    """Every whole number may be an id, and texts are compared by their bytes, as in SQLite."""

    def visit_INTEGER(self, type_: Any, **how: Any) -> str:
        return "BIGINT"


class _Statements(PGCompiler_psycopg):
    def _on_conflict_target(self, clause: Any, **how: Any) -> str:
        # The clause is SQLite's, which has all that this one needs but for this.
        clause.constraint_target = None
        write: Any = super()._on_conflict_target
        return str(write(clause, **how))

    def _called(self, name: str) -> Callable[..., str]:
        def write(function: Any, **how: Any) -> str:
            given = [self.process(one, **how) for one in function.clauses]
            return _FUNCTIONS[name].format(*given)

        return write

    def visit_length_func(self, function: Any, **how: Any) -> str:
        (of,) = function.clauses
        name = "4 * vector_dims" if isinstance(of.type, records.VectorBytes) else "length"
        return f"{name}{self.function_argspec(function, **how)}"

    def visit_cast(self, cast: Any, **how: Any) -> str:
        if isinstance(cast.type, sa.LargeBinary):
            return f"convert_to({self.process(cast.clause, **how)}, 'UTF8')"
        write: Any = super().visit_cast
        return str(write(cast, **how))

    def visit_max_func(self, function: Any, **how: Any) -> str:
        return self._of_rows_or_values("max", "greatest", function, **how)

    def visit_min_func(self, function: Any, **how: Any) -> str:
        return self._of_rows_or_values("min", "least", function, **how)

    def _of_rows_or_values(self, rows: str, values: str, function: Any, **how: Any) -> str:
        name = rows if len(function.clauses) == 1 else values
        return f"{name}{self.function_argspec(function, **how)}"

    def __getattr__(self, name: str) -> Any:
        if (found := name.removeprefix("visit_").removesuffix("_func")) in _FUNCTIONS:
            return self._called(found)
        raise AttributeError(name)


def dialect(constants: type[Any] | None = None) -> sa.Dialect:
    """The dialect of statements for the driver itself; ``constants`` is mixed into the compiler."""
    made: Any = PGDialect_psycopg
    found: sa.Dialect = _ours(made(paramstyle="format"), constants)
    return found


def _ours(made: Any, constants: type[Any] | None = None) -> Any:
    parts = (constants, _Statements) if constants else (_Statements,)
    made.statement_compiler = type("Statements", parts, {})
    made.type_compiler_instance = _Types(made)
    return made


def create_tables(connection: sa.Connection) -> None:
    """Make the tables of ``memchat.db.schema`` in the words of PostgreSQL."""
    made = sa.MetaData(naming_convention=schema.metadata.naming_convention)
    for table in schema.metadata.sorted_tables:
        copy = table.to_metadata(made)
        for column in copy.columns:
            if isinstance(column.type, records.UtcTime) and column.server_default is not None:
                column.server_default = sa.DefaultClause(sa.text(_NOW))
            if isinstance(column.type, sa.Integer):
                column.type = sa.BigInteger()
            elif not isinstance(column.type, (sa.Date, sa.Float, records.VectorBytes)):
                column.type = sa.Text(collation="C")  # as bytes, so that times sort too
            if column.computed is not None:
                column.computed.persisted = True
        for index in copy.indexes:
            where = index.dialect_options["sqlite"]["where"]
            if where is not None:
                index.dialect_options["postgresql"]["where"] = where
        for rule in copy.foreign_key_constraints:
            if rule.ondelete is None:  # what it is about may go in the same cascade
                rule.deferrable, rule.initially = True, "DEFERRED"
        for check in copy.constraints:
            if isinstance(check, sa.CheckConstraint):
                check.sqltext = sa.text(check.info.get("postgresql", str(check.sqltext)))
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    made.create_all(connection, checkfirst=False)
    for statement in (_WORDS, _HOLDS_ALL, _VIEW):
        connection.exec_driver_sql(statement)


class Postgres(Database):
    """A store in PostgreSQL. Its folder holds settings, keys, prompts and logs alone."""

    def __init__(
        self,
        url: str,
        home: Path,
        clock: Callable[[], datetime] = utc_now,
        zone: ZoneInfo = UTC_ZONE,
    ) -> None:
        """Open the store at ``url``, and make or bring up to date its schema.

        Raises ConfigError for a URL that cannot be read, StoreError where the server cannot be
        reached, SchemaError for a schema that a newer memchat made.
        """
        try:
            parsed = sa.make_url(url).set(drivername="postgresql+psycopg")
        except sa.exc.ArgumentError as error:
            raise ConfigError(
                "MEMCHAT_DATABASE_URL cannot be read; give postgresql://user:password@host/database"
            ) from error
        query = {**parsed.query}
        self.schema = str(query.pop("schema", SCHEMA))
        if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", self.schema):
            raise ConfigError(
                f"{self.schema!r} is no name of a schema; use small letters, digits and _"
            )
        self._url = parsed.set(query=query)
        self._store = _number(self.schema)
        super().__init__(home, clock, zone)

    def _open(self) -> sa.Engine:
        shown = self._url.set(drivername="postgresql").render_as_string()  # hides the password
        self.name = f"{shown}, schema {self.schema}"
        disk.make_folder(self.home)
        engine = sa.create_engine(
            self._url,
            hide_parameters=True,
            pool_size=8,
            max_overflow=56,
            pool_pre_ping=True,
            connect_args={
                "application_name": "memchat",
                "connect_timeout": 10,
                "options": f"-c search_path={self.schema},public -c timezone=UTC",
            },
        )
        _ours(engine.dialect)
        return engine

    def read(self, scope: Scope | None = None) -> Any:
        return self._transaction("REPEATABLE READ", scope)

    def write(self, scope: Scope | None = None, *, ensure: bool = False) -> Any:
        return self._transaction("READ COMMITTED", scope, ensure)

    def write_if_free(self, scope: Scope | None = None, *, ensure: bool = False) -> Any:
        return self._transaction("READ COMMITTED", scope, ensure, briefly=True)

    @contextmanager
    def _transaction(  # type: ignore[override]
        self, isolation: Any, scope: Scope | None, ensure: bool = False, briefly: bool = False
    ) -> Iterator[Tx]:
        self.check_open()
        reads = isolation == "REPEATABLE READ"
        with self._translated(), self._engine.connect() as connection:
            connection.execution_options(isolation_level=isolation, postgresql_readonly=reads)
            with connection.begin():
                if not reads:
                    self._lock(connection, scope, BRIEFLY_MS if briefly else BUSY_SECONDS * 1000)
                tx = self._tx(connection, scope, ensure)
                tx.only_reads = reads
                yield tx
        for work in tx.after_commit:
            work()

    def _lock(self, connection: sa.Connection, scope: Scope | None, patience: int) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"SET LOCAL lock_timeout = {patience}")
        if scope is None:
            driver.execute("SELECT pg_advisory_xact_lock(%s)", (self._store,))
            return
        person = _number(f"{self.schema}\0{scope.user}")
        driver.execute(
            "SELECT pg_advisory_xact_lock_shared(%s), pg_advisory_xact_lock(%s)",
            (self._store, person),
        )

    def vector_index(self, store_id: str, service_id: int, service: Service) -> VectorSearch:
        from memchat.search.pgvector import PgVectorIndex

        return PgVectorIndex(service_id, service)

    def damage(self) -> str | None:
        """Which of its tables is missing; None if all are there."""
        with self.read() as tx:
            there = {row[0] for row in tx.driver.execute(_TABLES).fetchall()}
        missing = sorted(schema.metadata.tables.keys() - there)
        return f"table {missing[0]} is missing" if missing else None

    def truncate_wal(self) -> bool:
        """What PostgreSQL still holds of deleted rows is removed by its VACUUM."""
        return True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._error(error.orig) from error
        except psycopg.Error as error:
            raise self._error(error) from error
        except OverflowError as error:
            raise InputError("a number is too large for the store; no id is so large") from error
        except UnicodeEncodeError as error:
            raise InputError("a text holds half a character; type it again") from error

    def _error(self, error: BaseException | None) -> Exception:
        told = str(error).partition("\n")[0]
        if isinstance(error, errors.NumericValueOutOfRange):
            return InputError("a number is too large for the store; no id is so large")
        if isinstance(error, errors.DiskFull):
            return StoreFull(f"the disk of {self.name} is full; free some room on its server")
        if isinstance(error, errors.LockNotAvailable):
            return StoreError(
                f"another process kept {self.name} for over {BUSY_SECONDS} s; wait and try again"
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return StoreError(
                f"{self.name}: {told}; its role needs the right to create a schema there, and a "
                "superuser may have to run CREATE EXTENSION vector SCHEMA public once"
            )
        if isinstance(error, errors.DeadlockDetected):
            return StoreError(f"two writers of {self.name} waited for each other; try again")
        if isinstance(error, psycopg.OperationalError):
            return StoreError(f"{self.name} cannot be reached: {told}")
        return StoreError(f"the store {self.name} failed: {told}")

    def _migrate(self) -> None:
        with self._translated(), self._engine.begin() as connection:
            found = self._revision(connection)
        if found != schema.HEAD:
            self._bring_up_to_date(found)
        with self.read() as tx:
            known = records.has_hash_key(tx)
        if not known:
            with self.write() as tx:
                records.hash_key(tx)  # a reading transaction cannot make it

    def _bring_up_to_date(self, found: str | None) -> None:
        from memchat.db import migrate

        migrate.check_known(found, Path(self.name))
        with self.write() as tx:
            # Another process that opens it meanwhile waits, and finds it done.
            found = self._revision(tx.connection)
            if found == schema.HEAD:
                return
            tx.driver.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"')
            migrate.upgrade(tx)
            log.info("store migrated from %s to %s", found, schema.HEAD)

    def _revision(self, connection: sa.Connection) -> str | None:
        of_ours = f'"{self.schema}".alembic_version'
        there = connection.exec_driver_sql("SELECT to_regclass(%s)", (of_ours,)).scalar()
        if there is None:
            return None
        return str(connection.exec_driver_sql(f"SELECT version_num FROM {of_ours}").scalar())


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


def _number(name: str) -> int:
    """A number for a lock, the same in all processes."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def go_on_after(tx: Tx, table: str, row_id: int) -> None:
    """Have the ids that a table gives itself go on after this one, which was given to it."""
    named = "pg_get_serial_sequence(%s, 'id') AS ids"
    sql = f"SELECT setval(ids, greatest(%s, nextval(ids))) FROM {named}"
    tx.driver.execute(sql, (row_id, table))
