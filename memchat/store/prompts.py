"""The prompt behind each reply: its system text, where the turns begin, and how search went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from memchat.store.records import columns, from_row
from memchat.store.schema import messages, prompts, receipts, sessions
from memchat.types import Message

_p = prompts.c
_m = messages.c


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """What a model was sent for a reply, beside the turns; those stand in their own rows."""

    system: str | None
    """None where a memory that stood in it was forgotten since."""
    first_message_id: int
    """The turns sent begin here and end before the reply."""
    tools: bool = False
    """Whether the model was offered the tools of memory."""
    turns: int = 0
    """How many turns were sent; 0 where it was not counted yet."""
    shown: int = 0
    """Lines of memory in it."""
    dropped: int = 0
    """Those that the token budget left out."""
    degraded: str | None = None
    """Why only words were searched, where that is so."""
    list_id: int | None = None
    """The list of facts that was sent whatever was asked; ``system`` is then what stood behind it.
    """


def add(tx: Connection, message_id: int, sent: SentPrompt) -> None:
    """Store what this reply's model was sent."""
    tx.execute(insert(prompts).values(message_id=message_id, **columns(sent)))


def of_reply(tx: Connection, message_id: int) -> SentPrompt | None:
    """What this reply's model was sent; None where code answered alone."""
    row = tx.execute(select(prompts).where(_p.message_id == message_id)).first()
    return None if row is None else from_row(SentPrompt, row)


def reply_of(tx: Connection, turn: Message) -> int | None:
    """The reply to a turn: itself, or the next of its conversation; None where none was kept."""
    query = select(_m.id).where(_m.session_id == turn.session_id, _m.role == "assistant")
    return tx.execute(query.where(_m.id >= turn.id).order_by(_m.id).limit(1)).scalar()


def latest(tx: Connection, app_id: int) -> int | None:
    """The latest reply of a scope row's conversations."""
    query = select(_m.id).join(sessions, sessions.c.id == _m.session_id)
    query = query.where(sessions.c.app_id == app_id, _m.role == "assistant")
    return tx.execute(query.order_by(_m.id.desc()).limit(1)).scalar()


def remove_with_items(tx: Connection, kind: str, item_ids: Sequence[int]) -> None:
    """Drop the system text of every reply that was given one of these items."""
    given = select(receipts.c.message_id)
    given = given.where(receipts.c.kind == kind, receipts.c.item_id.in_(item_ids))
    tx.execute(update(prompts).where(_p.message_id.in_(given)).values(system=None))


def remove(tx: Connection, message_ids: Sequence[int]) -> None:
    """Drop the system text of these replies."""
    tx.execute(update(prompts).where(_p.message_id.in_(message_ids)).values(system=None))
