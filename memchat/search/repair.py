"""Repairing what is derived from the rows: chunks, passages, keyword rows, vectors and saved index.

No message, memory or note is changed, and no provider is called: missing vectors are queued.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable

from memchat.db import Tx, apps, messages, records
from memchat.db.database import Database
from memchat.notes.index import Cutter, recut
from memchat.providers import Embedder
from memchat.search import embeddings, keywords, passages, turns, vector_index
from memchat.search.embed import shortened
from memchat.search.keywords import KINDS, Kind
from memchat.search.vector_index import VectorIndex
from memchat.types import counted

_PARTS = """
    SELECT "offset", size, CASE c.hash WHEN p.hash THEN c.hash END, masked
    FROM chunks c LEFT JOIN passages p ON p.id = c.id << 2 | 3
    WHERE source_id = ? ORDER BY "offset"
"""
_OWNERS = """
    SELECT id << 2 AS id, app_id, active = 1 OR inactive_reason = 'superseded' AS searched,
        NULL AS hash, 1 AS read FROM memories
    UNION ALL SELECT m.id << 2 | 1, s.app_id, 1, NULL, m.id <= s.extracted_to FROM messages m
        JOIN sessions s ON s.id = m.session_id WHERE m.memory = 1 AND m.copied_from IS NULL
    UNION ALL SELECT id << 2 | 2, app_id, 1, NULL, 1 FROM sessions WHERE summary > ''
    UNION ALL SELECT c.id << 2 | 3, n.app_id, 1, c.hash, 1 FROM chunks c
        JOIN sources n ON n.id = c.source_id
"""
"""The passages that there have to be."""
_FACTS = """
    SELECT m.id, m.app_id, m.active = 1 OR m.inactive_reason = 'superseded',
        coalesce(p.text, m.content)
    FROM memories m LEFT JOIN passages p ON p.id = m.id << 2
    WHERE m.id IN (SELECT value FROM json_each(?))
"""
_SAME = """
    p.app_id = o.app_id AND p.searched = o.searched AND coalesce(o.hash, p.hash) IS p.hash
    AND (p.hash IS NOT NULL OR NOT o.read)
"""
_BROKEN = """
    DELETE FROM embeddings WHERE length(embedding) !=
        (SELECT dimensions * 4 FROM services WHERE services.id = service_id)
