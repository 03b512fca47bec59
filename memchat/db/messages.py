"""The messages of conversations, with their keyword rows."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, or_, select, update

from memchat.db import database
from memchat.db.records import from_row
from memchat.db.schema import messages, searched_messages, sessions, unread_messages
from memchat.language.text import folded
from memchat.search import embeddings, keywords
from memchat.types import Message, Role

_m = messages.c


def add(
    tx: Connection,
    session_id: int,
    role: Role,
    content: str,
    now: datetime,
    status: str = "complete",
    memory: bool = True,
) -> int:
    """Store one message with its keyword row; returns its id.

    ``memory`` says whether memory was on when it was sent. Otherwise nothing is learned from it,
    and search never finds it.
    """
    values = {"role": role, "content": content, "created_at": now, "status": status}
    message_id: int = tx.execute(
        insert(messages)
        .values(session_id=session_id, memory=int(memory), **values)
        .returning(_m.id)
    ).scalar_one()
    if memory:
        keywords.write_turn(
            tx, message_id, _app_id(tx, session_id), content, "", reply=role != "user"
        )
    return message_id


def rewrite(tx: Connection, session_id: int, contents: Mapping[int, str]) -> None:
    """Replace the texts of messages of a conversation, by id, for example by the same ones with
    forgotten words blanked. They have to be embedded again."""
    unindex(tx, list(contents))
    for message_id, content in contents.items():
        tx.execute(update(messages).where(_m.id == message_id).values(content=content))
    write_keywords(tx, session_id, contents.keys())


def exclude(tx: Connection, ids: Sequence[int]) -> None:
    """Keep messages, but exclude them from search and from extraction; their copies, too."""
    unindex(tx, ids)
    every = or_(_m.id.in_(ids), _m.copied_from.in_(ids))
    tx.execute(update(messages).where(every).values(memory=0))
    _rewrite_around(tx, ids)


def remove(tx: Connection, ids: Sequence[int]) -> None:
    """Delete messages with their keyword rows. Evidence and receipts are deleted by cascade."""
    unindex(tx, ids)
    tx.execute(update(messages).where(_m.id.in_(ids)).values(memory=0))
    _rewrite_around(tx, ids)
    tx.execute(delete(messages).where(_m.id.in_(ids)))


def index(tx: Connection, texts: Mapping[int, str], session_id: int) -> None:
    """Set the text by which messages of a conversation are embedded and searched, by id. Vectors of
    their former texts are deleted."""
    held = {row.id: row for row in tx.execute(_indexed(session_id))}
    new = {i: words for i, words in texts.items() if held[i].search_text != words}
    for i, words in new.items():
        hashed = hashlib.sha256(words.encode()).hexdigest()
        values = {"search_text": words, "text_hash": hashed}
        tx.execute(update(messages).where(_m.id == i).values(**values))
    embeddings.remove_unused(tx, [row.text_hash for i in new if (row := held[i]).text_hash])
    write_keywords(tx, session_id, list(new))
    record_change(tx, session_id, list(new))


def unindex(tx: Connection, ids: Sequence[int]) -> None:
    """Remove messages, and the search texts made from them, from every search."""
    rows = tx.execute(
        select(_m.session_id, _m.text_hash).where(_m.id.in_(ids), _m.text_hash.is_not(None))
    ).all()
    for session_id in {row.session_id for row in rows}:
        record_change(tx, session_id, ids)
    keywords.remove(tx, "messages", ids)
    tx.execute(update(messages).where(_m.id.in_(ids)).values(search_text=None, text_hash=None))
    embeddings.remove_unused(tx, [row.text_hash for row in rows])


def record_change(tx: Connection, session_id: int, ids: Collection[int]) -> None:
    """Note that an index has to read these messages of a conversation and their neighbours
    again."""
    if ids:
        turns = [row.id for row in tx.execute(_indexed(session_id))]
        keywords.record(tx, _app_id(tx, session_id), "messages", _with_beside(turns, ids))


def write_keywords(tx: Connection, session_id: int, ids: Collection[int]) -> None:
    """Write the keyword rows of these messages of a conversation and of their neighbours."""
    turns = tx.execute(_indexed(session_id)).all()
    app_id = _app_id(tx, session_id)
    wanted = _with_beside([turn.id for turn in turns], ids)
    texts = ["", *((turn.search_text or turn.content) for turn in turns), ""]
    for n, turn in enumerate(turns, 1):
        if turn.id in wanted:
            # Neighbours count only once the message was read: before, its rows change all the time.
            beside = f"{texts[n - 1]}\n{texts[n + 1]}" if turn.search_text else ""
            reply = turn.role != "user"
            keywords.write_turn(tx, turn.id, app_id, texts[n], beside, reply=reply)


def _rewrite_around(tx: Connection, ids: Sequence[int]) -> None:
    """Write the keyword rows of the neighbours of these messages, which are no longer searched."""
    query = select(_m.id, _m.session_id).where(_m.id.in_(ids)).order_by(_m.id)
    for message_id, session_id in tx.execute(query).all():
        turns = [row.id for row in tx.execute(_indexed(session_id))]
        before = [i for i in turns if i < message_id][-1:]
        after = [i for i in turns if i > message_id][:1]
        write_keywords(tx, session_id, [*before, *after])


def _app_id(tx: Connection, session_id: int) -> int:
    sql = "SELECT app_id FROM sessions WHERE id = ?"
    return int(database.rows(tx, sql, session_id)[0][0])


def _indexed(session_id: int) -> Select[Any]:
    columns = (_m.id, _m.role, _m.content, _m.search_text, _m.text_hash)
    query = select(*columns).where(_m.session_id == session_id, searched_messages)
    return query.order_by(_m.id)


def _with_beside(turns: Sequence[int], ids: Collection[int]) -> set[int]:
    """These ids and those of their neighbours in the conversation."""
    asked = set(ids)
    places = [n for n, i in enumerate(turns) if i in asked]
    return {turns[n + d] for n in places for d in (-1, 0, 1) if 0 <= n + d < len(turns)}


def of_session(tx: Connection, session_id: int, *, learnable: bool = False) -> list[Message]:
    """The session's messages in order; with ``learnable`` only those sent while memory was on."""
    query = select(messages).where(_m.session_id == session_id).order_by(_m.id)
    if learnable:
        query = query.where(_m.memory == 1)
    return [from_row(Message, row) for row in tx.execute(query)]


