"""What the user is asked to say yes to: an item of the inbox, or a refusal that they may keep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.memory.extraction.candidate import Relation
from memchat.memory.facts.fact import proposed
from memchat.store import events, memories
from memchat.types import InboxItem, Memory, MemoryType, Refusal


@dataclass(frozen=True, slots=True)
class Proposal:
    """All that a yes does: store, replace, end or repeat."""

    name: str
    """How an error message names it."""
    made_at: datetime
    memory_type: MemoryType
    key: str
    value: str
    many: bool
    relation: Relation
    target_id: int | None
    expires_at: date | None
    starts_at: date | None
    cues: tuple[str, ...]
    sensitive: bool
    message_id: int | None
    start: int | None
    end: int | None
    """Where its quote stands in the message; None where it may not be shown."""
    tags: tuple[str, ...] = ()


def of_item(item: InboxItem, value: str | None = None) -> Proposal:
    """An inbox item's proposal, with ``value`` in place of its own."""
    start = item.start if item.quote is not None and not item.masked else None
    end = None if start is None else start + len(item.quote or "")
    made = replace(_proposal(item, f"item {item.id}", start, end), tags=item.tags)
    return made if value is None else replace(made, value=value)


def of_refusal(refused: Refusal) -> Proposal:
    """The proposal of a refusal that has its words."""
    return _proposal(refused, f"refusal {refused.id}", refused.start, refused.end)


def _proposal(
    source: InboxItem | Refusal, name: str, start: int | None, end: int | None
) -> Proposal:
    fields = proposed(source)
    fields |= {
        "memory_type": source.memory_type or "other",
        "key": source.key or "",
        "value": source.value or "",
    }
    at, message_id = source.created_at, source.message_id
    return Proposal(name, at, message_id=message_id, start=start, end=end, **fields)


def target_of(tx: Connection, ids: tuple[int, ...], what: Proposal) -> Memory | None:
    """The memory that a proposal replaces, ends or repeats; None where it is gone or was
    reworded."""
    if what.relation not in ("updates", "ends", "same"):
        return None
    if what.target_id is None:
        # Its target was taught by the same conversation and had no id yet.
        known = memories.with_key(tx, ids, what.key)
        return known[0] if len(known) == 1 and not known[0].many else None
    target = memories.get(tx, ids, what.target_id)
    if target is None or not target.active:
        return None
    return None if _changed_since(tx, target.id, what.made_at) else target


def _changed_since(tx: Connection, memory_id: int, at: datetime) -> bool:
    """Whether a memory was given other words; another last day does not count."""
    return any(
        event.at > at
        and event.kind == "edit"
        and (event.new or {}).get("value") != (event.old or {}).get("value")
        for event in events.of_memory(tx, memory_id)
    )
