"""Sessions, the stored conversations: their rows, leases and copies, and the memories muted there.

A program that keeps its own conversations names each of them. Its names and turns are kept as keyed
hashes, so that they are recognised when they are sent again, even after their words were forgotten
or their session was deleted.

A copied message names the message that it is a copy of; a copy of a copy names the first one. Only
that one is searched and learned from. What replies were given is copied with them, so that a copied
reply is explained, and its words are forgotten, as those of any other.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.db import Tx, records
from memchat.db.records import from_row
from memchat.db.schema import (
    apps,
    clients,
    jobs,
    messages,
    muted,
    sessions,
    unread_messages,
    utc_text,
)
from memchat.language.text import folded
from memchat.search import passages
from memchat.search.passages import Passage
from memchat.types import Message, Session

_s = sessions.c

_COUNT = (
    select(func.count()).where(messages.c.session_id == _s.id).correlate(sessions).scalar_subquery()
)
_SELECT: Select[Any] = (
    select(
        sessions,
        apps.c.user,
        apps.c.name.label("app"),
        _COUNT.label("message_count"),
        jobs.c.status.label("job_status"),
    )
    .join(apps, apps.c.id == _s.app_id)
    .outerjoin(
        jobs,
        and_(jobs.c.kind == "extract", jobs.c.source_type == "session", jobs.c.source_id == _s.id),
    )
)


_open = _s.ended_at.is_(None)
_of_client = select(clients.c.id).where(clients.c.session_id == _s.id).exists()


class Position(NamedTuple):
    """The place of a session in a list, the latest active first."""

    last_activity_at: datetime
    id: int


def start(tx: Tx, app_id: int, owner: str, until: datetime, now: datetime) -> int:
    """Store a new open session with a lease; returns its id."""
    statement = insert(sessions).values(
        app_id=app_id, started_at=now, last_activity_at=now, lease_owner=owner, lease_until=until
    )
    return int(tx.execute(statement.returning(_s.id)).scalar_one())


def reopen(tx: Tx, session_id: int, owner: str, until: datetime, now: datetime) -> None:
    """Open a session again, with a new lease. What is said in it is said at ``now``, which may be
    before what is there."""
    said = literal(now, _s.last_activity_at.type)
    times = {
        "started_at": func.min(_s.started_at, said),
        "last_activity_at": func.max(_s.last_activity_at, said),
    }
    _set(tx, session_id, ended_at=None, lease_owner=owner, lease_until=until, **times)


def renew(tx: Tx, session_id: int, owner: str, until: datetime) -> bool:
    """Extend the lease; False if another process ended or reopened the session."""
    return _set(tx, session_id, _open, _s.lease_owner == owner, lease_until=until)


def hand_over(tx: Tx, session_id: int, owner: str, until: datetime) -> bool:
    """Give the lease of an open session to another owner; False if the session has ended."""
    return _set(tx, session_id, _open, lease_owner=owner, lease_until=until)


def touch(tx: Tx, session_id: int, now: datetime) -> None:
    """Store the time of the latest message."""
    _set(tx, session_id, last_activity_at=now)


def end(tx: Tx, session_id: int) -> bool:
    """End the session; False if it was ended already."""
    return _set(tx, session_id, _open, ended_at=tx.now, lease_owner=None, lease_until=None)


def open_sessions(
    tx: Tx, user: str | None = None
) -> list[tuple[Session, str | None, datetime | None]]:
    """All open sessions, of a user or of all, with their leases: (session, owner, until)."""
    query = _SELECT.where(_open)
    if user is not None:
        query = query.where(apps.c.user == user)
    return [(_session(row), row.lease_owner, row.lease_until) for row in tx.execute(query)]


def lease(tx: Tx, session_id: int) -> tuple[str | None, datetime | None]:
    """The owner of the session's lease, and until when it lasts."""
    row = tx.execute(select(_s.lease_owner, _s.lease_until).where(_s.id == session_id)).one()
    return row.lease_owner, row.lease_until


def lease_owners(tx: Tx) -> list[str]:
    """The owners of the leases of all open sessions."""
    query = select(_s.lease_owner).where(_open, _s.lease_owner.is_not(None))
    return list(tx.execute(query).scalars())