def read_all(tx: Connection, message_id: int) -> None:
    """Store that all of a message is to be read, however long it is."""
    tx.execute(update(messages).where(_m.id == message_id).values(read_all=1))


def to_read_whole(tx: Connection, session_id: int) -> frozenset[int]:
    """The ids of the messages of a conversation of which all is to be read, however long."""
    query = select(_m.id).where(_m.session_id == session_id, _m.read_all == 1)
    return frozenset(tx.execute(query).scalars())


def first_words(tx: Connection, session_ids: Sequence[int], length: int) -> dict[int, str]:
    """How these conversations begin: the first ``length`` characters of the user's first message,
    in a copy of the first that is its own."""
    said = _m.session_id.in_(session_ids) & (_m.role == "user")
    own = func.min(_m.id).filter(_m.copied_from.is_(None))
    first = select(func.coalesce(own, func.min(_m.id))).where(said).group_by(_m.session_id)
    query = select(_m.session_id, func.substr(_m.content, 1, length)).where(_m.id.in_(first))
    return {row[0]: row[1] for row in tx.execute(query)}


def last_with_words(tx: Connection, session_ids: Sequence[int], search: str) -> dict[int, Message]:
    """The last message of each of these conversations that holds all words of a search, by the
    conversation."""
    held = func.memchat_holds_all(folded(search), _m.content)
    last = select(func.max(_m.id)).where(_m.session_id.in_(session_ids), held)
    query = select(messages).where(_m.id.in_(last.group_by(_m.session_id)))
    return {row.session_id: from_row(Message, row) for row in tx.execute(query)}


def ids_of(tx: Connection, session_id: int, *, learnable: bool = False) -> list[int]:
    """The ids of the messages of a conversation; with ``learnable`` of those sent while memory was
    on."""
    query = select(_m.id).where(_m.session_id == session_id)
    if learnable:
        query = query.where(_m.memory == 1)
    return list(tx.execute(query).scalars())


def unread_texts(tx: Connection) -> list[str]:
    """The user messages of all conversations that still wait for an extraction."""
    query = select(_m.content).join(sessions, sessions.c.id == _m.session_id).where(unread_messages)
    return list(tx.execute(query).scalars())


def by_ids(tx: Connection, ids: Sequence[int]) -> dict[int, Message]:
    """Messages by id."""
    return {
        row.id: from_row(Message, row) for row in tx.execute(select(messages).where(_m.id.in_(ids)))
    }


def of_app(tx: Connection, app_id: int) -> list[Message]:
    """All messages of a scope row's conversations."""
    query = select(messages).join(sessions, sessions.c.id == _m.session_id)
    return [from_row(Message, row) for row in tx.execute(query.where(sessions.c.app_id == app_id))]
