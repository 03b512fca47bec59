"""Putting a backup in the place of the store, which nobody else may have open meanwhile."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memchat import disk
from memchat.errors import StoreError
from memchat.store import backup_copy, backup_files
from memchat.store.backup_copy import Report
from memchat.store.database import damaged, has_our_tables, open_read_only

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
    backup: Path,
    store: Path,
    kept: Path | None,
    before_change: Callable[[], None],
    report: Report,
) -> None:
    """Replace the store by a backup that was checked. ``kept`` gets the present one.

    It is one transaction: if the process is killed, the store is the old one or the new one.
    ``before_change`` is called once nobody else can open the store. Raises as ``exclusive``, and
    StoreFull where the disk is full.
    """
    disk.make_folder(store.parent)
    if not store.exists():
        os.close(disk.new_file(store))
    with backup_copy.translated(store, store):
        try:
            with exclusive(store) as present:
                if kept is not None:
                    backup_copy.write(present, kept, report, checked=False)
                before_change()
                with closing(open_read_only(backup)) as source:
                    backup_copy.transfer(source, present, report)
        except sqlite3.DatabaseError as error:
            if not damaged(error):
                raise
            _replace_unreadable(backup, store, kept, report)


def _replace_unreadable(backup: Path, store: Path, kept: Path | None, report: Report) -> None:
    """Put a backup in the place of a file that SQLite cannot open, so that nobody else can have it
    open either."""
    new, unfinished = (backup_files.temporary_path(path) for path in (store, kept or store))
    try:
        with closing(open_read_only(backup)) as source:
            backup_copy.pages(source, new, report)
        if kept is not None:
            with open(store, "rb") as old, open(disk.new_file(unfinished), "wb") as copy:
                shutil.copyfileobj(old, copy)
            os.replace(unfinished, kept)
        for path in backup_files.beside(store):
            path.unlink(missing_ok=True)
        os.replace(new, store)
    finally:
        new.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)
