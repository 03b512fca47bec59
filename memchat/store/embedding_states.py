"""The state of each memory's vector: not wanted, pending, completed or failed.

It is not stored, but read from the vector of the service in use, or from the job that makes it, so
that it cannot be out of date.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Select, and_, case, cast, null, select

from memchat.store import job_lists, raw_sql
from memchat.store.records import from_row
from memchat.store.schema import embeddings, jobs, memories, meta, services
from memchat.types import EmbeddingState, EmbeddingStatus, Job

STATUSES = ("pending", "completed", "failed")
_m, _e, _j, _s = memories.c, embeddings.c, jobs.c, services.c
_service = cast(select(meta.c.value).where(meta.c.key == "service_id").scalar_subquery(), Integer)
_code = case(
    (_e.hash.is_not(None), 0),
    (_j.status == 0, null()),  # it was made once and deleted since
    else_=_j.status,
).label("code")
_VIEW: Select[Any] = select(
    _m.id,
    _code,
    case((_e.hash.is_not(None), _s.provider + "/" + _s.model)).label("model"),
    case((_e.hash.is_(None), _j.error_message)).label("error"),
    _j.attempts,
    _j.processed_at,
).select_from(
    memories.outerjoin(embeddings, and_(_e.hash == _m.text_hash, _e.service_id == _service))
    .outerjoin(services, _s.id == _e.service_id)
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
        for row in tx.execute(_VIEW.where(_m.id.in_(raw_sql.id_list(ids))))
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
    found = job_lists.by_ids(tx, list(tx.execute(query).scalars()), now)
    return {job.target_id: job for job in found}


def _status(code: int | None) -> EmbeddingStatus | None:
    if code is None:
        return None
    return "pending" if code < 0 else "completed" if code == 0 else "failed"
