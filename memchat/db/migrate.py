"""Migrating an older store; the only module that imports Alembic.

The whole upgrade is one transaction, so a step that fails leaves the file unchanged. A copy, named
after the revision it holds, is made beside the file all the same.
"""

from __future__ import annotations

import filecmp
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from memchat import disk
from memchat.db import Tx
from memchat.errors import SchemaError, StoreError
from memchat.search import repair

SCRIPTS = Path(__file__).parent / "migrations"


def check_known(revision: str | None, path: Path) -> None:
    """Raise SchemaError for a revision without a script here: a newer memchat made the file, or one
    from before the baseline."""
    if revision is None:
        return
    known = {script.revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions()}
    if revision < min(known):
        raise SchemaError(
            f"{path} was made by a memchat from before the first release (its schema is "
            f"{revision}) and was not changed; to keep what it holds, run memchat export FILE with "
            "the version at the git tag before-four-nouns, then memchat import FILE here, with "
            "MEMCHAT_HOME set to a new folder"
        )
    if revision not in known:
        raise SchemaError(
            f"{path} was made by a newer memchat (its schema is {revision}); update memchat"
        )


def back_up(path: Path, revision: str) -> Path:
    """Make a consistent copy of the database beside it: ``<name>.<revision>.bak``, or with a number
    before ``.bak`` where an earlier upgrade left another copy there. The caller holds
    the write lock.

    Raises StoreError if that fails.
    """
    target = path.with_name(f"{path.name}.{revision}.bak")
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        os.close(disk.new_file(temporary))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
        target = _free_or_same(target, temporary)
        os.replace(temporary, target)
    except (OSError, sqlite3.Error) as error:
        if refused := _no_room(error, path.parent):
            raise disk.full(str(target), refused) from error
        raise StoreError(
            f"no backup {target} can be made ({error}), so nothing was changed; make room for it"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _free_or_same(target: Path, copy: Path) -> Path:
    """The first path that is free or holds the same bytes: an upgrade that fails at every start
    makes one backup, and one of a restored store leaves the older backup as it is."""
    path, number = target, 1
    while path.is_file() and not filecmp.cmp(path, copy, shallow=False):
        number += 1
        path = target.with_suffix(f".{number}.bak")
    return path


def _no_room(error: OSError | sqlite3.Error, folder: Path) -> OSError | None:
    """The error of a full disk that made the copy fail, or None."""
    if isinstance(error, OSError):
        return error if disk.has_no_room(error) else None
    return disk.no_room_in(folder)


def upgrade(tx: Tx) -> None:
    """Run the missing migrations in the caller's transaction, and repair the keyword rows."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = tx.connection
    command.upgrade(config, "head")
    repair.repair_keywords(tx)
