"""The SQLite file of a store: opening and migrating it, its transactions, and plain SQL.

A reading transaction (``read``) sees one snapshot. A writing one (``write``) takes SQLite's write
lock at once (BEGIN IMMEDIATE), so no other process changes what it has read. Commits are durable
(synchronous=FULL): they survive kill -9 and a power cut. Deleted bytes are overwritten in the file
(secure_delete) and leave the WAL with ``truncate_wal``.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, exc
from sqlalchemy.pool import ConnectionPoolEntry

from memchat import disk, waiting
from memchat.db import Tx, apps, schema
from memchat.db.records import UTC_ZONE
from memchat.errors import InputError, SchemaError, StoreError, StoreFull
from memchat.language import text
from memchat.types import NO_TYPES, Scope, Service

if TYPE_CHECKING:
    from memchat.search.pgvector import PgVectorIndex
    from memchat.search.vector_index import VectorIndex

    VectorSearch: TypeAlias = VectorIndex | PgVectorIndex


def utc_now() -> datetime:
    return datetime.now(UTC)


log = logging.getLogger(__name__)

FILE = "memchat.db"
BUSY_SECONDS = 30
BUSY_MS = BUSY_SECONDS * 1000
WRITE = "BEGIN IMMEDIATE"
BRIEFLY_MS = 20
"""Milliseconds that ``write_if_free`` waits for the write lock."""
_DELETING_TOO = (
    "deleting from the store takes some too, so delete other files first, or backups with "
    "memchat backup prune --keep 1"
)
_OURS = "alembic_version"
_PERHAPS_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


class Database:
    """One store. Several processes and threads may use the same folder at once."""

    def __init__(
        self, home: Path, clock: Callable[[], datetime] = utc_now, zone: ZoneInfo = UTC_ZONE
    ) -> None:
        """Open or create the store in ``home``, migrating an older one after a backup. ``clock``
        and ``zone`` are those of its transactions.

        Raises StoreError when the folder or file cannot be used, SchemaError for a file that a
        newer memchat made, or one from before the baseline.
        """
        self.home = home
        self.clock = clock
        self.zone = zone
        self.path = home / FILE
        self.name = FILE
        """What it is called in messages."""
        self.embeds: Callable[[], bool] = bool
        """Whether there is an embedding model."""
        self._writing = threading.Lock()
        """Held by the thread that writes: SQLite lets others wait in sleeps that grow, and one may
        wait long behind those that come later."""
        self.types = NO_TYPES
        """Types of memories beside the usual ones."""
        self.backup: Path | None = None
        """The copy of the store from before it was migrated; None if it was not."""
        self._engine = self._open()
        self.index: VectorIndex | None = None
        """The index of the service in use, where it is in memory."""
        self._closed = False
        try:
            self._migrate()
            try:
                self.scrub()  # where a process was killed before it did
            except StoreError as error:  # it can be read all the same, and a worker tries again
                log.warning("deleted words still stand in the file: %s", error)
        except BaseException:
            self.close()
            raise

    def _open(self) -> Engine:
        try:
            disk.make_folder(self.home)
            if not self.path.exists():
                # Only the owner of the file may read it.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            otherwise = StoreError(
                f"the data folder {self.home} cannot be used ({error.strerror}); "
                "make it writable or set MEMCHAT_HOME to another"
            )
            raise disk.failure(error, str(self.home), otherwise) from error
        return _engine(self.path)

    def vector_index(self, store_id: str, service_id: int, service: Service) -> VectorSearch:
        """The search of the vectors of a service."""
        from memchat.search.vector_index import VectorIndex

        self.index = VectorIndex(self.home, store_id, service_id, service)
        return self.index

    def close(self) -> None:
        """Close every connection, those in use at the end of their transaction. When the last
        process closes, SQLite merges the WAL into the file."""
        self._closed = True
        self._engine.dispose()

    def check_open(self) -> None:
        """Raise StoreError once the store was closed."""
        if self._closed:
            raise StoreError(f"{self.path} was closed by this program; open it again to go on")

    def read(self, scope: Scope | None = None) -> AbstractContextManager[Tx]:
        """A transaction that sees one consistent snapshot; nothing may be written in it. It is
        about ``scope``, where one is given."""
        return self._transaction("BEGIN", scope)

    def write(
        self, scope: Scope | None = None, *, ensure: bool = False
    ) -> AbstractContextManager[Tx]:
        """A writing transaction: all of it is committed durably, or none of it. With ``ensure`` the
        rows of the scope are made where there are none yet."""
        return self._transaction(WRITE, scope, ensure)

    def write_if_free(
        self, scope: Scope | None = None, *, ensure: bool = False
    ) -> AbstractContextManager[Tx]:
        """A writing transaction for what may be left undone: raises StoreError at once while
        another process writes, or when the disk takes nothing. It does not wait until the disk has
        it, so a power cut may undo it."""
        brief = {"busy_timeout": BRIEFLY_MS, "synchronous": "NORMAL"}
        return self._transaction(WRITE, scope, ensure, **brief)

    @contextmanager
    def _transaction(
        self, begin: str, scope: Scope | None, ensure: bool = False, **pragmas: object
    ) -> Iterator[Tx]:
        with (
            self._one_writer(pragmas) if begin == WRITE else nullcontext(),
            self._connection(**pragmas) as connection,
            connection.execution_options(memchat_begin=begin).begin(),
        ):
            tx = self._tx(connection, scope, ensure)
            yield tx
        for work in tx.after_commit:
            work()

    @contextmanager
    def _one_writer(self, pragmas: Mapping[str, Any]) -> Iterator[None]:
        with self._translated():
            patience = pragmas.get("busy_timeout", BUSY_MS) / 1000
            if not waiting.patiently(self._writing.acquire, patience):
                raise sqlite3.OperationalError("database is locked")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _connection(self, **pragmas: object) -> Iterator[Connection]:
        """A connection that has these pragmas for the time being."""
        self.check_open()
        usual = {"busy_timeout": BUSY_MS, "synchronous": "FULL"}
        with self._translated(), self._engine.connect() as connection:
            raw = _driver(connection)
            for name, value in pragmas.items():
                raw.execute(f"PRAGMA {name}={value}")
            try:
                yield connection
            finally:
                for name in pragmas:
                    raw.execute(f"PRAGMA {name}={usual[name]}")
                if self._closed:
                    connection.detach()  # else the pool, which is gone, would keep its file open

    def _tx(self, connection: Connection, scope: Scope | None, ensure: bool) -> Tx:
        given = {"embeds": self.embeds, "scrub": self._scrub, "types": self.types}
        tx = Tx(connection, self.clock(), self.zone, **given)  # type: ignore[arg-type]
        if scope is None:
            return tx
        return apps.ensure(tx, scope) if ensure else apps.find(tx, scope)

    def damage(self) -> str | None:
        """The first error that SQLite finds in the file, or how its tables differ from those that
        memchat makes; None if all is well."""
        from memchat.db import migrate

        with self.read() as tx:
            found = str(tx.connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
            return migrate.difference(tx.driver, schema.HEAD) if found == "ok" else found

    def scrub(self) -> bool:
        """Remove what was deleted from the bytes of the files, where that is still to be done; a
        transaction does so after its commit. False while a reader still prevents that."""
        with self.read() as tx:
            if not tx.driver.execute("SELECT 1 FROM scrubs").fetchone():
                return True
        return self._scrub()

    def _scrub(self) -> bool:
        from memchat.db import records
        from memchat.search import embeddings, keywords

        with self.write() as tx:
            left = tx.driver.execute("SELECT id, app_id FROM scrubs").fetchall()
            if not left:
                return True
            app_ids = {app_id for _, app_id in left if app_id is not None}
            if self.index is not None:
                self.index.forget(app_ids)
            store_id = records.get(tx, "store_id") or ""
            service_ids = [row[0] for row in tx.driver.execute("SELECT id FROM services")]
            embeddings.delete_files(self.home, store_id, service_ids, app_ids)
            keywords.scrub(tx)
        if not self.truncate_wal():
            return False
        with self.write() as tx:
            # Only after truncating, so that another process repeats it if this one is killed; and
            # only these: what was forgotten meanwhile is not scrubbed yet.
            tx.execute(sa.delete(schema.scrubs).where(schema.scrubs.c.id.in_([i for i, _ in left])))
        return True

    def truncate_wal(self) -> bool:
        """Merge the WAL into the file and empty it; False if a reader prevents that."""
        # While it waits for readers it blocks all writers, so it waits only briefly.
        with self._connection(busy_timeout=200) as connection:
            return not _driver(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except exc.DBAPIError as error:
            raise store_error(error.orig, self.path) from error
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        except OverflowError as error:
            raise InputError("a number is too large for the store; no id is so large") from error
        except UnicodeEncodeError as error:
            raise InputError("a text holds half a character; type it again") from error

    def _migrate(self) -> None:
        with self.read() as tx:
            found = _revision(tx)
        if found == schema.HEAD:
            return
        from memchat.db import migrate

        migrate.check_known(found, self.path)
        try:
            with self.write() as tx:
                # Another process that opens it meanwhile waits, and finds it done.
                found = _revision(tx)
                if found not in (None, schema.HEAD):
                    self.backup = migrate.back_up(self.path, found)
                if found != schema.HEAD:
                    migrate.upgrade(tx)
                    log.info("store migrated from %s to %s", found, schema.HEAD)
        except StoreError as error:
            if self.backup is None:  # not begun, as for another process that upgrades it
                raise
            raise StoreError(
                f"{error}; so it was not brought up to date, and nothing in it was changed. Go on "
                f"with the version of memchat that you had; {self.backup} is a copy of the store; "
                f"memchat restore {self.backup.name} would put it in the store's place"
            ) from error


def has_our_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether a database is a store; False for an empty one. Raises SchemaError for a database of
    something else."""
    tables = {row[0] for row in connection.execute(_TABLES)}
    if tables and _OURS not in tables:
        raise SchemaError(
            f"{path} is a database of something else (it holds {min(tables)!r}); "
            "set MEMCHAT_HOME to another folder"
        )
    return bool(tables)


