"""The messages of conversations, and the passages by which search finds them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx, details
from memchat.db import schema as t
from memchat.db.records import among, from_row
from memchat.language.text import folded
from memchat.search import passages
from memchat.search.keywords import passage_id
from memchat.search.passages import Passage
from memchat.types import Attachment, Message, Role, Wanted

_m, _p = t.messages.c, t.passages.c
_APP = sa.select(t.sessions.c.app_id).where(t.sessions.c.id == sa.bindparam("session"))
_SEARCHED = (
    sa.select(_m.id, _m.role, _m.content, _p.text, _p.id.label("passage_id"))
    .outerjoin(t.passages, _p.id == passage_id("turn", _m.id))
    .where(_m.session_id == sa.bindparam("session"), t.searched_messages)
    .order_by(_m.id)
)
_EVERY = sa.select(t.messages).where(_m.session_id == sa.bindparam("session")).order_by(_m.id)
_OF_SESSION = _EVERY.where(_m.aside_with.is_(None))
_LEARNABLE = _OF_SESSION.where(_m.memory == 1)
_BY_IDS = sa.select(t.messages).where(among(_m.id, "ids"))


def add(
    tx: Tx,
    session_id: int,
    role: Role,
    content: str,
    now: datetime,
    status: str = "complete",
    memory: bool = True,
    attachments: Sequence[Attachment] = (),
) -> int:
    """Store one message with its passage; returns its id.

    ``memory`` says whether memory was on when it was sent. Otherwise nothing is learned from it,
    and search never finds it.
    """
    values: dict[str, Any] = {"role": role, "content": content, "created_at": now, "status": status}
    values["attachments"] = _stored(attachments)
    message_id = tx.insert(t.messages, session_id=session_id, memory=int(memory), **values)
    if memory:
        app_id, reply = tx.value(_APP, session=session_id), role != "user"
        passages.put(tx, Passage("turn", message_id, app_id, content, reply=reply))
    return message_id


def _stored(attachments: Sequence[Attachment]) -> str | None:
    given = [asdict(one) for one in attachments]
    return json.dumps(given, ensure_ascii=False) if given else None


def with_attachments(tx: Tx, app_ids: Sequence[int]) -> list[Message]:
    """The messages of these scope rows that have attachments, also those that are not shown."""
    query = sa.select(t.messages).join(t.sessions, t.sessions.c.id == _m.session_id)
    query = query.where(t.sessions.c.app_id.in_(app_ids), _m.attachments.is_not(None))
    return [from_row(Message, row) for row in tx.execute(query)]


def set_attachments(tx: Tx, message_id: int, attachments: Sequence[Attachment]) -> None:
    """Replace the attachments of a message, for example by the same ones with words blanked."""
    changed = sa.update(t.messages).where(_m.id == message_id)
    tx.execute(changed.values(attachments=_stored(attachments)))


def rewrite(tx: Tx, session_id: int, contents: Mapping[int, str]) -> None:
    """Replace the texts of messages of a conversation, by id, for example by the same ones with
    forgotten words blanked. They have to be embedded again."""
    passages.drop(tx, "turn", contents)
    for message_id, content in contents.items():
        tx.execute(sa.update(t.messages).where(_m.id == message_id).values(content=content))
    index(tx, session_id, contents.keys())


def exclude(tx: Tx, ids: Sequence[int]) -> None:
    """Keep messages, but exclude them from search and from extraction; their copies, too."""
    _exclude(tx, ids, sa.or_(_m.id.in_(ids), _m.copied_from.in_(ids)))


def remove(tx: Tx, ids: Sequence[int]) -> None:
    """Delete messages with their passages. Evidence and receipts are deleted by cascade."""
    _exclude(tx, ids, _m.id.in_(ids))
    tx.execute(sa.delete(t.messages).where(_m.id.in_(ids)))


def set_aside(tx: Tx, session_id: int, old_id: int, new_id: int) -> list[int]:
    """Show the message ``new_id`` and what follows it in the place of ``old_id`` and what followed
    that; the ids of what is shown no more, which neither search nor extraction reads."""
    shown = [turn.id for turn in of_session(tx, session_id)]
    ids = [i for i in shown if i >= old_id and not (new_id in shown and i >= new_id)]
    first = sa.select(sa.func.coalesce(_m.version_of, _m.id)).where(_m.id == old_id)
    place = tx.execute(first).scalar()
    newer = sa.update(t.messages).where(_m.id == new_id, _m.id != place)
    tx.execute(newer.values(version_of=place))
    _exclude(tx, ids, _m.id.in_(ids), aside_with=old_id)
    return ids


def bring_back(tx: Tx, session_id: int, message_id: int) -> list[int]:
    """Show the version again that this message begins; its ids, or none if it is shown."""
    ids = list(tx.execute(sa.select(_m.id).where(_m.aside_with == message_id)).scalars())
    tx.execute(sa.update(t.messages).where(_m.id.in_(ids)).values(aside_with=None))
    index(tx, session_id, ids)
    return ids


def versions(tx: Tx, session_id: int) -> dict[int, list[int]]:
    """Of each message that is shown and has other versions, the ids of all, the oldest first."""
    place = sa.func.coalesce(_m.version_of, _m.id).label("place")
    every = sa.select(_m.id, place, _m.aside_with).where(_m.session_id == session_id)
    places: dict[int, list[Any]] = {}
    for row in tx.execute(every.order_by(_m.id)):
        places.setdefault(row.place, []).append(row)
    return {
        row.id: [one.id for one in rows]
        for rows in places.values()
        for row in rows
        if len(rows) > 1 and row.aside_with is None
    }


def aside(tx: Tx, app_ids: Sequence[int]) -> list[Message]:
    """The messages of these scope rows that are not shown, as another version is."""
    query = sa.select(t.messages).join(t.sessions, t.sessions.c.id == _m.session_id)
    query = query.where(t.sessions.c.app_id.in_(app_ids), _m.aside_with.is_not(None))
    return [from_row(Message, row) for row in tx.execute(query)]


def _exclude(tx: Tx, ids: Sequence[int], which: sa.ColumnElement[bool], **values: int) -> None:
    passages.drop(tx, "turn", ids)
    tx.execute(sa.update(t.messages).where(which).values(values or {"memory": 0}))
    # Their neighbours have others around them now.
    query = sa.select(_m.id, _m.session_id).where(_m.id.in_(ids)).order_by(_m.id)
    for message_id, session_id in tx.execute(query).all():
        turns = [row.id for row in tx.rows(_SEARCHED, session=session_id)]
        before = [i for i in turns if i < message_id][-1:]
        after = [i for i in turns if i > message_id][:1]
        index(tx, session_id, [*before, *after])


def index(
    tx: Tx, session_id: int, ids: Collection[int], texts: Mapping[int, str] | None = None
) -> None:
    """Write the passages of these messages of a conversation and of their neighbours, whose words
    are their context. ``texts`` are those by which messages are embedded from now on."""
    for one in passages_of(tx, session_id, ids, texts):
        passages.put(tx, one)


def passages_of(
    tx: Tx, session_id: int, ids: Collection[int], texts: Mapping[int, str] | None = None
) -> list[Passage]:
    """The passages that ``index`` writes."""
    new = texts or {}
    turns = tx.rows(_SEARCHED, session=session_id)
    app_id, wanted, found = tx.value(_APP, session=session_id), set(ids), []
    said = [new.get(turn.id, turn.text) for turn in turns]
    words = ["", *(text or turn.content for text, turn in zip(said, turns, strict=True)), ""]
    places = {n + d for n, turn in enumerate(turns) if turn.id in wanted for d in (-1, 0, 1)}
    for n, turn in enumerate(turns):
        if n not in places:
            continue
        text, reply = said[n], turn.role != "user"
        # Neighbours count only once the message was read: before, its rows change all the time.
        context = f"{words[n]}\n{words[n + 2]}" if text else ""
        hashed = passages.text_hash(text) if text else None
        found.append(Passage("turn", turn.id, app_id, words[n + 1], text, hashed, context, reply))
    return found


def set_texts(tx: Tx, session_id: int, texts: Mapping[int, str]) -> None:
    """Set the text by which messages of a conversation are embedded and searched, by id. Vectors of
    their former texts are deleted."""
    turns = tx.rows(_SEARCHED, session=session_id)
    new = {t.id for t in turns if not t.passage_id or t.text != texts.get(t.id, t.text)}
    index(tx, session_id, new, texts)


def ids_that_fit(tx: Tx, app_id: int, wanted: Wanted) -> list[int]:
    """The ids of the messages of a scope row that were said in the time that is wanted, in
    conversations beside which it is noted."""
    query = sa.select(_m.id).join(t.sessions, t.sessions.c.id == _m.session_id)
    query = query.where(t.sessions.c.app_id == app_id, *details.noted(t.sessions, wanted.metadata))
    if wanted.since is not None:
        query = query.where(_m.created_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(_m.created_at <= wanted.until)
    return list(tx.execute(query).scalars())


def of_session(
    tx: Tx, session_id: int, *, learnable: bool = False, every: bool = False
) -> list[Message]:
    """The session's messages in order; with ``learnable`` only those sent while memory was on,
    with ``every`` also the versions that are not shown."""
    query = _LEARNABLE if learnable else _EVERY if every else _OF_SESSION
    return [from_row(Message, row) for row in tx.rows(query, session=session_id)]


def read_all(tx: Tx, message_id: int) -> None:
    """Store that all of a message is to be read, however long it is."""
    tx.execute(sa.update(t.messages).where(_m.id == message_id).values(read_all=1))


def to_read_whole(tx: Tx, session_id: int) -> frozenset[int]:
    """The ids of the messages of a conversation of which all is to be read, however long."""
    query = sa.select(_m.id).where(_m.session_id == session_id, _m.read_all == 1)
    return frozenset(tx.execute(query).scalars())


def first_words(tx: Tx, session_ids: Sequence[int], length: int) -> dict[int, str]:
    """How these conversations begin: the first ``length`` characters of the user's first message,
    in a copy of the first that is its own."""
    said = _m.session_id.in_(session_ids) & (_m.role == "user") & _m.aside_with.is_(None)
    own = sa.func.min(_m.id).filter(_m.copied_from.is_(None))
    first = sa.select(sa.func.coalesce(own, sa.func.min(_m.id))).where(said).group_by(_m.session_id)
    query = sa.select(_m.session_id, sa.func.substr(_m.content, 1, length)).where(_m.id.in_(first))
    return {row[0]: row[1] for row in tx.execute(query)}


_RECENT = sa.select(t.sessions.c.id).where(t.sessions.c.app_id == sa.bindparam("app"))
_RECENT = _RECENT.order_by(t.sessions.c.id.desc()).limit(3)
_SAID_LAST = (
    sa.select(sa.func.substr(_m.content, 1, 200))
    .where(_m.session_id.in_(_RECENT), _m.role == "user", _m.aside_with.is_(None))
    .order_by(_m.id.desc())
    .limit(5)
)


def said_last(tx: Tx) -> str:
    """How the user's last messages in the app begin."""
    return " \n".join(tx.column(_SAID_LAST, app=tx.own))


