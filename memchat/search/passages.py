"""The table of passages: one row for each fact, turn, summary and chunk of a note to be found.

Each passage has one keyword row, the key of its vector, and its changes in one log, which the
indexes follow. Whoever writes a fact, turn, summary or chunk puts its passage here. A passage that
lacks its vector is work for the queue, or for a change of service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Integer, Select, and_, case, cast, null, select

from memchat.db import Tx, database
from memchat.db import jobs as db_jobs
from memchat.db.records import from_row
from memchat.db.schema import embeddings as vectors
from memchat.db.schema import jobs, memories, meta, passages, utc_text
from memchat.db.schema import services as service_rows
from memchat.search import embeddings, keywords, services
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import EmbeddingState, EmbeddingStatus, Job

JobKind = Literal["embed", "index", "note"]
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
_OF_JOB: Mapping[JobKind, str] = {
    "embed": f"SELECT id << 2 AS id, id AS target FROM memories WHERE id {_IN}",
    "index": (
        f"SELECT id << 2 | 1 AS id, session_id AS target FROM messages WHERE session_id {_IN}"
        f" UNION ALL SELECT id << 2 | 2, id FROM sessions WHERE id {_IN}"
    ),
    "note": f"SELECT id << 2 | 3 AS id, source_id AS target FROM chunks WHERE source_id {_IN}",
}
"""The passages that the job of a kind and target makes the vectors of."""
_UNUSED = "NOT EXISTS (SELECT 1 FROM passages WHERE passages.hash = embeddings.hash)"
_REMOVE_UNUSED = f"""
    DELETE FROM embeddings WHERE hash IN (SELECT value FROM json_each(?)) AND {_UNUSED}
"""
_PUT = """
    INSERT INTO passages (id, app_id, text, hash, reply, searched) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET app_id = excluded.app_id, text = excluded.text,
        hash = excluded.hash, reply = excluded.reply, searched = excluded.searched
"""
_QUEUE = f"""
    INSERT INTO jobs (source_id, app_id, kind, source_type, status, run_at, created_at)
    SELECT DISTINCT coalesce(m.session_id, c.source_id, p.id >> 2), p.app_id,
        CASE p.id & 3 WHEN 0 THEN 'embed' WHEN 3 THEN 'note' ELSE 'index' END,
        CASE p.id & 3 WHEN 0 THEN 'memory' WHEN 3 THEN 'note' ELSE 'session' END, -1, ?2, ?2
    FROM passages p
    LEFT JOIN messages m ON p.id & 3 = 1 AND m.id = p.id >> 2
    LEFT JOIN chunks c ON p.id & 3 = 3 AND c.id = p.id >> 2
    WHERE {_LACKS.replace("?", "?1")} ORDER BY p.id & 3, p.id
    ON CONFLICT (kind, source_type, source_id) DO UPDATE SET
        status = -1, run_at = excluded.run_at, error_message = NULL, processed_at = NULL,
        -- A job whose worker ends at every try must fail for good, however often this is called.
        attempts = CASE status WHEN -1 THEN attempts ELSE 0 END,
        lease_owner = NULL, lease_until = NULL
    WHERE status != -1 OR lease_until IS NULL OR lease_until < ?2
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
    """Write a passage, or replace that of the same owner, with its keyword row. A vector that no
    text has any more is deleted."""
    i, app_id = passage.id, passage.app_id
    found = tx.rows("SELECT app_id, hash FROM passages WHERE id = ?", i)
    home, before = found[0] if found else (app_id, None)
    columns = (passage.text, passage.hash, int(passage.reply), int(passage.searched))
    tx.rows(_PUT, i, app_id, *columns)
    if found:
        keywords.remove(tx, [i])
    if passage.searched:
        keywords.write(tx, i, app_id, passage.words, passage.context, reply=passage.reply)
    if home != app_id:
        _record(tx, [(home, i)])
    if before or passage.hash:  # else no index has read it, and none has to
        _record(tx, [(app_id, i)])
    if before not in (None, passage.hash):
        remove_unused(tx, [before])


def put_text(
    tx: Tx, kind: Kind, owner_id: int, app_id: int, text: str, *, searched: bool = True
) -> None:
    """``put`` for what is found by the words that are embedded."""
    hashed = text_hash(text)
    put(tx, Passage(kind, owner_id, app_id, text, text, hashed, searched=searched))


def hide(tx: Tx, fact_id: int) -> None:
    """Have search find a fact no longer. It keeps its text and vector."""
    i = passage_id("fact", fact_id)
    rows = tx.rows("UPDATE passages SET searched = 0 WHERE id = ? RETURNING app_id, id", i)
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
    return _take(tx, f"id {_IN}", database.json_list(passage_id(kind, i) for i in owner_ids))


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


