"""Deleting a whole store: what memchat made in the data folder, and nothing else there."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from memchat.config.keys import FILE as KEYS
from memchat.config.sources import FILE as SETTINGS
from memchat.errors import StoreError
from memchat.store import backup_files, restore
from memchat.store.database import FILE, damaged
from memchat.vectors.vector_index import FOLDER

_DERIVED = (FOLDER, "models", "minilm-checked.json", "memchat.log*")
_PERSONAL = (SETTINGS, KEYS, f".{SETTINGS}.*", f".{KEYS}.*", "prompts")
"""What the person wrote: settings, keys (with unfinished files of them) and own prompts."""


def wipe_files(home: Path, *, with_settings: bool = False) -> Sequence[Path]:
    """The files and folders that ``wipe`` would delete: the store, its backups, its index, logs and
    downloaded models; with ``with_settings`` also settings, keys and prompts."""
    store = home / FILE
    patterns = _DERIVED + (_PERSONAL if with_settings else ())
    found = [path for name in patterns for path in home.glob(name)]
    # The store goes last, so that a wipe that was interrupted can be done again.
    for database in (*backup_files.find(home), store):
        found += [p for p in (*backup_files.beside(database), database) if os.path.lexists(p)]
    return found


def wipe(home: Path, *, with_settings: bool = False) -> Sequence[Path]:
    """Delete these files; gives those that were there before it began.

    Raises StoreError while the store is open, here or in another process, or where a file cannot be
    deleted, and SchemaError for a database of something else.
    """
    store, there = home / FILE, wipe_files(home, with_settings=with_settings)
    if not store.exists():
        _delete(there)
        return there
    try:
        with restore.exclusive(store):
            # SQLite has made files beside the store meanwhile, and deleted others.
            _delete(wipe_files(home, with_settings=with_settings))
    except sqlite3.DatabaseError as error:
        if not damaged(error):
            raise StoreError(f"{store} cannot be locked ({error}); nothing was deleted") from error
        _delete(wipe_files(home, with_settings=with_settings))
    return there


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"{error.filename or path} cannot be deleted ({error.strerror}); "
                "run memchat wipe again once it can"
            ) from error
