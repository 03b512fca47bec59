"""What must hold of the notes after every kill, judged from the diaries and the rows alone."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from memchat.db import Tx
from memchat.search.vector_index import VectorIndex

if TYPE_CHECKING:
    from benchmarks.crash_checks import Call

WRITES = ("add_note", "edit_note")


def every_fault(
    tx: Tx, calls: Mapping[Any, Call], cut: int, indexes: list[VectorIndex]
) -> Iterator[str]:
    """All that is wrong with notes in this snapshot; see ``crash_checks.every_fault``."""
    yield from _kept(tx, calls, cut)
    yield from _chunks(tx)
    yield from _index(tx, indexes)


def _rows(tx: Tx, sql: str) -> list[Any]:
    return list(tx.connection.exec_driver_sql(sql))


def _kept(tx: Tx, calls: Mapping[Any, Call], cut: int) -> Iterator[str]:
    """What was acknowledged is there, and what was deleted stays away."""
    texts = {row[0]: row[1] for row in _rows(tx, "SELECT id, content FROM sources")}
    by_note: dict[int, list[Call]] = defaultdict(list)
    # What never came back has no id in the diary, and may have been stored.
    open_ended = {c.what["text"] for c in calls.values() if c.name in WRITES and c.returned > cut}
    for call in calls.values():
        if call.name in (*WRITES, "delete_note") and "id" in call.what and not call.refused:
            by_note[call.what["id"]].append(call)
    for note, done in by_note.items():
        deleted = [call for call in done if call.name == "delete_note"]
        written = [call for call in done if call.name in WRITES]
        last = max((call.began for call in written if call.returned <= cut), default=None)
        if any(call.returned <= cut for call in deleted) and note in texts:
            yield f"note {note} was deleted, acknowledged, and is back"
        elif last is not None and note not in texts and not deleted:
            yield f"LOST an acknowledged note: {note}"
        elif last is not None and note in texts:
            allowed = {call.what["text"] for call in written if call.returned >= last}
            if texts[note] not in allowed | open_ended:
                yield f"LOST an acknowledged text of note {note}: {texts[note][:60]!r}"


def _chunks(tx: Tx) -> Iterator[str]:
    """Chunks are parts of their note as it is now; each has its words and its vector, or a job."""
    worded = {
        row[0] for row in _rows(tx, "SELECT rowid >> 2 FROM passages_fts WHERE rowid & 3 = 3")
    }
    embedded = {row[0] for row in _rows(tx, "SELECT hash FROM embeddings")}
    queued = "SELECT owner_id FROM passages WHERE kind = 'chunk' AND status = -1"
    waiting = {row[0] for row in _rows(tx, queued)}
    sql = 'SELECT c.id, s.id, c.hash, substr(s.content, c."offset" + 1, c.size)'
    rows = _rows(tx, f"{sql} FROM chunks c JOIN sources s ON s.id = c.source_id")
    for chunk, note, hashed, words in rows:
        if hashlib.sha256(words.encode()).hexdigest() != hashed:
            yield f"chunk {chunk} is no part of note {note}"
        if hashed not in embedded and chunk not in waiting:
            yield f"chunk {chunk} of note {note} has no vector and nothing will make one"
    if worded != {row[0] for row in rows}:
        yield f"keyword rows of chunks differ: {sorted(worded ^ {row[0] for row in rows})[:5]}"
    without = "SELECT id FROM sources WHERE id NOT IN (SELECT source_id FROM chunks)"
    for (note,) in _rows(tx, without):
        yield f"note {note} has no chunk"


def _index(tx: Tx, indexes: list[VectorIndex]) -> Iterator[str]:
    sql = (
        "SELECT s.app_id, c.id FROM chunks c JOIN sources s ON s.id = c.source_id"
        " JOIN embeddings e ON e.hash = c.hash"
    )
    wanted: dict[int, set[int]] = {app: set() for (app,) in _rows(tx, "SELECT id FROM apps")}
    for app, chunk in _rows(tx, sql):
        wanted[app].add(chunk)
    for index in indexes:
        for app, ids in wanted.items():
            if ids != (found := index.ids(tx, app, "chunk")):
                yield f"the index of chunks of scope {app} differs: {sorted(ids ^ found)[:5]}"
