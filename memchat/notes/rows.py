"""Stores and reads notes, rows of the table ``sources``, with their chunks, the parts that are
searched: so many characters of a note's text from an offset on.

A note that is a file has the type "file" and its path as external id. While the deletion of a note
can be undone its rows are gone, and the job that will purge it holds them as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from memchat.db import Tx, jobs, records
from memchat.db.records import from_text
from memchat.db.schema import chunks, sources, utc_text
from memchat.forget import tombstones
from memchat.forget.tombstones import Mark
from memchat.language.text import folded
from memchat.search import passages, receipts
from memchat.search.passages import Passage
from memchat.types import NoteCounts, NoteUse
from memchat.types.conversations import ExternalId, NewNote, Note, NoteHit

if TYPE_CHECKING:
    from memchat.search.ranking import ScoreParts

_IN = "IN (SELECT value FROM json_each(?))"
_NOTE = (
    "SELECT s.id, a.name, s.type, s.external_id, s.title, s.created_at, s.updated_at, s.profile,"
    " {content}, s.missing, (SELECT count(*) FROM chunks c WHERE c.source_id = s.id)"
    " FROM sources s JOIN apps a ON a.id = s.app_id"
)
_HIT = f"""
    SELECT c.id, s.id, c.hash, c.source_type, s.external_id, c.pair_id, c.parent_id, c."offset",
        c.size, c.match_count, c.read_count, s.title, s.created_at,
        substr(s.content, c."offset" + 1, c.size)
    FROM chunks c JOIN sources s ON s.id = c.source_id WHERE c.id {_IN}
