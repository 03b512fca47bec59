"""Migrating an older store, and how the layout of one differs from what memchat makes; the only
module that imports Alembic.

The whole upgrade is one transaction, so a step that fails leaves the file unchanged. A copy, named
after the revision it holds, is made beside the file all the same.
"""

from __future__ import annotations

import filecmp
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import StaticPool

from memchat.db import Tx, backup
from memchat.errors import SchemaError
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
            "the version at commit 6b973449 (tag before-four-nouns), then memchat import FILE "
            "here, with MEMCHAT_HOME set to a new folder"
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
    temporary = backup.temporary_path(target)
    try:
        with backup.translated(path, target), closing(sqlite3.connect(path)) as source:
            backup.pages(source, temporary, lambda _done, _total: None)
            target = _free_or_same(target, temporary)
            os.replace(temporary, target)
    finally:
        backup.delete(temporary)
    return target


def _free_or_same(target: Path, copy: Path) -> Path:
    """The first path that is free or holds the same bytes: an upgrade that fails at every start
    makes one backup, and one of a restored store leaves the older backup as it is."""
    path, number = target, 1
    while path.is_file() and not filecmp.cmp(path, copy, shallow=False):
        number += 1
        path = target.with_suffix(f".{number}.bak")
    return path


def upgrade(tx: Tx) -> None:
    """Run the missing migrations in the caller's transaction, and repair the keyword rows."""
    _run(tx.connection, SCRIPTS, "head")
    repair.repair_keywords(tx)


def _run(connection: sa.Connection, scripts: Path, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"


def difference(store: sqlite3.Connection, revision: str) -> str | None:
    """How the layout of a store differs from that of a new one of this revision; None where it does
    not. Reads no rows."""
    found, wanted = _layout(store), _made(SCRIPTS, revision)
    for name in sorted(wanted.keys() | found.keys(), key=lambda name: (name[:5] != "table", name)):
        if name not in found:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name!r} is none of memchat's"
        if wanted[name] != found[name]:
            return f"{name} is not as memchat makes it"
    return None


def _layout(store: sqlite3.Connection) -> Mapping[str, str]:
    """The statement that made each object, by its kind and name."""
    rows = store.execute(_OBJECTS)
    return {f"{kind} {name}": " ".join((sql or "").split()) for kind, name, sql in rows}


@cache
def _made(scripts: Path, revision: str) -> Mapping[str, str]:
    """The layout of a store that these scripts make up to this revision: every store has run the
    same ones, one after the other."""
    with closing(sqlite3.connect(":memory:")) as empty:
        engine = sa.create_engine("sqlite://", creator=lambda: empty, poolclass=StaticPool)
        with engine.begin() as connection:
            _run(connection, scripts, revision)
        return _layout(empty)
