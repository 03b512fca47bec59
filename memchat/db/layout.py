"""The layout of a store: its tables, columns, references, checks, indexes, triggers and views, as
they should be and as they are."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache

from sqlalchemy import create_engine, exc
from sqlalchemy.pool import StaticPool

from memchat.db import schema

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
    from memchat.db import Tx, migrate

    engine = create_engine("sqlite://", creator=lambda: database, poolclass=StaticPool)
    with engine.begin() as connection:
        migrate.upgrade(Tx(connection))
    return read(database)
