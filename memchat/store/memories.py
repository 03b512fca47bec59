"""The typed facts: reading them in a scope, and the few ways their rows change.

A row is unique by (scope, sha1), active or not: saying A, then B, then A again brings the first row
back. Every verb that changes a row writes its event and keyword row in the same transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    func,
    or_,
    select,
    update,
)

from memchat.store import events, keywords, raw_sql, states
from memchat.store.events import Cause
from memchat.store.memory_rows import PLAIN, plain_memory
from memchat.store.schema import apps, memories, searched, utc_text
from memchat.store.values_in_force import Standing
from memchat.types import EVERY_APP, CreatedBy, Memory, MemoryType

_m = memories.c
FORGOTTEN = "forgotten"
"""Why a row is inactive whose purge is queued: nobody sees it any more."""
WITH_SCOPE: Select[Any] = select(memories, apps.c.user, apps.c.name.label("app")).join(
    apps, apps.c.id == memories.c.app_id
)
"""Every row with its scope's names, the hidden ones too."""
_seen = or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN)
_SELECT = WITH_SCOPE.where(_seen)
_VISIBLE = f"{PLAIN} WHERE (m.inactive_reason IS NULL OR m.inactive_reason != '{FORGOTTEN}')"
_BY_IDS = f"""
    {_VISIBLE} AND m.id IN (SELECT value FROM json_each(?))
        AND +m.app_id IN (SELECT value FROM json_each(?))
"""
"""The plus keeps SQLite from reading a whole scope."""
_IN_SCOPES = f"{_VISIBLE} AND m.app_id IN (SELECT value FROM json_each(?))"


