"""Memories that were deleted and whose purge is held back: in nobody's sight, but undoable."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, update

from memchat.store import events, keywords
from memchat.store.events import Cause
from memchat.store.memories import FORGOTTEN, WITH_SCOPE, to_memory
from memchat.store.schema import memories as rows
from memchat.types import Memory


def hide(tx: Connection, memory: Memory, app_id: int, cause: Cause) -> None:
    """Take a row out of everybody's sight until it is purged, or shown again."""
    keywords.remove(tx, "memories", [memory.id])
    before = {"inactive_reason": memory.inactive_reason, "replaced_by": memory.replaced_by}
    values = {"active": 0, "inactive_reason": FORGOTTEN, "updated_at": cause.at}
    tx.execute(update(rows).where(rows.c.id == memory.id).values(**values))
    events.record(tx, memory.id, app_id, "hide", cause, old=before)


def show(tx: Connection, memory_id: int, app_id: int, cause: Cause) -> None:
    """Put a hidden row back as it was."""
    past = events.of_memory(tx, memory_id)
    before = next(event.old for event in reversed(past) if event.kind == "hide") or {}
    active = before.get("inactive_reason") is None
    row = tx.execute(
        update(rows)
        .where(rows.c.id == memory_id)
        .values(active=int(active), updated_at=cause.at, **before)
        .returning(rows.c.search_text)
    ).one()
    if active:
        keywords.write(tx, "memories", memory_id, app_id, row.search_text)
    events.record(tx, memory_id, app_id, "show", cause, new={"active": active})


def listed(tx: Connection, app_ids: Sequence[int], *, sha1: str | None = None) -> list[Memory]:
    """The rows of these scopes that wait for their purge; with ``sha1`` that very fact."""
    query = WITH_SCOPE.where(rows.c.app_id.in_(app_ids), rows.c.inactive_reason == FORGOTTEN)
    if sha1 is not None:
        query = query.where(rows.c.sha1 == sha1)
    return [to_memory(row) for row in tx.execute(query.order_by(rows.c.id))]
