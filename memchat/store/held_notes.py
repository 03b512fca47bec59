"""Deleted notes that are not purged yet: the deletion can be undone.

The rows of such a note are gone, so nothing lists, finds or reads it. The job that purges the note
holds them, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from memchat.store import chunks, index_changes, jobs, keywords, notes, raw_sql
from memchat.types.note import Note

KIND = "delete"
"""The kind of job that purges a deleted note."""


def hold(tx: Connection, app_id: int, note: Note, now: datetime, *, purge_at: datetime) -> None:
    """Delete a note, and queue its purge; until then ``restore`` undoes the deletion."""
    held = {
        "note": _rows(tx, "SELECT * FROM sources WHERE id = ?", note.id)[0],
        "chunks": _rows(tx, "SELECT * FROM chunks WHERE source_id = ? ORDER BY position", note.id),
    }
    notes.take_out(tx, app_id, note, now)
    jobs.enqueue(tx, KIND, app_id, note.id, now, run_at=purge_at, how=json.dumps(held))


def restore(tx: Connection, app_id: int, note_id: int) -> Note | None:
    """Undo the deletion of a note of this scope row, with its chunks and their counts.

    None where no deletion of it is held, or a note of its type and external id was kept since.
    """
    if note_id not in jobs.unfinished_targets(tx, KIND, app_id):
        return None
    held = json.loads(jobs.instructions(tx, KIND, note_id) or "")
    row = held["note"]
    if notes.by_external_id(tx, app_id, row["type"], json.loads(row["external_id"])) is not None:
        return None
    raw_sql.insert(tx, "sources", **row)
    for part in held["chunks"]:
        raw_sql.insert(tx, "chunks", **{f'"{name}"': value for name, value in part.items()})
        said = row["content"][part["offset"] : part["offset"] + part["size"]]
        words = chunks.keyword_text(row["title"], said)
        keywords.write(tx, "chunks", part["id"], app_id, words)
    index_changes.record(tx, app_id, "chunks", [part["id"] for part in held["chunks"]])
    jobs.cancel(tx, KIND, [note_id])
    note = notes.get(tx, [app_id], note_id)
    assert note is not None
    notes.know_again(tx, app_id, note)
    return note


def purge(tx: Connection, note_id: int, held: str) -> None:
    """Delete what a deleted note left: its vectors, and what receipts of chats hold of it. ``held``
    is what its job holds."""
    hashes = [part["hash"] for part in json.loads(held)["chunks"]]
    notes.remove_traces(tx, note_id, hashes)


def purge_all(tx: Connection, app_id: int) -> None:
    """Purge the deleted notes of a scope row now. No deletion of them can be undone any more."""
    for note_id in jobs.unfinished_targets(tx, KIND, app_id):
        purge(tx, note_id, jobs.instructions(tx, KIND, note_id) or "")
        jobs.cancel(tx, KIND, [note_id])


def _rows(tx: Connection, sql: str, note_id: int) -> list[Mapping[str, Any]]:
    return [dict(row) for row in tx.exec_driver_sql(sql, (note_id,)).mappings()]