class Position(NamedTuple):
    """The place of a memory in a list: what lists are sorted by."""

    said_at: datetime
    id: int
    expires_at: date | None = None


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A fact about to be written."""

    memory_type: MemoryType
    key: str
    value: str
    many: bool
    search_text: str
    said_at: datetime
    created_by: CreatedBy
    expires_at: date | None = None
    starts_at: date | None = None
    cues: tuple[str, ...] = ()
    sensitive: bool = False

    @property
    def sha1(self) -> str:
        """The identity of the fact within its scope."""
        return sha1_of(self.memory_type, self.key, self.value)


def sha1_of(memory_type: str, key: str, value: str) -> str:
    """sha1 of ``type|key|value`` in hex."""
    return hashlib.sha1(f"{memory_type}|{key}|{value}".encode()).hexdigest()


def text_hash(text: str) -> str:
    """sha256 of a text in hex: the identity of what is embedded."""
    return hashlib.sha256(text.encode()).hexdigest()


def insert_new(
    tx: Connection, app_id: int, new: NewMemory, cause: Cause, *, instead_of: int | None = None
) -> int:
    """Write an active row with its keyword row and ``add`` event; the new id.

    ``instead_of`` is the memory whose place it is to take on its first day.
    """
    now, said_at = utc_text(cause.at), utc_text(new.said_at)
    memory_id = raw_sql.insert(
        tx,
        "memories",
        app_id=app_id,
        created_at=now,
        updated_at=now,
        last_seen_at=said_at,
        said_at=said_at,
        memory_type=new.memory_type,
        key=new.key,
        value=new.value,
        sha1=new.sha1,
        expires_at=new.expires_at.isoformat() if new.expires_at else None,
        starts_at=new.starts_at.isoformat() if new.starts_at else None,
        cues=" ".join(new.cues),
        sensitive=int(new.sensitive),
        many=int(new.many),
        created_by=new.created_by,
        search_text=new.search_text,
        text_hash=text_hash(new.search_text),
    )
    keywords.write(tx, "memories", memory_id, app_id, new.search_text)
    events.record(tx, memory_id, app_id, "add", cause, related_id=instead_of, new=_state(new))
    return memory_id


def deactivate(
    tx: Connection,
    memory: Memory,
    app_id: int,
    reason: str,
    cause: Cause,
    *,
    replaced_by: int | None = None,
    said_at: datetime | None = None,
) -> None:
    """Keep the row, out of use, with the reason; a replaced value can still be searched for.

    One of superseded, merged, expired, ended. ``said_at`` is when that was said, where it was.
    """
    if reason != "superseded":
        keywords.remove(tx, "memories", [memory.id])
    tx.execute(
        update(memories)
        .where(_m.id == memory.id)
        .values(
            active=0,
            inactive_reason=reason,
            replaced_by=replaced_by,
            updated_at=cause.at,
            last_seen_at=max(said_at or memory.last_seen_at, memory.last_seen_at),
        )
    )
    if memory.pinned and replaced_by is not None:
        pin(tx, replaced_by, app_id_of(tx, replaced_by), Cause(cause.at, "system"))
    if memory.sensitive and replaced_by is not None:
        amend(tx, replaced_by, sensitive=1)  # a new value of it is no less so
    kinds = {"superseded": "supersede", "merged": "merge", "expired": "expire", "ended": "end"}
    events.record(
        tx, memory.id, app_id, kinds[reason], cause, related_id=replaced_by, old=_state(memory)
    )


def reactivate(
    tx: Connection,
    memory: Memory,
    app_id: int,
    cause: Cause,
    *,
    said_at: datetime | None = None,
    instead_of: int | None = None,
) -> None:
    """Bring an inactive row back into use; ``said_at`` where that was said just now.

    ``instead_of`` is the memory whose place it is to take on its first day.
    """
    row = tx.execute(
        update(memories)
        .where(_m.id == memory.id)
        .values(
            active=1,
            inactive_reason=None,
            replaced_by=None,
            updated_at=cause.at,
            said_at=said_at or memory.said_at,
        )
        .returning(_m.search_text, _m.expires_at, _m.starts_at)
    ).one()
    keywords.write(tx, "memories", memory.id, app_id, row.search_text)
    # Its days may have been changed just before.
    now = replace(memory, expires_at=row.expires_at, starts_at=row.starts_at)
    state = _state(now)
    events.record(tx, memory.id, app_id, "restore", cause, related_id=instead_of, new=state)


def repeat(
    tx: Connection,
    memory: Memory,
    app_id: int,
    said_at: datetime,
    cause: Cause,
    *,
    starts_at: date | None = None,
) -> None:
    """Count one more time that the fact was said; ``starts_at`` is from when, as it was said
    then, whatever the fact itself says."""
    tx.execute(
        update(memories)
        .where(_m.id == memory.id)
        .values(
            seen_count=_m.seen_count + 1,
            last_seen_at=max(said_at, memory.last_seen_at),
            said_at=max(said_at, memory.said_at),
        )
    )
    new = {"starts_at": starts_at.isoformat()} if starts_at else None
    events.record(tx, memory.id, app_id, "repeat", cause, new=new)


def amend(tx: Connection, memory_id: int, **columns: Any) -> None:
    """Correct what is counted and noted about a fact; nothing happened to the fact itself."""
    tx.execute(update(memories).where(_m.id == memory_id).values(**columns))


def set_expiry(
    tx: Connection, memory: Memory, app_id: int, expires_at: date | None, cause: Cause
) -> None:
    """Change until when the fact holds."""
    tx.execute(
        update(memories)
        .where(_m.id == memory.id)
        .values(expires_at=expires_at, updated_at=cause.at)
    )
    old = memory.expires_at.isoformat() if memory.expires_at else None
    new = expires_at.isoformat() if expires_at else None
    events.record(
        tx, memory.id, app_id, "edit", cause, old={"expires_at": old}, new={"expires_at": new}
    )


def set_start(
    tx: Connection, memory: Memory, app_id: int, starts_at: date | None, cause: Cause
) -> None:
    """Change from when the fact holds."""
    changed = update(memories).where(_m.id == memory.id)
    tx.execute(changed.values(starts_at=starts_at, updated_at=cause.at))
    old = memory.starts_at.isoformat() if memory.starts_at else None
    new = starts_at.isoformat() if starts_at else None
    events.record(
        tx, memory.id, app_id, "edit", cause, old={"starts_at": old}, new={"starts_at": new}
    )


def pin(tx: Connection, memory_id: int, app_id: int, cause: Cause, *, on: bool = True) -> None:
    """Have a fact at hand in every chat, or no longer; nothing happens where it is so already."""
    changed = update(memories).where(_m.id == memory_id, _m.pinned == int(not on))
    if tx.execute(changed.values(pinned=int(on), updated_at=cause.at)).rowcount:
        events.record(tx, memory_id, app_id, "pin" if on else "unpin", cause)


def rewrite(tx: Connection, memory: Memory, app_id: int, new: NewMemory, cause: Cause) -> None:
    """A person's edit: new words in the same row, and maybe in another scope."""
    before = app_id_of(tx, memory.id)
    if before != app_id:
        events.move(tx, memory.id, before, app_id, cause)
    tx.execute(
        update(memories)
        .where(_m.id == memory.id)
        .values(
            app_id=app_id,
            memory_type=new.memory_type,
            key=new.key,
            value=new.value,
            sha1=new.sha1,
            expires_at=new.expires_at,
            starts_at=new.starts_at,
            cues=" ".join(new.cues),
            sensitive=int(new.sensitive),
            many=int(new.many),
            search_text=new.search_text,
            text_hash=text_hash(new.search_text),
            said_at=new.said_at,
            updated_at=cause.at,
        )
    )
    if memory.active or memory.inactive_reason == "superseded":
        keywords.write(tx, "memories", memory.id, app_id, new.search_text)
    events.record(tx, memory.id, app_id, "edit", cause, old=_state(memory), new=_state(new))


