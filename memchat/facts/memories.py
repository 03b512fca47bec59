"""Memories as rows: reading them within a scope, their tags, and the values that hold today.

A memory is unique by scope and sha1, active or not: a fact that is said again after another took
its place gets its old row back. A row says what was true when it was written; a value may have
begun or ended since, and ``ValuesInForce`` has these changes before they are written to the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Row, Select, and_, delete, func, or_, select, update

from memchat.db import Tx, records
from memchat.db.schema import apps, memories, memory_tags
from memchat.facts import history
from memchat.facts.history import Cause, Values
from memchat.learn.candidate import Relation
from memchat.types import TAGS_MOST, CreatedBy, Memory, MemoryType, clean_tags

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


def memory_of_text(row: Sequence[Any]) -> Memory:
    """The record of a row that ``SELECT`` gave."""
    return records.from_text(Memory, row)


def memory_of(row: Row[Any]) -> Memory:
    """The record of a row that ``with_scope`` gave."""
    return records.from_row(Memory, row)


_m = memories.c
FORGOTTEN = "forgotten"
"""The reason of inactive rows that wait for their purge. They are hidden everywhere."""
visible = or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN)
_VISIBLE = f"{SELECT} WHERE (m.inactive_reason IS NULL OR m.inactive_reason != '{FORGOTTEN}')"
_BY_IDS = f"""
    {_VISIBLE} AND m.id IN (SELECT value FROM json_each(?))
        AND +m.app_id IN (SELECT value FROM json_each(?))
"""
"""The plus sign keeps SQLite from using the index of the scope."""
_IN_SCOPES = f"{_VISIBLE} AND m.app_id IN (SELECT value FROM json_each(?))"


def get(tx: Tx, app_ids: Sequence[int], memory_id: int) -> Memory | None:
    """One memory, active or not; None if it does not belong to these scope rows."""
    found = by_ids(tx, app_ids, [memory_id])
    return found.get(memory_id)


def by_ids(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of these scope rows by id. Ids that are unknown or of other scopes are left out."""
    if not ids or not app_ids:
        return {}
    rows = tx.rows(_BY_IDS, records.json_list(ids), records.json_list(app_ids))
    return {row[0]: memory_of_text(row) for row in rows}


def homes_of(tx: Tx, ids: Iterable[int]) -> dict[int, int]:
    """The scope rows of existing memories, by id."""
    sql = "SELECT id, app_id FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return dict(tx.rows(sql, records.json_list(ids)))


def app_id_of(tx: Tx, memory_id: int) -> int:
    """The scope row of an existing memory."""
    return int(tx.rows("SELECT app_id FROM memories WHERE id = ?", memory_id)[0][0])


def by_sha1(tx: Tx, app_ids: Sequence[int], sha1: str) -> Memory | None:
    """The memory with this sha1, active or not: rather an active one, then rather the app's own."""
    found = tx.rows(f"{_IN_SCOPES} AND m.sha1 = ?", records.json_list(app_ids), sha1)
    rows = map(memory_of_text, found)
    return min(rows, key=lambda m: (not m.active, m.app == ""), default=None)


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
    sql = f"{_IN_SCOPES} AND m.active = 1 AND m.key = ? ORDER BY m.said_at DESC, m.id DESC"
    return [memory_of_text(row) for row in tx.rows(sql, records.json_list(app_ids), key)]


def values_with_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[tuple[int, str]]:
    """The ids and values of the active memories with this key, the one said last first."""
    sql = (
        "SELECT id, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND key = ? ORDER BY said_at DESC, id DESC"
    )
    return tx.rows(sql, records.json_list(app_ids), key)


def holds_many(tx: Tx, app_ids: Sequence[int], key: str) -> bool | None:
    """Whether this key holds several values, by its newest memory; None for a key without any."""
    sql = (
        "SELECT many FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active IN (0, 1) AND key = ? ORDER BY id DESC LIMIT 1"
    )
    found = tx.rows(sql, records.json_list(app_ids), key)
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
_DUE = f"""
    {SELECT} WHERE m.id IN (
        SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND expires_at < ?2
        UNION ALL SELECT id FROM memories
        WHERE app_id IN (SELECT value FROM json_each(?1)) AND active = 1 AND starts_at <= ?2)
    ORDER BY m.starts_at, m.id
"""
_OF_KEY = f"""
    {SELECT} WHERE m.app_id IN (SELECT value FROM json_each(?)) AND m.active IN (0, 1) AND m.key = ?
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
    found = tx.rows(_DUE, records.json_list(app_ids), today.isoformat())
    return [memory_of_text(row) for row in found]


def of_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[Memory]:
    """All memories with this key, active or not, hidden ones too."""
    return [memory_of_text(row) for row in tx.rows(_OF_KEY, records.json_list(app_ids), key)]


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


def put_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags and no others, with an event; nothing happens where it has them
    already. Raises InputError for more than it may have."""
    before, after = tags_of(tx, memory_id), clean_tags(tags)
    if after == before:
        return
    tx.execute(delete(memory_tags).where(_t.memory_id == memory_id))
    write_tags(tx, memory_id, after)
    changed = update(memories).where(_m.id == memory_id).values(updated_at=cause.at)
    app_id = int(tx.execute(changed.returning(_m.app_id)).scalar_one())
    values = Values({"tags": before}, {"tags": after})
    history.record(tx, memory_id, app_id, "tag", cause, values)


def add_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags beside its own, as ``put_tags``."""
    put_tags(tx, memory_id, (*tags_of(tx, memory_id), *tags), cause)


def inherit_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory the tags of one that it replaces beside its own, as far as it may have them."""
    own = tags_of(tx, memory_id)
    more = [tag for tag in tags if tag not in own]
    put_tags(tx, memory_id, (*own, *more)[:TAGS_MOST], cause)


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
    given = records.json_list(tags), records.json_list(app_ids)
    return [row[0] for row in tx.rows(_WITH_ALL, *given, len(tags))]
