"""How it stands with the vector of a memory: none wanted, pending, completed or failed.

A view over what is there: the vector itself in the service that the store uses, else the job that
is to make it. So it cannot tell anything that is not so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Integer, Select, and_, case, cast, null, select

from memchat.store.schema import embeddings, jobs, memories, meta, services
from memchat.types import EmbeddingState, EmbeddingStatus

STATUSES = ("pending", "completed", "failed")
_m, _e, _j, _s = memories.c, embeddings.c, jobs.c, services.c
_service = cast(select(meta.c.value).where(meta.c.key == "service_id").scalar_subquery(), Integer)
_code = case(
    (_e.hash.is_not(None), 0),
    (_j.status == 0, null()),  # it was made once, and is no more
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
    found: dict[int, EmbeddingState] = {}
    for i in range(0, len(ids), 500):
        for row in tx.execute(_VIEW.where(_m.id.in_(ids[i : i + 500]))):
            found[row.id] = EmbeddingState(
                memory_id=row.id,
                status=_status(row.code),
                code=row.code,
                model=row.model,
                error=row.error,
                attempts=row.attempts or 0,
                processed_at=row.processed_at,
            )
    return found


def having(status: str) -> Select[Any]:
    """The ids of all memories with this status, to select among."""
    conditions = {"pending": _code == -1, "completed": _code == 0, "failed": _code > 0}
    return _VIEW.with_only_columns(_m.id).where(conditions[status])


def _status(code: int | None) -> EmbeddingStatus | None:
    if code is None:
        return None
    return "pending" if code < 0 else "completed" if code == 0 else "failed"
