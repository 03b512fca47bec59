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
import re
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import Match, SequenceMatcher
from typing import Any, NamedTuple

import sqlalchemy as sa

from memchat.db import Tx, details, records
from memchat.db import schema as t
from memchat.db.records import among, from_row, upsert
from memchat.language.text import folded
from memchat.search import passages
from memchat.search.passages import Passage
from memchat.types import Message, Session

_s, _m, _x = t.sessions.c, t.messages.c, t.external_sessions.c
_j, _a = t.jobs.c, t.apps.c
_count = sa.select(sa.func.count()).where(_m.session_id == _s.id).correlate(t.sessions)
_reading = sa.and_(_j.kind == "extract", _j.source_type == "session", _j.source_id == _s.id)
_SELECT: sa.Select[Any] = (
    sa.select(
        t.sessions,
        _a.user,
        _a.name.label("app"),
        _count.scalar_subquery().label("message_count"),
        _j.status.label("job_status"),
        details.of_row(t.sessions),
    )
    .join_from(t.sessions, t.apps)
    .outerjoin(t.jobs, _reading)
)
_open = _s.ended_at.is_(None)
_of_client = sa.select(t.clients.c.id).where(t.clients.c.session_id == _s.id).exists()


class Position(NamedTuple):
    """The place of a session in a list, the latest active first."""

    last_activity_at: datetime
    id: int


def start(
    tx: Tx, app_id: int, owner: str, until: datetime, now: datetime, *, memory: bool = True
) -> int:
    """Store a new open session with a lease; returns its id. ``memory`` is its own switch."""
    times = {"started_at": now, "last_activity_at": now, "lease_until": until}
    return tx.insert(t.sessions, app_id=app_id, lease_owner=owner, memory=int(memory), **times)


def reopen(tx: Tx, session_id: int, owner: str, until: datetime, now: datetime) -> None:
    """Open a session again, with a new lease. What is said in it is said at ``now``, which may be
    before what is there."""
    said = sa.literal(now, _s.last_activity_at.type)
    times = {
        "started_at": sa.func.min(_s.started_at, said),
        "last_activity_at": sa.func.max(_s.last_activity_at, said),
    }
    change(tx, session_id, ended_at=None, lease_owner=owner, lease_until=until, **times)


def renew(tx: Tx, session_id: int, owner: str, until: datetime) -> bool:
    """Extend the lease; False if another process ended or reopened the session."""
    return change(tx, session_id, _open, _s.lease_owner == owner, lease_until=until)


def hand_over(tx: Tx, session_id: int, owner: str, until: datetime) -> bool:
    """Give the lease of an open session to another owner; False if the session has ended."""
    return change(tx, session_id, _open, lease_owner=owner, lease_until=until)


def end(tx: Tx, session_id: int) -> bool:
    """End the session; False if it was ended already."""
    return change(tx, session_id, _open, ended_at=tx.now, lease_owner=None, lease_until=None)


def open_sessions(
    tx: Tx, user: str | None = None
) -> list[tuple[Session, str | None, datetime | None]]:
    """All open sessions, of a user or of all, with their leases: (session, owner, until)."""
    query = _SELECT.where(_open)
    if user is not None:
        query = query.where(_a.user == user)
    return [(_session(row), row.lease_owner, row.lease_until) for row in tx.execute(query)]


def lease(tx: Tx, session_id: int) -> tuple[str | None, datetime | None]:
    """The owner of the session's lease, and until when it lasts."""
    row = tx.execute(sa.select(_s.lease_owner, _s.lease_until).where(_s.id == session_id)).one()
    return row.lease_owner, row.lease_until


def through(tx: Tx, session_id: int) -> str | None:
    """The program that the person does not trust yet, through which it was last said."""
    return tx.execute(sa.select(_s.through).where(_s.id == session_id)).scalar()


def mark_extracted(
    tx: Tx, session_id: int, message_id: int, title: str | None, summary: str | None
) -> None:
    """Store up to which message the session was read. A new summary replaces the old one; a title
    that is there stays."""
    values: dict[str, Any] = {"extracted_to": sa.func.max(_s.extracted_to, message_id)}
    if title:
        values["title"] = sa.func.coalesce(_s.title, title)
    change(tx, session_id, **values)
    if summary:
        _summarise(tx, session_id, summary)


def mark_unread(tx: Tx, session_id: int, message_id: int) -> None:
    """Store that a message and those after it are to be read, also if they were read before."""
    change(tx, session_id, extracted_to=sa.func.min(_s.extracted_to, message_id - 1))


