"""Migrating an older store, and how the layout of one differs from what memchat makes; the only
module that imports Alembic.

The whole upgrade is one transaction, so a step that fails leaves the file unchanged. A copy, named
after the revision it holds, is made beside the file all the same.
"""

from __future__ import annotations

import filecmp
import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, exc
from sqlalchemy.pool import StaticPool

from memchat import disk
from memchat.db import Tx, schema
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


Layout = Mapping[str, object]
"""What is known of each object, by its kind and name."""
_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
_WRITTEN_ALONE = re.compile(
    r"CHECK ?\(.*?\)(?=,|\s*\n|\))|ON CONFLICT \w+|COLLATE \w+|AUTOINCREMENT|USING \w+",
    re.IGNORECASE,
)
"""What no PRAGMA tells of a table."""


def difference(store: sqlite3.Connection, revision: str) -> str | None:
    """How the layout of a store of this revision, once it is brought up to date, differs from that
    of a store made now; None where it does not. Reads no rows but the revision."""
    try:
        found = read(store) if revision == schema.HEAD else _brought_up_to_date(store)
    except (exc.SQLAlchemyError, sqlite3.Error, KeyError, ValueError) as error:
        return f"it cannot be brought up to date ({' '.join(str(error).split())})"
    wanted = _made_now()
    for name in sorted(wanted.keys() | found.keys(), key=lambda name: (name[:5] != "table", name)):
        if name not in found:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name!r} is none of memchat's"
        if wanted[name] != found[name]:
            return f"{name} is not as memchat makes it"
    return None


def read(store: sqlite3.Connection) -> Layout:
    """The layout of a database. Tables are compared by what they do, whatever their columns' order:
    an upgrade writes them otherwise than a new store."""
    kinds = {name: tuple(rest) for _, name, *rest in store.execute("PRAGMA table_list")}
    found: dict[str, object] = {}
    for kind, name, sql in store.execute(_OBJECTS).fetchall():
        what: object = " ".join((sql or "").split())
        if kind == "table":
            what = (
                kinds[name],
                sorted(row[1:] for row in _about(store, "table_xinfo", name)),
                sorted(row[2:] for row in _about(store, "foreign_key_list", name)),
                sorted(
                    (
                        *row[2:],
                        *_about(store, "index_xinfo", str(row[1]), "seqno, name, desc, coll"),
                    )
                    for row in _about(store, "index_list", name)
                    if row[3] != "c"  # an index by itself stands below
                ),
                sorted(_WRITTEN_ALONE.findall(sql or "")),
            )
        found[f"{kind} {name}"] = what
    return found


def _about(
    store: sqlite3.Connection, pragma: str, name: str, columns: str = "*"
) -> list[tuple[str, ...]]:
    # As text, so that rows with NULL can be sorted.
    rows = store.execute(f"SELECT {columns} FROM pragma_{pragma}(?)", (name,))
    return [tuple(map(str, row)) for row in rows]


@cache
def _made_now() -> Layout:
    with closing(sqlite3.connect(":memory:")) as empty:
        return _upgraded(empty)


def _brought_up_to_date(store: sqlite3.Connection) -> Layout:
    """The layout that the migrations give a store: they run on a copy without its rows, and without
    its triggers, which stay as they are."""
    shadows = {row[1] for row in store.execute("PRAGMA table_list") if row[2] == "shadow"}
    objects = [row for row in store.execute(_OBJECTS) if row[1] not in shadows and row[2]]
    with closing(sqlite3.connect(":memory:")) as copy:
        for kind, _, sql in sorted(objects, key=lambda row: row[0] != "table"):
            if kind != "trigger":
                copy.execute(sql)
        copy.executemany(
            "INSERT INTO alembic_version VALUES (?)", store.execute("SELECT * FROM alembic_version")
        )
        copy.commit()
        triggers = {f"trigger {name}": sql for kind, name, sql in objects if kind == "trigger"}
        return {**_upgraded(copy), **triggers}


def _upgraded(database: sqlite3.Connection) -> Layout:
    engine = create_engine("sqlite://", creator=lambda: database, poolclass=StaticPool)
    with engine.begin() as connection:
        upgrade(Tx(connection))
    return read(database)