"""
_c, _s = chunks.c, sources.c
_part = func.substr(_s.content, _c.offset + 1, _c.size)
embedded_text = func.coalesce(_c.masked, _part)
"""What of a chunk is embedded, beside ``sources``: a provider sees no secret."""
_INSERT = """
    INSERT INTO chunks (hash, source_type, source_id, pair_id, parent_id, "offset", size, position,
        tokens, masked, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks a search may find. None leaves out a condition; both ends of a period count."""

    note_ids: Sequence[int] | None = None
    type: str | None = None
    pair_id: int | None = None
    parent_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def everything(self) -> bool:
        """Whether it leaves nothing out."""
        return self == Filter()


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


def put(
    tx: Tx, app_id: int, new: NewNote, now: datetime, *, sized_for: str | None
) -> tuple[int, bool]:
    """Store a note, or put it in the place of the one with its type and external id; its id, and
    whether other words were there before. Its chunks have to follow; ``sized_for`` is the embedding
    model that reads them whole. One that was deleted is no longer known as deleted."""
    key = json.dumps(new.external_id)
    sql = "SELECT id, title, content FROM sources WHERE app_id = ? AND type = ? AND external_id = ?"
    found = tx.rows(sql, app_id, new.type, key)
    values: dict[str, Any] = {
        "title": new.title,
        "content": new.text,
        "profile": new.profile,
        "sized_for": sized_for,
    }
    if not found:
        if new.external_id is not None:
            tombstones.remove(tx, [app_id], [_mark(new.type, new.external_id)])
        row = {"app_id": app_id, "type": new.type, "external_id": key, **values}
        return tx.insert("sources", created_at=new.created_at or now, **row), False
    note_id, *before = found[0]
    reworded = before != [new.title, new.text]
    if reworded:
        values["updated_at"] = utc_text(now)
    if new.created_at is not None:
        values["created_at"] = utc_text(new.created_at)
    columns = ", ".join(f"{name} = ?" for name in values)
    tx.rows(f"UPDATE sources SET {columns} WHERE id = ?", *values.values(), note_id)
    return int(note_id), reworded


def sized_for(tx: Tx, note_id: int) -> str | None:
    """The embedding model that is known to read each chunk of a note whole."""
    sql = "SELECT sized_for FROM sources WHERE id = ?"
    return next((row[0] for row in tx.rows(sql, note_id)), None)


def size_for(tx: Tx, note_ids: Iterable[int], model: str | None) -> None:
    """Note that this embedding model reads each chunk of these notes whole."""
    sql = f"UPDATE sources SET sized_for = ? WHERE id {_IN}"
    tx.rows(sql, model, records.json_list(note_ids))


def not_sized_for(tx: Tx, model: str, limit: int) -> list[int]:
    """The first notes of the store of which it is not known that this model reads their chunks
    whole."""
    sql = "SELECT id FROM sources WHERE sized_for IS NOT ? ORDER BY id LIMIT ?"
    return [row[0] for row in tx.rows(sql, model, limit)]


def indexed(tx: Tx, note_ids: Iterable[int]) -> dict[int, int]:
    """The characters of those of these notes of which no vector is still to be made."""
    sql = f"""
        SELECT id, length(content) FROM sources s WHERE id {_IN} AND NOT EXISTS (
            SELECT 1 FROM chunks c JOIN passages p ON p.id = c.id << 2 | 3
            WHERE c.source_id = s.id AND p.status != 0)
    """
    return dict(tx.rows(sql, records.json_list(note_ids)))


def mark_missing(tx: Tx, note_ids: Sequence[int], missing: bool) -> None:
    """Note that the files of these notes are gone, or there again."""
    sql = f"UPDATE sources SET missing = ? WHERE id {_IN}"
    tx.rows(sql, int(missing), records.json_list(note_ids))


def get(tx: Tx, app_ids: Sequence[int], note_id: int) -> Note | None:
    """A note of these scope rows."""
    sql = f"{_NOTE.format(content='s.content')} WHERE s.id = ? AND s.app_id {_IN}"
    found = tx.rows(sql, note_id, records.json_list(app_ids))
    return from_text(Note, found[0]) if found else None


def by_external_id(tx: Tx, app_id: int, type: str, external_id: ExternalId) -> Note | None:
    """The note of this type and external id, if there is one."""
    sql = (
        f"{_NOTE.format(content='s.content')}"
        " WHERE s.app_id = ? AND s.type = ? AND s.external_id = ?"
    )
    found = tx.rows(sql, app_id, type, json.dumps(external_id))
    return from_text(Note, found[0]) if found else None


def listed(
    tx: Tx,
    app_ids: Sequence[int],
    wanted: Filter = Filter(),
    *,
    limit: int,
    before: tuple[datetime, int] | None = None,
    search: str = "",
) -> list[Note]:
    """Notes of this type and period without their text, the newest first; ``before`` has date and
    id of the last one that is known, ``search`` are words that are all in its title or text."""
    where, values = _where(app_ids, wanted)
    if search:
        where += " AND memchat_holds_all(?, s.title, s.content)"
        values.append(folded(search))
    if before is not None:
        where += " AND (s.created_at, s.id) < (?, ?)"
        values += [utc_text(before[0]), before[1]]
    order = "ORDER BY s.created_at DESC, s.id DESC LIMIT ?"
    sql = f"{_NOTE.format(content=repr(''))} {where} {order}"
    return [from_text(Note, row) for row in tx.rows(sql, *values, limit)]


def ids(tx: Tx, app_ids: Sequence[int]) -> list[int]:
    """The notes of these scope rows."""
    sql = f"SELECT id FROM sources WHERE app_id {_IN} ORDER BY id"
    return [row[0] for row in tx.rows(sql, records.json_list(app_ids))]


def count(tx: Tx, app_ids: Sequence[int]) -> int:
    """How many notes these scope rows have."""
    sql = f"SELECT count(*) FROM sources WHERE app_id {_IN}"
    return int(tx.rows(sql, records.json_list(app_ids))[0][0])


def count_with_chunks(tx: Tx, chunk_ids: Sequence[int]) -> int:
    """How many notes these chunks are of."""
    sql = f"SELECT count(DISTINCT source_id) FROM chunks WHERE id {_IN}"
    return int(tx.rows(sql, records.json_list(chunk_ids))[0][0])


def total(tx: Tx) -> int:
    """How many notes the store has."""
    return int(tx.rows("SELECT count(*) FROM sources")[0][0])


def any_in_app(tx: Tx, app_id: int) -> bool:
    """Whether a scope row has a note."""
    return bool(tx.rows("SELECT 1 FROM sources WHERE app_id = ? LIMIT 1", app_id))


def existing(tx: Tx, note_ids: Sequence[int]) -> set[int]:
    """Which of these notes still exist."""
    sql = f"SELECT id FROM sources WHERE id {_IN}"
    return {row[0] for row in tx.rows(sql, records.json_list(note_ids))}


def remove(tx: Tx, app_id: int, note: Note) -> None:
    """Delete a note with its chunks, keyword rows, vectors and jobs, and what receipts of chats
    hold of it. Its words stay in the bytes of the file until the store is scrubbed. A tombstone
    stays, of its type and external id."""
    remove_traces(tx, note.id, take_out(tx, app_id, note))


def take_out(tx: Tx, app_id: int, note: Note) -> list[str]:
    """Delete the rows of a note, its chunks, keyword rows and jobs; returns the hashes of the
    chunks. A tombstone stays, and so does what ``remove_traces`` deletes."""
    tombstones.add(tx, app_id, 0, [_mark(note.type, note.external_id)], tx.now)
    gone = _remove_chunks(tx, note.id)
    tx.rows("DELETE FROM sources WHERE id = ?", note.id)
    return gone


def remove_traces(tx: Tx, note_id: int, hashes: Sequence[str]) -> None:
    """Delete what is left of a deleted note: the vectors of its chunks that no other text has, and
    what receipts and prompts of chats hold of it."""
    remove_from_chats(tx, note_id)
    passages.remove_unused(tx, hashes)


def remove_from_chats(tx: Tx, note_id: int) -> None:
    """Delete what receipts and prompts of chats hold of a note."""
    receipts.remove_prompts_with_items(tx, "note", [note_id])
    receipts.remove(tx, "note", [note_id])


def deleted_at(tx: Tx, app_id: int, type: str, external_id: ExternalId) -> datetime | None:
    """When the note of this type and external id was deleted; None if it was not."""
    return next(iter(tombstones.find(tx, [app_id], [_mark(type, external_id)]).values()), None)


def know_again(tx: Tx, app_id: int, note: Note) -> None:
    """Know a note no longer as deleted."""
    tombstones.remove(tx, [app_id], [_mark(note.type, note.external_id)])


def of(note: Note, app_id: int) -> NoteOf:
    """A note as its chunks need it."""
    return NoteOf(note.id, app_id, note.type, note.title, note.text)


def app_id_of(tx: Tx, note_id: int) -> int | None:
    """The scope row of a note; None if it is gone."""
    found = tx.rows("SELECT app_id FROM sources WHERE id = ?", note_id)
    return int(found[0][0]) if found else None


def chunk_ids(tx: Tx, app_ids: Sequence[int], wanted: Filter) -> list[int]:
    """The chunks of these scope rows that a filter lets through."""
    where, values = _where(app_ids, wanted)
    sql = f"SELECT c.id FROM sources s JOIN chunks c ON c.source_id = s.id {where}"
    return [row[0] for row in tx.rows(sql, *values)]


def hits(tx: Tx, scores: Mapping[int, ScoreParts], *, with_text: bool) -> list[NoteHit]:
    """These chunks as search results, in the order of ``scores``, which has the parts of each."""
    found = {row[0]: row for row in tx.rows(_HIT, records.json_list(scores))}
    return [_hit(found[i], parts, with_text) for i, parts in scores.items() if i in found]


def _where(app_ids: Sequence[int], wanted: Filter) -> tuple[str, list[Any]]:
    """The conditions of a filter on the notes of these scope rows, and the values in them."""
    conditions = {
        f"s.app_id {_IN}": records.json_list(app_ids),
        "s.type = ?": wanted.type,
        "c.pair_id = ?": wanted.pair_id,
        "c.parent_id = ?": wanted.parent_id,
        "s.created_at >= ?": wanted.since and utc_text(wanted.since),
        "s.created_at <= ?": wanted.until and utc_text(wanted.until),
        f"s.id {_IN}": None if wanted.note_ids is None else records.json_list(wanted.note_ids),
    }
    given = {condition: value for condition, value in conditions.items() if value is not None}
    return f"WHERE {' AND '.join(given)}", [*given.values()]


def _mark(type: str, external_id: ExternalId) -> Mark:
    return "note", f"{type}\n{json.dumps(external_id)}"


def _hit(row: Any, parts: ScoreParts, with_text: bool) -> NoteHit:
    scored = (round(parts.score, 6), parts.cosine, parts.bm25, parts.confident)
    return from_text(NoteHit, (*row[:11], *scored, *row[11:13], row[13] if with_text else None))


_TYPES = """
    SELECT s.type, count(DISTINCT s.id), count(c.id), coalesce(sum(c.match_count), 0),
        coalesce(sum(c.read_count), 0)
    FROM sources s LEFT JOIN chunks c ON c.source_id = s.id WHERE s.app_id = ?
    GROUP BY s.type ORDER BY s.type
"""
_UNREAD = """
    SELECT s.id, s.type, s.title, sum(c.match_count) AS matches, sum(c.read_count)
    FROM sources s JOIN chunks c ON c.source_id = s.id WHERE s.app_id = ?
    GROUP BY s.id HAVING sum(c.read_count) = 0 AND matches > 0
    ORDER BY matches DESC, s.id LIMIT ?
"""
_QUEUE = """
    SELECT count(DISTINCT CASE WHEN p.status < 0 THEN c.source_id END),
        count(DISTINCT CASE WHEN p.status > 0 THEN c.source_id END)
    FROM passages p JOIN chunks c ON c.id = p.id >> 2
    WHERE p.status != 0 AND p.app_id = ? AND p.id & 3 = 3
"""


def by_type(tx: Tx, app_id: int) -> dict[str, NoteCounts]:
    """The size and the use of a scope row's notes, by their type."""
    return {row[0]: NoteCounts(*row[1:]) for row in tx.rows(_TYPES, app_id)}


def unread(tx: Tx, app_id: int, limit: int) -> list[NoteUse]:
    """The notes that were found and never read, those with the most matches first."""
    return [NoteUse(*row) for row in tx.rows(_UNREAD, app_id, limit)]


def queued(tx: Tx, app_id: int) -> tuple[int, int]:
    """How many notes of a scope row wait for their vectors, and how many failed for good."""
    waiting, failed = tx.rows(_QUEUE, app_id)[0]
    return int(waiting), int(failed)


TYPE = "file"


def paths_below(tx: Tx, app_id: int, folder: PurePath) -> dict[str, int]:
    """The notes of the files below a folder, by their paths, whether the files are there or not."""
    sql = "SELECT external_id, id FROM sources WHERE app_id = ? AND type = ?"
    paths = ((json.loads(row[0]), row[1]) for row in tx.rows(sql, app_id, TYPE))
    return {path: note_id for path, note_id in paths if folder in PurePath(str(path)).parents}


def set_date(tx: Tx, note_id: int, at: datetime) -> None:
    """Change when a note was written: its file was changed."""
    tx.rows("UPDATE sources SET created_at = ? WHERE id = ?", utc_text(at), note_id)


def move(tx: Tx, note_id: int, path: str) -> None:
    """Have a note be that of the file at another path, which has none."""
    sql = "UPDATE sources SET external_id = ? WHERE id = ?"
    tx.rows(sql, json.dumps(path), note_id)


KIND = "delete"
"""The kind of job that purges a deleted note."""


def hold(tx: Tx, app_id: int, note: Note, *, purge_at: datetime) -> None:
    """Delete a note, and queue its purge; until then ``restore`` undoes the deletion."""
    held = {
        "note": _rows(tx, "SELECT * FROM sources WHERE id = ?", note.id)[0],
        "chunks": _rows(tx, "SELECT * FROM chunks WHERE source_id = ? ORDER BY position", note.id),
    }
    take_out(tx, app_id, note)
    jobs.enqueue(tx, KIND, app_id, note.id, tx.now, run_at=purge_at, how=json.dumps(held))


def restore(tx: Tx, app_id: int, note_id: int) -> Note | None:
    """Undo the deletion of a note of this scope row, with its chunks and their counts.

    None where no deletion of it is held, or a note of its type and external id was kept since.
    """
    if note_id not in jobs.unfinished_targets(tx, KIND, app_id):
        return None
    held = json.loads(jobs.instructions(tx, KIND, note_id) or "")
    row = held["note"]
    if by_external_id(tx, app_id, row["type"], json.loads(row["external_id"])) is not None:
        return None
    tx.insert("sources", **row)
    back = NoteOf(note_id, app_id, row["type"], row["title"], row["content"])
    for part in held["chunks"]:
        tx.insert("chunks", **part)
        said = row["content"][part["offset"] : part["offset"] + part["size"]]
        _put_passage(tx, back, part["id"], said, part["hash"])
    jobs.cancel(tx, KIND, [note_id])
    note = get(tx, [app_id], note_id)
    assert note is not None
    know_again(tx, app_id, note)
    return note


def purge(tx: Tx, note_id: int, held: str) -> None:
    """Delete what a deleted note left: its vectors, and what receipts of chats hold of it. ``held``
    is what its job holds."""
    hashes = [part["hash"] for part in json.loads(held)["chunks"]]
    remove_traces(tx, note_id, hashes)


def purge_all(tx: Tx, app_id: int) -> None:
    """Purge the deleted notes of a scope row now. No deletion of them can be undone any more."""
    for note_id in jobs.unfinished_targets(tx, KIND, app_id):
        purge(tx, note_id, jobs.instructions(tx, KIND, note_id) or "")
        jobs.cancel(tx, KIND, [note_id])


def _rows(tx: Tx, sql: str, note_id: int) -> list[Mapping[str, Any]]:
    return [dict(row) for row in tx.connection.exec_driver_sql(sql, (note_id,)).mappings()]


def replace_chunks(tx: Tx, note: NoteOf, parts: Sequence[NewChunk]) -> list[int]:
    """Store these as the chunks of a note; those it had before go. Returns the ids.

    A chunk with the text that one had before keeps its counts, and its vector. A note keeps the
    pair and the parent that it had where it is given neither.
    """
    counts = _counts(tx, note.id)
    pair_id, parent_id = note.pair_id, note.parent_id
    if pair_id is None and parent_id is None:
        sql = "SELECT pair_id, parent_id FROM chunks WHERE source_id = ? LIMIT 1"
        pair_id, parent_id = (tx.rows(sql, note.id) or [(None, None)])[0]
    before = _remove_chunks(tx, note.id)
    ids = []
    for position, part in enumerate(parts):
        said = note.content[part.offset : part.offset + part.size]
        hashed = passages.text_hash(said if part.masked is None else part.masked)
        values = (hashed, note.type, note.id, pair_id, parent_id, part.offset, part.size)
        more = (position, part.tokens, part.masked, utc_text(tx.now))
        (row,) = tx.rows(_INSERT, *values, *more)
        ids.append(int(row[0]))
        _put_passage(tx, note, ids[-1], said, hashed)
        if hashed in counts:
            sql = "UPDATE chunks SET match_count = ?, read_count = ? WHERE id = ?"
            tx.rows(sql, *counts[hashed], ids[-1])
    passages.remove_unused(tx, before)
    return ids


def _remove_chunks(tx: Tx, note_id: int) -> list[str]:
    """Delete the chunks of a note with their passages; returns their hashes. Their vectors go with
    ``passages.remove_unused``."""
    rows = tx.rows("DELETE FROM chunks WHERE source_id = ? RETURNING id", note_id)
    return passages.take(tx, "chunk", [row[0] for row in rows])


def _put_passage(tx: Tx, note: NoteOf, chunk_id: int, said: str, hashed: str) -> None:
    """Have search find a part of a note, by its words and those of the note's title."""
    words = f"{note.title or ''}\n{said}"
    passages.put(tx, Passage("chunk", chunk_id, note.app_id, words, hash=hashed))


def chunk_texts(tx: Tx, note_id: int) -> list[str]:
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


def chunk_parts(tx: Tx, note_id: int) -> list[NewChunk]:
    """The chunks of a note as they were given to ``replace_chunks``."""
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
