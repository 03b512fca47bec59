"""A plugin of pytest that opens every store of a run in PostgreSQL (``-p`` and its name).

Each folder has a schema of its own in a server that the run starts; a test's schemas are emptied
after it and used again. What looks into SQLite's own files is skipped.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from memchat import assembly, disk
from memchat.db import database
from memchat.db.postgres import Postgres
from tests.support import empty_store, postgres_server

_free: list[str] = []
_used: dict[Path, str] = {}
_made: list[str] = []


def url(home: Path) -> str:
    """The URL of the schema that a folder has."""
    if home.absolute() not in _used:
        if not _free:
            _made.append(f"t{os.getpid()}_{len(_made)}")
            _free.append(_made[-1])
        _used[home.absolute()] = _free.pop()
    return postgres_server.url(_used[home.absolute()])


def pytest_configure() -> None:
    postgres_server.url()  # started once, before the processes that share it


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '2s'")
        for home in [*_used]:
            if "store" not in home.parts and nextitem is not None:
                continue  # it may be that of a whole module
            name = _used.pop(home)
            with contextlib.suppress(psycopg.errors.LockNotAvailable):  # it is still open
                connection.execute(_EMPTY.format(name=name))  # faster than TRUNCATE
                _free.append(name)


_EMPTY = """
DO $$ DECLARE it text; BEGIN
    SET LOCAL session_replication_role = replica;
    -- An index that is made later would read deleted rows, whose vectors may be longer.
    IF to_regclass('{name}.embeddings') IS NOT NULL THEN TRUNCATE {name}.embeddings; END IF;
    FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = '{name}' LOOP
        IF it != 'alembic_version' THEN EXECUTE format('DELETE FROM {name}.%I', it); END IF;
    END LOOP;
    FOR it IN SELECT indexname FROM pg_indexes
        WHERE schemaname = '{name}' AND indexname LIKE 'ix_embeddings_of_%' LOOP
        EXECUTE format('DROP INDEX {name}.%I', it);
    END LOOP;
    FOR it IN SELECT sequencename FROM pg_sequences
        WHERE schemaname = '{name}' AND last_value IS NOT NULL LOOP
        EXECUTE format('ALTER SEQUENCE {name}.%I RESTART', it);
    END LOOP;
END $$
"""


def _dump(connection: Any) -> Iterator[str]:
    """Every row as text, as sqlite3's ``iterdump`` gives it."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
    for (table,) in connection.execute(tables).fetchall():
        for (row,) in connection.execute(f'SELECT it::text FROM "{table}" AS it').fetchall():
            yield f"{table} {row}"


psycopg.Connection.iterdump = _dump  # type: ignore[attr-defined]


@event.listens_for(sa.Engine, "before_cursor_execute", retval=True)
def _marks(_connection: Any, _cursor: Any, sql: str, values: Any, *_rest: Any) -> tuple[str, Any]:
    """The tests' own statements have SQLite's marks."""
    return (sql.replace("?", "%s") if isinstance(values, tuple) else sql), values


class OnPostgres(Postgres):
    def __init__(self, home: Path, *about: Any, **named: Any) -> None:
        super().__init__(url(home), home, *about, **named)


_OF_SQLITE = re.compile(
    r"passages_fts|sqlite3|sqlite_|PRAGMA|pragma_|FILE\b|memchat\.db\b|_journal|script|path\.read_bytes"
    r"|Victim|Killed|command\(|mem\.index|private\.shards|_shards|SAVE_FROM|QUICK_NUMBERS|COARSE_FROM"
    r"|faiss|FROM apps|memchat_begin|set_trace_callback|truncate_wal|\.bak\b|backups?\.|files_with"
    r"|subprocess|substr\("
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        why = next((why for name, why in _AFTER_FILES.items() if name in item.name), None)
        if why or ("place_filled" in inspect.getsource(item.module) and "ana" in item.fixturenames):
            item.add_marker(pytest.mark.skip(f"looks at {why or 'the file of a filled store'}"))
        if function is not None and _OF_SQLITE.search(inspect.getsource(function)):
            item.add_marker(pytest.mark.skip("looks into SQLite's own files, or starts a process"))


def place(home: Path) -> Path:
    disk.make_folder(home)
    return home


_AFTER_FILES = {
    "saved_vectors": "saved indexes",
    "drops_their_file": "saved indexes",
    "of_its_former_scope_too": "saved indexes",
    "no_cue_of_anything_else": "the rows of keywords",
    "for_many_facts_as_for_few": "the statements of SQLite",
    "a_deletion_that_fails": "a trigger of SQLite",
}
"""Tests that ask for what a store in PostgreSQL has otherwise, by a part of their names."""

empty_store.place = place
database.Database = OnPostgres  # type: ignore[misc]
assembly.Database = OnPostgres  # type: ignore[misc,attr-defined]
