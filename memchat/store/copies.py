"""Copies of the beginning of a conversation, in a conversation of their own.

A copied message names the message that it is a copy of; a copy of a copy names the first one. Only
that one is searched and learned from. What replies were given is copied with them, so that a copied
reply is explained, and its words are forgotten, as those of any other.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select, update

from memchat.store import raw_sql
from memchat.store.records import from_row
from memchat.store.schema import messages, sessions, unread_messages, utc_text
from memchat.types import Message

_m, _s = messages.c, sessions.c
_MESSAGES = """
    INSERT INTO messages (session_id, role, content, status, memory, created_at, copied_from)
    SELECT ?1, role, content, status, memory, created_at, coalesce(copied_from, id)
    FROM messages WHERE session_id = ?2 AND id < ?3 ORDER BY id
"""
_PAIRS = """
    FROM messages n JOIN messages o ON coalesce(o.copied_from, o.id) = n.copied_from
    AND o.session_id = ?2
"""
"""Each new message with the one that it was copied from."""
_GIVEN = "position, kind, item_id, text, score, cosine, bm25, prior, dated, channel, tokens"
_RECEIPTS = f"""
    INSERT INTO receipts (message_id, {_GIVEN}) SELECT n.id, {_GIVEN} {_PAIRS}
    JOIN receipts r ON r.message_id = o.id WHERE n.session_id = ?1
"""
_SENT = "system, tools, turns, shown, dropped, degraded, list_id"
_PROMPTS = f"""
    INSERT INTO prompts (message_id, {_SENT}, first_message_id)
    SELECT n.id, {_SENT}, (
        SELECT min(f.id) FROM messages f WHERE f.session_id = ?1 AND f.copied_from >=
        coalesce((SELECT copied_from FROM messages WHERE id = p.first_message_id),
                 p.first_message_id))
    {_PAIRS} JOIN prompts p ON p.message_id = o.id WHERE n.session_id = ?1
"""
_LISTS = """
    SELECT DISTINCT p.list_id FROM prompts p JOIN messages n ON n.id = p.message_id
    WHERE n.session_id = ? AND p.list_id IS NOT NULL
"""
_LIST = """
    INSERT INTO fact_lists (session_id, hash, opening, created_at)
    SELECT ?, hash, opening, created_at FROM fact_lists WHERE id = ? RETURNING id
"""
_LINES = """
    INSERT INTO fact_list_lines (list_id, position, memory_id, text)
    SELECT ?, position, memory_id, text FROM fact_list_lines WHERE list_id = ?
"""
_RELIST = """
    UPDATE prompts SET list_id = ? WHERE list_id = ?
    AND message_id IN (SELECT id FROM messages WHERE session_id = ?)
"""
_MUTED = """
    INSERT INTO muted (session_id, memory_id, created_at)
    SELECT ?, memory_id, created_at FROM muted WHERE session_id = ?
"""


def add(tx: Connection, session_id: int, before: int, now: datetime) -> int:
    """Copy the messages of a conversation before a message into a new one, which has ended and is
    read as far as it goes; its id."""
    sql = (
        "INSERT INTO sessions (app_id, started_at, last_activity_at, ended_at, copied_from)"
        " SELECT app_id, ?1, ?1, ?1, id FROM sessions WHERE id = ?2 RETURNING id"
    )
    new_id = int(raw_sql.rows(tx, sql, utc_text(now), session_id)[0][0])
    raw_sql.rows(tx, _MESSAGES, new_id, session_id, before)
    for statement in (_RECEIPTS, _PROMPTS):
        raw_sql.rows(tx, statement, new_id, session_id)
    for (list_id,) in raw_sql.rows(tx, _LISTS, new_id):
        ((copied,),) = raw_sql.rows(tx, _LIST, new_id, list_id)
        raw_sql.rows(tx, _LINES, copied, list_id)
        raw_sql.rows(tx, _RELIST, copied, list_id, new_id)
    raw_sql.rows(tx, _MUTED, new_id, session_id)
    last = select(func.max(_m.id)).where(_m.session_id == new_id).scalar_subquery()
    read_to = update(sessions).where(_s.id == new_id).values(extracted_to=func.coalesce(last, 0))
    tx.execute(read_to)
    return new_id


def same_message(tx: Connection, message_id: int) -> list[tuple[int, int]]:
    """A message, what it is a copy of, and every copy of that: (message id, session id)."""
    first = select(func.coalesce(_m.copied_from, _m.id)).where(_m.id == message_id)
    first_id = tx.execute(first).scalar()
    query = select(_m.id, _m.session_id)
    query = query.where((_m.id == first_id) | (_m.copied_from == first_id))
    return [(row.id, row.session_id) for row in tx.execute(query.order_by(_m.id))]


def originals(tx: Connection, session_id: int) -> list[int]:
    """The ids of the messages that those of a conversation are copies of."""
    return list(tx.execute(_originals(session_id)).scalars())


def unread_originals(tx: Connection, session_id: int) -> list[Message]:
    """The user's messages among them that no extraction has read yet."""
    query = select(messages).join(sessions, _s.id == _m.session_id)
    query = query.where(_m.id.in_(_originals(session_id)), unread_messages)
    return [from_row(Message, row) for row in tx.execute(query.order_by(_m.id))]


def heirs_of_unread(tx: Connection, message_ids: Collection[int]) -> dict[int, int]:
    """Where ``take_place`` will put copies in the place of the user's messages that no extraction
    has read: by the session of the copies, the id of its first one."""
    unread = select(_m.id).join(sessions, _s.id == _m.session_id)
    ids = list(tx.execute(unread.where(_m.id.in_(message_ids), unread_messages)).scalars())
    first = select(_m.session_id, func.min(_m.id)).where(_m.copied_from.in_(ids))
    heirs: dict[int, int] = {}
    for session_id, message_id in tx.execute(first.group_by(_m.copied_from)):
        heirs[session_id] = min(message_id, heirs.get(session_id, message_id))
    return heirs


def take_place(tx: Connection, message_ids: Collection[int]) -> set[int]:
    """Put the first copy in the place of each of these messages, which are about to be deleted:
    what they prove, taught and proposed is the copy's from then on, and other copies are copies of
    it. The sessions with such copies."""
    first = select(_m.copied_from, func.min(_m.id)).where(_m.copied_from.in_(message_ids))
    touched = set()
    for old, new in tx.execute(first.group_by(_m.copied_from)).all():
        session_id = int(tx.execute(select(_m.session_id).where(_m.id == new)).scalar_one())
        raw_sql.rows(tx, "UPDATE messages SET copied_from = NULL WHERE id = ?", new)
        raw_sql.rows(tx, "UPDATE messages SET copied_from = ? WHERE copied_from = ?", new, old)
        for table in ("memory_sources", "inbox"):
            sql = f"UPDATE OR IGNORE {table} SET message_id = ? WHERE message_id = ?"
            raw_sql.rows(tx, sql, new, old)
        for table in ("memory_events", "refusals"):
            sql = f"UPDATE {table} SET message_id = ?, session_id = ? WHERE message_id = ?"
            raw_sql.rows(tx, sql, new, session_id, old)
        touched.add(session_id)
    return touched


def _originals(session_id: int) -> Select[Any]:
    return select(_m.copied_from).where(_m.session_id == session_id, _m.copied_from.is_not(None))
