"""Bringing an older store up to date; the only place that imports Alembic.

An upgrade runs whole inside one writer's transaction, so a failing step leaves the file as it was;
a copy is made first all the same, beside the file, named after the revision it holds.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from memchat import disk
from memchat.errors import SchemaError, StoreError
from memchat.store import drift, repair
from memchat.store.keywords import Kind

SCRIPTS = Path(__file__).parent / "migrations"


def check_known(revision: str | None, path: Path) -> None:
    """Raise SchemaError for a revision that these scripts do not hold: a newer memchat made it."""
    if revision is None:
        return
    known = {script.revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions()}
    if revision not in known:
        raise SchemaError(
            f"{path} was made by a newer memchat (its schema is {revision}); update memchat"
        )


def back_up(path: Path, revision: str) -> Path:
    """Copy the database, consistently, to ``<name>.<revision>.bak`` beside it.

    Raises StoreError where that cannot be done.
    """
    target = path.with_name(f"{path.name}.{revision}.bak")
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        os.close(disk.new_file(temporary))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
            (held,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
        if held == revision:  # else another process was quicker, and its backup is the right one
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


def _no_room(error: OSError | sqlite3.Error, folder: Path) -> OSError | None:
    """The refusal for want of room that is behind a failed copy, or None."""
    if isinstance(error, OSError):
        return error if disk.has_no_room(error) else None
    return disk.no_room_in(folder)


def upgrade(tx: Connection, scripts: Path = SCRIPTS) -> None:
    """Run every migration that is missing, inside the caller's transaction, and write the keyword
    rows that are no longer as they should be."""
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = tx
    drift.set_aside(tx, MigrationContext.configure(tx).get_current_revision())
    command.upgrade(config, "head")
    for kind in get_args(Kind):
        repair.mend_words(tx, kind)