"""


def notes_with_wrong_chunks(tx: Tx) -> list[int]:
    """The ids of the notes of which a chunk is no part of the text, or has the hash of another one,
    or whose chunks leave words out."""
    texts = tx.each_row("SELECT id, content FROM sources ORDER BY id")
    return [note_id for note_id, text in texts if not _fit(text, tx.rows(_PARTS, note_id))]


def chunks_without_note(tx: Tx) -> list[int]:
    """The ids of the chunks of notes that are not there."""
    sql = "SELECT id FROM chunks WHERE source_id NOT IN (SELECT id FROM sources)"
    return [row[0] for row in tx.rows(sql)]


def keyword_counts(tx: Tx) -> list[tuple[Kind, int, int]]:
    """For each kind how many keyword rows there are, and how many there have to be."""
    held = dict(tx.rows("SELECT rowid & 3, count(*) FROM passages_fts GROUP BY 1"))
    wanted = dict(tx.rows(f"SELECT id & 3, sum(searched) FROM ({_OWNERS}) GROUP BY 1"))
    return [(kind, held.get(n, 0), wanted.get(n, 0)) for n, kind in enumerate(KINDS)]


def wrong_keyword_rows(tx: Tx) -> set[int]:
    """The passages whose keyword rows are wrong or missing, and superfluous rows."""
    return keywords.wrong_rows(tx, passages.keyword_texts(tx))


def repair_keywords(tx: Tx) -> int:
    """Write the wrong and missing keyword rows again; how many there were."""
    wanted = {row[0]: row for row in passages.keyword_texts(tx)}
    astray = keywords.wrong_rows(tx, wanted.values())
    keywords.remove(tx, sorted(astray))
    for i in sorted(astray & wanted.keys()):
        if KINDS[i & 3] != "turn":
            _, app_id, reply, words = wanted[i]
            keywords.write(tx, i, app_id, words, reply=reply)
    said = [i >> 2 for i in sorted(astray & wanted.keys()) if KINDS[i & 3] == "turn"]
    for session_id, ids in messages.by_session(tx, said).items():
        messages.index(tx, session_id, ids)
    return len(astray)


def wrong_passages(tx: Tx) -> tuple[list[int], list[int]]:
    """The passages of owners that are gone, and those that are missing or of another scope."""
    there = f"SELECT p.id FROM passages p WHERE p.id NOT IN (SELECT id FROM ({_OWNERS}))"
    same = f"SELECT 1 FROM passages p WHERE p.id = o.id AND {_SAME}"
    wrong = f"SELECT o.id FROM ({_OWNERS}) o WHERE NOT EXISTS ({same}) ORDER BY o.id"
    stray, missing = tx.rows(there), tx.rows(wrong)
    return [row[0] for row in stray], [row[0] for row in missing]


def _fit(text: str, parts: Iterable[tuple[int, int, str | None, str | None]]) -> bool:
    """Whether these are parts of a text, in order, with all its words."""
    end = 0
    for offset, size, hashed, masked in parts:
        said = text[offset : offset + size]
        if len(said) != size or passages.text_hash(said if masked is None else masked) != hashed:
            return False
        if _has_words(text[end:offset]):
            return False
        end = max(end, offset + size)
    return not _has_words(text[end:])


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


class Repair:
    """One round over a whole store."""

    def __init__(self, database: Database, embedder: Callable[[], Embedder | None]) -> None:
        """``embedder`` gives what chunks are cut for; it is called only if a note has to be cut."""
        self._database = database
        self._embedder = embedder

    def run(self) -> list[str]:
        """Repair what differs from the rows; gives a line for each thing done."""
        steps = (
            self._stray_chunks, self._notes, self._passages, self._words, self._broken, self._idle,
            self._missing, self._strays, self._index,
        )  # fmt: skip
        return [line for step in steps if (line := step())]

    def _stray_chunks(self) -> str | None:
        with self._database.write() as tx:
            stray = chunks_without_note(tx)
            if not stray:
                return None
            passages.drop(tx, "chunk", stray)
            sql = "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
            tx.rows(sql, records.json_list(stray))
            tx.forget_bytes(*apps.all_ids(tx))
        return f"deleted {counted(len(stray), 'chunk')} of notes that are gone"

    def _notes(self) -> str | None:
        with self._database.read() as tx:
            wrong = notes_with_wrong_chunks(tx)
        if not wrong:
            return None
        cutter = Cutter(self._embedder())
        for note_id in wrong:
            with self._database.write() as tx:
                app_id = recut(tx, note_id, cutter, damaged=True)
                if app_id is not None:
                    tx.forget_bytes(app_id)
        return f"cut {counted(len(wrong), 'note')} anew, whose chunks did not fit the text"

    def _passages(self) -> str | None:
        with self._database.write() as tx:
            stray, wrong = wrong_passages(tx)
            for kind in KINDS:
                passages.drop(tx, kind, [i >> 2 for i in stray if KINDS[i & 3] == kind])
                self._write(tx, kind, [i >> 2 for i in wrong if KINDS[i & 3] == kind])
            done = len(stray) + len(wrong)
            if done:
                tx.forget_bytes(*apps.all_ids(tx))
        return f"wrote {counted(done, 'passage')} anew" if done else None

    def _write(self, tx: Tx, kind: Kind, ids: Collection[int]) -> None:
        """Write the passages of these owners again, from their rows."""
        if kind == "fact":
            for i, *row in tx.rows(_FACTS, records.json_list(ids)):
                app_id, searched, text = row
                passages.put_text(tx, kind, i, app_id, text, searched=bool(searched))
        elif kind != "chunk":  # a note with such chunks was cut anew
            sessions = ids if kind == "summary" else messages.by_session(tx, ids)
            for session_id in sorted(sessions):
                turns.write(tx, session_id)

    def _words(self) -> str | None:
        with self._database.read() as tx:
            astray = wrong_keyword_rows(tx)
        if not astray:
            return None
        with self._database.write() as tx:
            mended = repair_keywords(tx)
        return f"wrote {counted(mended, 'keyword row')} anew" if mended else None

    def _broken(self) -> str | None:
        with self._database.write() as tx:
            broken = tx.connection.exec_driver_sql(_BROKEN).rowcount
            if broken:
                tx.forget_bytes(*apps.all_ids(tx))
        return f"deleted {counted(broken, 'vector')} of a wrong length" if broken else None

    def _idle(self) -> str | None:
        """Vectors of texts that are gone."""
        with self._database.write() as tx:
            said = tx.rows("SELECT content FROM messages WHERE role = 'user'")
            queries = {embeddings.query_hash(shortened(row[0])) for row in said}
            idle = [key for key in passages.unused_hashes(tx) if key not in queries]
            passages.remove_unused(tx, idle)
        return f"deleted {counted(len(idle), 'vector')} of words that are gone" if idle else None

    def _missing(self) -> str | None:
        with self._database.write() as tx:
            in_use = embeddings.in_use(tx)
            queued = passages.count_lacking(tx, in_use) if in_use is not None else 0
            if in_use is None or not queued:
                return None
            passages.queue_lacking(tx, in_use)
        return f"queued {counted(queued, 'text')} without a vector; memchat jobs run makes them"

    def _strays(self) -> str | None:
        """Files in the folder of the index that belong to no scope or service."""
        with self._database.read() as tx:
            store_id = records.get(tx, "store_id") or ""
            known, ids = embeddings.all_services(tx), apps.all_ids(tx)
            strays = vector_index.stray_files(self._database.home, store_id, known, set(ids))
        for path in strays:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return f"removed {counted(len(strays), 'stray file')} of the index" if strays else None

    def _index(self) -> str | None:
        """Saved shards that hold other vectors than the rows."""
        with self._database.read() as tx:
            store_id, in_use = records.get(tx, "store_id"), embeddings.in_use(tx)
            service = embeddings.get_service(tx, in_use)
            if store_id is None or in_use is None or service is None:
                return None
            fresh = VectorIndex(self._database.home, store_id, in_use, service)
            wrong = [app_id for app_id in apps.all_ids(tx) if fresh.differs(tx, app_id)]
        if not wrong:
            return None
        with self._database.write() as tx:
            tx.forget_bytes(*wrong)
        return f"dropped the index of {counted(len(wrong), 'scope')}; the rows make it anew"
