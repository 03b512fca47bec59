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

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among, columns, from_row
from memchat.types import Hit, Message

_m = t.messages.c
_COPIED = ("kind", "text", "score", "cosine", "bm25", "prior", "dated", "channel", "tokens")
"""The fields of a hit that have a column of the same name."""


_r = t.receipts.c
_ADD = sa.insert(t.receipts)


def add(tx: Tx, message_id: int, hits: Iterable[Hit]) -> None:
    """Store the items of a reply's prompt, in their order."""
    rows = [
        {"message_id": message_id, "position": position, "item_id": hit.id}
        | {name: getattr(hit, name) for name in _COPIED}
        for position, hit in enumerate(hits)
    ]
    tx.run_many(_ADD, rows)


def of_reply(tx: Tx, message_id: int) -> list[Hit]:
    """The items of a reply's prompt, in their order."""
    query = sa.select(t.receipts).where(t.receipts.c.message_id == message_id)
    rows = tx.execute(query.order_by(t.receipts.c.position))
    return [from_row(Hit, row, id=row.item_id) for row in rows]


_NOT_FOUND = ("all", "newest", "pinned", "listed")
"""The channels of what is in a prompt or a list whatever was asked."""


def found_in(tx: Tx, session_id: int) -> list[tuple[int, str, int]]:
    """What search found for the replies of a conversation, the best first: each time the reply,
    the kind and the id."""
    query = sa.select(_r.message_id, _r.kind, _r.item_id).join(t.messages, _m.id == _r.message_id)
    query = query.where(_m.session_id == session_id, _r.channel.not_in(_NOT_FOUND))
    query = query.order_by(_r.message_id, _r.score.desc(), _r.position)
    return [(row.message_id, row.kind, row.item_id) for row in tx.execute(query)]


def sessions_with(tx: Tx, kind: str, item_ids: Sequence[int]) -> list[int]:
    """The ids of the sessions with a reply whose prompt contained one of these items."""
    query = sa.select(_m.session_id).join(t.receipts, t.receipts.c.message_id == _m.id)
    query = query.where(t.receipts.c.kind == kind, t.receipts.c.item_id.in_(item_ids)).distinct()
    return list(tx.execute(query).scalars())


def items_in_any(tx: Tx, kind: str, item_ids: Sequence[int]) -> set[int]:
    """Which of these items were in any reply's prompt."""
    c = t.receipts.c
    query = sa.select(c.item_id).where(c.kind == kind, c.item_id.in_(item_ids)).distinct()
    return set(tx.execute(query).scalars())


_p = t.prompts.c
_held = sa.and_(_r.kind == sa.bindparam("of"), among(_r.item_id, "ids"))
_prompts = _p.message_id.in_(sa.select(_r.message_id).where(_held))
_REMOVE = (
    sa.update(t.prompts).where(_prompts).values(system=None),
    sa.delete(t.receipts).where(_held),
)


def remove(tx: Tx, kind: str, item_ids: Collection[int]) -> None:
    """Delete these items from all receipts, and the system text of the prompts that had them."""
    for statement in _REMOVE:
        tx.rows(statement, of=kind, ids=item_ids)


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


_ADD_PROMPT = sa.insert(t.prompts)


def add_prompt(tx: Tx, message_id: int, sent: SentPrompt) -> None:
    """Store what a reply's model was sent."""
    tx.rows(_ADD_PROMPT, message_id=message_id, **columns(sent))


def prompt_of_reply(tx: Tx, message_id: int) -> SentPrompt | None:
    """What a reply's model was sent; None if the reply was made by code alone."""
    row = tx.execute(sa.select(t.prompts).where(_p.message_id == message_id)).first()
    return None if row is None else from_row(SentPrompt, row)


def reply_of(tx: Tx, turn: Message) -> int | None:
    """The id of the reply to a message: the message itself, or the next reply of its conversation;
    None if there is none."""
    query = sa.select(_m.id).where(_m.session_id == turn.session_id, _m.role == "assistant")
    return tx.execute(query.where(_m.id >= turn.id).order_by(_m.id).limit(1)).scalar()


