"""Comparing a backup with the store, row by row: what only one of them holds.

A row is the same in both if id and time are: ids are not used again, except after a restore.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from memchat.store.memories import FORGOTTEN

_HOLDS_FORGOTTEN = f"""
SELECT EXISTS (
    SELECT 1 FROM copy.memories b WHERE NOT EXISTS (
        SELECT 1 FROM main.memories m WHERE m.id = b.id AND m.created_at = b.created_at
        AND m.inactive_reason IS NOT '{FORGOTTEN}'))
OR EXISTS (
    SELECT 1 FROM copy.messages b WHERE NOT EXISTS (
        SELECT 1 FROM main.messages m WHERE m.id = b.id AND m.content = b.content))
OR EXISTS (
    SELECT 1 FROM copy.sources b WHERE NOT EXISTS (
        SELECT 1 FROM main.sources m WHERE m.id = b.id AND m.created_at = b.created_at))
OR EXISTS (
    SELECT 1 FROM copy.sessions b LEFT JOIN main.sessions m ON m.id = b.id
    WHERE (b.title > '' AND ifnull(m.title, '') = '')
    OR (b.summary > '' AND ifnull(m.summary, '') = ''))
"""
_ONLY_IN_STORE = """
SELECT count(*) FROM main.{table} m WHERE {condition} AND NOT EXISTS (
    SELECT 1 FROM copy.{table} b WHERE b.id = m.id AND b.{time} = m.{time})
"""
_TABLES = {
    "memories": ("created_at", f"m.inactive_reason IS NOT '{FORGOTTEN}'"),
    "sessions": ("started_at", "1"),
    "messages": ("created_at", "1"),
    "inbox": ("created_at", "m.status = 'pending'"),
    "sources": ("created_at", "1"),
}
"""The tables that are counted, with the column of the row's time and which rows count."""


@contextmanager
def opened(path: Path, live: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads the store as ``main`` and the backup as ``copy``.

    Raises sqlite3.Error where one of them cannot be read.
    """
    # A connection that may only read would leave the files of the WAL behind.
    uri = f"{_uri(live)}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as both:
        both.execute("PRAGMA query_only=ON")
        both.execute("ATTACH ? AS copy", (f"{_uri(path)}?mode=ro&immutable=1",))
        yield both


def holds_forgotten(both: sqlite3.Connection) -> bool:
    """Whether the backup has a memory, message, note, title or summary that the store lacks or has
    blanked. A memory or note that was only edited since does not count."""
    return bool(both.execute(_HOLDS_FORGOTTEN).fetchone()[0])


def only_in_store(both: sqlite3.Connection) -> dict[str, int]:
    """How many memories, sessions, messages, open inbox items and notes only the store has, by
    table."""
    return {
        table: int(
            both.execute(
                _ONLY_IN_STORE.format(table=table, time=time, condition=condition)
            ).fetchone()[0]
        )
        for table, (time, condition) in _TABLES.items()
    }


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"
