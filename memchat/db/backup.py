"""Backups of a store: making, finding, checking, comparing and restoring them, encrypted or not.

A backup is made while other processes go on writing, and gets its name only once it is whole and
checked. Restoring replaces the store as a whole or not at all, and nobody else may have it open
meanwhile.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memchat import disk
from memchat.db import encryption
from memchat.db.database import (
    BUSY_SECONDS,
    FILE,
    damaged,
    has_our_tables,
    open_read_only,
    store_error,
)
from memchat.errors import InputError, MemChatError, NotFound, SchemaError, StoreError
from memchat.facts.memories import FORGOTTEN
from memchat.types import Backup

_HOLDS_FORGOTTEN = f"""
SELECT EXISTS (
    SELECT 1 FROM copy.memories b WHERE NOT EXISTS (
        SELECT 1 FROM main.memories m WHERE m.id = b.id AND m.created_at = b.created_at
        AND m.inactive_reason IS NOT '{FORGOTTEN}'))
OR EXISTS (
    SELECT 1 FROM copy.messages b WHERE NOT EXISTS (
        SELECT 1 FROM main.messages m WHERE m.id = b.id AND m.content = b.content))
OR EXISTS (
    SELECT 1 FROM copy.sources b WHERE NOT EXISTS (
        SELECT 1 FROM main.sources m WHERE m.id = b.id AND m.created_at = b.created_at))
OR EXISTS (
    SELECT 1 FROM copy.sessions b LEFT JOIN main.sessions m ON m.id = b.id
    WHERE (b.title > '' AND ifnull(m.title, '') = '')
    OR (b.summary > '' AND ifnull(m.summary, '') = ''))
"""
_FORGETTINGS = f"""
SELECT (SELECT max(seq) FROM sqlite_sequence WHERE name = 'scrubs'),
    EXISTS (SELECT 1 FROM memories WHERE inactive_reason = '{FORGOTTEN}')
"""
"""A number that grows whenever something is forgotten or deleted, and whether a memory waits for
that."""
_ONLY_IN_STORE = """
SELECT count(*) FROM main.{table} m WHERE {condition} AND NOT EXISTS (
    SELECT 1 FROM copy.{table} b WHERE b.id = m.id AND b.{time} = m.{time})
"""
_COUNTED = {
    "memories": ("memories", "created_at", f"m.inactive_reason IS NOT '{FORGOTTEN}'"),
    "sessions": ("sessions", "started_at", "1"),
    "messages": ("messages", "created_at", "1"),
    "inbox_items": ("proposals", "created_at", "m.status IN ('pending', 'unchecked')"),
    "notes": ("sources", "created_at", "1"),
}
"""What is counted: its table, the column of the row's time, and which rows count."""


