"""Migrating an older store; the only module that imports Alembic.

The whole upgrade is one transaction, so a step that fails leaves the file unchanged. A copy, named
after the revision it holds, is made beside the file all the same.

Repairs stores of migrations that were edited after they had run, as a few were on 21 November
2026.

Released migrations are no longer edited. Stores of that day may have a part of what a later
migration adds. It is set aside here before the migrations run. Migration 0008 puts it back, and
adds what other stores of that day do not have.
"""

from __future__ import annotations

import filecmp
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, Integer, inspect, text

from memchat import disk
from memchat.errors import SchemaError, StoreError
from memchat.search import repair
from memchat.search.keywords import Kind

SET_ASIDE = ("prompts", "muted")
"""Tables that an early 0002 made and that 0003 makes now. Their rows are kept in
``<name>_before``."""
COUNTS = "counts_before"
"""The table that keeps the counters an early 0002 had in each memory."""


def set_aside(tx: Connection, revision: str | None) -> None:
    """Change a store of the early 0002, which had a part of 0003, to what 0002 makes today."""
    tables = set(inspect(tx).get_table_names())
    if revision != "0002" or "muted" not in tables:
        return
    for statement in (
        "DROP INDEX ix_muted_memory_id",
        *(f"ALTER TABLE {name} RENAME TO {name}_before" for name in SET_ASIDE),
        f"CREATE TABLE {COUNTS} AS SELECT id, match_count, read_count FROM memories",
        "ALTER TABLE memories DROP COLUMN match_count",
        "ALTER TABLE memories DROP COLUMN read_count",
        "DROP INDEX ix_messages_text_hash",
        "ALTER TABLE messages DROP COLUMN search_text",
        "ALTER TABLE messages DROP COLUMN text_hash",
    ):
        tx.execute(text(statement))
    if "memory_id" not in {column["name"] for column in inspect(tx).get_columns("tombstones")}:
        _own_tombstones(tx)


def _own_tombstones(tx: Connection) -> None:
    """What migration 0002 does today: a tombstone has the id of its memory."""
    columns = ["app_id", "memory_id", "kind", "hash"]
    with Operations(MigrationContext.configure(tx)).batch_alter_table("tombstones") as batch:
        batch.add_column(Column("memory_id", Integer, server_default=text("0"), nullable=False))
        batch.drop_constraint("uq_tombstones_app_id_kind_hash", type_="unique")
        batch.create_unique_constraint("uq_tombstones_app_id_memory_id_kind_hash", columns)


SCRIPTS = Path(__file__).parent / "migrations"


def check_known(revision: str | None, path: Path) -> None:
    """Raise SchemaError for a revision without a script here: a newer memchat made the file."""
    if revision is None:
        return
    known = {script.revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions()}
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


def upgrade(tx: Connection, scripts: Path = SCRIPTS) -> None:
    """Run the missing migrations in the caller's transaction, and repair the keyword rows."""
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = tx
    set_aside(tx, MigrationContext.configure(tx).get_current_revision())
    command.upgrade(config, "head")
    for kind in get_args(Kind):
        repair.repair_keywords(tx, kind)