def mark_extracted(
    tx: Tx, session_id: int, message_id: int, title: str | None, summary: str | None
) -> None:
    """Store up to which message the session was read. A new summary replaces the old one; a title
    that is there stays."""
    values: dict[str, Any] = {"extracted_to": func.max(_s.extracted_to, message_id)}
    if title:
        values["title"] = func.coalesce(_s.title, title)
    _set(tx, session_id, **values)
    if summary:
        _summarise(tx, session_id, summary)


def mark_unread(tx: Tx, session_id: int, message_id: int) -> None:
    """Store that a message and those after it are to be read, also if they were read before."""
    _set(tx, session_id, extracted_to=func.min(_s.extracted_to, message_id - 1))


def rename(tx: Tx, session_id: int, title: str) -> None:
    """Set the title, as a person gave it."""
    _set(tx, session_id, title=title)


def set_description(tx: Tx, session_id: int, title: str | None, summary: str | None) -> None:
    """Set title and summary."""
    _set(tx, session_id, title=title)
    _summarise(tx, session_id, summary)


def _summarise(tx: Tx, session_id: int, summary: str | None) -> None:
    """Set the summary. It is found by its words until ``turns.write`` gives it a text to embed."""
    before = tx.execute(select(_s.summary, _s.app_id).where(_s.id == session_id)).one()
    if before.summary == summary:
        return
    _set(tx, session_id, summary=summary)
    passages.drop(tx, "summary", [session_id])
    if summary:
        passages.put(tx, Passage("summary", session_id, before.app_id, summary))


def get(tx: Tx, app_ids: Sequence[int], session_id: int) -> Session | None:
    """One session of these scope rows, or None."""
    row = tx.execute(_SELECT.where(_s.id == session_id, _s.app_id.in_(app_ids))).first()
    return None if row is None else _session(row)


def by_id(tx: Tx, session_id: int) -> tuple[Session, int] | None:
    """A session of any scope with its scope row, or None."""
    row = tx.execute(_SELECT.where(_s.id == session_id)).first()
    return None if row is None else (_session(row), row.app_id)


def ended_with_unread(tx: Tx, user: str) -> list[tuple[Session, int]]:
    """The user's ended sessions with messages that no extraction has read, and their scope rows."""
    unread = select(messages.c.id).where(messages.c.session_id == _s.id, unread_messages).exists()
    query = _SELECT.where(apps.c.user == user, ~_open, unread)
    return [(_session(row), row.app_id) for row in tx.execute(query)]


def app_id_of(tx: Tx, session_id: int) -> int:
    """The scope row of an existing session."""
    return int(tx.execute(select(_s.app_id).where(_s.id == session_id)).scalar_one())


def description(tx: Tx, session_id: int) -> tuple[str | None, str | None]:
    """Title and summary of an existing session."""
    row = tx.execute(select(_s.title, _s.summary).where(_s.id == session_id)).one()
    return row.title, row.summary


def any_in_app(tx: Tx, app_id: int) -> bool:
    """Whether a scope row has any session."""
    return bool(tx.rows("SELECT 1 FROM sessions WHERE app_id = ? LIMIT 1", app_id))


def starts(tx: Tx, app_id: int) -> list[tuple[int, datetime]]:
    """The ids of a scope row's sessions, each with when it began."""
    query = select(_s.id, _s.started_at).where(_s.app_id == app_id).order_by(_s.id)
    return [(row.id, row.started_at) for row in tx.execute(query)]


def set_read_to(tx: Tx, session_id: int, message_id: int) -> None:
    """Store up to which message a session was read, 0 for none."""
    _set(tx, session_id, extracted_to=message_id)


def ids_in_app(tx: Tx, app_id: int, session_ids: Sequence[int]) -> list[int]:
    """Those of these sessions that are in a scope row."""
    query = select(_s.id).where(_s.app_id == app_id, _s.id.in_(session_ids))
    return list(tx.execute(query).scalars())


def titles(tx: Tx, session_ids: Sequence[int]) -> dict[int, str | None]:
    """The titles of these sessions by id."""
    rows = tx.execute(select(_s.id, _s.title).where(_s.id.in_(session_ids)))
    return {row.id: row.title for row in rows}