def set_description(tx: Tx, session_id: int, title: str | None, summary: str | None) -> None:
    """Set title and summary."""
    change(tx, session_id, title=title)
    _summarise(tx, session_id, summary)


def _summarise(tx: Tx, session_id: int, summary: str | None) -> None:
    """Set the summary. It is found by its words until ``turns.write`` gives it a text to embed."""
    before = tx.execute(sa.select(_s.summary, _s.app_id).where(_s.id == session_id)).one()
    if before.summary == summary:
        return
    change(tx, session_id, summary=summary)
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
    unread = sa.select(_m.id).where(_m.session_id == _s.id, t.unread_messages).exists()
    query = _SELECT.where(_a.user == user, ~_open, unread)
    return [(_session(row), row.app_id) for row in tx.execute(query)]


def app_id_of(tx: Tx, session_id: int) -> int:
    """The scope row of an existing session."""
    return int(tx.execute(sa.select(_s.app_id).where(_s.id == session_id)).scalar_one())


def description(tx: Tx, session_id: int) -> tuple[str | None, str | None]:
    """Title and summary of an existing session."""
    row = tx.execute(sa.select(_s.title, _s.summary).where(_s.id == session_id)).one()
    return row.title, row.summary


_ANY = sa.select(_s.id).where(_s.app_id == sa.bindparam("app")).limit(1)


def any_in_app(tx: Tx, app_id: int) -> bool:
    """Whether a scope row has a conversation."""
    return tx.value(_ANY, app=app_id) is not None


def ids_in_app(tx: Tx, app_id: int, session_ids: Sequence[int]) -> list[int]:
    """Those of these sessions that are in a scope row."""
    query = sa.select(_s.id).where(_s.app_id == app_id, _s.id.in_(session_ids))
    return list(tx.execute(query).scalars())


_KNOWN = sa.select(_s.id, _s.title, _s.extracted_to).where(among(_s.id, "ids"))
_being_read = sa.select(_j.source_id).where(
    _j.kind == "extract", _j.app_id == sa.bindparam("app"), _j.status == sa.literal_column("-1")
)
_RESTING = (
    sa.select(t.messages)
    .join(t.sessions, _s.id == _m.session_id)
    .where(_s.app_id == sa.bindparam("app"), _m.session_id != sa.bindparam("session"))
    .where(t.unread_messages, _m.copied_from.is_(None), _m.created_at > sa.bindparam("since"))
    .where(sa.or_(_open, _s.id.in_(_being_read)))
    .order_by(_m.id.desc())
    .limit(sa.bindparam("most"))
)


def known(tx: Tx, session_ids: Collection[int]) -> dict[int, Any]:
    """Of each of these sessions its ``title``, and up to which message it was read
    (``extracted_to``)."""
    return {row.id: row for row in tx.rows(_KNOWN, ids=session_ids)}


def resting(tx: Tx, app_id: int, without: int | None, since: datetime, most: int) -> list[Message]:
    """What the person said in a scope row after ``since`` that is still to be read, the newest
    first, ``most`` at most; nothing of the session ``without``."""
    rows = tx.rows(_RESTING, app=app_id, session=without or 0, since=since, most=most)
    return [from_row(Message, row) for row in rows]


def listed(
    tx: Tx,
    app_ids: Sequence[int],
    limit: int,
    after: Position | None = None,
    *,
    search: str = "",
    shelf: str | None = None,
    topic: int | None = None,
) -> list[Session]:
    """The chats of these scope rows, the latest active first; with ``after`` those behind that
    place. With ``search`` only those with all its words in the title or in one message, with
    ``shelf`` those that were put there, or nowhere, with
    ``topic`` those of a topic. What programs said over MCP is not among
    them."""
    query = _SELECT.where(_s.app_id.in_(app_ids), ~_of_client)
    query = query.order_by(_s.last_activity_at.desc(), _s.id.desc())
    if words := folded(search).strip():
        said = sa.select(_m.id).where(
            _m.session_id == _s.id,
            _m.aside_with.is_(None),
            sa.func.memchat_holds_all(words, _m.content),
        )
        query = query.where(sa.or_(sa.func.memchat_holds_all(words, _s.title), said.exists()))
    if shelf is not None:
        query = query.where(sa.func.coalesce(_s.shelf, "") == shelf)
    if topic is not None:
        query = query.where(_s.topic_id == topic)
    if after is not None:
        same = sa.and_(_s.last_activity_at == after.last_activity_at, _s.id < after.id)
        query = query.where(sa.or_(_s.last_activity_at < after.last_activity_at, same))
    return [_session(row) for row in tx.execute(query.limit(limit))]


