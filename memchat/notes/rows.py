"""Stores and reads notes, rows of the table ``sources``, with their chunks, the parts that are
searched: so many characters of a note's text from an offset on.

A note that is a file has the type "file" and its path as external id. While the deletion of a note
can be undone its rows are gone, and the job that will purge it holds them as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memchat.db import Tx, details, jobs
from memchat.db import schema as t
from memchat.db.records import UtcTime, among, from_row
from memchat.errors import InputError
from memchat.forget import tombstones
from memchat.forget.tombstones import Mark
from memchat.language.text import folded
from memchat.search import passages, receipts
from memchat.search.keywords import passage_id
from memchat.search.passages import Passage
from memchat.types import NoteCounts, NoteUse
from memchat.types.conversations import EARLIEST, LATEST, ExternalId, NewNote, Note, NoteHit
from memchat.workflows import rows as workflows

if TYPE_CHECKING:
    from memchat.search.ranking import ScoreParts

_c, _s, _p = t.chunks.c, t.sources.c, t.passages.c
_part = sa.func.substr(_s.content, _c.offset + 1, _c.size, type_=sa.Text)
embedded_text = sa.func.coalesce(_c.masked, _part)
"""What of a chunk is embedded, beside ``sources``: a provider sees no secret."""
_chunks = sa.select(sa.func.count()).where(_c.source_id == _s.id).correlate(t.sources)
_LISTED = sa.select(
    *(column for column in _s if column is not _s.content),
    t.apps.c.name.label("app"),
    _chunks.scalar_subquery().label("chunks"),
    details.of_row(t.sources),
    details.tags_of_row(t.sources),
).join_from(t.sources, t.apps)
_NOTE = _LISTED.add_columns(_s.content.label("text"))
_GET = _NOTE.where(_s.id == sa.bindparam("note"), among(_s.app_id, "app_ids"))
_NAMED = sa.and_(
    _s.app_id == sa.bindparam("app"),
    _s.type == sa.bindparam("of_type"),
    _s.external_id == sa.bindparam("external"),
)
_BY_EXTERNAL_ID = _NOTE.where(_NAMED)
_KNOWN = sa.select(_s.id, _s.title, _s.content).where(_NAMED)
_of_these = sa.select(_c.source_id).where(among(_c.id, "ids"))
_WITH_CHUNKS = _NOTE.where(_s.id.in_(_of_these))
_HITS = sa.select(
    *(_c.id.label("chunk_id"), _s.id.label("note_id"), _s.external_id.label("source_id")),
    *(_c.hash, _c.source_type, _c.pair_id, _c.parent_id, _c.offset, _c.size, _c.match_count),
    *(_c.read_count, _s.title, _s.created_at, _part.label("text")),
)
_HITS = _HITS.join_from(t.chunks, t.sources).where(among(_c.id, "ids"))
_title, _tags = (
    sa.func.coalesce(words, "") for words in (_s.title, details.tags_of_row(t.sources))
)
_SAID = (
    sa.select(_c.id, _s.app_id, _title + "\n" + _tags + "\n" + _part, _c.hash)
    .join_from(t.chunks, t.sources)
    .where(_s.id == sa.bindparam("note"))
    .order_by(_c.position)
)
"""What search finds the parts of a note by: their words, those of the note's title and its tags."""
_MATCHED = sa.update(t.chunks).where(among(_c.id, "ids")).values(match_count=_c.match_count + 1)
_READ = sa.update(t.chunks).where(among(_c.id, "ids")).values(read_count=_c.read_count + 1)
_here = sa.select(_s.id).where(among(_s.app_id, "app_ids"))
_READ = _READ.where(_c.source_id.in_(_here)).returning(_c.id)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks a search may find. None leaves out a condition; both ends of a period count."""

    note_ids: Sequence[int] | None = None
    type: str | None = None
    pair_id: int | None = None
    parent_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    topic: int | None = None


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A part of a note to be stored. ``masked`` is its text without what looks like a secret, where
    it holds any."""

    offset: int
    size: int
    tokens: int
    masked: str | None = None


