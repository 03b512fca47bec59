"""Notes that are files: their type is "file", and their external id is the path."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import PurePath

from sqlalchemy import Connection

from memchat.store import raw_sql
from memchat.store.schema import utc_text

TYPE = "file"


def paths_below(tx: Connection, app_id: int, folder: PurePath) -> dict[str, int]:
    """The notes of the files below a folder, by their paths, whether the files are there or not."""
    sql = "SELECT external_id, id FROM sources WHERE app_id = ? AND type = ?"
    paths = ((json.loads(row[0]), row[1]) for row in raw_sql.rows(tx, sql, app_id, TYPE))
    return {path: note_id for path, note_id in paths if folder in PurePath(str(path)).parents}


def set_date(tx: Connection, note_id: int, at: datetime) -> None:
    """Change when a note was written: its file was changed."""
    raw_sql.rows(tx, "UPDATE sources SET created_at = ? WHERE id = ?", utc_text(at), note_id)


def move(tx: Connection, note_id: int, path: str) -> None:
    """Have a note be that of the file at another path, which has none."""
    sql = "UPDATE sources SET external_id = ? WHERE id = ?"
    raw_sql.rows(tx, sql, json.dumps(path), note_id)