def remove(tx: Tx, session_id: int) -> None:
    """Delete a session. Its messages are deleted by cascade."""
    _summarise(tx, session_id, None)
    tx.execute(sa.update(t.sessions).where(_s.copied_from == session_id).values(copied_from=None))
    tx.execute(sa.delete(t.sessions).where(_s.id == session_id))


def has_unread_messages(tx: Tx, session_id: int) -> bool:
    """Whether the session has a user message that no extraction has read."""
    query = sa.select(_m.id).join(t.sessions, _s.id == _m.session_id)
    query = query.where(_s.id == session_id, t.unread_messages)
    return tx.execute(query.limit(1)).first() is not None


def change(tx: Tx, session_id: int, *only: sa.ColumnElement[bool], **values: Any) -> bool:
    """Set columns of a session, if these conditions hold; False if they do not."""
    mine = sa.update(t.sessions).where(_s.id == session_id, *only)
    return bool(tx.execute(mine.values(**values)).rowcount)


def _session(row: sa.Row[Any]) -> Session:
    return from_row(Session, row, status=_status(row))


def _status(row: sa.Row[Any]) -> str:
    if row.job_status is not None and row.job_status > 0:
        return "failed"
    if row.job_status == -1:
        return "pending"
    if row.ended_at is None:
        return "open"
    return "extracted" if row.extracted_to else "off"


_LENGTH = 8
"""Characters of a turn's hash: too few to tell which words were sent."""
_MADE = "memchat-"
"""How names begin that memchat made for conversations of programs: they are kept as they are, to be
given back; a program's own are kept as hashes."""
_PUT_EXTERNAL = upsert(t.external_sessions, "session_id", "turns", "ends", "before")


def external(tx: Tx, app_id: int, name: str) -> tuple[int | None, list[str]]:
    """The session of this name, None where there is none (any more), and the turns that are known,
    as hashes."""
    named = _x.name == _hashed_name(tx, name)
    found = tx.execute(sa.select(_x.session_id, _x.turns).where(_x.app_id == app_id, named)).first()
    return (found[0], apart(found[1])) if found else (None, [])


def of_program(
    tx: Tx, app_id: int, program: str, turns: Sequence[str], *, before: bool = False
) -> list[tuple[str, list[str]]]:
    """The conversations of a program, by the names that ``program_name`` made, whose last two turns
    are these hashes; with ``before`` the two before their last exchange."""
    place = _x.before if before else _x.ends
    query = sa.select(_x.name, _x.turns).where(_x.app_id == app_id, place == "".join(turns[-2:]))
    own = _x.name.startswith(_program(tx, program))
    return [(name, apart(known)) for name, known in tx.execute(query.where(own))]


def program_name(tx: Tx, program: str) -> str:
    """A new name for a conversation of a program that gave it none. It is kept as it is."""
    return _program(tx, program) + secrets.token_hex(16)


def _program(tx: Tx, program: str) -> str:
    return f"{_MADE}{_hash(records.hash_key(tx), program)[:16]}-"


def _hashed_name(tx: Tx, name: str) -> str:
    made = re.fullmatch(rf"{_MADE}[0-9a-f]{{16}}-[0-9a-f]{{32}}", name)
    return name if made else _hash(records.hash_key(tx), name)


def apart(turns: str) -> list[str]:
    """Hashes of turns that stand in one text, each by itself."""
    return [turns[i : i + _LENGTH] for i in range(0, len(turns), _LENGTH)]


def put_external(
    tx: Tx, app_id: int, name: str, session_id: int | None, turns: Sequence[str]
) -> None:
    """Keep which session has this name, None where none has it yet, and the turns that are
    known."""
    values = {"session_id": session_id, "turns": "".join(turns)}
    values |= {"ends": "".join(turns[-2:]), "before": "".join(turns[-4:-2])}
    tx.rows(_PUT_EXTERNAL, app_id=app_id, name=_hashed_name(tx, name), **values)


def turn_hashes(tx: Tx, turns: Iterable[tuple[str, str]]) -> list[str]:
    """The hashes of turns, each a role and its words; how these are spaced makes no difference."""
    key = records.hash_key(tx)
    return [_hash(key, f"{role}\0{' '.join(words.split())}")[:_LENGTH] for role, words in turns]


