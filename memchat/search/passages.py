"""The table of passages: one row for each fact, turn, summary and chunk of a note to be found.

Each passage has one keyword row, the key of its vector, and its changes in one log, which the
indexes follow. Whoever writes a fact, turn, summary or chunk puts its passage here. A passage that
lacks its vector is work: of the queue (``memchat.db.jobs``), or of a change of service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, and_, case, cast, func, null, select

from memchat.db import Tx, records
from memchat.db.records import from_row
from memchat.db.schema import embeddings as vectors
from memchat.db.schema import memories, meta, passages, utc_text
from memchat.db.schema import services as service_rows
from memchat.search import embeddings, keywords
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import EmbeddingState, EmbeddingStatus

OWNERS: Mapping[Kind, str] = {
    "fact": "memory",
    "turn": "message",
    "summary": "session",
    "chunk": "chunk",
}
"""What a passage is part of, in the words of the screens."""
_IN = "IN (SELECT value FROM json_each(?))"
_PART = 'substr(n.content, c."offset" + 1, c.size)'
_NOTES = """
    LEFT JOIN chunks c ON p.id & 3 = 3 AND c.id = p.id >> 2
    LEFT JOIN sources n ON n.id = c.source_id
"""
_TEXT = f"coalesce(p.text, c.masked, {_PART})"
"""What is embedded."""
_WORDS = f"""
    SELECT p.id, p.app_id, p.reply, coalesce(s.summary,
        CASE WHEN c.id THEN coalesce(n.title, '') || char(10) || {_PART} END, p.text, m.content)
    FROM passages p {_NOTES}
    LEFT JOIN messages m ON p.id & 3 = 1 AND m.id = p.id >> 2
    LEFT JOIN sessions s ON p.id & 3 = 2 AND s.id = p.id >> 2
    WHERE p.searched
"""
"""By what each is found."""
_LACKS = """
    p.searched AND p.hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.hash = p.hash AND e.service_id = ?)
"""
_UNUSED = "NOT EXISTS (SELECT 1 FROM passages WHERE passages.hash = embeddings.hash)"
_REMOVE_UNUSED = f"""
    DELETE FROM embeddings WHERE hash IN (SELECT value FROM json_each(?)) AND {_UNUSED}
