"""Repairing what is derived from the rows: chunks, passages, keyword rows, vectors and saved index.

No message, memory or note is changed, and no provider is called: missing vectors are queued.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable

import sqlalchemy as sa

from memchat.db import Tx, apps, messages, records
from memchat.db import schema as t
from memchat.db.database import Database
from memchat.db.records import among
from memchat.notes.index import Cutter, recut
from memchat.providers import Embedder
from memchat.search import embeddings, keywords, passages, turns
from memchat.search.embed import shortened
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import counted

_p, _m, _n, _c = t.passages.c, t.memories.c, t.sources.c, t.chunks.c
_same_hash = sa.case((_c.hash == _p.hash, _c.hash))
_PARTS = (
    sa.select(_c.offset, _c.size, _same_hash, _c.masked)
    .outerjoin_from(t.chunks, t.passages, _p.id == passage_id("chunk", _c.id))
    .where(_c.source_id == sa.bindparam("note"))
    .order_by(_c.offset)
)


def _owners() -> sa.Subquery:
    """The passages that there have to be."""
    said, chat = t.messages.c, t.sessions.c
    one, none = sa.literal(1), sa.null()
    facts = sa.select(
        passage_id("fact", _m.id).label("id"),
        _m.app_id,
        sa.case((t.searched, 1), else_=0).label("searched"),
        none.label("hash"),
        one.label("read"),
    )
    was_read = sa.case((said.id <= chat.extracted_to, 1), else_=0)
    turns = sa.select(passage_id("turn", said.id), chat.app_id, one, none, was_read)
    turns = turns.join_from(t.messages, t.sessions).where(t.searched_messages)
    summaries = sa.select(passage_id("summary", chat.id), chat.app_id, one, none, one)
    chunks = sa.select(passage_id("chunk", _c.id), _n.app_id, one, _c.hash, one)
    return facts.union_all(
        turns, summaries.where(chat.summary > ""), chunks.join_from(t.chunks, t.sources)
    ).subquery()


def notes_with_wrong_chunks(tx: Tx) -> list[int]:
    """The ids of the notes of which a chunk is no part of the text, or has the hash of another one,
    or whose chunks leave words out."""
    texts = tx.execute(sa.select(_n.id, _n.content).order_by(_n.id))
    return [i for i, text in texts if not _fit(text, tx.rows(_PARTS, note=i))]


def chunks_without_note(tx: Tx) -> list[int]:
    """The ids of the chunks of notes that are not there."""
    stray = sa.select(_c.id).where(_c.source_id.not_in(sa.select(_n.id)))
    return list(tx.execute(stray).scalars())


def keyword_counts(tx: Tx) -> list[tuple[Kind, int, int]]:
    """For each kind how many keyword rows there are, and how many there have to be."""
    o, held = _owners().c, keywords.counts(tx)
    kind = o.id.bitwise_and(3)
    query = sa.select(kind, sa.func.sum(o.searched)).group_by(kind)
    wanted = dict(tx.execute(query).all())
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
        for one in messages.passages_of(tx, session_id, ids):
            if one.id in astray:
                keywords.write(tx, one.id, one.app_id, one.words, one.context, reply=one.reply)
    return len(astray)


def wrong_passages(tx: Tx) -> tuple[list[int], list[int]]:
    """The passages of owners that are gone, and those that are missing or of another scope."""
    o = _owners().c
    kept = sa.and_(_p.hash.is_not(None) | (o.read == 0), o.hash.is_(None) | (o.hash == _p.hash))
    same = sa.exists().where(_p.id == o.id, _p.app_id == o.app_id, _p.searched == o.searched, kept)
    stray = sa.select(_p.id).where(_p.id.not_in(sa.select(o.id)))
    missing = sa.select(o.id).where(~same).order_by(o.id)
    return list(tx.execute(stray).scalars()), list(tx.execute(missing).scalars())


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
            tx.execute(sa.delete(t.chunks).where(among(_c.id, stray)))
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
            words = sa.func.coalesce(_p.text, _m.content)
            query = sa.select(_m.id, _m.app_id, words, t.searched)
            query = query.outerjoin_from(t.memories, t.passages, _p.id == passage_id(kind, _m.id))
            for *row, searched in tx.execute(query.where(among(_m.id, ids))).all():
                passages.put_text(tx, kind, *row, searched=searched)
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
            e, size = t.embeddings.c, t.services.c.dimensions * 4
            right = sa.select(size).where(t.services.c.id == e.service_id).scalar_subquery()
            wrong = sa.delete(t.embeddings).where(sa.func.length(e.embedding) != right)
            broken = tx.execute(wrong).rowcount
            if broken:
                tx.forget_bytes(*apps.all_ids(tx))
        return f"deleted {counted(broken, 'vector')} of a wrong length" if broken else None

    def _idle(self) -> str | None:
        """Vectors of texts that are gone."""
        with self._database.write() as tx:
            said = sa.select(t.messages.c.content).where(t.messages.c.role == "user")
            asked = tx.execute(said).scalars()
            queries = {embeddings.query_hash(shortened(words)) for words in asked}
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
            ours = embeddings.index_files(self._database.home, store_id, known, ids)
        folder = self._database.home / embeddings.FOLDER
        strays = sorted(set(folder.iterdir()) - ours) if folder.is_dir() else []
        for path in strays:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return f"removed {counted(len(strays), 'stray file')} of the index" if strays else None

    def _index(self) -> str | None:
        """Saved shards that hold other vectors than the rows."""
        from memchat.search.vector_index import VectorIndex

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