@dataclass(frozen=True, slots=True)
class KnownTurns:
    """The turns that were sent, compared with those that were known before, all as hashes."""

    new: tuple[int, ...]
    """The places of the turns that were not known, among those that were sent."""
    hashes: tuple[str, ...]
    """All turns that are known from now on, in the order of the conversation."""

    @classmethod
    def of(cls, before: Sequence[str], sent: Sequence[str]) -> KnownTurns:
        """Compare the turns that were sent with those that were known before."""
        new: list[int] = []
        hashes: list[str] = []
        a = b = 0
        for match in (*_matches(before, sent), Match(len(before), len(sent), 0)):
            new += range(b, match.b)
            hashes += [*before[a : match.a], *sent[b : match.b + match.size]]
            a, b = match.a + match.size, match.b + match.size
        return cls(tuple(new), tuple(hashes))


def _matches(before: Sequence[str], sent: Sequence[str]) -> list[Match]:
    """The parts of what was sent that were known before."""
    most = min(len(before), len(sent))
    overlap = next((n for n in range(most, 0, -1) if before[-n:] == sent[:n]), 0)
    if overlap:
        return [Match(len(before) - overlap, 0, overlap)]
    # An earlier turn was changed, or replaced by a summary. One equal turn alone is no sign of
    # that, as people say the same thing twice; but the first turn is, where more turns follow.
    found = SequenceMatcher(None, before, sent, autojunk=False).get_matching_blocks()[:-1]
    same_start = bool(found) and found[0].a == found[0].b == 0 and len(sent) > 1
    return found if same_start or sum(match.size for match in found) > 1 else []


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


def add(tx: Tx, session_id: int, before: int, now: datetime) -> int:
    """Copy the messages of a conversation before a message into a new one, which has ended and is
    read as far as it goes; its id."""
    row = tx.execute(sa.select(_s.app_id, _s.memory).where(_s.id == session_id)).one()
    home = {"app_id": row.app_id, "copied_from": session_id, "memory": row.memory}
    new_id = tx.insert(t.sessions, **home, started_at=now, last_activity_at=now, ended_at=now)
    said = (_m.session_id == session_id, _m.id < before, _m.aside_with.is_(None))
    _copy(
        tx,
        t.messages,
        *said,
        session_id=new_id,
        copied_from=_first(_m),
        read_all=0,
        version_of=sa.null(),
    )
    new, old, first = t.messages.alias().c, t.messages.alias().c, t.messages.alias().c
    pairs = (new.session_id == new_id, old.session_id == session_id, _first(old) == new.copied_from)
    _copy(tx, t.receipts, *pairs, t.receipts.c.message_id == old.id, message_id=new.id)
    sent = t.prompts.c
    asked = sa.select(_first(_m)).where(_m.id == sent.first_message_id).correlate(t.prompts)
    behind = first.copied_from >= asked.scalar_subquery()
    from_ = sa.select(sa.func.min(first.id)).where(first.session_id == new_id, behind)
    start = from_.correlate(t.prompts).scalar_subquery()
    _copy(
        tx, t.prompts, *pairs, sent.message_id == old.id, message_id=new.id, first_message_id=start
    )
    mine = sent.message_id.in_(sa.select(_m.id).where(_m.session_id == new_id))
    given = sa.select(sent.list_id).where(mine, sent.list_id.is_not(None)).distinct()
    for list_id in tx.execute(given).scalars().all():
        (copied,) = _copy(tx, t.fact_lists, t.fact_lists.c.id == list_id, session_id=new_id)
        _copy(tx, t.fact_list_lines, t.fact_list_lines.c.list_id == list_id, list_id=copied)
        tx.execute(sa.update(t.prompts).where(mine, sent.list_id == list_id).values(list_id=copied))
    _copy(tx, t.muted, t.muted.c.session_id == session_id, session_id=new_id)
    last = sa.select(sa.func.max(_m.id)).where(_m.session_id == new_id).scalar_subquery()
    change(tx, new_id, extracted_to=sa.func.coalesce(last, 0))
    return new_id


def _first(message: Any) -> sa.ColumnElement[int]:
    """The message that one is a copy of, or itself."""
    return sa.func.coalesce(message.copied_from, message.id)


def _copy(tx: Tx, table: sa.Table, *only: sa.ColumnElement[bool], **new: Any) -> Sequence[int]:
    """Insert those rows of a table again for which these conditions hold, with these columns
    changed; the first column of their keys."""
    columns = [c for c in table.c if c.name != "id"]
    values = (new.get(column.name, column) for column in columns)
    query = (
        sa.select(*(sa.literal(v) if isinstance(v, int) else v for v in values))
        .where(*only)
        .order_by(*table.primary_key)
    )
    copied = sa.insert(table).from_select([c.name for c in columns], query)
    return tx.execute(copied.returning(*table.primary_key)).scalars().all()


