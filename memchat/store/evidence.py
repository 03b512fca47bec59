"""Which words of which message prove a memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, insert, select, update

from memchat.store import raw_sql
from memchat.store.records import from_text
from memchat.store.schema import memories, memory_sources
from memchat.types import Evidence

_s = memory_sources.c
_OF_MEMORIES = """
    SELECT s.memory_id, m.session_id, s.message_id, m.role, s.quote, s.start, m.created_at, t.title,
        (SELECT c.name FROM clients c WHERE c.session_id = m.session_id)
    FROM memory_sources s JOIN messages m ON m.id = s.message_id
    JOIN sessions t ON t.id = m.session_id
    WHERE s.memory_id IN (SELECT value FROM json_each(?)) ORDER BY s.message_id, s.start
"""
"""The columns in the order of an Evidence's fields."""


def add(tx: Connection, memory_id: int, proofs: Iterable[tuple[int, int, str]]) -> None:
    """Store (message id, start, quote) as evidence of a memory. What is stored already stays."""
    for message_id, start, quote in proofs:
        known = select(_s.id).where(
            _s.memory_id == memory_id,
            _s.message_id == message_id,
            _s.start == start,
            _s.quote == quote,
        )
        if tx.execute(known).first() is None:
            tx.execute(
                insert(memory_sources).values(
                    memory_id=memory_id, message_id=message_id, start=start, quote=quote
                )
            )


def of_memory(tx: Connection, memory_id: int) -> list[Evidence]:
    """The evidence of a memory, the oldest first."""
    return of_memories(tx, [memory_id]).get(memory_id, [])


def of_memories(tx: Connection, memory_ids: Sequence[int]) -> dict[int, list[Evidence]]:
    """The evidence of each of these memories, the oldest first."""
    found: dict[int, list[Evidence]] = {}
    for row in raw_sql.rows(tx, _OF_MEMORIES, raw_sql.json_list(memory_ids)):
        one = from_text(Evidence, row)
        found.setdefault(one.memory_id, []).append(one)
    return found


def messages_of(tx: Connection, memory_id: int) -> set[int]:
    """The ids of the messages that prove a memory."""
    query = select(_s.message_id).where(_s.memory_id == memory_id)
    return set(tx.execute(query).scalars())


def proved_memories(tx: Connection, message_ids: Sequence[int]) -> list[int]:
    """The ids of the memories that these messages prove."""
    query = select(_s.memory_id).where(_s.message_id.in_(message_ids)).distinct()
    return sorted(tx.execute(query).scalars())


def update_quotes(tx: Connection, message_id: int, content: str) -> None:
    """Update the quotes from a message after some of its words were blanked in place."""
    rows = tx.execute(select(memory_sources).where(_s.message_id == message_id)).all()
    for row in rows:
        quote = content[row.start : row.start + len(row.quote)]
        tx.execute(update(memory_sources).where(_s.id == row.id).values(quote=quote))


@dataclass(frozen=True, slots=True)
class LearnedFact:
    """A fact that was learned from a message, and its state."""

    message_id: int
    memory_id: int
    key: str
    value: str
    inactive_reason: str | None
    expires_at: date | None
    quote: str

    def over(self, today: date) -> bool:
        """Whether the fact no longer holds: it ended, was replaced, or its last day is past."""
        gone = self.inactive_reason is not None and self.inactive_reason != "merged"
        return gone or (self.expires_at is not None and self.expires_at < today)


def learned_from(tx: Connection, message_ids: Sequence[int]) -> list[LearnedFact]:
    """The facts learned from these messages, the oldest first, hidden ones too."""
    m = memories.c
    query = (
        select(_s.message_id, m.id, m.key, m.value, m.inactive_reason, m.expires_at, _s.quote)
        .join(memories, m.id == _s.memory_id)
        .where(_s.message_id.in_(message_ids))
        .order_by(m.id, _s.id)
    )
    return [LearnedFact(*row) for row in tx.execute(query)]
