"""The SQLite file: opening, migrating, transactions, and making deleted bytes really go.

Reads run in a snapshot (``read``); writes take the one writer's place up front (``write``, BEGIN
IMMEDIATE), so a read-modify-write never loses an update to another process. Commits are durable
(synchronous=FULL): what was acknowledged survives kill -9 and a power cut.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc
from sqlalchemy.pool import ConnectionPoolEntry

from memchat import disk
from memchat.errors import InputError, SchemaError, StoreError
from memchat.store import schema

log = logging.getLogger(__name__)

FILE = "memchat.db"
BUSY_SECONDS = 30
BRIEFLY_MS = 20
"""Milliseconds that a writer waits for its place where what it writes can as well be left."""
_IDLE = 2
"""Connections of a kind that wait open for the next reader or writer."""
_OURS = "alembic_version"
_PERHAPS_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_TABLES = "SELECT name FROM sqlite_master"


class Database:
    """One store. Several processes and threads may use the same folder at once."""

    def __init__(self, home: Path) -> None:
        """Open or create the store in ``home``, migrating an older one after a backup.

        Raises StoreError when the folder or file cannot be used, SchemaError for a file that a
        newer memchat made.
        """
        self.home = home
        self.path = home / FILE
        self.backup: Path | None = None
        """The copy of the store as it was, where opening brought it up to date."""
        try:
            disk.make_folder(home)
            if not self.path.exists():
                # People's words: nobody else on this machine reads them.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            if disk.has_no_room(error):
                raise disk.full(str(home), error) from error
            raise StoreError(
                f"the data folder {home} cannot be used ({error.strerror}); "
                "make it writable or set MEMCHAT_HOME to another"
            ) from error
        self._engine = _engine(self.path)
        # The pool takes longer to hand one out than most reads take.
        self._idle = _none_idle()
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give back every connection. The last one out folds the WAL into the file."""
        idle, self._idle = self._idle, _none_idle()
        for connection in (*idle["BEGIN"], *idle["BEGIN IMMEDIATE"]):
            connection.close()
        self._engine.dispose()

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent snapshot; nothing may be written in it."""
        return self._transaction("BEGIN")

    def write(self) -> AbstractContextManager[Connection]:
        """One writer's transaction: all of it is committed durably, or none."""
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def write_if_free(self) -> Iterator[Connection]:
        """A writer's transaction for what can wait: raises StoreError at once where another writes,
        or where nothing can be written."""
        with self._translated(), self._engine.connect() as connection:
            connection = connection.execution_options(memchat_begin="BEGIN IMMEDIATE")
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute(f"PRAGMA busy_timeout={BRIEFLY_MS}")
            try:
                with connection.begin():
                    yield connection
            finally:
                raw.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        idle = self._idle[begin]
        with self._translated():
            try:
                connection = idle.pop()
            except IndexError:
                connection = self._engine.connect().execution_options(memchat_begin=begin)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                connection.close()
                raise
            if len(idle) < _IDLE and idle is self._idle[begin]:  # else it was closed meanwhile
                idle.append(connection)
            else:
                connection.close()

    def damage(self) -> str | None:
        """What SQLite finds wrong with the file, or None."""
        with self.read() as tx:
            found = str(tx.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        return None if found == "ok" else found

    def truncate_wal(self) -> bool:
        """Move the WAL into the file and empty it; False while a reader holds it back."""
        with self._translated(), self._engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            # It keeps every writer out while it waits for readers: it must not wait for long.
            raw.execute("PRAGMA busy_timeout=200")
            try:
                busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                raw.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        return not busy

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except exc.DBAPIError as error:
            raise _named(error.orig, self.path) from error
        except sqlite3.Error as error:
            raise _named(error, self.path) from error
        except OverflowError as error:
            raise InputError("a number is too large for the store; no id is so large") from error
        except UnicodeEncodeError as error:
            raise InputError("a text holds half a character; type it again") from error

    def _migrate(self) -> None:
        with self.read() as tx:
            found = _revision(tx)
        if found == schema.HEAD:
            return
        from memchat.store import migrate

        migrate.check_known(found, self.path)
        if found is None:
            self._upgrade(found)
            return
        self.backup = migrate.back_up(self.path, found)
        try:
            self._upgrade(found)
        except StoreError as error:
            raise StoreError(
                f"{error}; so it was not brought up to date, and nothing in it was changed. Go on "
                f"with the version of memchat that you had; {self.backup} is a copy of the store"
            ) from error

    def _upgrade(self, found: str | None) -> None:
        from memchat.store import migrate

        with self.write() as tx:
            # Another process may have migrated while this one waited for the writer's place.
            if _revision(tx) != schema.HEAD:
                migrate.upgrade(tx)
                log.info("store migrated from %s to %s", found, schema.HEAD)


def _none_idle() -> dict[str, list[Connection]]:
    return {"BEGIN": [], "BEGIN IMMEDIATE": []}


def _revision(tx: Connection) -> str | None:
    tables = set(tx.exec_driver_sql(_TABLES).scalars())
    if not tables:
        return None
    if _OURS not in tables:
        raise SchemaError(
            f"{FILE} is a database of something else (it holds {min(tables)!r}); "
            "set MEMCHAT_HOME to another folder"
        )
    row = tx.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),  # no name is ever read as part of a URL
        hide_parameters=True,  # an error's text must not hold people's words
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        pool_size=4,
        max_overflow=60,
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(raw: Any, _record: ConnectionPoolEntry) -> None:
    raw.isolation_level = None  # transactions are begun by _on_begin alone
    pragmas = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", "cache_size=-12000")
    # For a new file: such a page holds five vectors of 384 numbers, one of half its size but two.
    for pragma in ("page_size=8192", *pragmas):
        raw.execute(f"PRAGMA {pragma}")
    until = time.monotonic() + BUSY_SECONDS
    while not _in_wal(raw):
        # Two processes that make a store at once: SQLite itself does not wait here.
        if time.monotonic() > until:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def _in_wal(raw: Any) -> bool:
    """Have the file written by way of a WAL, unless it is not ours to change, which _revision says;
    False where another process is about to."""
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
    raw = connection.connection.driver_connection
    assert raw is not None
    raw.execute(connection.get_execution_options().get("memchat_begin", "BEGIN"))


def _named(error: BaseException | None, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # A file that could not be made or grown is an input or output error to SQLite, full or not.
    refused = disk.no_room_in(path.parent) if code in _PERHAPS_FULL else None
    if code == sqlite3.SQLITE_FULL or refused is not None:
        return disk.full(str(path), refused)
    return StoreError(_advice(error, path))


def _advice(error: BaseException | None, path: Path) -> str:
    text = str(error).lower()
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return f"{path} cannot be written; make its folder writable or set MEMCHAT_HOME to another"
    if "locked" in text or "busy" in text:
        return f"another process kept {path} for over {BUSY_SECONDS} s; try again, or end it"
    if "malformed" in text or "not a database" in text:
        return f"{path} is damaged or no database; restore a backup or set MEMCHAT_HOME elsewhere"
    return f"the store {path} failed: {error}"