def same_message(tx: Tx, message_id: int) -> list[tuple[int, int]]:
    """A message, what it is a copy of, and every copy of that: (message id, session id)."""
    first = sa.select(sa.func.coalesce(_m.copied_from, _m.id)).where(_m.id == message_id)
    first_id = tx.execute(first).scalar()
    query = sa.select(_m.id, _m.session_id)
    query = query.where((_m.id == first_id) | (_m.copied_from == first_id))
    return [(row.id, row.session_id) for row in tx.execute(query.order_by(_m.id))]


def originals(tx: Tx, session_id: int) -> list[int]:
    """The ids of the messages that those of a conversation are copies of."""
    return list(tx.execute(_originals(session_id)).scalars())


def unread_originals(tx: Tx, session_id: int) -> list[Message]:
    """The user's messages among them that no extraction has read yet."""
    query = sa.select(t.messages).join(t.sessions, _s.id == _m.session_id)
    query = query.where(_m.id.in_(_originals(session_id)), t.unread_messages)
    return [from_row(Message, row) for row in tx.execute(query.order_by(_m.id))]


def heirs_of_unread(tx: Tx, message_ids: Collection[int]) -> dict[int, int]:
    """Where ``take_place`` will put copies in the place of the user's messages that no extraction
    has read: by the session of the copies, the id of its first one."""
    unread = sa.select(_m.id).join(t.sessions, _s.id == _m.session_id)
    ids = list(tx.execute(unread.where(_m.id.in_(message_ids), t.unread_messages)).scalars())
    first = sa.select(sa.func.min(_m.id)).where(_m.copied_from.in_(ids)).group_by(_m.copied_from)
    heirs: dict[int, int] = {}
    copies = sa.select(_m.session_id, _m.id).where(_m.id.in_(first))
    for session_id, message_id in tx.execute(copies):
        heirs[session_id] = min(message_id, heirs.get(session_id, message_id))
    return heirs


def take_place(tx: Tx, message_ids: Collection[int]) -> set[int]:
    """Put the first copy in the place of each of these messages, which are about to be deleted:
    what they prove, taught and proposed is the copy's from then on, and other copies are copies of
    it. The sessions with such copies."""
    first = sa.select(_m.copied_from, sa.func.min(_m.id)).where(_m.copied_from.in_(message_ids))
    had, _e, touched = t.memory_sources.alias().c, t.memory_sources.c, set()
    for old, new in tx.execute(first.group_by(_m.copied_from)).all():
        session_id = int(tx.execute(sa.select(_m.session_id).where(_m.id == new)).scalar_one())
        tx.execute(sa.update(t.messages).where(_m.id == new).values(copied_from=None))
        tx.execute(sa.update(t.messages).where(_m.copied_from == old).values(copied_from=new))
        same = (had.memory_id == _e.memory_id, had.start == _e.start, had.quote == _e.quote)
        again = sa.exists().where(had.message_id == new, *same)
        proved = sa.update(t.memory_sources).where(_e.message_id == old, ~again)
        tx.execute(proved.values(message_id=new))
        for table in (t.memory_events, t.proposals):
            taught = sa.update(table).where(table.c.message_id == old)
            tx.execute(taught.values(message_id=new, session_id=session_id))
        touched.add(session_id)
    return touched


def _originals(session_id: int) -> sa.Select[Any]:
    return sa.select(_m.copied_from).where(_m.session_id == session_id, _m.copied_from.is_not(None))


_u = t.muted.c
_MUTE = upsert(t.muted)
_MUTED = sa.select(_u.memory_id).where(_u.session_id == sa.bindparam("session"))


def mute(tx: Tx, session_id: int, memory_id: int) -> None:
    """Leave a memory out of a conversation from now on."""
    tx.rows(_MUTE, session_id=session_id, memory_id=memory_id, created_at=tx.now)


def unmute(tx: Tx, session_id: int, memory_id: int) -> None:
    """Use a memory in the conversation again."""
    muted = (_u.session_id == session_id, _u.memory_id == memory_id)
    tx.execute(sa.delete(t.muted).where(*muted))


def muted_of_session(tx: Tx, session_id: int) -> set[int]:
    """The ids of the memories that are left out of a conversation."""
    return set(tx.column(_MUTED, session=session_id))