def was_used(tx: Tx, table: Table) -> bool:
    """Whether a table has or ever had a row."""
    if tx.on_postgres:
        sql = "SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()"
        named = f" AND sequencename = '{table.name}_id_seq' AND last_value IS NOT NULL"
        return tx.driver.execute(sql + named).fetchone() is not None
    sql = f"SELECT 1 FROM {table.name} UNION ALL SELECT 1 FROM sqlite_sequence WHERE name = ?"
    return tx.driver.execute(sql, (table.name,)).fetchone() is not None


def damaged(error: sqlite3.Error) -> bool:
    """Whether SQLite could not read a file because it is damaged or no database."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _revision(tx: Tx) -> str | None:
    if not has_our_tables(tx.driver, Path(FILE)):
        return None
    row = tx.connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _engine(path: Path) -> Engine:
    options: dict[str, Any] = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    connecting: dict[str, Any] = {"connect_args": options}
    if not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
        # SQLite reads no file with a WAL by itself where it can write nothing beside it.
        connecting = {"creator": partial(open_read_only, path, **options)}
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),  # a file name is never parsed as a URL
        hide_parameters=True,  # values stay out of error messages
        pool_size=4,
        max_overflow=60,
        **connecting,
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def open_read_only(path: Path, **options: Any) -> sqlite3.Connection:
    """Open a database file for reading, without a file beside it where it has no WAL."""
    wal = path.with_name(f"{path.name}-wal")
    whole = not wal.exists() or wal.stat().st_size == 0
    mode = "mode=ro&immutable=1" if whole else "mode=ro"
    uri = f"file:{quote(str(path.absolute()))}?{mode}"
    opened: sqlite3.Connection = sqlite3.connect(uri, uri=True, isolation_level=None, **options)
    return opened


def _on_connect(raw: Any, _record: ConnectionPoolEntry) -> None:
    try:
        _prepare(raw)
    except BaseException:
        raw.close()  # no pool knows it yet
        raise


def _prepare(raw: sqlite3.Connection) -> None:
    raw.isolation_level = None  # only _on_begin begins transactions
    pragmas = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", "cache_size=-12000")
    # The page size applies to new files: 8 KiB hold five vectors of 384 numbers, 4 KiB only two.
    for pragma in ("page_size=8192", *pragmas):
        raw.execute(f"PRAGMA {pragma}")
    raw.create_function("memchat_holds_all", -1, text.holds_all, deterministic=True)
    until = time.monotonic() + BUSY_SECONDS
    while not _in_wal(raw):
        # SQLite does not wait by itself while another process creates the same store.
        if time.monotonic() > until:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def _in_wal(raw: Any) -> bool:
    """Switch the file to a WAL; False if another process is doing so just now.

    A database of another program is left as it is; ``_revision`` raises for it later.
    """
    try:
        if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            tables = {row[0] for row in raw.execute(_TABLES)}
            if not tables or _OURS in tables:
                raw.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


def _on_begin(connection: Connection) -> None:
    begin = connection.get_execution_options().get("memchat_begin", "BEGIN")
    raw = _driver(connection)
    if begin != WRITE or not waiting.in_lane():
        raw.execute(begin)
        return
    # SQLite would wait in this thread, and hold up the other verbs of the lane.
    (patience,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute("PRAGMA busy_timeout=0")
    until = time.monotonic() + patience / 1000
    try:
        while True:
            try:
                raw.execute(begin)
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            waiting.sleep(0.01)
    finally:
        raw.execute(f"PRAGMA busy_timeout={patience}")


def store_error(error: BaseException | None, path: Path) -> StoreError:
    """The error to raise for one of SQLite's about the store at ``path``."""
    code = _code(error)
    # SQLite reports an I/O error for a file it cannot create or extend, on a full disk too.
    refused = disk.no_room_in(path.parent) if code in _PERHAPS_FULL else None
    if code == sqlite3.SQLITE_FULL or refused is not None:
        return StoreFull(f"{disk.full(str(path), refused)}; {_DELETING_TOO}")
    return StoreError(_advice(error, path))


def _code(error: BaseException | None) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _advice(error: BaseException | None, path: Path) -> str:
    text = str(error).lower()
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return f"{path} cannot be written; make its folder writable or set MEMCHAT_HOME to another"
    if "locked" in text or "busy" in text:
        return (
            f"another process kept {path} for over {BUSY_SECONDS} s, as when it brings an older "
            "store up to date; wait and try again, or end that process"
        )
    if "malformed" in text or "not a database" in text:
        return (
            f"{path} is damaged or no database; memchat backup list shows the backups, and memchat "
            "restore brings one back; or set MEMCHAT_HOME to another folder"
        )
    return f"the store {path} failed: {error}"
