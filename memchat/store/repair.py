"""Compares what is derived from the rows, keyword rows and vectors, with the rows of the whole
store, and repairs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, func, literal, select

from memchat.store import chunks, keywords, messages, raw_sql
from memchat.store import embeddings as vectors
from memchat.store.keywords import KeywordText, Kind
from memchat.store.schema import chunks as parts
from memchat.store.schema import (
    embeddings,
    memories,
    searched,
    searched_messages,
    services,
    sessions,
    sources,
)
from memchat.store.schema import messages as turns

_c, _e, _m, _n, _s, _t = parts.c, embeddings.c, memories.c, sources.c, sessions.c, turns.c
_PARTS = """
    SELECT "offset", size, hash, masked FROM chunks WHERE source_id = ? ORDER BY "offset"
"""


def keyword_texts(tx: Connection, kind: Kind) -> dict[int, KeywordText]:
    """What the keyword rows of a kind have to hold, by id."""
    return {row[0]: KeywordText(row[1], row[2], bool(row[3])) for row in tx.execute(_wanted(kind))}


def count_keyword_rows(tx: Connection, kind: Kind) -> int:
    """How many keyword rows of a kind there have to be."""
    return int(tx.execute(select(func.count()).select_from(_wanted(kind).subquery())).scalar_one())


def wrong_keyword_rows(tx: Connection, kind: Kind) -> set[int]:
    """The ids of a kind whose keyword rows are wrong or missing."""
    return keywords.wrong_rows(tx, kind, keyword_texts(tx, kind))


def repair_keywords(tx: Connection, kind: Kind) -> int:
    """Write the wrong and missing keyword rows of a kind again; how many there were."""
    wanted = keyword_texts(tx, kind)
    astray = keywords.wrong_rows(tx, kind, wanted)
    keywords.remove(tx, kind, sorted(astray - wanted.keys()))
    again = sorted(astray & wanted.keys())
    if kind != "messages":
        for i in again:
            keywords.write(tx, kind, i, wanted[i].app_id, wanted[i].text)
        return len(astray)
    of_session: dict[int, list[int]] = {}
    query = select(_t.id, _t.session_id).where(_t.id.in_(raw_sql.id_list(again))).order_by(_t.id)
    for message_id, session_id in tx.execute(query):
        of_session.setdefault(session_id, []).append(message_id)
    for session_id, ids in of_session.items():
        messages.write_keywords(tx, session_id, ids)
    return len(astray)


def remove_malformed_vectors(tx: Connection) -> int:
    """Delete vectors whose length does not fit their service's dimensions; how many there were."""
    of_service = select(services.c.dimensions * 4).where(services.c.id == _e.service_id)
    broken = func.length(_e.embedding) != of_service.scalar_subquery()
    return int(tx.execute(delete(embeddings).where(broken)).rowcount)


def user_texts(tx: Connection) -> list[str]:
    """The texts of all user messages."""
    return list(tx.execute(select(_t.content).where(_t.role == "user")).scalars())


def notes_with_wrong_chunks(tx: Connection) -> list[int]:
    """The ids of the notes of which a chunk is no part of the text, or has the hash of another one,
    or whose chunks leave words out."""
    texts = raw_sql.each_row(tx, "SELECT id, content FROM sources ORDER BY id")
    return [note_id for note_id, text in texts if not _fit(text, raw_sql.rows(tx, _PARTS, note_id))]


def chunks_without_note(tx: Connection) -> list[int]:
    """The ids of the chunks of notes that are not there."""
    return list(tx.execute(select(_c.id).where(_c.source_id.not_in(select(_n.id)))).scalars())


def remove_chunks(tx: Connection, ids: Sequence[int]) -> None:
    """Delete chunks with their keyword rows and vectors."""
    sql = "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?)) RETURNING hash"
    gone = raw_sql.rows(tx, sql, raw_sql.json_list(ids))
    keywords.remove(tx, "chunks", ids)
    vectors.remove_unused(tx, [row[0] for row in gone])


def _fit(text: str, parts: Iterable[tuple[int, int, str, str | None]]) -> bool:
    """Whether these are parts of a text, in order, with all its words."""
    end = 0
    for offset, size, hashed, masked in parts:
        said = text[offset : offset + size]
        if len(said) != size or chunks.text_hash(said if masked is None else masked) != hashed:
            return False
        if _has_words(text[end:offset]):
            return False
        end = max(end, offset + size)
    return not _has_words(text[end:])


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _wanted(kind: Kind) -> Select[Any]:
    if kind == "memories":
        return select(_m.id, _m.app_id, _m.search_text, literal(False).label("reply")).where(
            searched
        )
    if kind == "sessions":
        columns = (_s.id, _s.app_id, _s.summary, literal(False).label("reply"))
        return select(*columns).where(_s.summary > "")
    if kind == "chunks":
        return chunks.keyword_texts()
    text = func.coalesce(_t.search_text, _t.content).label("words")
    query = select(_t.id, _s.app_id, text, (_t.role != "user").label("reply"))
    return query.join(sessions, _s.id == _t.session_id).where(searched_messages)
