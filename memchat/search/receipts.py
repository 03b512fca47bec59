"""Stores what each reply's prompt contained: its items, its system text, and how the search went.

A receipt explains a reply later, and tells where something that is to be forgotten was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from memchat.db import Tx, records
from memchat.db.records import columns, from_row
from memchat.db.schema import messages, prompts, receipts, sessions
from memchat.types import Hit, Message

_m = messages.c
_COPIED = ("kind", "text", "score", "cosine", "bm25", "prior", "dated", "channel", "tokens")
"""The fields of a hit that have a column of the same name."""


def add(tx: Tx, message_id: int, hits: Iterable[Hit]) -> None:
    """Store the items of a reply's prompt, in their order."""
    rows = [
        {"message_id": message_id, "position": position, "item_id": hit.id}
        | {name: getattr(hit, name) for name in _COPIED}
        for position, hit in enumerate(hits)
    ]
    if rows:
        tx.execute(insert(receipts), rows)


def of_reply(tx: Tx, message_id: int) -> list[Hit]:
    """The items of a reply's prompt, in their order."""
    query = select(receipts).where(receipts.c.message_id == message_id)
    rows = tx.execute(query.order_by(receipts.c.position))
    return [records.from_row(Hit, row, id=row.item_id) for row in rows]


def sessions_with(tx: Tx, kind: str, item_ids: Sequence[int]) -> list[int]:
    """The ids of the sessions with a reply whose prompt contained one of these items."""
    query = select(_m.session_id).join(receipts, receipts.c.message_id == _m.id)
    query = query.where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)).distinct()
    return list(tx.execute(query).scalars())


def items_in_any(tx: Tx, kind: str, item_ids: Sequence[int]) -> set[int]:
    """Which of these items were in any reply's prompt."""
    c = receipts.c
    query = select(c.item_id).where(c.kind == kind, c.item_id.in_(item_ids)).distinct()
    return set(tx.execute(query).scalars())


def remove(tx: Tx, kind: str, item_ids: Sequence[int]) -> None:
    """Delete these items from all receipts."""
    tx.execute(delete(receipts).where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids)))


_p = prompts.c


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """What a model was sent for a reply, except for the messages, which have rows of their own."""

    system: str | None
    """None if a memory in it was forgotten since."""
    first_message_id: int
    """The messages sent begin with this one and end before the reply."""
    tools: bool = False
    """Whether the model was offered the memory tools."""
    turns: int = 0
    """The number of messages sent; 0 in old rows, which do not have it."""
    shown: int = 0
    """The number of memory lines in it."""
    dropped: int = 0
    """The number of memories that the token budget left out."""
    degraded: str | None = None
    """Why only keywords were searched, or None."""
    list_id: int | None = None
    """The list of facts that was sent whatever was asked. ``system`` is then the text after it."""


def add_prompt(tx: Tx, message_id: int, sent: SentPrompt) -> None:
    """Store what a reply's model was sent."""
    tx.execute(insert(prompts).values(message_id=message_id, **columns(sent)))


def prompt_of_reply(tx: Tx, message_id: int) -> SentPrompt | None:
    """What a reply's model was sent; None if the reply was made by code alone."""
    row = tx.execute(select(prompts).where(_p.message_id == message_id)).first()
    return None if row is None else from_row(SentPrompt, row)


def reply_of(tx: Tx, turn: Message) -> int | None:
    """The id of the reply to a message: the message itself, or the next reply of its conversation;
    None if there is none."""
    query = select(_m.id).where(_m.session_id == turn.session_id, _m.role == "assistant")
    return tx.execute(query.where(_m.id >= turn.id).order_by(_m.id).limit(1)).scalar()


def latest_prompt(tx: Tx, app_id: int) -> int | None:
    """The id of the latest reply in a scope row's conversations, copies aside, or None."""
    query = select(_m.id).join(sessions, sessions.c.id == _m.session_id)
    made = (_m.role == "assistant") & _m.copied_from.is_(None)
    query = query.where(sessions.c.app_id == app_id, made)
    return tx.execute(query.order_by(_m.id.desc()).limit(1)).scalar()


def remove_prompts_with_items(tx: Tx, kind: str, item_ids: Sequence[int]) -> None:
    """Delete the system text of all prompts that contained one of these items."""
    given = select(receipts.c.message_id)
    given = given.where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids))
    tx.execute(update(prompts).where(_p.message_id.in_(given)).values(system=None))


def remove_prompts(tx: Tx, message_ids: Sequence[int]) -> None:
    """Delete the system text of these replies' prompts."""
    tx.execute(update(prompts).where(_p.message_id.in_(message_ids)).values(system=None))