@contextmanager
def opened_with(path: Path, live: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads the store as ``main`` and the backup as ``copy``.

    Raises sqlite3.Error where one of them cannot be read.
    """
    # A connection that may only read would leave the files of the WAL behind.
    uri = f"{_uri(live)}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as both:
        both.execute("PRAGMA query_only=ON")
        both.execute("ATTACH ? AS copy", (f"{_uri(path)}?mode=ro&immutable=1",))
        yield both


def only_in_store(both: sqlite3.Connection) -> dict[str, Any]:
    """How many memories, sessions, messages, open inbox items and notes only the store has, as a
    ``RestorePlan`` names them. A row is the same in both if id and time are: after a restore an id
    may be used again."""
    found = {}
    for name, (table, time, condition) in _COUNTED.items():
        query = _ONLY_IN_STORE.format(table=table, time=time, condition=condition)
        found[name] = int(both.execute(query).fetchone()[0])
    return found


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"


SUFFIX = ".bak"
UNFINISHED = ".tmp"
_BESIDE = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite may keep beside a database."""
_REVISION = """
SELECT version_num FROM alembic_version
WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'memories')
"""
"""Of a database that has the tables of a store, too."""


def new_path(home: Path, now: datetime) -> Path:
    """The path of a new backup in the folder, named after the time in UTC."""
    return home / f"{FILE}.{now.astimezone(UTC):%Y%m%dT%H%M%SZ}{SUFFIX}"


def temporary_path(target: Path) -> Path:
    """Where a file is written before it gets its name; another path each time, as two threads may
    make a backup at once."""
    return target.with_name(f"{target.name}.{secrets.token_hex(8)}{UNFINISHED}")


def find(home: Path) -> list[Path]:
    """All backups in the folder, the newest first, with unfinished ones that a killed process
    left."""
    found = [*home.glob(f"{FILE}.*{SUFFIX}"), *home.glob(f"{FILE}.*{UNFINISHED}")]
    return sorted(
        (path for path in found if path.is_file() or path.is_symlink()),
        key=lambda path: (path.lstat().st_mtime_ns, path.name),
        reverse=True,
    )


def beside(path: Path) -> list[Path]:
    """The files that SQLite may keep beside a database, whether they exist or not."""
    return [path.with_name(path.name + ending) for ending in _BESIDE]


def delete(path: Path) -> None:
    """Delete a backup, with what may lie beside it: that holds words, too."""
    for file in (*beside(path), path):
        file.unlink(missing_ok=True)


def describe(path: Path, live: Path, plain: Path | None = None) -> Backup:
    """What a backup is, compared with the store ``live``. An unusable one has a ``problem``. Of an
    encrypted one ``plain`` is what it holds; without that, what its first line says is told."""
    schema, problem, sealed = None, None, encryption.header(path)
    try:
        schema = check(path, plain)
    except MemChatError as error:
        problem = str(error)
    about = path.lstat()
    return Backup(
        file=path,
        made_at=datetime.fromtimestamp(about.st_mtime, UTC),
        size=about.st_size,
        schema=schema,
        problem=problem,
        holds_forgotten=holds_forgotten(plain or path, live),
        encrypted=sealed is not None,
    )


def check(path: Path, plain: Path | None = None) -> str:
    """The revision of a backup that can be restored. Of an encrypted one ``plain`` is what it
    holds; without that, its first line tells.

    Raises NotFound if there is no such file, InputError for a folder, SchemaError if a newer
    memchat, one from before the baseline or another program made its tables or changed them, and
    StoreError if it is damaged or unfinished.
    """
    if not path.exists():
        raise NotFound(f"there is no file {path}; memchat backup list shows the backups")
    if not path.is_file():
        raise InputError(f"{path} is no file; name a backup")
    if path.name.endswith(UNFINISHED):
        raise StoreError(f"{path} is unfinished: the process that wrote it was ended")
    from memchat.db import migrate

    if plain is None and (sealed := encryption.header(path)) is not None:
        revision = str(sealed.get("schema"))
        migrate.check_known(revision, path)
        return revision
    try:
        with closing(open_read_only(plain or path)) as backup:
            row = backup.execute(_REVISION).fetchone() if has_our_tables(backup, path) else None
            if row is None:
                raise SchemaError(f"{path} is no backup of memchat: it is empty")
            if found := _damage(backup):
                raise StoreError(f"{path} is damaged ({found})")
            revision = str(row[0])
            migrate.check_known(revision, path)
            differs = migrate.difference(backup, revision)
    except sqlite3.Error as error:
        if damaged(error):
            raise StoreError(f"{path} is damaged or no backup ({error})") from error
        raise store_error(error, path) from error
    if differs is not None:
        raise SchemaError(f"{path} is no store as memchat makes it: {differs}; name another backup")
    return revision


def _damage(database: sqlite3.Connection) -> str | None:
    """The first error that SQLite finds in a file, on one line; None if all is well."""
    (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    return None if found == "ok" else " ".join(str(found).split())


def holds_forgotten(path: Path, live: Path) -> bool | None:
    """Whether a backup has a memory, message, note, title or summary that the store lacks or has
    blanked; one that was only edited since does not count. An encrypted one has where anything was
    forgotten since it was made. None where that cannot be told."""
    try:
        if (sealed := encryption.header(path)) is not None:
            with closing(open_read_only(live)) as store:
                found, hidden = store.execute(_FORGETTINGS).fetchone()
            return bool(hidden) or found != sealed.get("forgettings")
        with opened_with(path, live) as both:
            return bool(both.execute(_HOLDS_FORGOTTEN).fetchone()[0])
    except sqlite3.Error:
        return None


def perhaps_forgotten(home: Path) -> list[Path]:
    """The backups that hold words that were forgotten or deleted since, or for which that cannot be
    told. Reads nothing where the folder has no backups."""
    return [path for path in find(home) if holds_forgotten(path, home / FILE) is not False]


PAGES = 256
"""Pages that are copied between two reports; a page has 8 KiB."""
Report = Callable[[int, int], None]
"""Is called with the pages that are done, and all pages."""


def make(store: Path, target: Path, report: Report, passphrase: str | None = None) -> None:
    """Copy the store to ``target``, which gets its name once it is whole and checked; encrypted
    where there is a passphrase.

    Raises NotFound without a store, InputError if ``target`` exists, StoreFull where the disk is
    full, and StoreError if the store is damaged or ``target`` cannot be written.
    """
    none = NotFound(f"there is no store in {store.parent}, so there is nothing to back up")
    if not store.exists() or not store.stat().st_size:
        raise none
    refuse_existing(target)
    if passphrase is not None:
        _make_encrypted(store, target, report, passphrase)
        return
    with translated(store, target), closing(sqlite3.connect(store, timeout=BUSY_SECONDS)) as source:
        source.isolation_level = None
        if not has_our_tables(source, store):
            raise none
        write(source, target, report)


def _make_encrypted(store: Path, target: Path, report: Report, passphrase: str) -> None:
    # What is not encrypted yet stays in the folder of the store, where the same words are.
    plain, temporary = temporary_path(store), temporary_path(target)
    try:
        make(store, plain, report)
        with closing(open_read_only(plain)) as copy:
            (schema,), (count, _) = (copy.execute(q).fetchone() for q in (_REVISION, _FORGETTINGS))
        with translated(store, target):
            with plain.open("rb") as source, open(disk.new_file(temporary), "wb") as out:
                encryption.encrypt(source, out, passphrase, schema=schema, forgettings=count)
                out.flush()
                os.fsync(out.fileno())
            _name(temporary, target)
    finally:
        delete(plain)
        delete(temporary)


@contextmanager
def decrypted(path: Path, live: Path, passphrase: str | None) -> Iterator[Path]:
    """A file with what a backup holds: the backup itself, or where it is encrypted another one
    beside the store, which goes at the end.

    Raises InputError without its passphrase, StoreError where it was changed or cut off.
    """
    if encryption.header(path) is None:
        yield path
        return
    if passphrase is None:
        raise InputError(f"{path} is encrypted; give its passphrase")
    plain = temporary_path(live)
    try:
        with translated(live, plain):
            disk.make_folder(live.parent)
            with open(disk.new_file(plain), "wb") as out:
                encryption.decrypt(path, out, passphrase)
        yield plain
    finally:
        delete(plain)


def refuse_existing(target: Path) -> None:
    """Raise InputError where there is a file of this name: no backup is ever overwritten."""
    if os.path.lexists(target):
        raise InputError(f"{target} exists and was not changed; choose another name")


def write(
    source: sqlite3.Connection, target: Path, report: Report, *, checked: bool = True
) -> None:
    """Copy an open database beside ``target`` and rename it. Without ``checked``, damage is copied
    as it is."""
    temporary = temporary_path(target)
    try:
        pages(source, temporary, report)
        with closing(sqlite3.connect(temporary)) as copy:
            if checked and (found := _damage(copy)):
                raise StoreError(
                    f"the store is damaged ({found}), so no backup was made; memchat backup list "
                    "shows older ones, memchat restore brings one back"
                )
        _name(temporary, target)
    finally:
        delete(temporary)


def _name(temporary: Path, target: Path) -> None:
    """Give a file its name, which another one may have got meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        refuse_existing(target)
        raise
    except OSError:  # a disk without links
        refuse_existing(target)
        os.replace(temporary, target)


def pages(source: sqlite3.Connection, temporary: Path, report: Report) -> None:
    """Copy an open database into a new file that needs no file beside it, with mode 600."""
    os.close(disk.new_file(temporary))
    with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
        # Without a transaction each change by another process would begin the copy anew.
        source.execute("BEGIN")
        try:
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            transfer(source, copy, report)
        finally:
            source.rollback()
        copy.execute("PRAGMA journal_mode=DELETE")


def transfer(source: sqlite3.Connection, target: sqlite3.Connection, report: Report) -> None:
    """Replace all of ``target`` by ``source`` in one transaction; small ones are not reported."""

    def copied(_status: int, remaining: int, total: int) -> None:
        if total > PAGES:
            report(total - remaining, total)

    source.backup(target, pages=PAGES, progress=copied)


@contextmanager
def translated(store: Path, target: Path) -> Iterator[None]:
    """Turns the errors of the system and of SQLite into those of memchat."""
    try:
        yield
    except MemChatError:
        raise
    except OSError as error:
        otherwise = StoreError(
            f"{target} cannot be written ({error.strerror}); nothing was changed"
        )
        raise disk.failure(error, str(target), otherwise) from error
    except sqlite3.Error as error:
        if refused := disk.no_room_in(target.parent):
            raise disk.full(str(target), refused) from error
        raise store_error(error, store) from error


_WAIT_SECONDS = 1.0
"""For another process to finish closing the store."""


@contextmanager
def exclusive(store: Path) -> Iterator[sqlite3.Connection]:
    """The store, open here and nowhere else; others that open it wait.

    Raises StoreError while it is open elsewhere, in this process or another, and SchemaError for a
    database of something else. sqlite3.DatabaseError means that the file cannot be read.
    """
    with closing(sqlite3.connect(store, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            has_our_tables(connection, store)
            # SQLite refuses to leave the WAL while any other connection is open.
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise StoreError(
                f"{store} is open, here or in another process; end every chat, the app and "
                "memchat worker, then try again. Nothing was changed"
            ) from error
        yield connection


def put_back(
    backup: Path, store: Path, kept: Path | None, before_change: Callable[[], None], report: Report
) -> None:
    """Replace the store by a backup that was checked. ``kept`` gets the present one.

    It is one transaction: if the process is killed, the store is the old one or the new one.
    ``before_change`` is called once nobody else can open the store. Raises as ``exclusive``, and
    StoreFull where the disk is full.
    """
    disk.make_folder(store.parent)
    if not store.exists():
        os.close(disk.new_file(store))
    with translated(store, store):
        try:
            with exclusive(store) as present:
                if kept is not None:
                    write(present, kept, report, checked=False)
                before_change()
                with closing(open_read_only(backup)) as source:
                    transfer(source, present, report)
        except sqlite3.DatabaseError as error:
            if not damaged(error):
                raise
            _replace_unreadable(backup, store, kept, report)


def _replace_unreadable(backup: Path, store: Path, kept: Path | None, report: Report) -> None:
    """Put a backup in the place of a file that SQLite cannot open, so that nobody else can have it
    open either."""
    new, unfinished = (temporary_path(path) for path in (store, kept or store))
    try:
        with closing(open_read_only(backup)) as source:
            pages(source, new, report)
        if kept is not None:
            with open(store, "rb") as old, open(disk.new_file(unfinished), "wb") as copy:
                shutil.copyfileobj(old, copy)
            os.replace(unfinished, kept)
        for path in beside(store):
            path.unlink(missing_ok=True)
        os.replace(new, store)
    finally:
        new.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)