def latest_prompt(tx: Tx, app_id: int) -> int | None:
    """The id of the latest reply in a scope row's conversations, copies aside, or None."""
    query = sa.select(_m.id).join(t.sessions, t.sessions.c.id == _m.session_id)
    made = (_m.role == "assistant") & _m.copied_from.is_(None)
    query = query.where(t.sessions.c.app_id == app_id, made)
    return tx.execute(query.order_by(_m.id.desc()).limit(1)).scalar()


def remove_prompts(tx: Tx, message_ids: Sequence[int]) -> None:
    """Delete the system text of these replies' prompts."""
    tx.execute(sa.update(t.prompts).where(_p.message_id.in_(message_ids)).values(system=None))


_f = t.fact_lists.c
_l = t.fact_list_lines.c
Line = tuple[int, str]
"""A memory's id, and its words."""
_SAME = sa.select(_f.id).where(
    _f.session_id == sa.bindparam("session"), _f.hash == sa.bindparam("hashed")
)
_ADD_LINE = sa.insert(t.fact_list_lines)
_listed = sa.select(_f.session_id).join_from(t.fact_list_lines, t.fact_lists)
_listed = _listed.where(_l.memory_id == sa.bindparam("memory"))


def _with(session_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    return sa.or_(session_id.in_(_listed), among(session_id, "shown_in"))


_t = t.sessions.c
_replies = sa.select(_m.session_id, _m.content, sa.literal(0)).where(_m.role == "assistant")
_titles, _summaries = (
    sa.select(_t.id, text, sa.literal(1)).where(text.is_not(None), _with(_t.id))
    for text in (_t.title, _t.summary)
)
_TEXTS = _replies.where(_with(_m.session_id)).union_all(_titles, _summaries)
_lines = sa.select(_l.memory_id).where(among(_l.memory_id, "ids"))
_given = sa.select(_r.item_id).where(_r.kind == "memory", among(_r.item_id, "ids"))
_SENT_ANYWHERE = _lines.union(_given)


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
    known = tx.value(_SAME, session=session_id, hashed=hashed)
    if hashed is not None and known is not None:
        return int(known)
    values = {"session_id": session_id, "hash": hashed, "opening": opening, "created_at": now}
    list_id = tx.insert(t.fact_lists, **values)
    rows = (
        {"list_id": list_id, "position": n, "memory_id": i, "text": text}
        for n, (i, text) in enumerate(lines)
    )
    tx.run_many(_ADD_LINE, rows)
    return list_id


def list_of(tx: Tx, list_id: int) -> FactList:
    """A stored list, without the lines of facts that were forgotten."""
    opening = tx.execute(sa.select(_f.opening).where(_f.id == list_id)).scalar_one()
    query = sa.select(_l.memory_id, _l.text).where(_l.list_id == list_id).order_by(_l.position)
    return FactList(opening, tuple((row.memory_id, row.text) for row in tx.execute(query)))


def model_texts_with(
    tx: Tx, memory_id: int, shown_in: Collection[int] = ()
) -> list[tuple[int, str, int]]:
    """The replies, titles and summaries of the conversations whose lists contained this memory, and
    of those it was ``shown_in``: (session id, text, 1 for a title or summary and 0 for a reply)."""
    return tx.rows(_TEXTS, memory=memory_id, shown_in=shown_in)


def sent_to_models(tx: Tx, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories were sent to a model, by the lists and receipts."""
    return set(tx.column(_SENT_ANYWHERE, ids=memory_ids))


_theirs = among(_l.memory_id, "ids")
_lists = _f.id.in_(sa.select(_l.list_id).where(_theirs))
_REMOVE_LINES = (
    sa.update(t.fact_lists).where(_lists).values(hash=None, opening=None),
    sa.delete(t.fact_list_lines).where(_theirs),
)


def remove_list_lines(tx: Tx, memory_ids: Collection[int]) -> None:
    """Remove memories' lines from all lists, and the openings and hashes of those lists."""
    for statement in _REMOVE_LINES:
        tx.rows(statement, ids=memory_ids)
