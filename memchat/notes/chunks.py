"""Chunks: the parts of notes that are searched. Each is so many characters of its note's text from
an offset on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from memchat.db import Tx, records
from memchat.db.schema import chunks, sources, utc_text
from memchat.search import passages
from memchat.search.passages import Passage

_c, _s = chunks.c, sources.c
_IN = "IN (SELECT value FROM json_each(?))"
_part = func.substr(_s.content, _c.offset + 1, _c.size)
embedded_text = func.coalesce(_c.masked, _part)
"""What of a chunk is embedded, beside ``sources``: a provider sees no secret."""
_INSERT = """
    INSERT INTO chunks (hash, source_type, source_id, pair_id, parent_id, "offset", size, position,
        tokens, masked, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A part of a note to be stored. ``masked`` is its text without what looks like a secret, where
    it holds any."""

    offset: int
    size: int
    tokens: int
    masked: str | None = None


@dataclass(frozen=True, slots=True)
class NoteOf:
    """The note that chunks belong to."""

    id: int
    app_id: int
    type: str
    title: str | None
    content: str
    pair_id: int | None = None
    parent_id: int | None = None


def replace(tx: Tx, note: NoteOf, parts: Sequence[NewChunk]) -> list[int]:
    """Store these as the chunks of a note; those it had before go. Returns the ids.

    A chunk with the text that one had before keeps its counts, and its vector. A note keeps the
    pair and the parent that it had where it is given neither.
    """
    counts = _counts(tx, note.id)
    pair_id, parent_id = note.pair_id, note.parent_id
    if pair_id is None and parent_id is None:
        sql = "SELECT pair_id, parent_id FROM chunks WHERE source_id = ? LIMIT 1"
        pair_id, parent_id = (tx.rows(sql, note.id) or [(None, None)])[0]
    before = remove(tx, note.id)
    ids = []
    for position, part in enumerate(parts):
        said = note.content[part.offset : part.offset + part.size]
        hashed = passages.text_hash(said if part.masked is None else part.masked)
        values = (hashed, note.type, note.id, pair_id, parent_id, part.offset, part.size)
        more = (position, part.tokens, part.masked, utc_text(tx.now))
        (row,) = tx.rows(_INSERT, *values, *more)
        ids.append(int(row[0]))
        put_passage(tx, note, ids[-1], said, hashed)
        if hashed in counts:
            sql = "UPDATE chunks SET match_count = ?, read_count = ? WHERE id = ?"
            tx.rows(sql, *counts[hashed], ids[-1])
    passages.remove_unused(tx, before)
    return ids


def remove(tx: Tx, note_id: int) -> list[str]:
    """Delete the chunks of a note with their passages; returns their hashes. Their vectors go with
    ``passages.remove_unused``."""
    rows = tx.rows("DELETE FROM chunks WHERE source_id = ? RETURNING id", note_id)
    return passages.take(tx, "chunk", [row[0] for row in rows])


def put_passage(tx: Tx, note: NoteOf, chunk_id: int, said: str, hashed: str) -> None:
    """Have search find a part of a note, by its words and those of the note's title."""
    words = f"{note.title or ''}\n{said}"
    passages.put(tx, Passage("chunk", chunk_id, note.app_id, words, hash=hashed))


def texts(tx: Tx, note_id: int) -> list[str]:
    """The chunks of a note as they are embedded, in their order."""
    query = select(embedded_text).join(sources, _s.id == _c.source_id)
    return list(tx.execute(query.where(_c.source_id == note_id).order_by(_c.position)).scalars())


def passage_ids(tx: Tx, note_id: int) -> list[int]:
    """The passages of a note."""
    sql = "SELECT id << 2 | 3 FROM chunks WHERE source_id = ?"
    return [row[0] for row in tx.rows(sql, note_id)]


def masked_texts(tx: Tx, ids: Collection[int]) -> dict[int, str]:
    """The texts of these chunks without what looks like a secret, as they are embedded, by id."""
    query = select(_c.id, embedded_text).join(sources, _s.id == _c.source_id)
    return {row[0]: row[1] for row in tx.execute(query.where(_c.id.in_(ids)))}


def places(tx: Tx, ids: Iterable[int]) -> dict[int, int]:
    """The place of each of these chunks in its note, from 0, by id."""
    sql = f"SELECT id, position FROM chunks WHERE id {_IN}"
    return dict(tx.rows(sql, records.json_list(ids)))


def parts(tx: Tx, note_id: int) -> list[NewChunk]:
    """The chunks of a note as they were given to ``replace``."""
    sql = 'SELECT "offset", size, tokens, masked FROM chunks WHERE source_id = ? ORDER BY position'
    return [NewChunk(*row) for row in tx.rows(sql, note_id)]


def set_counts(tx: Tx, note_id: int, counts: Mapping[str, Sequence[int]]) -> None:
    """Store how often chunks of a note were found and read, by hash; unknown hashes are left
    out."""
    sql = "UPDATE chunks SET match_count = ?, read_count = ? WHERE source_id = ? AND hash = ?"
    for hashed, (found, read) in counts.items():
        tx.rows(sql, found, read, note_id, hashed)


def count_matches(tx: Tx, ids: Iterable[int]) -> None:
    """Count that these were among the results of a search."""
    sql = f"UPDATE chunks SET match_count = match_count + 1 WHERE id {_IN}"
    tx.rows(sql, records.json_list(ids))


def count_reads(tx: Tx, app_ids: Sequence[int], ids: Iterable[int]) -> int:
    """Count that these were read; how many there are in these scope rows."""
    sql = (
        f"UPDATE chunks SET read_count = read_count + 1 WHERE id {_IN} AND source_id IN"
        f" (SELECT id FROM sources WHERE app_id {_IN}) RETURNING id"
    )
    return len(tx.rows(sql, records.json_list(ids), records.json_list(app_ids)))


def _counts(tx: Tx, note_id: int) -> Mapping[str, tuple[int, int]]:
    sql = "SELECT hash, match_count, read_count FROM chunks WHERE source_id = ?"
    return {row[0]: (row[1], row[2]) for row in tx.rows(sql, note_id)}