"""
_PUT = """
    INSERT INTO passages (id, app_id, text, hash, reply, searched, status, run_at, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
    ON CONFLICT (id) DO UPDATE SET app_id = excluded.app_id, text = excluded.text,
        hash = excluded.hash, reply = excluded.reply, searched = excluded.searched
"""
_ANEW = """,
        status = excluded.status, run_at = excluded.run_at, created_at = excluded.created_at,
        processed_at = NULL, attempts = 0, error_message = NULL,
        lease_owner = NULL, lease_until = NULL
"""
_QUEUE = f"""
    UPDATE passages AS p SET status = -1, run_at = ?2, created_at = ?2, error_message = NULL,
        -- One whose worker ends at every try must fail for good, however often this is called.
        attempts = CASE status WHEN -1 THEN attempts ELSE 0 END,
        processed_at = NULL, lease_owner = NULL, lease_until = NULL
    WHERE {_LACKS.replace("?", "?1")} AND (?3 IS NULL OR id {_IN.replace("?", "?3")})
        AND (status IS NOT -1 OR lease_until IS NULL OR lease_until < ?2)
"""
_DONE = f"""
    UPDATE passages SET status = 0, error_message = NULL,
        run_at = NULL, created_at = NULL, lease_owner = NULL, lease_until = NULL
    WHERE hash {_IN} AND searched AND status IS NOT 0 RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Passage:
    """What search is to find of one owner."""

    kind: Kind
    owner_id: int
    app_id: int
    words: str
    """By what it is found."""
    text: str | None = None
    """What is embedded; None where the owner's row holds it."""
    hash: str | None = None
    """The key of its vector; None where it is to have none yet."""
    context: str = ""
    """The words around a turn, which count for less."""
    reply: bool = False
    searched: bool = True

    @property
    def id(self) -> int:
        return passage_id(self.kind, self.owner_id)


@dataclass(frozen=True, slots=True)
class UnembeddedText:
    """A passage without a vector, as it is embedded."""

    kind: Kind
    id: int
    """Of the owner."""
    hash: str
    text: str


def text_hash(text: str) -> str:
    """sha256 of a text in hex, under which its vector is stored: equal texts are embedded once."""
    return hashlib.sha256(text.encode()).hexdigest()


def put(tx: Tx, passage: Passage) -> None:
    """Write a passage, or replace that of the same owner, with its keyword row, and queue it where
    it is to have a vector. A vector that no text has any more is deleted."""
    i, app_id, hashed = passage.id, passage.app_id, passage.hash
    found = tx.rows("SELECT app_id, hash, status FROM passages WHERE id = ?", i)
    home, before, stood = found[0] if found else (app_id, None, None)
    columns = (passage.text, hashed, int(passage.reply), int(passage.searched))
    status = _status_of(tx, passage.kind, hashed) if hashed and passage.searched else None
    waits = stood == status == -1 and before == hashed  # it may be in hand
    at = utc_text(tx.now) if status == -1 else None
    tx.rows(_PUT if waits else _PUT + _ANEW, i, app_id, *columns, status, at)
    if found:
        keywords.remove(tx, [i])
    if passage.searched:
        keywords.write(tx, i, app_id, passage.words, passage.context, reply=passage.reply)
    if home != app_id:
        _record(tx, [(home, i)])
    if before or hashed:  # else no index has read it, and none has to
        _record(tx, [(app_id, i)])
    if before not in (None, hashed):
        remove_unused(tx, [before])


def _status_of(tx: Tx, kind: Kind, hashed: str) -> int | None:
    """How a passage with this text stands that was just written. Notes wait for a service even
    where there is none yet, and are shown so."""
    in_use = embeddings.in_use(tx)
    if in_use is not None and embeddings.exists(tx, in_use, hashed):
        return 0
    return -1 if kind == "chunk" or wants_vectors(tx) else None


def wants_vectors(tx: Tx) -> bool:
    """Whether what is written is queued: a service is in use, or will be."""
    return embeddings.in_use(tx) is not None or tx.embeds()


def put_text(
    tx: Tx, kind: Kind, owner_id: int, app_id: int, text: str, *, searched: bool = True
) -> None:
    """``put`` for what is found by the words that are embedded."""
    hashed = text_hash(text)
    put(tx, Passage(kind, owner_id, app_id, text, text, hashed, searched=searched))


def hide(tx: Tx, fact_id: int) -> None:
    """Have search find a fact no longer. It keeps its text and vector."""
    i = passage_id("fact", fact_id)
    rows = tx.rows(
        "UPDATE passages SET searched = 0, status = NULL, lease_owner = NULL WHERE id = ?"
        " RETURNING app_id, id",
        i,
    )
    keywords.remove(tx, [i])
    _record(tx, rows)


def show(tx: Tx, fact_id: int, app_id: int) -> None:
    """Have search find a fact again, in this scope row."""
    put_text(tx, "fact", fact_id, app_id, text_of(tx, fact_id))


def text_of(tx: Tx, fact_id: int) -> str:
    """The text under which a fact is embedded and found."""
    sql = "SELECT text FROM passages WHERE id = ?"
    return str(tx.rows(sql, passage_id("fact", fact_id))[0][0])


def take(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> list[str]:
    """Delete the passages of these owners with their keyword rows; returns the keys of their
    vectors, which stay. The words stay in the bytes of the file until ``keywords.scrub``."""
    return _take(tx, f"id {_IN}", records.json_list(passage_id(kind, i) for i in owner_ids))


def drop(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> None:
    """Delete the passages of these owners, with the vectors that no other text has."""
    remove_unused(tx, take(tx, kind, owner_ids))


def drop_app(tx: Tx, app_id: int) -> None:
    """Delete all passages of a scope row."""
    remove_unused(tx, _take(tx, "app_id = ?", app_id))


def _take(tx: Tx, which: str, value: Any) -> list[str]:
    sql = f"DELETE FROM passages WHERE {which} RETURNING app_id, id, hash"
    gone = tx.rows(sql, value)
    keywords.remove(tx, [row[1] for row in gone])
    _record(tx, [row[:2] for row in gone if row[2]])
    return [row[2] for row in gone if row[2]]


def _record(tx: Tx, rows: Iterable[Sequence[int]]) -> None:
    """Note that passages, with their scope rows, were added, changed or deleted."""
    tx.run_many("INSERT INTO changes (app_id, passage_id) VALUES (?, ?)", rows)


def keep_vectors(tx: Tx, service_id: int, made: Mapping[str, Any]) -> tuple[int, int]:
    """Store vectors by the hash of their text, but for texts that went or were changed since they
    were sent; how many that were, and how many passages wait no longer. Those of a service that the
    store is changing to are in no index yet."""
    found, asked = f"FROM passages WHERE hash {_IN}", records.json_list([*made])
    wanted = {row[0] for row in tx.rows(f"SELECT DISTINCT hash {found}", asked)}
    embeddings.put(tx, service_id, [(key, made[key]) for key in sorted(wanted)])
    done = 0
    if wanted and embeddings.in_use(tx) == service_id:
        done = len(tx.rows(_DONE, asked))
        log = f"INSERT INTO changes (app_id, passage_id) SELECT app_id, id {found}"
        tx.rows(log, asked)
    return len(wanted), done


def unused_hashes(tx: Tx) -> list[str]:
    """The hashes of vectors that no passage has."""
    sql = f"SELECT DISTINCT hash FROM embeddings WHERE {_UNUSED}"
    return [row[0] for row in tx.rows(sql)]


def remove_unused(tx: Tx, hashes: Sequence[str]) -> None:
    """Delete the vectors of these hashes, of every service, unless a passage still has the hash."""
    if hashes:
        tx.rows(_REMOVE_UNUSED, records.json_list(hashes))


def latest_change(tx: Tx, app_id: int) -> int:
    """The number of a scope's newest change; 0 for none."""
    sql = "SELECT max(id) FROM changes WHERE app_id = ?"
    return tx.rows(sql, app_id)[0][0] or 0


def changed_since(tx: Tx, kind: Kind, app_id: int, change_id: int) -> list[int]:
    """The owners of a kind whose passages changed after ``change_id``."""
    sql = (
        "SELECT DISTINCT passage_id >> 2 FROM changes"
        " WHERE app_id = ? AND id > ? AND passage_id & 3 = ?"
    )
    return [row[0] for row in tx.rows(sql, app_id, change_id, KINDS.index(kind))]


def fingerprint(tx: Tx, change_id: int) -> str:
    """A text that identifies this change, empty if it does not exist. After a backup was restored
    another change may have the same id, but not the same fingerprint."""
    found = tx.rows("SELECT passage_id, at FROM changes WHERE id = ?", change_id)
    return "@".join(map(str, found[0])) if found else ""


def hashes(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> dict[int, str]:
    """The key of the vector of each of these owners, by owner."""
    ids = records.json_list(passage_id(kind, i) for i in owner_ids)
    sql = f"SELECT id >> 2, hash FROM passages WHERE id {_IN} AND hash IS NOT NULL"
    return dict(tx.rows(sql, ids))


def texts(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> list[UnembeddedText]:
    """The passages of these owners as they are embedded. Those that need no vector are left
    out."""
    ids = records.json_list(passage_id(kind, i) for i in owner_ids)
    sql = f"SELECT p.id, p.hash, {_TEXT} FROM passages p {_NOTES} WHERE p.id {_IN} AND p.searched"
    return [_text(row) for row in tx.rows(f"{sql} AND p.hash IS NOT NULL", ids)]


def next_lacking(
    tx: Tx, service_id: int, last_id: int, limit: int
) -> list[tuple[int, UnembeddedText]]:
    """The next passages without a vector of a service, each with its own id, after such an id, so
    that one that cannot be embedded is skipped."""
    sql = f"""
        SELECT p.id, p.hash, {_TEXT} FROM passages p {_NOTES}
        WHERE {_LACKS} AND p.id > ? ORDER BY p.id LIMIT ?
    """
    return [(row[0], _text(row)) for row in tx.rows(sql, service_id, last_id, limit)]


def to_embed(tx: Tx, service_id: int, ids: Iterable[int]) -> dict[int, tuple[str, str | None]]:
    """The hash of each of these passages, by its own id, and its text unless it has a vector."""
    sql = f"""
        SELECT p.id, p.hash, CASE WHEN {_LACKS} THEN {_TEXT} END
        FROM passages p {_NOTES} WHERE p.id {_IN}
    """
    return {row[0]: row[1:] for row in tx.rows(sql, service_id, records.json_list(ids))}


def unqueued(tx: Tx, service_id: int, app_id: int, kind: Kind) -> list[int]:
    """The owners in a scope row that lack a vector, and that no work makes one for."""
    sql = f"""
        SELECT p.id >> 2 FROM passages p
        WHERE {_LACKS} AND p.status IS NOT -1 AND p.app_id = ? AND p.id & 3 = ?
    """
    return [row[0] for row in tx.rows(sql, service_id, app_id, KINDS.index(kind))]


def count_lacking(tx: Tx, service_id: int) -> int:
    """How many passages have no vector of a service."""
    sql = f"SELECT count(*) FROM passages p WHERE {_LACKS}"
    return int(tx.rows(sql, service_id)[0][0])


def count_chunks_lacking(tx: Tx, service_id: int, app_id: int) -> int:
    """How many chunks of a scope row's notes have no vector of a service."""
    sql = f"SELECT count(*) FROM passages p WHERE {_LACKS} AND p.app_id = ? AND p.id & 3 = 3"
    return int(tx.rows(sql, service_id, app_id)[0][0])


def count_wanting(tx: Tx) -> int:
    """How many passages need a vector."""
    sql = "SELECT count(*) FROM passages WHERE searched AND hash IS NOT NULL"
    return int(tx.rows(sql)[0][0])


def queue_lacking(tx: Tx, service_id: int, among: Iterable[int] | None = None) -> None:
    """Queue all that lacks a vector, or those among these passages, due now. What is running is
    left alone; what failed starts again."""
    asked = None if among is None else records.json_list(among)
    tx.rows(_QUEUE, service_id, utc_text(tx.now), asked)


def coverage(tx: Tx, service_id: int, kind: Kind) -> list[tuple[int, int, int]]:
    """(scope row, number of a kind's passages, number with a vector) of every scope row, the
    largest first."""
    sql = (
        "SELECT p.app_id, count(*), count(e.hash) AS held FROM passages p"
        " LEFT JOIN embeddings e ON e.hash = p.hash AND e.service_id = ?"
        " WHERE p.searched AND p.id & 3 = ? GROUP BY p.app_id ORDER BY held DESC, p.app_id"
    )
    return [tuple(row) for row in tx.rows(sql, service_id, KINDS.index(kind))]


def embedded_ids(tx: Tx, service_id: int, app_id: int, kind: Kind) -> set[int]:
    """The owners of a scope row's passages of a kind that have a vector."""
    sql = (
        "SELECT p.id >> 2 FROM passages p JOIN embeddings e ON e.hash = p.hash"
        " WHERE e.service_id = ? AND p.app_id = ? AND p.searched AND p.id & 3 = ?"
    )
    return {row[0] for row in tx.rows(sql, service_id, app_id, KINDS.index(kind))}


def keyword_texts(tx: Tx) -> list[tuple[int, int, bool, str]]:
    """Id, scope row, whether it is a reply, and words of every passage that search finds."""
    return [(row[0], row[1], bool(row[2]), row[3] or "") for row in tx.rows(_WORDS)]


def _text(row: Sequence[Any]) -> UnembeddedText:
    return UnembeddedText(KINDS[row[0] & 3], row[0] >> 2, row[1], row[2])


STATUSES = ("pending", "completed", "failed")
_e, _m, _p = vectors.c, memories.c, passages.c
_services = service_rows.c
_service = cast(select(meta.c.value).where(meta.c.key == "service_id").scalar_subquery(), Integer)
_code = case(
    (_e.hash.is_not(None), 0),
    (_p.status == 0, null()),  # it was made once and deleted since
    else_=_p.status,
).label("code")
_VIEW: Select[Any] = select(
    _m.id,
    _code,
    case((_e.hash.is_not(None), _services.provider + "/" + _services.model)).label("model"),
    case((_e.hash.is_(None), _p.error_message)).label("error"),
    _p.attempts,
    func.coalesce(_p.processed_at, _e.created_at).label("processed_at"),
).select_from(
    memories.outerjoin(passages, _p.id == _m.id * 4)
    .outerjoin(vectors, and_(_e.hash == _p.hash, _e.service_id == _service))
    .outerjoin(service_rows, _services.id == _e.service_id)
)


def of_memories(tx: Tx, ids: Sequence[int]) -> dict[int, EmbeddingState]:
    """The state of each of these memories."""
    return {
        row.id: from_row(
            EmbeddingState,
            row,
            memory_id=row.id,
            status=_status(row.code),
            attempts=row.attempts or 0,
        )
        for row in tx.execute(_VIEW.where(_m.id.in_(records.id_list(ids))))
    }


def ids_with_status(status: str) -> Select[Any]:
    """A query for the ids of all memories whose vector has this status."""
    conditions = {"pending": _code == -1, "completed": _code == 0, "failed": _code > 0}
    return _VIEW.with_only_columns(_m.id).where(conditions[status])


def is_unembedded(memory_id: ColumnElement[int]) -> ColumnElement[bool]:
    """A condition: the memory's vector is still to be made, or could not be."""
    return select(_p.id).where(_p.id == memory_id * 4, _p.status != 0).exists()


def _status(code: int | None) -> EmbeddingStatus | None:
    if code is None:
        return None
    return "pending" if code < 0 else "completed" if code == 0 else "failed"