def listed(
    tx: Tx,
    app_ids: Sequence[int],
    limit: int,
    after: Position | None = None,
    *,
    search: str = "",
) -> list[Session]:
    """The chats of these scope rows, the latest active first; with ``after`` those behind that
    place. With ``search`` only those with all its words in the title or in one message. What
    programs said over MCP is not among them."""
    query = _SELECT.where(_s.app_id.in_(app_ids), ~_of_client)
    query = query.order_by(_s.last_activity_at.desc(), _s.id.desc())
    if words := folded(search).strip():
        said = select(messages.c.id).where(
            messages.c.session_id == _s.id, func.memchat_holds_all(words, messages.c.content)
        )
        query = query.where(or_(func.memchat_holds_all(words, _s.title), said.exists()))
    if after is not None:
        same = and_(_s.last_activity_at == after.last_activity_at, _s.id < after.id)
        query = query.where(or_(_s.last_activity_at < after.last_activity_at, same))
    return [_session(row) for row in tx.execute(query.limit(limit))]


def remove(tx: Tx, session_id: int) -> None:
    """Delete a session. Its messages are deleted by cascade."""
    _summarise(tx, session_id, None)
    tx.execute(update(sessions).where(_s.copied_from == session_id).values(copied_from=None))
    tx.execute(delete(sessions).where(_s.id == session_id))


def has_unread_messages(tx: Tx, session_id: int) -> bool:
    """Whether the session has a user message that no extraction has read."""
    query = select(messages.c.id).join(sessions, _s.id == messages.c.session_id)
    query = query.where(_s.id == session_id, unread_messages)
    return tx.execute(query.limit(1)).first() is not None


def _set(tx: Tx, session_id: int, *only: ColumnElement[bool], **values: Any) -> bool:
    """Set columns of a session for which these conditions hold; False if there is none."""
    mine = update(sessions).where(_s.id == session_id, *only)
    return bool(tx.execute(mine.values(**values)).rowcount)


def _session(row: Row[Any]) -> Session:
    return from_row(Session, row, status=_status(row))


def _status(row: Row[Any]) -> str:
    if row.job_status is not None and row.job_status > 0:
        return "failed"
    if row.job_status == -1:
        return "pending"
    if row.ended_at is None:
        return "open"
    return "extracted" if row.extracted_to else "off"


_LENGTH = 8
"""Characters of a turn's hash: too few to tell which words were sent."""


def external(tx: Tx, app_id: int, name: str) -> tuple[int | None, list[str]]:
    """The session of this name, None where there is none (any more), and the turns that are known,
    as hashes."""
    sql = "SELECT session_id, turns FROM external_sessions WHERE app_id = ? AND name = ?"
    found = tx.rows(sql, app_id, _hash(records.hash_key(tx), name))
    if not found:
        return None, []
    session_id, turns = found[0]
    return session_id, [turns[i : i + _LENGTH] for i in range(0, len(turns), _LENGTH)]


def put_external(
    tx: Tx, app_id: int, name: str, session_id: int | None, turns: Sequence[str]
) -> None:
    """Keep which session has this name, None where none has it yet, and the turns that are
    known."""
    sql = (
        "INSERT INTO external_sessions (app_id, name, session_id, turns) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (app_id, name) DO UPDATE SET session_id = excluded.session_id,"
        " turns = excluded.turns"
    )
    tx.rows(sql, app_id, _hash(records.hash_key(tx), name), session_id, "".join(turns))


def turn_hashes(tx: Tx, turns: Iterable[tuple[str, str]]) -> list[str]:
    """The hashes of turns, each a role and its words."""
    key = records.hash_key(tx)
    return [_hash(key, f"{role}\0{words}")[:_LENGTH] for role, words in turns]


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


_m = messages.c
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


def add(tx: Tx, session_id: int, before: int, now: datetime) -> int:
    """Copy the messages of a conversation before a message into a new one, which has ended and is
    read as far as it goes; its id."""
    sql = (
        "INSERT INTO sessions (app_id, started_at, last_activity_at, ended_at, copied_from)"
        " SELECT app_id, ?1, ?1, ?1, id FROM sessions WHERE id = ?2 RETURNING id"
    )
    new_id = int(tx.rows(sql, utc_text(now), session_id)[0][0])
    tx.rows(_MESSAGES, new_id, session_id, before)
    for statement in (_RECEIPTS, _PROMPTS):
        tx.rows(statement, new_id, session_id)
    for (list_id,) in tx.rows(_LISTS, new_id):
        ((copied,),) = tx.rows(_LIST, new_id, list_id)
        tx.rows(_LINES, copied, list_id)
        tx.rows(_RELIST, copied, list_id, new_id)
    tx.rows(_MUTED, new_id, session_id)
    last = select(func.max(_m.id)).where(_m.session_id == new_id).scalar_subquery()
    read_to = update(sessions).where(_s.id == new_id).values(extracted_to=func.coalesce(last, 0))
    tx.execute(read_to)
    return new_id


