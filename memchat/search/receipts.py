"""What each reply's prompt contained: its items, its system text and facts, and the search.

A receipt explains a reply later, and tells where something that is to be forgotten was sent. A fact
list is the part of a prompt that holds facts whatever was asked; it is stored once for the
conversation, and replies that were given the same list share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from memchat.db import Tx, database, records
from memchat.db.records import columns, from_row
from memchat.db.schema import fact_list_lines, fact_lists, messages, prompts, receipts, sessions
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


_f = fact_lists.c
_l = fact_list_lines.c
Line = tuple[int, str]
"""A memory's id, and its words."""
_SENT = """
    (SELECT f.session_id FROM fact_list_lines l JOIN fact_lists f ON f.id = l.list_id
     WHERE l.memory_id = ?1 UNION SELECT value FROM json_each(?2))
"""
_TEXTS = f"""
    SELECT session_id, content, 0 FROM messages WHERE role = 'assistant' AND session_id IN {_SENT}
    UNION ALL SELECT id, title, 1 FROM sessions WHERE title IS NOT NULL AND id IN {_SENT}
    UNION ALL SELECT id, summary, 1 FROM sessions WHERE summary IS NOT NULL AND id IN {_SENT}
"""
_SENT_ANYWHERE = """
    WITH wanted (id) AS (SELECT value FROM json_each(?1))
    SELECT memory_id FROM fact_list_lines WHERE memory_id IN wanted
    UNION SELECT item_id FROM receipts WHERE kind = 'memory' AND item_id IN wanted
"""


@dataclass(frozen=True, slots=True)
class FactList:
    """A list of facts as a prompt contained it."""

    opening: str | None
    """The system text before the list; None if one of its facts was forgotten since."""
    lines: tuple[Line, ...]


def add_list(
    tx: Tx, session_id: int, opening: str | None, lines: Sequence[Line], now: datetime
) -> int:
    """The id of this list in a conversation, stored if it is new.

    A list without an opening is incomplete, so it is never taken for an earlier one.
    """
    words = "\n".join([opening or "", *(f"{i} {text}" for i, text in lines)])
    hashed = hashlib.sha256(words.encode()).hexdigest() if opening is not None else None
    same = select(_f.id).where(_f.session_id == session_id, _f.hash == hashed)
    if hashed is not None and (known := tx.execute(same).scalar()) is not None:
        return int(known)
    values = {"session_id": session_id, "hash": hashed, "opening": opening, "created_at": now}
    added = tx.execute(insert(fact_lists).values(**values).returning(_f.id))
    list_id = int(added.scalar_one())
    rows = [(list_id, n, i, text) for n, (i, text) in enumerate(lines)]
    tx.run_many("INSERT INTO fact_list_lines VALUES (?, ?, ?, ?)", rows)
    return list_id


def list_of(tx: Tx, list_id: int) -> FactList:
    """A stored list, without the lines of facts that were forgotten."""
    opening = tx.execute(select(_f.opening).where(_f.id == list_id)).scalar_one()
    query = select(_l.memory_id, _l.text).where(_l.list_id == list_id).order_by(_l.position)
    return FactList(opening, tuple((row.memory_id, row.text) for row in tx.execute(query)))


def model_texts_with(
    tx: Tx, memory_id: int, shown_in: Collection[int] = ()
) -> list[tuple[int, str, int]]:
    """The replies, titles and summaries of the conversations whose lists contained this memory, and
    of those it was ``shown_in``: (session id, text, 1 for a title or summary and 0 for a reply)."""
    return tx.rows(_TEXTS, memory_id, database.json_list(shown_in))


def sent_to_models(tx: Tx, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories were sent to a model, by the lists and receipts."""
    return {row[0] for row in tx.rows(_SENT_ANYWHERE, database.json_list(memory_ids))}


def remove_list_lines(tx: Tx, memory_ids: Collection[int]) -> None:
    """Remove memories' lines from all lists, and the openings and hashes of those lists."""
    held = select(_l.list_id).where(_l.memory_id.in_(memory_ids))
    tx.execute(update(fact_lists).where(_f.id.in_(held)).values(hash=None, opening=None))
    tx.execute(delete(fact_list_lines).where(_l.memory_id.in_(memory_ids)))