def reindex(tx: Connection, memory_id: int, app_id: int, search_text: str, cause: Cause) -> None:
    """New words to search by, the fact itself unchanged (a quote of it was blanked, say)."""
    changed = update(memories).where(_m.id == memory_id)
    tx.execute(changed.values(search_text=search_text, text_hash=text_hash(search_text)))
    if tx.execute(select(_m.id).where(_m.id == memory_id, searched)).first() is not None:
        keywords.write(tx, "memories", memory_id, app_id, search_text)
    events.record(tx, memory_id, app_id, "reindex", cause)


def mark_embedded(tx: Connection, ids: Sequence[int], cause: Cause) -> None:
    """Tell the index of every process that those of these rows that still are have their vector."""
    events.record_all(tx, select(_m.id, _m.app_id).where(_m.id.in_(ids)), "embed", cause)


def remove(tx: Connection, memory_ids: Sequence[int]) -> None:
    """Delete rows with their keyword rows and evidence; forgetting says what else must go."""
    keywords.remove(tx, "memories", memory_ids)
    tx.execute(delete(memories).where(_m.id.in_(memory_ids)))


def get(tx: Connection, app_ids: Sequence[int], memory_id: int) -> Memory | None:
    """One memory, active or not, if it belongs to these scope rows."""
    found = by_ids(tx, app_ids, [memory_id])
    return found.get(memory_id)