def same_message(tx: Tx, message_id: int) -> list[tuple[int, int]]:
    """A message, what it is a copy of, and every copy of that: (message id, session id)."""
    first = select(func.coalesce(_m.copied_from, _m.id)).where(_m.id == message_id)
    first_id = tx.execute(first).scalar()
    query = select(_m.id, _m.session_id)
    query = query.where((_m.id == first_id) | (_m.copied_from == first_id))
    return [(row.id, row.session_id) for row in tx.execute(query.order_by(_m.id))]


def originals(tx: Tx, session_id: int) -> list[int]:
    """The ids of the messages that those of a conversation are copies of."""
    return list(tx.execute(_originals(session_id)).scalars())


def unread_originals(tx: Tx, session_id: int) -> list[Message]:
    """The user's messages among them that no extraction has read yet."""
    query = select(messages).join(sessions, _s.id == _m.session_id)
    query = query.where(_m.id.in_(_originals(session_id)), unread_messages)
    return [from_row(Message, row) for row in tx.execute(query.order_by(_m.id))]


def heirs_of_unread(tx: Tx, message_ids: Collection[int]) -> dict[int, int]:
    """Where ``take_place`` will put copies in the place of the user's messages that no extraction
    has read: by the session of the copies, the id of its first one."""
    unread = select(_m.id).join(sessions, _s.id == _m.session_id)
    ids = list(tx.execute(unread.where(_m.id.in_(message_ids), unread_messages)).scalars())
    first = select(_m.session_id, func.min(_m.id)).where(_m.copied_from.in_(ids))
    heirs: dict[int, int] = {}
    for session_id, message_id in tx.execute(first.group_by(_m.copied_from)):
        heirs[session_id] = min(message_id, heirs.get(session_id, message_id))
    return heirs


def take_place(tx: Tx, message_ids: Collection[int]) -> set[int]:
    """Put the first copy in the place of each of these messages, which are about to be deleted:
    what they prove, taught and proposed is the copy's from then on, and other copies are copies of
    it. The sessions with such copies."""
    first = select(_m.copied_from, func.min(_m.id)).where(_m.copied_from.in_(message_ids))
    touched = set()
    for old, new in tx.execute(first.group_by(_m.copied_from)).all():
        session_id = int(tx.execute(select(_m.session_id).where(_m.id == new)).scalar_one())
        tx.rows("UPDATE messages SET copied_from = NULL WHERE id = ?", new)
        tx.rows("UPDATE messages SET copied_from = ? WHERE copied_from = ?", new, old)
        sql = "UPDATE OR IGNORE memory_sources SET message_id = ? WHERE message_id = ?"
        tx.rows(sql, new, old)
        for table in ("memory_events", "proposals"):
            sql = f"UPDATE {table} SET message_id = ?, session_id = ? WHERE message_id = ?"
            tx.rows(sql, new, session_id, old)
        touched.add(session_id)
    return touched


def _originals(session_id: int) -> Select[Any]:
    return select(_m.copied_from).where(_m.session_id == session_id, _m.copied_from.is_not(None))


_muted = muted.c


def mute(tx: Tx, session_id: int, memory_id: int) -> None:
    """Leave a memory out of a conversation from now on."""
    values = {"session_id": session_id, "memory_id": memory_id, "created_at": tx.now}
    tx.execute(upsert(muted).values(**values).on_conflict_do_nothing())


def unmute(tx: Tx, session_id: int, memory_id: int) -> None:
    """Use a memory in the conversation again."""
    tx.execute(delete(muted).where(_muted.session_id == session_id, _muted.memory_id == memory_id))


def muted_of_session(tx: Tx, session_id: int) -> set[int]:
    """The ids of the memories that are left out of a conversation."""
    return set(
        tx.execute(select(_muted.memory_id).where(_muted.session_id == session_id)).scalars()
    )
