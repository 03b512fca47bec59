"""What a person is asked to say yes to, whether it waited in the inbox or was not kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.store import events, memories
from memchat.types import InboxItem, Memory, MemoryType, Refusal


@dataclass(frozen=True, slots=True)
class Proposal:
    """All that a yes does: store, replace, end or repeat."""

    name: str
    """How a message speaks of it."""
    made_at: datetime
    memory_type: MemoryType
    key: str
    value: str
    many: bool
    relation: str
    target_id: int | None
    expires_at: date | None
    starts_at: date | None
    cues: tuple[str, ...]
    sensitive: bool
    message_id: int | None
    start: int | None
    end: int | None
    """Where its proof stands in the message; None where that may not be shown."""


def of_item(item: InboxItem, value: str | None = None) -> Proposal:
    """An inbox item's proposal, with ``value`` in place of its own."""
    assert item.key is not None
    quoted = item.quote is not None and item.start is not None and not item.masked
    return Proposal(
        name=f"item {item.id}",
        made_at=item.created_at,
        memory_type=item.memory_type or "other",
        key=item.key,
        value=(item.value or "") if value is None else value,
        many=item.many,
        relation=item.relation,
        target_id=item.target_id,
        expires_at=item.expires_at,
        starts_at=item.starts_at,
        cues=item.cues,
        sensitive=item.sensitive,
        message_id=item.message_id,
        start=item.start if quoted else None,
        end=(item.start or 0) + len(item.quote or "") if quoted else None,
    )


def of_refusal(refused: Refusal) -> Proposal:
    """The proposal of a refusal that has its words."""
    return Proposal(
        name=f"refusal {refused.id}",
        made_at=refused.created_at,
        memory_type=refused.memory_type or "other",
        key=refused.key or "",
        value=refused.value or "",
        many=refused.many,
        relation=refused.relation,
        target_id=refused.target_id,
        expires_at=refused.expires_at,
        starts_at=refused.starts_at,
        cues=refused.cues,
        sensitive=refused.sensitive,
        message_id=refused.message_id,
        start=refused.start,
        end=refused.end,
    )


def target_of(tx: Connection, ids: tuple[int, ...], what: Proposal) -> Memory | None:
    """The memory that a proposal replaces, ends or repeats, where it still is what was meant."""
    if what.relation not in ("updates", "ends", "same"):
        return None
    if what.target_id is None:
        # It speaks of something else that the same conversation taught.
        known = memories.with_key(tx, ids, what.key)
        return known[0] if len(known) == 1 and not known[0].many else None
    target = memories.get(tx, ids, what.target_id)
    if target is None or not target.active:
        return None
    return None if _changed_since(tx, target.id, what.made_at) else target


def _changed_since(tx: Connection, memory_id: int, at: datetime) -> bool:
    """Whether a memory was given other words; another last day leaves it what it is."""
    return any(
        event.at > at
        and event.kind == "edit"
        and (event.new or {}).get("value") != (event.old or {}).get("value")
        for event in events.of_memory(tx, memory_id)
    )
