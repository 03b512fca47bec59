"""Copying a whole store into a new file, while other processes go on writing to it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memchat import disk
from memchat.errors import InputError, MemChatError, NotFound, StoreError
from memchat.store import backup_files
from memchat.store.database import BUSY_SECONDS, has_our_tables, store_error

PAGES = 256
"""Pages that are copied between two reports; a page has 8 KiB."""
Report = Callable[[int, int], None]
"""Is called with the pages that are done, and all pages."""


def make(store: Path, target: Path, report: Report) -> None:
    """Copy the store to ``target``, which gets its name once it is whole and checked.

    Raises NotFound without a store, InputError if ``target`` exists, StoreFull where the disk is
    full, and StoreError if the store is damaged or ``target`` cannot be written.
    """
    if not store.exists() or not store.stat().st_size:
        raise NotFound(f"there is no store in {store.parent}, so there is nothing to back up")
    refuse_existing(target)
    with translated(store, target), closing(sqlite3.connect(store, timeout=BUSY_SECONDS)) as source:
        source.isolation_level = None
        if not has_our_tables(source, store):
            raise NotFound(f"there is no store in {store.parent}, so there is nothing to back up")
        write(source, target, report)


def refuse_existing(target: Path) -> None:
    """Raise InputError where there is a file of this name: no backup is ever overwritten."""
    if os.path.lexists(target):
        raise InputError(f"{target} exists and was not changed; choose another name")


def write(
    source: sqlite3.Connection, target: Path, report: Report, *, checked: bool = True
) -> None:
    """Copy an open database beside ``target`` and rename it. Without ``checked``, damage is copied
    as it is."""
    temporary = backup_files.temporary_path(target)
    try:
        pages(source, temporary, report)
        if checked:
            _check(temporary)
        _name(temporary, target)
    finally:
        backup_files.delete(temporary)


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


def _check(temporary: Path) -> None:
    with closing(sqlite3.connect(temporary)) as copy:
        (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreError(
            f"the store is damaged ({' '.join(str(found).split())}), so no backup was made; "
            "memchat backup list shows older ones, memchat restore brings one back"
        )
