"""Lists and counts of memories: by status and type, and by first and last days."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, func, not_, or_, select

from memchat.language.word_search import folded
from memchat.store import embedding_states, raw_sql, tags
from memchat.store.apps import ScopeIds
from memchat.store.memories import visible
from memchat.store.memory_rows import SELECT, memory_of, memory_of_text, with_scope
from memchat.store.schema import apps, memories, searched
from memchat.store.values_in_force import ValuesInForce
from memchat.types import EVERY_APP, Memory, Wanted

_m = memories.c

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
    *("not embedded", "all", "forgotten", *embedding_states.STATUSES),
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


def sensitive_words(
    tx: Connection, app_ids: Sequence[int], today: date, back: Collection[int]
) -> list[tuple[str, str]]:
    """The keys and values of the sensitive memories in use. Those of ``back`` count as in use
    too."""
    sql = (
        "SELECT key, value FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND sensitive = 1 AND (active = 1 OR id IN (SELECT value FROM json_each(?)))"
        " AND (expires_at IS NULL OR expires_at >= ?)"
    )
    return raw_sql.rows(
        tx, sql, raw_sql.json_list(app_ids), raw_sql.json_list(back), today.isoformat()
    )


def listed(
    tx: Connection,
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
    tx: Connection,
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    *,
    by: date | None = None,
) -> int:
    """How many ``listed`` would give without a limit."""
    query = select(func.count()).select_from(memories)
    return int(tx.execute(_filtered(query, app_ids, wanted, now, by)).scalar_one())


def ids(
    tx: Connection, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date
) -> list[int]:
    """The ids of all that ``listed`` would give without a limit; pinned ones come first."""
    query = _filtered(select(_m.id), app_ids, wanted, now, by)
    query = query.order_by(_m.pinned.desc(), *_ORDERS[wanted.sort], _m.id.desc())
    return list(tx.execute(query).scalars())


def of_ids(tx: Connection, memory_ids: Sequence[int], now: ValuesInForce) -> list[Memory]:
    """These memories in this order, hidden ones too; unknown ones are left out."""
    sql = f"{SELECT} WHERE m.id IN (SELECT value FROM json_each(?))"
    rows = raw_sql.rows(tx, sql, raw_sql.json_list(memory_ids))
    found = {row[0]: now.as_of_today(memory_of_text(row)) for row in rows}
    return [found[i] for i in memory_ids if i in found]


def or_over(wanted: Wanted) -> Wanted:
    """The same filter, but inactive includes memories whose last day is past and that no sweep has
    marked as expired yet."""
    return replace(wanted, status="inactive or over") if wanted.status == "inactive" else wanted


def pinned_first(
    tx: Connection, app_ids: Sequence[int], now: ValuesInForce, limit: int
) -> list[Memory]:
    """Pinned memories, then profile facts, then preferences. Within each, those confirmed most
    often and latest come first."""
    query = _filtered(with_scope, app_ids, Wanted(), now)
    query = query.where(or_(_m.pinned == 1, _m.memory_type.in_(("profile", "preference"))))
    order = (_m.pinned.desc(), _m.memory_type.desc(), _m.seen_count.desc(), _m.last_seen_at.desc())
    rows = tx.execute(query.order_by(*order, _m.id).limit(limit))
    return [now.as_of_today(memory_of(row)) for row in rows]


def each_active(tx: Connection, app_id: int) -> Iterator[Memory]:
    """The active memories of a scope row, read one at a time, so that the caller may stop early."""
    for row in raw_sql.each_row(tx, f"{SELECT} WHERE m.app_id = ? AND m.active = 1", app_id):
        yield memory_of_text(row)


def count_for_prompts(
    tx: Connection, app_ids: Sequence[int], today: date, without: Collection[int]
) -> int:
    """How many facts a prompt could contain whatever was asked: active, not sensitive, and not
    among ``without``."""
    sql = (
        "SELECT count(*) FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND sensitive = 0 AND (expires_at IS NULL OR expires_at >= ?)"
        " AND id NOT IN (SELECT value FROM json_each(?))"
    )
    found = raw_sql.rows(
        tx, sql, raw_sql.json_list(app_ids), today.isoformat(), raw_sql.json_list(without)
    )
    return int(found[0][0])


def single_valued_keys(
    tx: Connection, app_id: int, keys: Sequence[str], now: ValuesInForce
) -> set[str]:
    """Which of these keys have a value in this scope row today and hold only one."""
    query = _filtered(select(_m.key), [app_id], Wanted(), now)
    query = query.where(_m.key.in_(keys), _m.many == 0, now.begun())
    return set(tx.execute(query).scalars())


def keys_in_use(tx: Connection, app_ids: Sequence[int]) -> list[str]:
    """The keys of active memories, those with the most memories first."""
    query = (
        select(_m.key)
        .where(_m.app_id.in_(app_ids), _m.active == 1)
        .group_by(_m.key)
        .order_by(func.count().desc(), _m.key)
    )
    return list(tx.execute(query).scalars())


def expired_ids(tx: Connection, app_ids: Sequence[int], today: date) -> list[int]:
    """The ids of active memories whose last day is past and that the sweep has not marked yet."""
    # The constant is part of the text, since the partial index is not used for a bound value.
    sql = (
        "SELECT id FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND expires_at < ?"
    )
    return [row[0] for row in raw_sql.rows(tx, sql, raw_sql.json_list(app_ids), today.isoformat())]


def scopes_with_due_dates(tx: Connection, today: date, user: str | None) -> list[ScopeIds]:
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
    return [ScopeIds(own, common if common != own else None) for own, common in tx.execute(query)]


def text_hashes(tx: Connection, app_id: int) -> dict[int, str]:
    """The hashes of the search texts of all memories of a scope row, active or not, by id."""
    rows = tx.execute(select(_m.id, _m.text_hash).where(_m.app_id == app_id))
    return {row[0]: row[1] for row in rows}


def searched_texts(tx: Connection, app_id: int) -> dict[int, str]:
    """The search texts of a scope row's searchable memories, by id."""
    rows = tx.execute(select(_m.id, _m.search_text).where(_m.app_id == app_id, searched))
    return {row[0]: row[1] for row in rows}


def totals(tx: Connection) -> tuple[int, int]:
    """How many memories of all users are active, and how many are searchable."""
    active = tx.execute(select(func.count()).where(_m.active == 1)).scalar_one()
    return int(active), int(tx.execute(select(func.count()).where(searched)).scalar_one())


def count_active(tx: Connection, app_ids: Sequence[int]) -> int:
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
        query = query.where(*tags.has_all(wanted.tags))
    return query


def _with_status(status: str, now: ValuesInForce, by: date | None) -> list[ColumnElement[bool]]:
    if status == "forgotten":
        return [not_(visible)]
    if status in embedding_states.STATUSES:
        return [visible, searched, _m.id.in_(embedding_states.ids_with_status(status))]
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
        "not embedded": [embedding_states.is_unembedded(_m.id)],
        "all": [],
    }
    return [visible, *conditions[status]]
