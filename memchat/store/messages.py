"""The turns of a conversation, and under each reply the receipt: exactly what was injected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from memchat.store import keywords
from memchat.store.schema import messages, receipts, sessions
from memchat.types import Hit, Message, Role

_m = messages.c


def add(
    tx: Connection,
    session_id: int,
    app_id: int,
    role: Role,
    content: str,
    now: datetime,
    status: str = "complete",
    memory: bool = True,
) -> int:
    """Write one turn with its keyword row; the new id.

    ``memory`` says whether memory was on when it was said: else nothing is ever learnt from it.
    """
    values = {"role": role, "content": content, "created_at": now, "status": status}
    message_id: int = tx.execute(
        insert(messages)
        .values(session_id=session_id, memory=int(memory), **values)
        .returning(_m.id)
    ).scalar_one()
    keywords.write(tx, "messages", message_id, app_id, content)
    return message_id


def rewrite(tx: Connection, message_id: int, app_id: int, content: str) -> None:
    """Replace a turn's words, e.g. with forgotten ones blanked."""
    tx.execute(update(messages).where(_m.id == message_id).values(content=content))
    keywords.write(tx, "messages", message_id, app_id, content)


def bar(tx: Connection, ids: Sequence[int]) -> None:
    """Leave turns as they are, but for no search to find and no extraction to learn from."""
    keywords.remove(tx, "messages", ids)
    tx.execute(update(messages).where(_m.id.in_(ids)).values(memory=0))


def remove(tx: Connection, ids: Sequence[int]) -> None:
    """Delete turns with their keyword rows; proofs and receipts go by cascade."""
    keywords.remove(tx, "messages", ids)
    tx.execute(delete(messages).where(_m.id.in_(ids)))


def keep_receipt(tx: Connection, message_id: int, hits: Iterable[Hit]) -> None:
    """Store what was injected for this reply, in the order it was shown."""
    rows = [
        {
            "message_id": message_id,
            "position": position,
            "kind": hit.kind,
            "item_id": hit.id,
            "text": hit.text,
            "score": hit.score,
            "cosine": hit.cosine,
            "bm25": hit.bm25,
            "channel": hit.channel,
            "tokens": hit.tokens,
        }
        for position, hit in enumerate(hits)
    ]
    if rows:
        tx.execute(insert(receipts), rows)


def receipt(tx: Connection, message_id: int) -> list[Hit]:
    """What was injected for this reply."""
    query = select(receipts).where(receipts.c.message_id == message_id)
    return [
        Hit(
            kind=row.kind,
            id=row.item_id,
            text=row.text,
            score=row.score,
            cosine=row.cosine,
            bm25=row.bm25,
            channel=row.channel,
            tokens=row.tokens,
        )
        for row in tx.execute(query.order_by(receipts.c.position))
    ]


def sessions_given(tx: Connection, kind: str, item_ids: Sequence[int]) -> list[int]:
    """The sessions with a reply for which one of these items was injected."""
    query = select(_m.session_id).join(receipts, receipts.c.message_id == _m.id)
    query = query.where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)).distinct()
    return list(tx.execute(query).scalars())


def received(tx: Connection, kind: str, item_ids: Sequence[int]) -> set[int]:
    """Which of these items were injected for any reply."""
    c = receipts.c
    query = select(c.item_id).where(c.kind == kind, c.item_id.in_(item_ids)).distinct()
    return set(tx.execute(query).scalars())


def drop_receipts(tx: Connection, kind: str, item_ids: Sequence[int]) -> None:
    """Take these items out of every receipt."""
    tx.execute(delete(receipts).where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)))


def of_session(tx: Connection, session_id: int, *, learnable: bool = False) -> list[Message]:
    """The session's turns in order; with ``learnable`` only those said while memory was on."""
    query = select(messages).where(_m.session_id == session_id).order_by(_m.id)
    if learnable:
        query = query.where(_m.memory == 1)
    return [_message(row) for row in tx.execute(query)]


def by_ids(tx: Connection, ids: Sequence[int]) -> dict[int, Message]:
    """Turns by id."""
    return {row.id: _message(row) for row in tx.execute(select(messages).where(_m.id.in_(ids)))}


def of_app(tx: Connection, app_id: int) -> list[Message]:
    """Every turn of a scope row's conversations."""
    query = select(messages).join(sessions, sessions.c.id == _m.session_id)
    return [_message(row) for row in tx.execute(query.where(sessions.c.app_id == app_id))]


def _message(row: Row[Any]) -> Message:
    return Message(
        id=row.id,
        session_id=row.session_id,
        role=row.role,
        content=row.content,
        created_at=row.created_at,
        status=row.status,
    )