def put(
    tx: Tx, app_id: int, new: NewNote, now: datetime, *, sized_for: str | None
) -> tuple[int, bool]:
    """Store a note, or put it in the place of the one with its type and external id; its id, and
    whether other words were there before. Its chunks have to follow; ``sized_for`` is the embedding
    model that reads them whole. One that was deleted is no longer known as deleted."""
    key = json.dumps(new.external_id)
    found = tx.rows(_KNOWN, app=app_id, of_type=new.type, external=key)
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
        note_id = tx.insert(t.sources, created_at=new.created_at or now, **row)
        details.put(tx, t.sources, note_id, details.checked(new.metadata or {}))
        details.put_tags(tx, t.sources, note_id, new.tags or ())
        return note_id, False
    note_id, *before = found[0]
    if new.metadata is not None:
        details.put(tx, t.sources, note_id, details.checked(new.metadata))
    if new.tags is not None:
        details.put_tags(tx, t.sources, note_id, new.tags)
        _put_passages(tx, note_id)
        tx.forget_bytes(app_id)
    reworded = before != [new.title, new.text]
    if reworded:
        values["updated_at"] = now
    if new.created_at is not None:
        values["created_at"] = new.created_at
    change(tx, [note_id], **values)
    return int(note_id), reworded


def change(tx: Tx, note_ids: Iterable[int], **columns: Any) -> None:
    """Set columns of notes: ``sized_for`` is the embedding model that reads each of their chunks
    whole, ``missing`` whether their files are gone."""
    tx.execute(sa.update(t.sources).where(among(_s.id, note_ids)).values(**columns))


def sized_for(tx: Tx, note_id: int) -> str | None:
    """The embedding model that is known to read each chunk of a note whole."""
    return tx.execute(sa.select(_s.sized_for).where(_s.id == note_id)).scalar()


def not_sized_for(tx: Tx, model: str, limit: int) -> list[int]:
    """The first notes of the store of which it is not known that this model reads their chunks
    whole."""
    query = sa.select(_s.id).where(_s.sized_for.is_distinct_from(model)).order_by(_s.id)
    return list(tx.execute(query.limit(limit)).scalars())


def indexed(tx: Tx, note_ids: Iterable[int]) -> dict[int, int]:
    """The characters of those of these notes of which no vector is still to be made."""
    waits = sa.exists().where(
        _c.source_id == _s.id, _p.id == passage_id("chunk", _c.id), _p.status != 0
    )
    query = sa.select(_s.id, sa.func.length(_s.content)).where(among(_s.id, note_ids), ~waits)
    return dict(tx.execute(query).all())


def get(tx: Tx, app_ids: Sequence[int], note_id: int) -> Note | None:
    """A note of these scope rows."""
    return _one(tx, _GET, note=note_id, app_ids=app_ids)


def by_external_id(tx: Tx, app_id: int, type: str, external_id: ExternalId) -> Note | None:
    """The note of this type and external id, if there is one."""
    key = json.dumps(external_id)
    return _one(tx, _BY_EXTERNAL_ID, app=app_id, of_type=type, external=key)


def _one(tx: Tx, statement: sa.Select[Any], **values: Any) -> Note | None:
    return next((from_row(Note, row) for row in tx.rows(statement, **values)), None)


def with_chunks(tx: Tx, chunk_ids: Collection[int]) -> list[Note]:
    """The notes that these chunks are of."""
    return [from_row(Note, row) for row in tx.rows(_WITH_CHUNKS, ids=chunk_ids)]


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
    query = _LISTED.where(*_where(app_ids, wanted))
    if search:
        query = query.where(sa.func.memchat_holds_all(folded(search), _s.title, _s.content))
    if before is not None:
        same = sa.and_(_s.created_at == before[0], _s.id < before[1])
        query = query.where(sa.or_(_s.created_at < before[0], same))
    rows = tx.execute(query.order_by(_s.created_at.desc(), _s.id.desc()).limit(limit))
    return [from_row(Note, row, text="") for row in rows]


def ids(tx: Tx, app_ids: Sequence[int]) -> list[int]:
    """The notes of these scope rows."""
    query = sa.select(_s.id).where(_s.app_id.in_(app_ids)).order_by(_s.id)
    return list(tx.execute(query).scalars())


def count_with_chunks(tx: Tx, chunk_ids: Sequence[int]) -> int:
    """How many notes these chunks are of."""
    query = sa.select(sa.func.count(_c.source_id.distinct())).where(among(_c.id, chunk_ids))
    return tx.execute(query).scalar_one()


