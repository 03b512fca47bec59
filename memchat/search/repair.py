"""Repairing what is derived from the rows: keyword rows, vectors, the saved index.

No message and no memory is changed, and no provider is called: missing vectors are queued.

Compares what is derived from the rows, keyword rows and vectors, with the rows of the whole
store, and repairs it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, func, literal, select

from memchat.db import apps, database, messages, records
from memchat.db.database import Database
from memchat.db.schema import chunks as parts
from memchat.db.schema import (
    embeddings,
    memories,
    searched,
    searched_messages,
    services,
    sessions,
    sources,
)
from memchat.db.schema import messages as turns
from memchat.notes import chunks
from memchat.search import embeddings as search_embeddings
from memchat.search import embeddings as vectors
from memchat.search import keywords, unembedded, vector_index
from memchat.search import services as search_services
from memchat.search.embed import shortened
from memchat.search.keywords import KeywordText, Kind
from memchat.search.vector_index import VectorIndex
from memchat.types import counted

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
    query = select(_t.id, _t.session_id).where(_t.id.in_(database.id_list(again))).order_by(_t.id)
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
    texts = database.each_row(tx, "SELECT id, content FROM sources ORDER BY id")
    return [
        note_id for note_id, text in texts if not _fit(text, database.rows(tx, _PARTS, note_id))
    ]


def chunks_without_note(tx: Connection) -> list[int]:
    """The ids of the chunks of notes that are not there."""
    return list(tx.execute(select(_c.id).where(_c.source_id.not_in(select(_n.id)))).scalars())


def remove_chunks(tx: Connection, ids: Sequence[int]) -> None:
    """Delete chunks with their keyword rows and vectors."""
    sql = "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?)) RETURNING hash"
    gone = database.rows(tx, sql, database.json_list(ids))
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


KINDS: tuple[keywords.Kind, ...] = ("memories", "messages", "sessions", "chunks")


class Repair:
    """One round over a whole store."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        drop_vectors: Callable[[Connection, Iterable[int]], None],
    ) -> None:
        """``drop_vectors`` takes the saved vectors of scope rows from memory and disk."""
        self._database = database
        self._clock = clock
        self._drop_vectors = drop_vectors

    def run(self) -> list[str]:
        """Repair what differs from the rows; gives a line for each thing done."""
        steps = (self._words, self._broken, self._idle, self._missing, self._strays, self._index)
        return [line for step in steps if (line := step())]

    def _words(self) -> str | None:
        with self._database.read() as tx:
            astray = [kind for kind in KINDS if wrong_keyword_rows(tx, kind)]
        mended = 0
        for kind in astray:
            with self._database.write() as tx:
                mended += repair_keywords(tx, kind)
        return f"wrote {counted(mended, 'keyword row')} anew" if mended else None

    def _broken(self) -> str | None:
        with self._database.write() as tx:
            broken = remove_malformed_vectors(tx)
            if broken:
                self._drop_vectors(tx, apps.all_ids(tx))
        return f"deleted {counted(broken, 'vector')} of a wrong length" if broken else None

    def _idle(self) -> str | None:
        """Vectors of texts that are gone."""
        with self._database.write() as tx:
            queries = {search_embeddings.query_hash(shortened(words)) for words in user_texts(tx)}
            idle = [key for key in search_embeddings.unused_hashes(tx) if key not in queries]
            search_embeddings.remove_unused(tx, idle)
        return f"deleted {counted(len(idle), 'vector')} of words that are gone" if idle else None

    def _missing(self) -> str | None:
        with self._database.write() as tx:
            in_use = search_services.in_use(tx)
            queued = unembedded.count(tx, in_use) if in_use is not None else 0
            if in_use is None or not queued:
                return None
            unembedded.enqueue_all(tx, in_use, self._clock())
        return f"queued {counted(queued, 'text')} without a vector; memchat jobs run makes them"

    def _strays(self) -> str | None:
        """Files in the folder of the index that belong to no scope or service."""
        with self._database.read() as tx:
            store_id = records.get(tx, "store_id") or ""
            known, ids = search_services.all_services(tx), apps.all_ids(tx)
            strays = vector_index.stray_files(self._database.home, store_id, known, set(ids))
        for path in strays:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return f"removed {counted(len(strays), 'stray file')} of the index" if strays else None

    def _index(self) -> str | None:
        """Saved shards that hold other vectors than the rows."""
        with self._database.read() as tx:
            store_id, in_use = records.get(tx, "store_id"), search_services.in_use(tx)
            service = search_services.get(tx, in_use)
            if store_id is None or in_use is None or service is None:
                return None
            fresh = VectorIndex(self._database.home, store_id, in_use, service)
            wrong = [app_id for app_id in apps.all_ids(tx) if fresh.differs(tx, app_id)]
        if not wrong:
            return None
        with self._database.write() as tx:
            self._drop_vectors(tx, wrong)
        return f"dropped the index of {counted(len(wrong), 'scope')}; the rows make it anew"