def keep_vectors(tx: Tx, service_id: int, made: Mapping[str, Any], now: datetime) -> set[str]:
    """Store vectors by the hash of their text, but for texts that went or were changed since they
    were sent; the hashes that are stored. Those of a service that the store is changing to are in
    no index yet."""
    found, asked = f"FROM passages WHERE hash {_IN}", database.json_list([*made])
    wanted = {row[0] for row in tx.rows(f"SELECT DISTINCT hash {found}", asked)}
    embeddings.put(tx, service_id, [(key, made[key]) for key in sorted(wanted)], now)
    if wanted and services.in_use(tx) == service_id:
        log = f"INSERT INTO changes (app_id, passage_id) SELECT app_id, id {found}"
        tx.rows(log, asked)
    return wanted


def unused_hashes(tx: Tx) -> list[str]:
    """The hashes of vectors that no passage has."""
    sql = f"SELECT DISTINCT hash FROM embeddings WHERE {_UNUSED}"
    return [row[0] for row in tx.rows(sql)]


def remove_unused(tx: Tx, hashes: Sequence[str]) -> None:
    """Delete the vectors of these hashes, of every service, unless a passage still has the hash."""
    if hashes:
        tx.rows(_REMOVE_UNUSED, database.json_list(hashes))


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
    ids = database.json_list(passage_id(kind, i) for i in owner_ids)
    sql = f"SELECT id >> 2, hash FROM passages WHERE id {_IN} AND hash IS NOT NULL"
    return dict(tx.rows(sql, ids))


def texts(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> list[UnembeddedText]:
    """The passages of these owners as they are embedded. Those that need no vector are left
    out."""
    ids = database.json_list(passage_id(kind, i) for i in owner_ids)
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


def lacking(
    tx: Tx, service_id: int, kind: JobKind, targets: Collection[int]
) -> dict[int, dict[str, str]]:
    """The texts without a vector of the facts, conversations or notes of such jobs, by hash, for
    each target that has any."""
    of_job, asked = _OF_JOB[kind], database.json_list(targets)
    sql = f"""
        WITH wanted AS ({of_job}) SELECT w.target, p.hash, {_TEXT}
        FROM wanted w CROSS JOIN passages p ON p.id = w.id {_NOTES} WHERE {_LACKS}
    """
    found: dict[int, dict[str, str]] = {}
    for target, key, text in tx.rows(sql, *[asked] * of_job.count("?"), service_id):
        found.setdefault(target, {})[key] = text
    return found


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


def queue_lacking(tx: Tx, service_id: int, now: datetime) -> None:
    """Queue the jobs for all that lack a vector, due now. Running jobs are left alone; failed ones
    start again."""
    tx.rows(_QUEUE, service_id, utc_text(now))


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
_e, _m, _j = vectors.c, memories.c, jobs.c
_services = service_rows.c
_service = cast(select(meta.c.value).where(meta.c.key == "service_id").scalar_subquery(), Integer)
_code = case(
    (_e.hash.is_not(None), 0),
    (_j.status == 0, null()),  # it was made once and deleted since
    else_=_j.status,
).label("code")
_VIEW: Select[Any] = select(
    _m.id,
    _code,
    case((_e.hash.is_not(None), _services.provider + "/" + _services.model)).label("model"),
    case((_e.hash.is_(None), _j.error_message)).label("error"),
    _j.attempts,
    _j.processed_at,
).select_from(
    memories.outerjoin(passages, passages.c.id == _m.id * 4)
    .outerjoin(vectors, and_(_e.hash == passages.c.hash, _e.service_id == _service))
    .outerjoin(service_rows, _services.id == _e.service_id)
    .outerjoin(jobs, and_(_j.kind == "embed", _j.source_type == "memory", _j.source_id == _m.id))
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
        for row in tx.execute(_VIEW.where(_m.id.in_(database.id_list(ids))))
    }


def ids_with_status(status: str) -> Select[Any]:
    """A query for the ids of all memories whose vector has this status."""
    conditions = {"pending": _code == -1, "completed": _code == 0, "failed": _code > 0}
    return _VIEW.with_only_columns(_m.id).where(conditions[status])


def is_unembedded(memory_id: ColumnElement[int]) -> ColumnElement[bool]:
    """A condition: the job that makes the memory's vector is unfinished or failed."""
    query = select(_j.id).where(_j.kind == "embed", _j.source_id == memory_id, _j.status != 0)
    return query.exists()


def unfinished_jobs(tx: Tx, memory_ids: Sequence[int], now: datetime) -> dict[int, Job]:
    """Those of these memories that have no vector yet, each with the job that makes it."""
    query = select(_j.id).where(
        _j.kind == "embed", _j.source_type == "memory", _j.source_id.in_(memory_ids), _j.status != 0
    )
    found = db_jobs.by_ids(tx, list(tx.execute(query).scalars()), now)
    return {job.target_id: job for job in found}


def _status(code: int | None) -> EmbeddingStatus | None:
    if code is None:
        return None
    return "pending" if code < 0 else "completed" if code == 0 else "failed"
