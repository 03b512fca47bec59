"""Vectors: float32 rows with the sha256 of the text and the service as their key.

So the same text is embedded once, wherever it occurs. A query's vector has another hash than a
document with the same words, since some services embed queries and documents differently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from memchat.db import Tx, records
from memchat.db.schema import embeddings, utc_text
from memchat.search import services
from memchat.search.keywords import KINDS, Kind, passage_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_e = embeddings.c
_PUT = """
    INSERT INTO embeddings (hash, service_id, embedding, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_OF_KIND = """
    SELECT p.id >> 2, e.embedding FROM passages p
    LEFT JOIN embeddings e ON e.hash = p.hash AND e.service_id = ?
    WHERE p.searched AND p.hash IS NOT NULL AND
"""
_OF_TURNS = """
    SELECT m.id, m.session_id, m.role = 'user', e.embedding
    FROM passages p JOIN messages m ON m.id = p.id >> 2
    LEFT JOIN embeddings e ON e.hash = p.hash AND e.service_id = ?
    WHERE p.hash IS NOT NULL AND p.id & 3 = 1 AND
"""
_AMONG = "id IN (SELECT value FROM json_each(?))"


class OwnerVectors(NamedTuple):
    """The owners of passages that have a vector, the vectors, shape (n, dimensions), and the
    owners of those that have none yet."""

    ids: list[int]
    vectors: Vectors
    waiting: list[int]


def query_hash(text: str) -> str:
    """The hash under which a query's vector is stored."""
    return hashlib.sha256(f"query\0{text}".encode()).hexdigest()


def exists(tx: Tx, service_id: int, hashed: str) -> bool:
    """Whether a text with this hash has a vector of this service."""
    sql = "SELECT 1 FROM embeddings WHERE hash = ? AND service_id = ?"
    return bool(tx.rows(sql, hashed, service_id))


def exist_for(tx: Tx, service_id: int) -> bool:
    """Whether the store has any vector of this service."""
    query = select(_e.hash).where(_e.service_id == service_id)
    return tx.execute(query.limit(1)).first() is not None


def put(tx: Tx, service_id: int, vectors: Iterable[tuple[str, Vectors]]) -> None:
    """Store vectors by their hash. Existing ones stay; nothing is stored for a service that was
    removed in the meantime."""
    # Without fractions of a second: with them one vector less would fit on a page.
    at = f"{utc_text(tx.now)[:19]}Z"
    rows = [(key, service_id, vector.astype("<f4").tobytes(), at) for key, vector in vectors]
    if rows and services.exists(tx, service_id):
        tx.run_many(_PUT, rows)


def get(tx: Tx, service_id: int, hashes: Sequence[str]) -> dict[str, Vectors]:
    """The stored vectors of these hashes; those without one are left out."""
    import numpy as np

    sql = (
        "SELECT hash, embedding FROM embeddings"
        " WHERE hash IN (SELECT value FROM json_each(?)) AND service_id = ?"
    )
    rows = tx.rows(sql, records.json_list(hashes), service_id)
    return {key: np.frombuffer(blob, "<f4") for key, blob in rows}


def of_kind(
    tx: Tx, service_id: int, kind: Kind, app_id: int, ids: Sequence[int] | None = None
) -> OwnerVectors:
    """The passages of a kind of a scope row, or only those of these owners, with their vectors."""
    if ids is None:
        which = f"{_OF_KIND} p.app_id = ? AND p.id & 3 = ?"
        return _held(tx.batches(which, service_id, app_id, KINDS.index(kind)))
    among = records.json_list(passage_id(kind, i) for i in ids)
    return _held([tx.rows(f"{_OF_KIND} +p.app_id = ? AND p.{_AMONG}", service_id, app_id, among)])


def _held(batches: Iterable[Sequence[tuple[int, bytes | None]]]) -> OwnerVectors:
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
        return OwnerVectors(ids, parts[0], waiting)
    every = np.empty((len(ids), parts[0].shape[1] if parts else 0), np.float32)
    filled = len(ids)
    while parts:  # each part goes as soon as it is copied
        part = parts.pop()
        every[filled - len(part) : filled] = part
        filled -= len(part)
    return OwnerVectors(ids, every, waiting)


def of_turns(
    tx: Tx, service_id: int, app_id: int, ids: Sequence[int] | None = None
) -> list[tuple[int, int, bool, bytes | None]]:
    """(id, session id, whether the user said it, vector or None) of a scope row's turns, in the
    order they were said. With ``ids`` only those of the conversations that contain these."""
    order = "ORDER BY m.session_id, m.id"
    if ids is None:
        rows = tx.rows(f"{_OF_TURNS} p.app_id = ? {order}", service_id, app_id)
    else:
        said = f"SELECT session_id FROM messages WHERE {_AMONG}"
        asked = f"SELECT id << 2 | 1 FROM messages WHERE session_id IN ({said})"
        which = f"{_OF_TURNS} +p.app_id = ? AND p.id IN ({asked}) {order}"
        rows = tx.rows(which, service_id, app_id, records.json_list(ids))
    return [(row[0], row[1], bool(row[2]), row[3]) for row in rows]
