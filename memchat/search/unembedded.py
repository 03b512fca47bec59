"""Texts that search needs a vector for and that have none yet, for one service: facts, messages,
summaries and chunks of notes.

Facts are queued one by one, messages and summaries with their conversation, chunks with their note.

The state of each memory's vector: not wanted, pending, completed or failed.

It is not stored, but read from the vector of the service in use, or from the job that makes it, so
that it cannot be out of date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.db import database
from memchat.db import jobs as db_jobs
from memchat.db.jobs import NOT_LEASED, UNFINISHED, is_free, unfinished
from memchat.db.records import from_row
from memchat.db.schema import (
    UtcTime,
    embeddings,
    jobs,
    memories,
    messages,
    meta,
    searched,
    searched_messages,
    services,
    sessions,
    sources,
)
from memchat.db.schema import chunks as parts
from memchat.notes import chunks
from memchat.types import EmbeddingState, EmbeddingStatus, Job

Kind = Literal["memory", "message", "session", "chunk"]
KINDS: tuple[Kind, ...] = ("memory", "message", "session", "chunk")
_e = embeddings.c
_m = memories.c
_s = sessions.c
_t = messages.c
_j = jobs.c
_c = parts.c
_read = and_(searched_messages, _t.id <= _s.extracted_to)
"""Messages that were read by an extraction, and that search may find."""
_WANTED: dict[Kind, Select[Any]] = {
    "memory": select(_m.id, _m.text_hash, _m.search_text, _m.app_id).where(searched),
    "message": select(_t.id, _t.text_hash, _t.search_text, _s.app_id)
    .join(sessions, _s.id == _t.session_id)
    .where(_read),
    "session": select(_s.id, _s.summary_hash, literal(None, String), _s.app_id).where(
        _s.summary.is_not(None), _s.summary != ""
    ),
    "chunk": select(_c.id, _c.hash, chunks.embedded_text, sources.c.app_id).join(
        sources, sources.c.id == _c.source_id
    ),
}
"""Id, hash, text to embed and scope row of everything that needs a vector. The hash is missing in
rows of older versions that were never indexed; the text of a summary to embed is not stored."""


@dataclass(frozen=True, slots=True)
class UnembeddedText:
    """A text without a vector. ``text`` is None for a summary, whose text is not stored."""

    kind: Kind
    id: int
    hash: str
    text: str | None


def next_after(
    tx: Connection, service_id: int, kind: Kind, last_id: int, limit: int
) -> list[UnembeddedText]:
    """The next texts of a kind without a vector, after an id, so that one that cannot be embedded
    is skipped."""
    wanted = _WANTED[kind]
    found = wanted.selected_columns
    id_, hashed = found[0], found[1]
    query = wanted.where(~_held(hashed, service_id), hashed.is_not(None), id_ > last_id)
    rows = tx.execute(query.order_by(id_).limit(limit))
    return [UnembeddedText(kind, row[0], row[1], row[2]) for row in rows]


def texts(tx: Connection, kind: Kind, ids: Sequence[int]) -> list[UnembeddedText]:
    """These texts as they are embedded. Those that need no vector are left out."""
    wanted = _WANTED[kind]
    id_, hashed = list(wanted.selected_columns)[:2]
    rows = tx.execute(wanted.where(id_.in_(ids), hashed.is_not(None)))
    return [UnembeddedText(kind, row[0], row[1], row[2]) for row in rows]


def sessions_to_index(tx: Connection) -> list[int]:
    """The ids of the conversations with a message or summary whose text to embed is not stored
    yet."""
    turns = select(_t.session_id).join(sessions, _s.id == _t.session_id)
    turns = turns.where(_read, _t.text_hash.is_(None))
    told = select(_s.id).where(_s.summary.is_not(None), _s.summary != "", _s.summary_hash.is_(None))
    return sorted(tx.execute(turns.union(told)).scalars())


def count(tx: Connection, service_id: int) -> int:
    """How many texts have no vector."""
    return sum(_rows(tx, _lacking(kind, service_id)) for kind in KINDS)


def total(tx: Connection) -> int:
    """How many texts need a vector."""
    return sum(_rows(tx, _WANTED[kind]) for kind in KINDS)


def enqueue_all(tx: Connection, service_id: int, now: datetime) -> None:
    """Queue the jobs for all of them, due now. Running jobs are left alone; failed ones start
    again."""
    facts = _lacking("memory", service_id).with_only_columns(_m.id, _m.app_id)
    turns = _lacking("message", service_id).with_only_columns(_s.id, _s.app_id)
    told = _lacking("session", service_id).with_only_columns(_s.id, _s.app_id)
    noted = _lacking("chunk", service_id).with_only_columns(sources.c.id, sources.c.app_id)
    _ask(tx, "embed", "memory", facts, now)
    _ask(tx, "index", "session", turns.union(told), now)
    _ask(tx, "note", "note", noted.distinct(), now)


def _ask(tx: Connection, kind: str, source: str, what: Any, now: datetime) -> None:
    found = what.subquery()
    at = literal(now, UtcTime)
    columns = ["source_id", "app_id", "kind", "source_type", "status", "run_at", "created_at"]
    rows = select(
        found.c.id,
        found.c.app_id,
        literal(kind, String),
        literal(source, String),
        literal(UNFINISHED),
        at,
        at,
    ).where(
        found.c.id.is_not(None)
    )  # without a WHERE, SQLite parses ON CONFLICT as a part of the join
    fresh = {
        "status": UNFINISHED,
        "run_at": now,
        # A job whose worker ends at every try must fail for good, however often this is called.
        "attempts": case((unfinished, _j.attempts), else_=0),
        "error_message": None,
        "processed_at": None,
        **NOT_LEASED,
    }
    tx.execute(
        upsert(jobs)
        .from_select(columns, rows.order_by(found.c.id))
        .on_conflict_do_update(
            index_elements=["kind", "source_type", "source_id"],
            set_=fresh,
            where=or_(~unfinished, is_free(now)),
        )
    )


def _lacking(kind: Kind, service_id: int) -> Select[Any]:
    wanted = _WANTED[kind]
    hashed = wanted.selected_columns[1]
    return wanted.where(or_(hashed.is_(None), ~_held(hashed, service_id)))


def _held(text_hash: ColumnElement[Any], service_id: int) -> ColumnElement[bool]:
    return select(_e.hash).where(_e.hash == text_hash, _e.service_id == service_id).exists()


def _rows(tx: Connection, query: Select[Any]) -> int:
    return int(tx.execute(select(func.count()).select_from(query.subquery())).scalar_one())


STATUSES = ("pending", "completed", "failed")
_services = services.c
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
    memories.outerjoin(embeddings, and_(_e.hash == _m.text_hash, _e.service_id == _service))
    .outerjoin(services, _services.id == _e.service_id)
    .outerjoin(jobs, and_(_j.kind == "embed", _j.source_type == "memory", _j.source_id == _m.id))
)


def of_memories(tx: Connection, ids: Sequence[int]) -> dict[int, EmbeddingState]:
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


def unfinished_jobs(tx: Connection, memory_ids: Sequence[int], now: datetime) -> dict[int, Job]:
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
