"""The backups in the folder of a store: finding them, and reading what each of them is."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memchat.errors import InputError, MemChatError, NotFound, SchemaError, StoreError
from memchat.store import backup_comparison, layout
from memchat.store.database import FILE, damaged, has_our_tables, open_read_only, store_error
from memchat.types import Backup

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


def describe(path: Path, live: Path) -> Backup:
    """What a backup is, compared with the store ``live``. An unusable one has a ``problem``."""
    schema, problem = None, None
    try:
        schema = check(path)
    except MemChatError as error:
        problem = str(error)
    about = path.lstat()
    return Backup(
        file=path,
        made_at=datetime.fromtimestamp(about.st_mtime, UTC),
        size=about.st_size,
        schema=schema,
        problem=problem,
        holds_forgotten=holds_forgotten(path, live),
    )


def check(path: Path) -> str:
    """The revision of a backup that can be restored.

    Raises NotFound if there is no such file, InputError for a folder, SchemaError if a newer
    memchat or another program made its tables or changed them, and StoreError if it is damaged or
    unfinished.
    """
    if not path.exists():
        raise NotFound(f"there is no file {path}; memchat backup list shows the backups")
    if not path.is_file():
        raise InputError(f"{path} is no file; name a backup")
    if path.name.endswith(UNFINISHED):
        raise StoreError(f"{path} is unfinished: the process that wrote it was ended")
    try:
        with closing(open_read_only(path)) as backup:
            revision = _revision(backup, path)
            (found,) = backup.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StoreError(f"{path} is damaged ({' '.join(str(found).split())})")
            from memchat.store import migrate

            migrate.check_known(revision, path)
            differs = layout.difference(backup, revision)
    except sqlite3.Error as error:
        if damaged(error):
            raise StoreError(f"{path} is damaged or no backup ({error})") from error
        raise store_error(error, path) from error
    if differs is not None:
        raise SchemaError(f"{path} is no store as memchat makes it: {differs}; name another backup")
    return revision


def _revision(backup: sqlite3.Connection, path: Path) -> str:
    row = None
    if has_our_tables(backup, path):
        row = backup.execute(_REVISION).fetchone()
    if row is None:
        raise SchemaError(f"{path} is no backup of memchat: it is empty")
    return str(row[0])


def holds_forgotten(path: Path, live: Path) -> bool | None:
    """Whether a backup holds words that were forgotten or deleted in the store since it was made;
    None where that cannot be told."""
    try:
        with backup_comparison.opened(path, live) as both:
            return backup_comparison.holds_forgotten(both)
    except sqlite3.Error:
        return None


def perhaps_forgotten(home: Path) -> list[Path]:
    """The backups that hold words that were forgotten or deleted since, or for which that cannot be
    told. Reads nothing where the folder has no backups."""
    return [path for path in find(home) if holds_forgotten(path, home / FILE) is not False]
