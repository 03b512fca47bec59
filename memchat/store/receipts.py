"""The receipt of each reply: the items that its prompt contained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, insert, select

from memchat.store import records
from memchat.store.schema import messages, receipts
from memchat.types import Hit

_m = messages.c
_COPIED = ("kind", "text", "score", "cosine", "bm25", "prior", "dated", "channel", "tokens")
"""The fields of a hit that have a column of the same name."""


def add(tx: Connection, message_id: int, hits: Iterable[Hit]) -> None:
    """Store the items of a reply's prompt, in their order."""
    rows = [
        {"message_id": message_id, "position": position, "item_id": hit.id}
        | {name: getattr(hit, name) for name in _COPIED}
        for position, hit in enumerate(hits)
    ]
    if rows:
        tx.execute(insert(receipts), rows)


def of_reply(tx: Connection, message_id: int) -> list[Hit]:
    """The items of a reply's prompt, in their order."""
    query = select(receipts).where(receipts.c.message_id == message_id)
    rows = tx.execute(query.order_by(receipts.c.position))
    return [records.from_row(Hit, row, id=row.item_id) for row in rows]


def sessions_with(tx: Connection, kind: str, item_ids: Sequence[int]) -> list[int]:
    """The ids of the sessions with a reply whose prompt contained one of these items."""
    query = select(_m.session_id).join(receipts, receipts.c.message_id == _m.id)
    query = query.where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)).distinct()
    return list(tx.execute(query).scalars())


def items_in_any(tx: Connection, kind: str, item_ids: Sequence[int]) -> set[int]:
    """Which of these items were in any reply's prompt."""
    c = receipts.c
    query = select(c.item_id).where(c.kind == kind, c.item_id.in_(item_ids)).distinct()
    return set(tx.execute(query).scalars())


def remove(tx: Connection, kind: str, item_ids: Sequence[int]) -> None:
    """Delete these items from all receipts."""
    tx.execute(delete(receipts).where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)))
