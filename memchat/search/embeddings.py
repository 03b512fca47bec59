"""Vectors: float32 rows with the sha256 of the text and the service as their key.

So the same text is embedded once, wherever it occurs. A query's vector has another hash than a
document with the same words, since some services embed queries and documents differently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, and_, func, select

from memchat.db import database
from memchat.db.schema import (
    chunks,
    embeddings,
    memories,
    messages,
    searched,
    sessions,
    sources,
    utc_text,
)
from memchat.search import services

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Kind = Literal["memories", "chunks"]

_e = embeddings.c
_m = memories.c
_SEARCHED: dict[Kind, Select[Any]] = {
    "memories": select(_m.id, _m.app_id, _m.text_hash.label("hash")).where(searched),
    "chunks": select(chunks.c.id, sources.c.app_id, chunks.c.hash).join(
        sources, sources.c.id == chunks.c.source_id
    ),
}
_PUT = """
    INSERT INTO embeddings (hash, service_id, embedding, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_OF_MEMORIES = """
    SELECT m.id, e.embedding FROM memories m
    LEFT JOIN embeddings e ON e.hash = m.text_hash AND e.service_id = ?
    WHERE (m.active = 1 OR m.inactive_reason = 'superseded')
"""
_UNUSED = """
    NOT EXISTS (SELECT 1 FROM memories WHERE text_hash = embeddings.hash)
    AND NOT EXISTS (SELECT 1 FROM messages WHERE text_hash = embeddings.hash)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE summary_hash = embeddings.hash)
    AND NOT EXISTS (SELECT 1 FROM chunks WHERE hash = embeddings.hash)
"""
_REMOVE_UNUSED = f"""
    DELETE FROM embeddings WHERE hash IN (SELECT value FROM json_each(?)) AND {_UNUSED}
"""
_OF_CHUNKS = """
    SELECT c.id, e.embedding FROM sources s JOIN chunks c ON c.source_id = s.id
    LEFT JOIN embeddings e ON e.hash = c.hash AND e.service_id = ?
"""


class MemoryVectors(NamedTuple):
    """The ids of memories that have a vector, the vectors, shape (n, dimensions), and the ids of
    those that have none yet."""

    ids: list[int]
    vectors: Vectors
    waiting: list[int]


def query_hash(text: str) -> str:
    """The hash under which a query's vector is stored."""
    return hashlib.sha256(f"query\0{text}".encode()).hexdigest()


def exist_for(tx: Connection, service_id: int) -> bool:
    """Whether the store has any vector of this service."""
    query = select(_e.hash).where(_e.service_id == service_id)
    return tx.execute(query.limit(1)).first() is not None


def put(
    tx: Connection, service_id: int, vectors: Iterable[tuple[str, Vectors]], now: datetime
) -> None:
    """Store vectors by their hash. Existing ones stay; nothing is stored for a service that was
    removed in the meantime."""
    # Without fractions of a second: with them one vector less would fit on a page.
    at = f"{utc_text(now)[:19]}Z"
    rows = [(key, service_id, vector.astype("<f4").tobytes(), at) for key, vector in vectors]
    if rows and services.exists(tx, service_id):
        database.run_many(tx, _PUT, rows)


def get(tx: Connection, service_id: int, hashes: Sequence[str]) -> dict[str, Vectors]:
    """The stored vectors of these hashes; those without one are left out."""
    import numpy as np

    sql = (
        "SELECT hash, embedding FROM embeddings"
        " WHERE hash IN (SELECT value FROM json_each(?)) AND service_id = ?"
    )
    rows = database.rows(tx, sql, database.json_list(hashes), service_id)
    return {key: np.frombuffer(blob, "<f4") for key, blob in rows}


def of_memories(
    tx: Connection, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> MemoryVectors:
    """The searchable memories of a scope row, or only those of ``ids``, with their vectors."""
    if ids is None:
        batches = database.batches(tx, f"{_OF_MEMORIES} AND m.app_id = ?", service_id, app_id)
        return _held(batches)
    among = f"{_OF_MEMORIES} AND +m.app_id = ? AND m.id IN (SELECT value FROM json_each(?))"
    return _held([database.rows(tx, among, service_id, app_id, database.json_list(ids))])


def of_chunks(
    tx: Connection, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> MemoryVectors:
    """The chunks of a scope row's notes, or only those of ``ids``, with their vectors."""
    if ids is None:
        return _held(database.batches(tx, f"{_OF_CHUNKS} WHERE s.app_id = ?", service_id, app_id))
    among = f"{_OF_CHUNKS} WHERE +s.app_id = ? AND c.id IN (SELECT value FROM json_each(?))"
    return _held([database.rows(tx, among, service_id, app_id, database.json_list(ids))])


def _held(batches: Iterable[Sequence[tuple[int, bytes | None]]]) -> MemoryVectors:
    """The rows as one matrix, converted in parts so that they are not all in memory twice."""
    import numpy as np

    ids: list[int] = []
    parts: list[Vectors] = []
    waiting: list[int] = []
    for rows in batches:
        made = [(i, blob) for i, blob in rows if blob is not None]
        if len(made) < len(rows):
            waiting += [i for i, blob in rows if blob is None]
        if made:
            ids += [i for i, _ in made]
            part = np.frombuffer(b"".join(blob for _, blob in made), "<f4")
            parts.append(part.reshape(len(made), -1))
    if len(parts) == 1:
        return MemoryVectors(ids, parts[0], waiting)
    every = np.empty((len(ids), parts[0].shape[1] if parts else 0), np.float32)
    filled = len(ids)
    while parts:  # each part goes as soon as it is copied
        part = parts.pop()
        every[filled - len(part) : filled] = part
        filled -= len(part)
    return MemoryVectors(ids, every, waiting)


def of_turns(
    tx: Connection, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> list[tuple[int, int, bool, bytes | None]]:
    """(id, session id, whether the user said it, vector or None) of a scope row's indexed messages,
    in the order they were said. With ``ids`` only those of the conversations that contain these."""
    m = messages.c
    query = (
        select(m.id, m.session_id, m.role == "user", _e.embedding)
        .join(sessions, sessions.c.id == m.session_id)
        .outerjoin(embeddings, and_(_e.hash == m.text_hash, _e.service_id == service_id))
        .where(sessions.c.app_id == app_id, m.text_hash.is_not(None))
        .order_by(m.session_id, m.id)
    )
    if ids is not None:
        said = messages.alias().c
        theirs = select(said.session_id).where(said.id.in_(database.id_list(ids)))
        query = query.where(m.session_id.in_(theirs))
    return [(row[0], row[1], bool(row[2]), row[3]) for row in tx.execute(query)]


def of_summaries(
    tx: Connection, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> tuple[list[int], Vectors]:
    """Ids of a scope row's conversations, or of ``ids`` among them, and their summaries'
    vectors."""
    import numpy as np

    s = sessions.c
    query = (
        select(s.id, _e.embedding)
        .join(embeddings, and_(_e.hash == s.summary_hash, _e.service_id == service_id))
        .where(s.app_id == app_id)
    )
    if ids is not None:
        query = query.where(s.id.in_(ids))
    rows = tx.execute(query).all()
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f4")
    return [row[0] for row in rows], matrix.reshape(len(rows), -1 if rows else 0)


def coverage(
    tx: Connection, service_id: int, kind: Kind = "memories"
) -> list[tuple[int, int, int]]:
    """(app id, number of searchable memories or of chunks, number with a vector) of every scope
    row, the largest first."""
    rows = _SEARCHED[kind].subquery()
    embedded = func.count(_e.hash)
    query = (
        select(rows.c.app_id, func.count(), embedded)
        .outerjoin(embeddings, and_(_e.hash == rows.c.hash, _e.service_id == service_id))
        .group_by(rows.c.app_id)
        .order_by(embedded.desc(), rows.c.app_id)
    )
    return [(row[0], row[1], row[2]) for row in tx.execute(query)]


def embedded_ids(tx: Connection, service_id: int, app_id: int, kind: Kind = "memories") -> set[int]:
    """The ids of a scope row's searchable memories, or of its chunks, that have a vector."""
    rows = _SEARCHED[kind].subquery()
    query = (
        select(rows.c.id)
        .join(embeddings, and_(_e.hash == rows.c.hash, _e.service_id == service_id))
        .where(rows.c.app_id == app_id)
    )
    return set(tx.execute(query).scalars())


def missing(
    tx: Connection, service_id: int, memory_ids: Sequence[int]
) -> list[tuple[int, int, str, str]]:
    """(id, app id, search text, text hash) of those of these memories that have no vector yet."""
    query = (
        select(_m.id, _m.app_id, _m.search_text, _m.text_hash)
        .outerjoin(embeddings, and_(_e.hash == _m.text_hash, _e.service_id == service_id))
        .where(_m.id.in_(memory_ids), _e.hash.is_(None))
    )
    return [(row[0], row[1], row[2], row[3]) for row in tx.execute(query)]


def unused_hashes(tx: Connection) -> list[str]:
    """The hashes of vectors that no fact, message, summary or chunk has."""
    sql = f"SELECT DISTINCT hash FROM embeddings WHERE {_UNUSED}"
    return [row[0] for row in database.rows(tx, sql)]


def remove_unused(tx: Connection, hashes: Sequence[str]) -> None:
    """Delete the vectors of these hashes, of every service, unless a text still has the hash."""
    if hashes:
        database.rows(tx, _REMOVE_UNUSED, database.json_list(hashes))
