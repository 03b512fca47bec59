"""What waits for a person's yes: proposals that did not pass, and near pairs to judge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, or_, select

from memchat.store.schema import inbox


@dataclass(frozen=True, slots=True)
class Held:
    """One item for review: a proposal (key, value, quote), or a pair of stored memories."""

    reason: str
    message_id: int | None = None
    memory_type: str | None = None
    key: str | None = None
    value: str | None = None
    quote: str | None = None
    memory_id: int | None = None
    related_id: int | None = None


def add(tx: Connection, app_id: int, held: Held, now: datetime) -> None:
    """Keep an item, unless the same one waits or was rejected before."""
    c = inbox.c
    same = select(c.id).where(
        c.app_id == app_id,
        c.status != "accepted",
        c.key.is_not_distinct_from(held.key),
        c.value.is_not_distinct_from(held.value),
        c.memory_id.is_not_distinct_from(held.memory_id),
        c.related_id.is_not_distinct_from(held.related_id),
    )
    if tx.execute(same).first() is None:
        tx.execute(
            insert(inbox).values(
                app_id=app_id,
                created_at=now,
                reason=held.reason,
                message_id=held.message_id,
                memory_type=held.memory_type,
                key=held.key,
                value=held.value,
                quote=held.quote,
                memory_id=held.memory_id,
                related_id=held.related_id,
            )
        )


def drop_memory(tx: Connection, memory_id: int) -> None:
    """Remove what waits about a memory."""
    c = inbox.c
    tx.execute(delete(inbox).where(or_(c.memory_id == memory_id, c.related_id == memory_id)))


def drop_message(tx: Connection, message_id: int) -> None:
    """Remove what waits with words of a message."""
    tx.execute(delete(inbox).where(inbox.c.message_id == message_id))


def waiting(tx: Connection, app_id: int) -> int:
    """How many items wait in a scope row."""
    query = select(func.count()).where(inbox.c.app_id == app_id, inbox.c.status == "pending")
    return int(tx.execute(query).scalar_one())