def by_ids(tx: Connection, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of these scope rows by id; foreign and unknown ids are left out."""
    if not ids or not app_ids:
        return {}
    rows = raw_sql.rows(tx, _BY_IDS, raw_sql.listed(ids), raw_sql.listed(app_ids))
    return {row[0]: plain_memory(row) for row in rows}


def app_id_of(tx: Connection, memory_id: int) -> int:
    """The scope row a known memory belongs to."""
    return int(raw_sql.rows(tx, "SELECT app_id FROM memories WHERE id = ?", memory_id)[0][0])


def by_sha1(tx: Connection, app_ids: Sequence[int], sha1: str) -> Memory | None:
    """The row with this very fact, active or not; an active one first, then the scope's own."""
    found = raw_sql.rows(tx, f"{_IN_SCOPES} AND m.sha1 = ?", raw_sql.listed(app_ids), sha1)
    rows = map(plain_memory, found)
    return min(rows, key=lambda m: (not m.active, m.app == ""), default=None)


def with_key(tx: Connection, app_ids: Sequence[int], key: str) -> list[Memory]:
    """The active memories with this key, newest said first."""
    sql = f"{_IN_SCOPES} AND m.active = 1 AND m.key = ? ORDER BY m.said_at DESC, m.id DESC"
    return [plain_memory(row) for row in raw_sql.rows(tx, sql, raw_sql.listed(app_ids), key)]


def values_of(tx: Connection, app_ids: Sequence[int], key: str) -> list[tuple[int, str]]:
    """The ids and values of the active memories with this key, newest said first."""
    sql = (
        "SELECT id, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND key = ? ORDER BY said_at DESC, id DESC"
    )
    return raw_sql.rows(tx, sql, raw_sql.listed(app_ids), key)


def sensitive_words(
    tx: Connection, app_ids: Sequence[int], today: date, back: Collection[int]
) -> list[tuple[str, str]]:
    """The keys and values of the sensitive memories in use, those of ``back`` among them."""
    sql = (
        "SELECT key, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND sensitive = 1 AND (active = 1 OR id IN (SELECT value FROM json_each(?)))"
        " AND (expires_at IS NULL OR expires_at >= ?)"
    )
    return raw_sql.rows(tx, sql, raw_sql.listed(app_ids), raw_sql.listed(back), today.isoformat())


def listed(
    tx: Connection,
    app_ids: Sequence[int],
    *,
    status: str,
    today: date,
    by: date | None = None,
    memory_types: Sequence[str] = (),
    limit: int | None = None,
    offset: int = 0,
    standing: Standing | None = None,
    query: str = "",
    after: Position | None = None,
) -> list[Memory]:
    """Memories of a status (active, inactive, expired, expiring, all), newest said first; with
    ``query`` those that hold each of its words, with ``after`` those behind that place.

    A status of ``states`` gives those that search is to find, whose vector stands so.
    Those expiring end no later than ``by``, the soonest first. Without ``standing`` every row is
    taken at its word.
    """
    now = standing or Standing(today)
    first = [_m.expires_at] if status == "expiring" else []
    rows = tx.execute(
        _filtered(_SELECT, app_ids, status, now, memory_types, by)
        .where(*_with_words(query), *_behind(after, status))
        .order_by(*first, _m.said_at.desc(), _m.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return [now.seen(to_memory(row)) for row in rows]


def counted(
    tx: Connection,
    app_ids: Sequence[int],
    *,
    status: str,
    today: date,
    by: date | None = None,
    memory_types: Sequence[str] = (),
    standing: Standing | None = None,
    query: str = "",
) -> int:
    """How many ``listed`` would give without a limit."""
    statement = _filtered(
        select(func.count()).select_from(memories).where(_seen, *_with_words(query)),
        app_ids,
        status,
        standing or Standing(today),
        memory_types,
        by,
    )
    return int(tx.execute(statement).scalar_one())


def _with_words(query: str) -> list[ColumnElement[bool]]:
    columns = (_m.key, _m.value)
    return [or_(*(c.icontains(word, autoescape=True) for c in columns)) for word in query.split()]


def _behind(after: Position | None, status: str) -> list[ColumnElement[bool]]:
    """What comes after a place in the order of ``listed``."""
    if after is None:
        return []
    behind = or_(_m.said_at < after.said_at, and_(_m.said_at == after.said_at, _m.id < after.id))
    if status != "expiring":
        return [behind]
    return [or_(_m.expires_at > after.expires_at, and_(_m.expires_at == after.expires_at, behind))]


def pinned(
    tx: Connection,
    app_ids: Sequence[int],
    today: date,
    limit: int,
    standing: Standing | None = None,
) -> list[Memory]:
    """What a person pinned, then profile facts, then preferences, the most confirmed and latest
    first."""
    now = standing or Standing(today)
    query = _filtered(_SELECT, app_ids, "active", now, ())
    query = query.where(or_(_m.pinned == 1, _m.memory_type.in_(("profile", "preference"))))
    order = (_m.pinned.desc(), _m.memory_type.desc(), _m.seen_count.desc(), _m.last_seen_at.desc())
    rows = tx.execute(query.order_by(*order, _m.id).limit(limit))
    return [now.seen(to_memory(row)) for row in rows]


def in_use(tx: Connection, app_id: int) -> Iterator[Memory]:
    """The active rows of a scope row, read one by one: who has enough stops."""
    for row in raw_sql.each(tx, f"{PLAIN} WHERE m.app_id = ? AND m.active = 1", app_id):
        yield plain_memory(row)


def count_told(
    tx: Connection, app_ids: Sequence[int], today: date, without: Collection[int]
) -> int:
    """How many facts a prompt could be given whatever was asked."""
    sql = (
        "SELECT count(*) FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND sensitive = 0 AND (expires_at IS NULL OR expires_at >= ?)"
        " AND id NOT IN (SELECT value FROM json_each(?))"
    )
    found = raw_sql.rows(
        tx, sql, raw_sql.listed(app_ids), today.isoformat(), raw_sql.listed(without)
    )
    return int(found[0][0])


def single_keys(
    tx: Connection,
    app_id: int,
    keys: Sequence[str],
    today: date,
    standing: Standing | None = None,
) -> set[str]:
    """Which of these keys hold their one value in this scope row today."""
    now = standing or Standing(today)
    query = _filtered(select(_m.key), [app_id], "active", now, ())
    query = query.where(_m.key.in_(keys), _m.many == 0, now.begun())
    return set(tx.execute(query).scalars())


def keys_in_use(tx: Connection, app_ids: Sequence[int]) -> list[str]:
    """The keys of active memories, the most used first."""
    query = (
        select(_m.key)
        .where(_m.app_id.in_(app_ids), _m.active == 1)
        .group_by(_m.key)
        .order_by(func.count().desc(), _m.key)
    )
    return list(tx.execute(query).scalars())


def many_so_far(tx: Connection, app_ids: Sequence[int], key: str) -> bool | None:
    """Whether this key has held several values in the scope until now; None for a new key."""
    sql = (
        "SELECT many FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active IN (0, 1) AND key = ? ORDER BY id DESC LIMIT 1"
    )
    found = raw_sql.rows(tx, sql, raw_sql.listed(app_ids), key)
    return bool(found[0][0]) if found else None


def expired_ids(tx: Connection, app_ids: Sequence[int], today: date) -> list[int]:
    """Active rows whose last day is over; the sweep has not reached them yet."""
    # What is constant stands in the text: else the index of what expires is not used.
    sql = (
        "SELECT id FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND expires_at < ?"
    )
    return [row[0] for row in raw_sql.rows(tx, sql, raw_sql.listed(app_ids), today.isoformat())]


def due_anywhere(tx: Connection, today: date, user: str | None) -> list[tuple[int, ...]]:
    """The scopes, of a user or of everybody, with a row in use whose last day is over or whose
    first has come: each the row it lies in and the one its user has for every app."""
    here, shared = apps.alias("here"), apps.alias("shared")
    due = or_(_m.expires_at < today, _m.starts_at <= today)
    beside = and_(shared.c.user == here.c.user, shared.c.name == EVERY_APP)
    query = (
        select(here.c.id, shared.c.id)
        .join_from(here, memories, _m.app_id == here.c.id)
        .outerjoin(shared, beside)
        .where(_m.active == 1, due)
        .distinct()
    )
    if user is not None:
        query = query.where(here.c.user == user)
    return [tuple({i for i in row if i is not None}) for row in tx.execute(query)]


def hash_of(tx: Connection, memory_id: int) -> str:
    """The hash of a known memory's searched text."""
    return str(tx.execute(select(_m.text_hash).where(_m.id == memory_id)).scalar_one())


def of_app(tx: Connection, app_id: int) -> dict[int, str]:
    """Every memory of a scope row, active or not: id → hash of its searched text."""
    rows = tx.execute(select(_m.id, _m.text_hash).where(_m.app_id == app_id))
    return {row[0]: row[1] for row in rows}


def searched_texts(tx: Connection, app_id: int) -> dict[int, str]:
    """What of a scope row search is to find: id → text."""
    rows = tx.execute(select(_m.id, _m.search_text).where(_m.app_id == app_id, searched))
    return {row[0]: row[1] for row in rows}


def counts_anywhere(tx: Connection) -> tuple[int, int]:
    """How many rows of everybody are active, and how many search is to find."""
    active = tx.execute(select(func.count()).where(_m.active == 1)).scalar_one()
    return int(active), int(tx.execute(select(func.count()).where(searched)).scalar_one())


def active_in(tx: Connection, app_ids: Sequence[int]) -> int:
    """How many active rows these scope rows have."""
    query = select(func.count()).where(_m.app_id.in_(app_ids), _m.active == 1)
    return int(tx.execute(query).scalar_one())


def _filtered(
    query: Select[Any],
    app_ids: Sequence[int],
    status: str,
    now: Standing,
    types: Sequence[str],
    by: date | None = None,
) -> Select[Any]:
    over = and_(_m.active == 1, _m.expires_at < now.today)
    conditions = {
        "active": now.in_use(),
        "inactive": now.out_of_use(),
        "expired": or_(_m.inactive_reason == "expired", over),
        "expiring": and_(now.in_use(), _m.expires_at.between(now.today, by)),
    }
    query = query.where(_m.app_id.in_(app_ids))
    if status in states.STATUSES:
        query = query.where(searched, _m.id.in_(states.having(status)))
    elif status != "all":
        query = query.where(conditions[status])
    return query.where(_m.memory_type.in_(types)) if types else query


def _state(fact: NewMemory | Memory) -> dict[str, Any]:
    return {
        "memory_type": fact.memory_type,
        "key": fact.key,
        "value": fact.value,
        "expires_at": fact.expires_at.isoformat() if fact.expires_at else None,
        "many": fact.many,
        **({"starts_at": fact.starts_at.isoformat()} if fact.starts_at else {}),
        **({"sensitive": True} if fact.sensitive else {}),
    }


def to_memory(row: Row[Any]) -> Memory:
    """The record of a row that ``WITH_SCOPE`` gave."""
    return Memory(
        id=row.id,
        created_at=row.created_at,
        memory_type=row.memory_type,
        key=row.key,
        value=row.value,
        sha1=row.sha1,
        expires_at=row.expires_at,
        seen_count=row.seen_count,
        last_seen_at=row.last_seen_at,
        active=bool(row.active),
        user=row.user,
        app=row.app,
        many=bool(row.many),
        created_by=row.created_by,
        said_at=row.said_at,
        updated_at=row.updated_at,
        inactive_reason=row.inactive_reason,
        replaced_by=row.replaced_by,
        pinned=bool(row.pinned),
        starts_at=row.starts_at,
        cues=tuple(row.cues.split()),
        sensitive=bool(row.sensitive),
    )