def total(tx: Tx) -> int:
    """How many notes the store has."""
    return tx.execute(sa.select(sa.func.count()).select_from(t.sources)).scalar_one()


def any_in_app(tx: Tx, app_id: int) -> bool:
    """Whether a scope row has a note."""
    return tx.execute(sa.select(_s.id).where(_s.app_id == app_id).limit(1)).first() is not None


def existing(tx: Tx, note_ids: Sequence[int]) -> set[int]:
    """Which of these notes still exist."""
    return set(tx.execute(sa.select(_s.id).where(among(_s.id, note_ids))).scalars())


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
    tx.execute(sa.delete(t.sources).where(_s.id == note.id))
    return gone


def remove_traces(tx: Tx, note_id: int, hashes: Sequence[str]) -> None:
    """Delete what is left of a deleted note: the vectors of its chunks that no other text has, and
    what receipts and prompts of chats hold of it."""
    remove_from_chats(tx, note_id)
    passages.remove_unused(tx, hashes)


def remove_from_chats(tx: Tx, note_id: int) -> None:
    """Delete what receipts and prompts of chats hold of a note, and the runs of workflows that read
    it."""
    receipts.remove(tx, "note", [note_id])
    workflows.remove_of_note(tx, note_id)


def deleted_at(tx: Tx, app_id: int, type: str, external_id: ExternalId) -> datetime | None:
    """When the note of this type and external id was deleted; None if it was not."""
    return next(iter(tombstones.find(tx, [app_id], [_mark(type, external_id)]).values()), None)


def app_id_of(tx: Tx, note_id: int) -> int | None:
    """The scope row of a note; None if it is gone."""
    return tx.execute(sa.select(_s.app_id).where(_s.id == note_id)).scalar()


def chunk_ids(tx: Tx, app_ids: Sequence[int], wanted: Filter) -> list[int]:
    """The chunks of these scope rows that a filter lets through."""
    query = sa.select(_c.id).join_from(t.sources, t.chunks).where(*_where(app_ids, wanted))
    return list(tx.execute(query).scalars())


def hits(tx: Tx, scores: Mapping[int, ScoreParts], *, with_text: bool) -> list[NoteHit]:
    """These chunks as search results, in the order of ``scores``, which has the parts of each."""
    found = {row.chunk_id: row for row in tx.rows(_HITS, ids=scores)}
    ranked = []
    for i, parts in scores.items():
        if (row := found.get(i)) is not None:
            scored: dict[str, Any] = {"score": round(parts.score, 6), "cosine": parts.cosine}
            scored |= {"bm25": parts.bm25, "confident": parts.confident}
            if not with_text:
                scored["text"] = None
            ranked.append(from_row(NoteHit, row, **scored))
    return ranked


def _where(app_ids: Sequence[int], wanted: Filter) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions of a filter on the notes of these scope rows."""
    yield among(_s.app_id, app_ids)
    if wanted.note_ids is not None:
        yield among(_s.id, wanted.note_ids)
    same: tuple[tuple[Any, Any], ...] = ((_s.type, wanted.type), (_s.topic_id, wanted.topic))
    same += ((_c.pair_id, wanted.pair_id), (_c.parent_id, wanted.parent_id))
    yield from (column == value for column, value in same if value is not None)
    if wanted.since is not None:
        yield _s.created_at >= wanted.since
    if wanted.until is not None:
        yield _s.created_at <= wanted.until
    if wanted.metadata:
        yield from details.noted(t.sources, wanted.metadata)
    if wanted.tags:
        yield from details.tagged(t.sources, wanted.tags)


def _mark(type: str, external_id: ExternalId) -> Mark:
    return "note", f"{type}\n{json.dumps(external_id)}"


def by_type(tx: Tx, app_id: int) -> dict[str, NoteCounts]:
    """The size and the use of a scope row's notes, by their type."""
    numbers = (
        sa.func.count(_s.id.distinct()),
        sa.func.count(_c.id),
        *(sa.func.coalesce(sa.func.sum(uses), 0) for uses in (_c.match_count, _c.read_count)),
    )
    query = sa.select(_s.type, *numbers).outerjoin_from(t.sources, t.chunks, _c.source_id == _s.id)
    rows = tx.execute(query.where(_s.app_id == app_id).group_by(_s.type).order_by(_s.type))
    return {row[0]: NoteCounts(*row[1:]) for row in rows}