def last_with_words(tx: Tx, session_ids: Sequence[int], search: str) -> dict[int, Message]:
    """The last message of each of these conversations that holds all words of a search, by the
    conversation."""
    held = sa.func.memchat_holds_all(folded(search), _m.content)
    shown = _m.session_id.in_(session_ids) & _m.aside_with.is_(None)
    last = sa.select(sa.func.max(_m.id)).where(shown, held)
    query = sa.select(t.messages).where(_m.id.in_(last.group_by(_m.session_id)))
    return {row.session_id: from_row(Message, row) for row in tx.execute(query)}


def ids_of(tx: Tx, session_id: int) -> list[int]:
    """The ids of the messages of a conversation in all versions."""
    return list(tx.execute(sa.select(_m.id).where(_m.session_id == session_id)).scalars())


def by_ids(tx: Tx, ids: Sequence[int]) -> dict[int, Message]:
    """Messages by id."""
    return {row.id: from_row(Message, row) for row in tx.rows(_BY_IDS, ids=ids)}


def by_session(tx: Tx, ids: Collection[int]) -> dict[int, list[int]]:
    """These messages, by their conversation."""
    found: dict[int, list[int]] = {}
    for _, message in sorted(by_ids(tx, [*ids]).items()):
        found.setdefault(message.session_id, []).append(message.id)
    return found


def of_app(tx: Tx, app_id: int) -> list[Message]:
    """All messages of a scope row's conversations."""
    query = sa.select(t.messages).join(t.sessions, t.sessions.c.id == _m.session_id)
    rows = tx.execute(query.where(t.sessions.c.app_id == app_id))
    return [from_row(Message, row) for row in rows]
