"""Memories as rows: reading them within a scope, listing and counting them, and their tags.

A memory is unique by scope and sha1, active or not: a fact that is said again after another took
its place gets its old row back. A row says what was true when it was written; a value may have
begun or ended since, and ``ValuesInForce`` has these changes before they are written to the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    func,
    not_,
    or_,
    select,
    update,
)

from memchat.db import Tx, database, records
from memchat.db.apps import ScopeIds
from memchat.db.schema import (
    apps,
    memories,
    memory_tags,
    searched,
)
from memchat.language.text import folded
from memchat.learn.candidate import Relation
from memchat.search import keywords, passages
from memchat.types import (
    EVERY_APP,
    CreatedBy,
    Memory,
    MemoryOrigin,
    MemoryType,
    Wanted,
)

SELECT = """
    SELECT m.id, m.created_at, m.memory_type, m.key, m.value, m.sha1, m.expires_at, m.seen_count,
        m.last_seen_at, m.active, a.user, a.name, m.many, m.created_by, m.said_at, m.updated_at,
        m.inactive_reason, m.replaced_by, m.pinned, m.starts_at, m.cues, m.sensitive,
        (SELECT group_concat(tag, ' ') FROM
            (SELECT tag FROM memory_tags WHERE memory_id = m.id ORDER BY tag))
    FROM memories m JOIN apps a ON a.id = m.app_id
"""
"""Every row, hidden ones too, with the columns in the order of a Memory's fields."""
_sorted = select(memory_tags.c.tag).where(memory_tags.c.memory_id == memories.c.id)
_sorted_rows = _sorted.order_by(memory_tags.c.tag).correlate(memories).subquery()
tags_of_row = select(func.group_concat(_sorted_rows.c.tag, " ")).scalar_subquery()
"""The tags of a row of memories, separated by spaces; null where it has none."""
with_scope: Select[Any] = select(
    memories, apps.c.user, apps.c.name.label("app"), tags_of_row.label("tags")
).join(apps, apps.c.id == memories.c.app_id)
"""Every row with the names of its scope, hidden ones too."""


def memory_of(row: Row[Any]) -> Memory:
    """The record of a row that ``with_scope`` gave."""
    return records.from_row(Memory, row)


_m = memories.c
FORGOTTEN = "forgotten"
"""The reason of inactive rows that wait for their purge. They are hidden everywhere."""
visible = or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN)
_IN = "IN (SELECT value FROM json_each(?))"
_VISIBLE = f"(m.inactive_reason IS NULL OR m.inactive_reason != '{FORGOTTEN}')"
_BY_IDS = f"{_VISIBLE} AND m.id {_IN} AND +m.app_id {_IN}"
"""The plus sign keeps SQLite from using the index of the scope."""
_IN_SCOPES = f"{_VISIBLE} AND m.app_id {_IN}"


def where(tx: Tx, condition: str, *given: Any) -> list[Memory]:
    """The memories for which a condition holds, hidden ones too."""
    return [
        records.from_text(Memory, row) for row in tx.rows(f"{SELECT} WHERE {condition}", *given)
    ]


def get(tx: Tx, app_ids: Sequence[int], memory_id: int) -> Memory | None:
    """One memory, active or not; None if it does not belong to these scope rows."""
    found = by_ids(tx, app_ids, [memory_id])
    return found.get(memory_id)