def unread(tx: Tx, app_id: int, limit: int) -> list[NoteUse]:
    """The notes that were found and never read, those with the most matches first."""
    found, read = sa.func.sum(_c.match_count), sa.func.sum(_c.read_count)
    query = sa.select(_s.id, _s.type, _s.title, found, read).join_from(t.sources, t.chunks)
    query = query.where(_s.app_id == app_id).group_by(_s.id).having(read == 0, found > 0)
    return [NoteUse(*row) for row in tx.execute(query.order_by(found.desc(), _s.id).limit(limit))]


def queued(tx: Tx, app_id: int) -> tuple[int, int]:
    """How many notes of a scope row wait for their vectors, and how many failed for good."""
    waiting, failed = (
        sa.func.count(sa.case((state, _c.source_id)).distinct())
        for state in (_p.status < 0, _p.status > 0)
    )
    query = sa.select(waiting, failed).join_from(t.passages, t.chunks, _c.id == _p.owner_id)
    mine = query.where(_p.status != sa.literal_column("0"), _p.app_id == app_id, _p.kind == "chunk")
    return tx.execute(mine).one()


TYPE = "file"


def paths_below(tx: Tx, app_id: int, folder: PurePath) -> dict[str, int]:
    """The notes of the files below a folder, by their paths, whether the files are there or not."""
    query = sa.select(_s.external_id, _s.id).where(_s.app_id == app_id, _s.type == TYPE)
    paths = ((json.loads(row[0]), row[1]) for row in tx.execute(query))
    return {path: note_id for path, note_id in paths if folder in PurePath(str(path)).parents}


KIND = "delete"
"""The kind of job that purges a deleted note."""


def hold(tx: Tx, app_id: int, note: Note, *, purge_at: datetime) -> None:
    """Delete a note, and queue its purge; until then ``restore`` undoes the deletion."""
    held = {
        "note": _held(tx, sa.select(t.sources).where(_s.id == note.id))[0] | {"topic_id": None},
        "chunks": _held(
            tx, sa.select(t.chunks).where(_c.source_id == note.id).order_by(_c.position)
        ),
        "tags": note.tags,
        "metadata": {key: json.dumps(value) for key, value in (note.metadata or {}).items()},
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
    for table, one in ((t.sources, row), *((t.chunks, part) for part in held["chunks"])):
        times = {c.name for c in table.c if isinstance(c.type, UtcTime)}
        columns = (
            (n, datetime.fromisoformat(v) if v and n in times else v) for n, v in one.items()
        )
        tx.insert(table, **dict(columns))
    details.put(tx, t.sources, note_id, held["metadata"])
    details.put_tags(tx, t.sources, note_id, held["tags"])
    _put_passages(tx, note_id)
    jobs.cancel(tx, KIND, [note_id])
    note = get(tx, [app_id], note_id)
    assert note is not None
    tombstones.remove(tx, [app_id], [_mark(note.type, note.external_id)])
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


def _held(tx: Tx, query: sa.Select[Any]) -> list[dict[str, Any]]:
    """Rows as JSON holds them."""
    rows = ([*row._mapping.items()] for row in tx.execute(query))
    return [{n: v.isoformat() if isinstance(v, datetime) else v for n, v in row} for row in rows]


def replace_chunks(
    tx: Tx,
    note_id: int,
    parts: Sequence[NewChunk],
    pair_id: int | None = None,
    parent_id: int | None = None,
) -> list[int]:
    """Store these as the chunks of a stored note; those it had before go. Returns the ids.

    A chunk with the text that one had before keeps its counts, and its vector. A note keeps the
    pair and the parent that it had where it is given neither.
    """
    query = sa.select(_s.type, _s.content).where(_s.id == note_id)
    type, content = tx.execute(query).one()
    old = tx.execute(sa.select(t.chunks).where(_c.source_id == note_id)).all()
    counts = {row.hash: (row.match_count, row.read_count) for row in old}
    if pair_id is None and parent_id is None and old:
        pair_id, parent_id = old[0].pair_id, old[0].parent_id
    about = {"source_type": type, "source_id": note_id, "created_at": tx.now}
    about |= {"pair_id": pair_id, "parent_id": parent_id}
    before = _remove_chunks(tx, note_id)
    for position, part in enumerate(parts):
        said = content[part.offset : part.offset + part.size]
        hashed = passages.text_hash(said if part.masked is None else part.masked)
        found, read = counts.get(hashed, (0, 0))
        used = {"match_count": found, "read_count": read}
        columns = {"hash": hashed, "position": position, **about, **used, **asdict(part)}
        tx.insert(t.chunks, **columns)
    ids = _put_passages(tx, note_id)
    passages.remove_unused(tx, before)
    return ids


def _remove_chunks(tx: Tx, note_id: int) -> list[str]:
    """Delete the chunks of a note with their passages; returns their hashes. Their vectors go with
    ``passages.remove_unused``."""
    gone = sa.delete(t.chunks).where(_c.source_id == note_id).returning(_c.id)
    return passages.take(tx, "chunk", tx.execute(gone).scalars().all())


def _put_passages(tx: Tx, note_id: int) -> list[int]:
    """Have search find the parts of a note; their ids."""
    found = tx.rows(_SAID, note=note_id)
    for chunk_id, app_id, words, hashed in found:
        passages.put(tx, Passage("chunk", chunk_id, app_id, words, hash=hashed))
    return [row[0] for row in found]


def chunk_texts(tx: Tx, note_id: int) -> list[str]:
    """The chunks of a note as they are embedded, in their order."""
    query = sa.select(embedded_text).join(t.sources, _s.id == _c.source_id)
    return list(tx.execute(query.where(_c.source_id == note_id).order_by(_c.position)).scalars())


def passage_ids(tx: Tx, note_id: int) -> list[int]:
    """The passages of a note."""
    query = sa.select(passage_id("chunk", _c.id)).where(_c.source_id == note_id)
    return list(tx.execute(query).scalars())


def masked_texts(tx: Tx, ids: Collection[int]) -> dict[int, str]:
    """The texts of these chunks without what looks like a secret, as they are embedded, by id."""
    query = sa.select(_c.id, embedded_text).join(t.sources, _s.id == _c.source_id)
    return {row[0]: row[1] for row in tx.execute(query.where(_c.id.in_(ids)))}


def places(tx: Tx, ids: Iterable[int]) -> dict[int, int]:
    """The place of each of these chunks in its note, from 0, by id."""
    return dict(tx.execute(sa.select(_c.id, _c.position).where(among(_c.id, ids))).all())


def chunk_parts(tx: Tx, note_id: int) -> list[NewChunk]:
    """The chunks of a note as they were given to ``replace_chunks``."""
    query = sa.select(_c.offset, _c.size, _c.tokens, _c.masked).where(_c.source_id == note_id)
    return [NewChunk(*row) for row in tx.execute(query.order_by(_c.position))]


def set_counts(tx: Tx, note_id: int, counts: Mapping[str, Sequence[int]]) -> None:
    """Store how often chunks of a note were found and read, by hash; unknown hashes are left
    out."""
    for hashed, (found, read) in counts.items():
        mine = sa.update(t.chunks).where(_c.source_id == note_id, _c.hash == hashed)
        tx.execute(mine.values(match_count=found, read_count=read))


def count_matches(tx: Tx, ids: Iterable[int]) -> None:
    """Count that these were among the results of a search."""
    tx.rows(_MATCHED, ids=ids)


def count_reads(tx: Tx, app_ids: Sequence[int], ids: Iterable[int]) -> int:
    """Count that these were read; how many there are in these scope rows."""
    return len(tx.rows(_READ, ids=ids, app_ids=app_ids))


def bound(at: datetime | None) -> datetime | None:
    """An end of a period, not beyond the times that notes can have. Raises InputError for a time
    without a zone."""
    return None if at is None else min(max(aware(at), EARLIEST), LATEST)


def aware(at: datetime) -> datetime:
    """The time itself. Raises InputError where it has no zone."""
    if at.utcoffset() is None:
        raise InputError(f"the time {at.isoformat()} has no zone; give an aware one")
    return at