def by_ids(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of these scope rows by id. Ids that are unknown or of other scopes are left out."""
    if not ids or not app_ids:
        return {}
    found = where(tx, _BY_IDS, database.json_list(ids), database.json_list(app_ids))
    return {one.id: one for one in found}


def homes_of(tx: Tx, ids: Iterable[int]) -> dict[int, int]:
    """The scope rows of existing memories, by id."""
    sql = "SELECT id, app_id FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return dict(tx.rows(sql, database.json_list(ids)))


def app_id_of(tx: Tx, memory_id: int) -> int:
    """The scope row of an existing memory."""
    return int(tx.rows("SELECT app_id FROM memories WHERE id = ?", memory_id)[0][0])


def by_sha1(tx: Tx, app_ids: Sequence[int], sha1: str) -> Memory | None:
    """The memory with this sha1, active or not: rather an active one, then rather the app's own."""
    found = where(tx, f"{_IN_SCOPES} AND m.sha1 = ?", database.json_list(app_ids), sha1)
    return min(found, key=lambda m: (not m.active, m.app == ""), default=None)


def id_of(tx: Tx, app_id: int, sha1: str) -> tuple[int, bool] | None:
    """The id of the memory of a scope row with this sha1, also of one that waits for its purge, and
    whether it does; None if there is none."""
    sql = "SELECT id, inactive_reason FROM memories WHERE app_id = ? AND sha1 = ?"
    found = tx.rows(sql, app_id, sha1)
    return (int(found[0][0]), found[0][1] == FORGOTTEN) if found else None


def made_at(tx: Tx, app_ids: Sequence[int], sha1: str, created_at: datetime) -> int | None:
    """The id of the memory of these scope rows with this sha1 that was made at this time."""
    query = select(_m.id).where(
        _m.sha1 == sha1, _m.app_id.in_(app_ids), _m.created_at == created_at, visible
    )
    return tx.execute(query).scalar()


def with_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[Memory]:
    """The active memories with this key, the one said last first."""
    said = f"{_IN_SCOPES} AND m.active = 1 AND m.key = ? ORDER BY m.said_at DESC, m.id DESC"
    return where(tx, said, database.json_list(app_ids), key)


def values_with_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[tuple[int, str]]:
    """The ids and values of the active memories with this key, the one said last first."""
    sql = (
        "SELECT id, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND key = ? ORDER BY said_at DESC, id DESC"
    )
    return tx.rows(sql, database.json_list(app_ids), key)


def holds_many(tx: Tx, app_ids: Sequence[int], key: str) -> bool | None:
    """Whether this key holds several values, by its newest memory; None for a key without any."""
    sql = (
        "SELECT many FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active IN (0, 1) AND key = ? ORDER BY id DESC LIMIT 1"
    )
    found = tx.rows(sql, database.json_list(app_ids), key)
    return bool(found[0][0]) if found else None


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A fact that is about to be stored."""

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
        """The hash that identifies the fact within its scope."""
        return sha1_of(self.memory_type, self.key, self.value)


@dataclass(frozen=True, slots=True)
class Fact(NewMemory):
    """A new memory that passed the gate, or that the user entered, with what it does to others."""

    relation: Relation = "new"
    target_id: int | None = None
    """The stored memory that ``relation`` speaks of."""
    proofs: tuple[tuple[int, int, str], ...] = ()
    """(message id, start, quote)."""
    near: tuple[tuple[int, float], ...] = ()
    """(memory id, cosine) of its nearest neighbours."""
    detail: dict[str, str] | None = None
    """What a second look said of it, for its events."""
    sentence: str | None = None
    """The sentence that the first quote stands in."""
    tags: tuple[str, ...] = ()
    """Tags that a person or a program gave with it."""
    asks: str | None = None
    """Why the person is asked, once it is stored, whether it is over."""

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(quote for _, _, quote in self.proofs)


def search_text(
    key: str,
    value: str,
    said_at: datetime,
    zone: ZoneInfo,
    quote: str = "",
    cues: Sequence[str] = (),
) -> str:
    """The text that is embedded and indexed: the day, ``key: value``, the quote, and the cues."""
    day = said_at.astimezone(zone)
    said = f"[{day.day} {day:%B %Y}] {slot(key)}{value}\n{quote or value}"
    return f"{said}\n{' '.join(cues)}" if cues else said


def slot(key: str) -> str:
    return f"{key.replace('_', ' ')}: "


def sha1_of(memory_type: str, key: str, value: str) -> str:
    """sha1 of ``type|key|value`` in hex."""
    return hashlib.sha1(f"{memory_type}|{key}|{value}".encode()).hexdigest()


# A union, since each half uses an index of its own.
_DUE = """
    m.id IN (
        SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND expires_at < ?2
        UNION ALL SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND starts_at <= ?2)
    ORDER BY m.starts_at, m.id
"""


@dataclass(frozen=True, slots=True)
class ValuesInForce:
    """What has changed by date alone since the rows were written."""

    today: date
    displaced: Mapping[int, int] = field(default_factory=dict)
    """Active by their rows, but replaced today by another memory: id → id of the other."""
    back: Mapping[int, int] = field(default_factory=dict)
    """Ended memories: id → id of the value that they had replaced and that holds again."""

    def holds(self, memory: Memory) -> bool:
        """Whether a memory is in force today. A future one is not."""
        active = memory.active or memory.id in self.back.values()
        return active and memory.id not in self.displaced and holds_on(memory, self.today)

    def as_of_today(self, memory: Memory) -> Memory:
        """The memory as its row will read once the changes are written."""
        winner = self.displaced.get(memory.id)
        if winner is not None:
            return replace(memory, active=False, inactive_reason="superseded", replaced_by=winner)
        if memory.id in self.back.values():
            return replace(memory, active=True, inactive_reason=None, replaced_by=None)
        return memory

    def current_id(self, memory_id: int) -> int:
        """The id of the memory that stands in the place of this one today, or its own."""
        found = memory_id
        while found in self.displaced or found in self.back:
            found = self.displaced[found] if found in self.displaced else self.back[found]
        return found

    def replaced(self, ids: Iterable[int]) -> dict[int, int]:
        """The memories that these replaced by date alone: id → id of the replacement."""
        places = set(ids)
        found = ((i, self.current_id(i)) for i in self.displaced)
        return {i: winner for i, winner in found if winner in places}

    def in_use(self) -> ColumnElement[bool]:
        """A condition: the memory is shown as a fact today, being in force or still to come."""
        over = and_(_m.expires_at.is_not(None), _m.expires_at < self.today)
        there = and_(_m.active == 1, ~over, _m.id.not_in(self.displaced))
        return or_(there, _m.id.in_(self.back.values())) if self.back else there

    def begun(self) -> ColumnElement[bool]:
        """A condition: the first day of the memory has come."""
        return or_(_m.starts_at.is_(None), _m.starts_at <= self.today)

    def out_of_use(self) -> ColumnElement[bool]:
        """A condition: the memory is inactive by its row, or replaced today."""
        gone = and_(_m.active == 0, _m.id.not_in(self.back.values()))
        return or_(gone, _m.id.in_(self.displaced)) if self.displaced else gone


def holds_on(memory: Memory, day: date) -> bool:
    """Whether a day lies between a memory's first and last day."""
    begun = memory.starts_at is None or memory.starts_at <= day
    return begun and (memory.expires_at is None or memory.expires_at >= day)


def with_due_date(tx: Tx, app_ids: Sequence[int], today: date) -> list[Memory]:
    """The active memories whose last day is past or whose first day has come, the earliest first
    day first."""
    return where(tx, _DUE, database.json_list(app_ids), today.isoformat())


def of_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[Memory]:
    """All memories with this key, active or not, hidden ones too."""
    known = f"m.app_id {_IN} AND m.active IN (0, 1) AND m.key = ?"
    return where(tx, known, database.json_list(app_ids), key)


def hidden(tx: Tx, app_ids: Sequence[int], *, sha1: str | None = None) -> list[Memory]:
    """The hidden memories of these scope rows; with ``sha1`` only that fact."""
    # The reason is part of the text: with a bound value SQLite would plan the query each time.
    there, scopes = (
        f"m.app_id {_IN} AND m.inactive_reason = '{FORGOTTEN}'",
        database.json_list(app_ids),
    )
    if sha1 is not None:
        return where(tx, f"{there} AND m.sha1 = ?", scopes, sha1)
    return where(tx, f"{there} ORDER BY m.id", scopes)


_t = memory_tags.c
_WITH_ALL = """
    SELECT t.memory_id FROM memory_tags t JOIN memories m ON m.id = t.memory_id
    WHERE t.tag IN (SELECT value FROM json_each(?1))
        AND m.app_id IN (SELECT value FROM json_each(?2))
    GROUP BY t.memory_id HAVING count(*) = ?3
"""


def tags_of(tx: Tx, memory_id: int) -> tuple[str, ...]:
    """The tags of a memory, sorted."""
    query = select(_t.tag).where(_t.memory_id == memory_id).order_by(_t.tag)
    return tuple(tx.execute(query).scalars())


def write_tags(tx: Tx, memory_id: int, tags: Iterable[str]) -> None:
    """Write the tags of a memory that has none, without an event."""
    rows = [(memory_id, tag) for tag in tags]
    tx.run_many("INSERT INTO memory_tags VALUES (?, ?)", rows)


def tag_counts(tx: Tx, app_ids: Sequence[int], now: ValuesInForce) -> dict[str, int]:
    """How many memories in use in these scope rows have each tag, the most used first."""
    number = func.count()
    query = select(_t.tag, number).join_from(memory_tags, memories, _m.id == _t.memory_id)
    query = query.where(_m.app_id.in_(app_ids), now.in_use())
    rows = tx.execute(query.group_by(_t.tag).order_by(number.desc(), _t.tag))
    return {row[0]: row[1] for row in rows}


def has_all_tags(tags: Sequence[str]) -> list[ColumnElement[bool]]:
    """The conditions for a memory that has each of these tags."""
    return [_m.id.in_(select(_t.memory_id).where(_t.tag == tag)) for tag in tags]


def ids_with_all_tags(tx: Tx, app_ids: Sequence[int], tags: Sequence[str]) -> list[int]:
    """The ids of the memories of these scope rows that have each of these tags, active or not."""
    given = database.json_list(tags), database.json_list(app_ids)
    return [row[0] for row in tx.rows(_WITH_ALL, *given, len(tags))]


_ORDERS: dict[str, tuple[ColumnElement[Any], ...]] = {
    "newest": (_m.said_at.desc(),),
    "oldest": (_m.said_at,),
    "key": (_m.key, _m.value),
    "most used": (_m.read_count.desc(), _m.match_count.desc()),
    "least used": (_m.read_count, _m.match_count),
    "ending first": (_m.expires_at.is_(None), _m.expires_at, _m.said_at.desc()),
}
SORTS = tuple(_ORDERS)
STATUSES = (
    *("active", "pinned", "inactive", "inactive or over", "expired", "expiring", "never used"),
    *("not embedded", "all", "forgotten", *passages.STATUSES),
)


class Position(NamedTuple):
    """The place of a memory in a list that is sorted by ``newest`` or ``ending first``."""

    said_at: datetime
    id: int
    expires_at: date | None = None


class Slice(NamedTuple):
    """A part of a list: at most ``limit`` rows, after the first ``offset`` or behind a place."""

    limit: int | None = None
    offset: int = 0
    after: Position | None = None


WHOLE = Slice()


COMMON_FROM = 10
"""From how many facts on cues that most of them share are left out."""
COMMON_SHARE = 5
"""A cue of more than one in this many facts does not tell them apart."""


def distinctive_cues(tx: Tx, app_id: int, cues: Sequence[str]) -> list[str]:
    """These cues without those that more than a fifth of the user's facts have."""
    if not cues:
        return []
    scopes = keywords.related_app_ids(tx, app_id)
    count = count_active(tx, scopes)
    if count < COMMON_FROM:
        return list(cues)
    most = count // COMMON_SHARE
    return [cue for cue in cues if not keywords.is_held_by_more(tx, "fact", scopes, cue, most)]


def sensitive_words(
    tx: Tx, app_ids: Sequence[int], today: date, back: Collection[int]
) -> list[tuple[str, str]]:
    """The keys and values of the sensitive memories in use. Those of ``back`` count as in use
    too."""
    sql = (
        "SELECT key, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND sensitive = 1 AND (active = 1 OR id IN (SELECT value FROM json_each(?)))"
        " AND (expires_at IS NULL OR expires_at >= ?)"
    )
    return tx.rows(sql, database.json_list(app_ids), database.json_list(back), today.isoformat())


def listed(
    tx: Tx,
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    *,
    by: date | None = None,
    part: Slice = WHOLE,
) -> list[Memory]:
    """The memories that match ``wanted``, in its order, or a part of that list. Those that are
    ``expiring`` end no later than ``by``."""
    query = _filtered(with_scope, app_ids, wanted, now, by)
    query = query.where(*_behind(part.after, wanted.sort))
    query = query.order_by(*_ORDERS[wanted.sort], _m.id.desc()).offset(part.offset)
    rows = tx.execute(query if part.limit is None else query.limit(part.limit))
    return [now.as_of_today(memory_of(row)) for row in rows]


def _behind(after: Position | None, sort: str) -> list[ColumnElement[bool]]:
    """What comes after a place in the order of ``listed``."""
    if after is None:
        return []
    behind = or_(_m.said_at < after.said_at, and_(_m.said_at == after.said_at, _m.id < after.id))
    if sort != "ending first":
        return [behind]
    return [or_(_m.expires_at > after.expires_at, and_(_m.expires_at == after.expires_at, behind))]


def counted(
    tx: Tx,
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    *,
    by: date | None = None,
) -> int:
    """How many ``listed`` would give without a limit."""
    query = select(func.count()).select_from(memories)
    return int(tx.execute(_filtered(query, app_ids, wanted, now, by)).scalar_one())


def ids(tx: Tx, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date) -> list[int]:
    """The ids of all that ``listed`` would give without a limit; pinned ones come first."""
    query = _filtered(select(_m.id), app_ids, wanted, now, by)
    query = query.order_by(_m.pinned.desc(), *_ORDERS[wanted.sort], _m.id.desc())
    return list(tx.execute(query).scalars())


def of_ids(tx: Tx, memory_ids: Sequence[int], now: ValuesInForce) -> list[Memory]:
    """These memories in this order, hidden ones too; unknown ones are left out."""
    found = {one.id: one for one in where(tx, f"m.id {_IN}", database.json_list(memory_ids))}
    return [now.as_of_today(found[i]) for i in memory_ids if i in found]


def or_over(wanted: Wanted) -> Wanted:
    """The same filter, but inactive includes memories whose last day is past and that no sweep has
    marked as expired yet."""
    return replace(wanted, status="inactive or over") if wanted.status == "inactive" else wanted


def pinned_first(tx: Tx, app_ids: Sequence[int], now: ValuesInForce, limit: int) -> list[Memory]:
    """Pinned memories, then profile facts, then preferences. Within each, those confirmed most
    often and latest come first."""
    query = _filtered(with_scope, app_ids, Wanted(), now)
    query = query.where(or_(_m.pinned == 1, _m.memory_type.in_(("profile", "preference"))))
    order = (_m.pinned.desc(), _m.memory_type.desc(), _m.seen_count.desc(), _m.last_seen_at.desc())
    rows = tx.execute(query.order_by(*order, _m.id).limit(limit))
    return [now.as_of_today(memory_of(row)) for row in rows]


def each_active(tx: Tx, app_id: int) -> Iterator[Memory]:
    """The active memories of a scope row, read one at a time, so that the caller may stop early."""
    for row in tx.each_row(f"{SELECT} WHERE m.app_id = ? AND m.active = 1", app_id):
        yield records.from_text(Memory, row)


def count_for_prompts(tx: Tx, app_ids: Sequence[int], today: date, without: Collection[int]) -> int:
    """How many facts a prompt could contain whatever was asked: active, not sensitive, and not
    among ``without``."""
    sql = (
        "SELECT count(*) FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND sensitive = 0 AND (expires_at IS NULL OR expires_at >= ?)"
        " AND id NOT IN (SELECT value FROM json_each(?))"
    )
    found = tx.rows(
        sql, database.json_list(app_ids), today.isoformat(), database.json_list(without)
    )
    return int(found[0][0])


def single_valued_keys(tx: Tx, app_id: int, keys: Sequence[str], now: ValuesInForce) -> set[str]:
    """Which of these keys have a value in this scope row today and hold only one."""
    query = _filtered(select(_m.key), [app_id], Wanted(), now)
    query = query.where(_m.key.in_(keys), _m.many == 0, now.begun())
    return set(tx.execute(query).scalars())


def keys_in_use(tx: Tx, app_ids: Sequence[int]) -> list[str]:
    """The keys of active memories, those with the most memories first."""
    query = (
        select(_m.key)
        .where(_m.app_id.in_(app_ids), _m.active == 1)
        .group_by(_m.key)
        .order_by(func.count().desc(), _m.key)
    )
    return list(tx.execute(query).scalars())


def expired_ids(tx: Tx, app_ids: Sequence[int], today: date) -> list[int]:
    """The ids of active memories whose last day is past and that the sweep has not marked yet."""
    # The constant is part of the text, since the partial index is not used for a bound value.
    sql = (
        "SELECT id FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND expires_at < ?"
    )
    return [row[0] for row in tx.rows(sql, database.json_list(app_ids), today.isoformat())]


def scopes_with_due_dates(tx: Tx, today: date, user: str | None) -> list[ScopeIds]:
    """The scopes, of a user or of all, with an active memory whose last day is past or whose first
    day has come."""
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
    return [
        ScopeIds(own, common if common and common != own else 0)
        for own, common in tx.execute(query)
    ]


def ids_in_app(tx: Tx, app_id: int) -> list[int]:
    """All memories of a scope row, active or not."""
    return sorted(tx.execute(select(_m.id).where(_m.app_id == app_id)).scalars())


def searched_ids(tx: Tx, app_id: int) -> set[int]:
    """The memories of a scope row that search may find."""
    return set(tx.execute(select(_m.id).where(_m.app_id == app_id, searched)).scalars())


def totals(tx: Tx) -> tuple[int, int]:
    """How many memories of all users are active, and how many are searchable."""
    active = tx.execute(select(func.count()).where(_m.active == 1)).scalar_one()
    return int(active), int(tx.execute(select(func.count()).where(searched)).scalar_one())


def count_active(tx: Tx, app_ids: Sequence[int]) -> int:
    """How many active memories these scope rows have."""
    query = select(func.count()).where(_m.app_id.in_(app_ids), _m.active == 1)
    return int(tx.execute(query).scalar_one())


def _filtered(
    query: Select[Any],
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    by: date | None = None,
) -> Select[Any]:
    query = query.where(_m.app_id.in_(app_ids), *_with_status(wanted.status, now, by))
    if words := folded(wanted.search).strip():
        query = query.where(func.memchat_holds_all(words, _m.key, _m.value))
    if wanted.memory_types:
        query = query.where(_m.memory_type.in_(wanted.memory_types))
    if wanted.created_by:
        query = query.where(_m.created_by.in_(wanted.created_by))
    if wanted.tags:
        query = query.where(*has_all_tags(wanted.tags))
    return query


def _with_status(status: str, now: ValuesInForce, by: date | None) -> list[ColumnElement[bool]]:
    if status == "forgotten":
        return [not_(visible)]
    if status in passages.STATUSES:
        return [visible, searched, _m.id.in_(passages.ids_with_status(status))]
    holds = now.in_use()
    over = and_(_m.active == 1, _m.expires_at < now.today)
    conditions = {
        "active": [holds],
        "pinned": [holds, _m.pinned == 1],
        "inactive": [now.out_of_use()],
        "inactive or over": [or_(now.out_of_use(), over)],
        "expired": [or_(_m.inactive_reason == "expired", over)],
        "expiring": [holds, _m.expires_at.between(now.today, by)],
        "never used": [holds, _m.read_count == 0],
        "not embedded": [passages.is_unembedded(_m.id)],
        "all": [],
    }
    return [visible, *conditions[status]]


_ORIGINS = """
    SELECT m.id,
        (SELECT t.session_id FROM memory_sources s JOIN messages t ON t.id = s.message_id
            JOIN sessions c ON c.id = t.session_id
            WHERE s.memory_id = m.id AND t.role = 'user' AND c.app_id = ?2
            ORDER BY t.id DESC LIMIT 1),
        (SELECT b.name FROM memory_events e JOIN apps b ON b.id = e.app_id
            WHERE e.memory_id = m.id AND e.kind = 'move' AND b.name <> ''
            ORDER BY e.id DESC LIMIT 1),
        h.name
    FROM memories m JOIN apps h ON h.id = m.app_id WHERE m.id IN (SELECT value FROM json_each(?1))
"""


def origins_of(tx: Tx, app_id: int, memory_ids: Sequence[int]) -> dict[int, MemoryOrigin]:
    """The origin of each of these memories, by its id, as it is seen in one app."""
    rows = tx.rows(_ORIGINS, database.json_list(memory_ids), app_id)
    return {
        memory_id: MemoryOrigin(session_id, None if home else before)
        for memory_id, session_id, before, home in rows
    }


def add_uses(tx: Tx, *, matched: Collection[int], read: Collection[int]) -> None:
    """Add one to the counts of these memories; ids that no longer exist are ignored."""
    for ids, column in ((matched, _m.match_count), (read, _m.read_count)):
        if ids:
            tx.execute(update(memories).where(_m.id.in_(ids)).values({column: column + 1}))


def uses_of(tx: Tx, memory_id: int) -> tuple[int, int]:
    """How often a memory was found for a message, and how often it was sent to a model."""
    row = tx.execute(select(_m.match_count, _m.read_count).where(_m.id == memory_id)).one()
    return row.match_count, row.read_count
