"""Queries over many memories: lists, counts, origins, and how they were used in prompts.

A fact list is the part of a prompt that holds facts whatever was asked. It is stored once for the
conversation, and replies that were given the same list share it. A memory has two counts: how often
it was found for a message, and how often it was sent to a model.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    and_,
    cast,
    delete,
    func,
    insert,
    literal_column,
    not_,
    or_,
    select,
    update,
)

from memchat.db import Tx, records
from memchat.db.schema import (
    apps,
    fact_list_lines,
    fact_lists,
    memories,
    messages,
    searched,
    sessions,
)
from memchat.facts import memories as facts_memories
from memchat.facts.memories import (
    SELECT,
    ValuesInForce,
    memory_of,
    memory_of_text,
    visible,
    with_scope,
)
from memchat.language.text import folded
from memchat.search import keywords, passages
from memchat.types import EVERY_APP, Memory, MemoryOrigin, Wanted

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
    return tx.rows(sql, records.json_list(app_ids), records.json_list(back), today.isoformat())


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
    sql = f"{SELECT} WHERE m.id IN (SELECT value FROM json_each(?))"
    rows = tx.rows(sql, records.json_list(memory_ids))
    found = {row[0]: now.as_of_today(memory_of_text(row)) for row in rows}
    return [found[i] for i in memory_ids if i in found]


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
        yield memory_of_text(row)


def count_for_prompts(tx: Tx, app_ids: Sequence[int], today: date, without: Collection[int]) -> int:
    """How many facts a prompt could contain whatever was asked: active, not sensitive, and not
    among ``without``."""
    sql = (
        "SELECT count(*) FROM memories WHERE app_id IN (SELECT value FROM json_each(?))"
        " AND active = 1 AND sensitive = 0 AND (expires_at IS NULL OR expires_at >= ?)"
        " AND id NOT IN (SELECT value FROM json_each(?))"
    )
    found = tx.rows(sql, records.json_list(app_ids), today.isoformat(), records.json_list(without))
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
    return [row[0] for row in tx.rows(sql, records.json_list(app_ids), today.isoformat())]


def scopes_with_due_dates(tx: Tx, today: date, user: str | None) -> list[tuple[int, int]]:
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
    return [(own, common if common and common != own else 0) for own, common in tx.execute(query)]


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
        query = query.where(*facts_memories.has_all_tags(wanted.tags))
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


QUARTER = 900
"""Seconds. Every time zone differs from UTC by a multiple of this."""


def memories_by_day(tx: Tx, app_ids: Sequence[int]) -> dict[date, int]:
    """How many memories were stored on each day, in the user's time zone."""
    quarter = _quarter(_m.created_at)
    query = select(quarter, func.count()).where(_m.app_id.in_(app_ids), visible)
    return _by_day(tx, query.group_by(quarter))


def messages_by_day(tx: Tx, app_id: int) -> dict[date, int]:
    """How many messages the user sent on each day, in the user's time zone."""
    quarter = _quarter(messages.c.created_at)
    query = select(quarter, func.count()).join(sessions, sessions.c.id == messages.c.session_id)
    said = (messages.c.role == "user") & messages.c.copied_from.is_(None)
    query = query.where(sessions.c.app_id == app_id, said)
    return _by_day(tx, query.group_by(quarter))


def by_type(tx: Tx, app_ids: Sequence[int]) -> dict[str, int]:
    """How many active memories each type has."""
    return _counted(tx, select(_m.memory_type, func.count()), _m.memory_type, app_ids)


def by_key(tx: Tx, app_ids: Sequence[int], limit: int) -> dict[str, int]:
    """The keys with the most active memories, and how many they have."""
    query = select(_m.key, func.count()).limit(limit)
    return _counted(tx, query, _m.key, app_ids)


def by_state(tx: Tx, app_ids: Sequence[int]) -> dict[str, int]:
    """How many memories are in use, and how many are inactive for each reason."""
    state = func.coalesce(_m.inactive_reason, "in use")
    query = select(state, func.count()).where(_m.app_id.in_(app_ids), visible).group_by(state)
    return {row[0]: row[1] for row in tx.execute(query)}


def most_used(tx: Tx, app_ids: Sequence[int], limit: int) -> list[tuple[Memory, int]]:
    """The active memories that were sent to a model most often, and how often."""
    query = with_scope.where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count > 0)
    query = query.order_by(_m.read_count.desc(), _m.id).limit(limit)
    return [(memory_of(row), row.read_count) for row in tx.execute(query)]


def never_used(tx: Tx, app_ids: Sequence[int]) -> int:
    """How many active memories were never sent to a model."""
    query = select(func.count()).where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count == 0)
    return int(tx.execute(query).scalar_one())


def _quarter(at: Any) -> Any:
    """A time as the number of its quarter of an hour since 1970: no day of any zone begins
    within."""
    return cast(func.strftime("%s", at), Integer) // literal_column(str(QUARTER), Integer)


def _by_day(tx: Tx, query: Select[Any]) -> dict[date, int]:
    days: Counter[date] = Counter()
    for quarter, count in tx.execute(query):
        days[datetime.fromtimestamp(quarter * QUARTER, tx.zone).date()] += count
    return dict(sorted(days.items()))


def _counted(tx: Tx, query: Select[Any], column: Any, app_ids: Sequence[int]) -> dict[str, int]:
    query = query.where(_m.app_id.in_(app_ids), _m.active == 1).group_by(column)
    return {row[0]: row[1] for row in tx.execute(query.order_by(func.count().desc(), column))}


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


def of_memories(tx: Tx, app_id: int, memory_ids: Sequence[int]) -> dict[int, MemoryOrigin]:
    """The origin of each of these memories, by its id, as it is seen in one app."""
    rows = tx.rows(_ORIGINS, records.json_list(memory_ids), app_id)
    return {
        memory_id: MemoryOrigin(session_id, None if home else before)
        for memory_id, session_id, before, home in rows
    }


_f = fact_lists.c
_l = fact_list_lines.c
Line = tuple[int, str]
"""A memory's id, and its words."""
_SENT = """
    (SELECT f.session_id FROM fact_list_lines l JOIN fact_lists f ON f.id = l.list_id
     WHERE l.memory_id = ?1 UNION SELECT value FROM json_each(?2))
"""
_TEXTS = f"""
    SELECT session_id, content, 0 FROM messages WHERE role = 'assistant' AND session_id IN {_SENT}
    UNION ALL SELECT id, title, 1 FROM sessions WHERE title IS NOT NULL AND id IN {_SENT}
    UNION ALL SELECT id, summary, 1 FROM sessions WHERE summary IS NOT NULL AND id IN {_SENT}
"""

_SENT_ANYWHERE = """
    WITH wanted (id) AS (SELECT value FROM json_each(?1))
    SELECT memory_id FROM fact_list_lines WHERE memory_id IN wanted
    UNION SELECT item_id FROM receipts WHERE kind = 'memory' AND item_id IN wanted
"""


@dataclass(frozen=True, slots=True)
class FactList:
    """A list of facts as a prompt contained it."""

    opening: str | None
    """The system text before the list; None if one of its facts was forgotten since."""
    lines: tuple[Line, ...]


def add(tx: Tx, session_id: int, opening: str | None, lines: Sequence[Line], now: datetime) -> int:
    """The id of this list in a conversation, stored if it is new.

    A list without an opening is incomplete, so it is never taken for an earlier one.
    """
    words = "\n".join([opening or "", *(f"{i} {text}" for i, text in lines)])
    hashed = hashlib.sha256(words.encode()).hexdigest() if opening is not None else None
    same = select(_f.id).where(_f.session_id == session_id, _f.hash == hashed)
    if hashed is not None and (known := tx.execute(same).scalar()) is not None:
        return int(known)
    values = {"session_id": session_id, "hash": hashed, "opening": opening, "created_at": now}
    added = tx.execute(insert(fact_lists).values(**values).returning(_f.id))
    list_id = int(added.scalar_one())
    rows = [(list_id, n, i, text) for n, (i, text) in enumerate(lines)]
    tx.run_many("INSERT INTO fact_list_lines VALUES (?, ?, ?, ?)", rows)
    return list_id


def get(tx: Tx, list_id: int) -> FactList:
    """A stored list, without the lines of facts that were forgotten."""
    opening = tx.execute(select(_f.opening).where(_f.id == list_id)).scalar_one()
    query = select(_l.memory_id, _l.text).where(_l.list_id == list_id).order_by(_l.position)
    return FactList(opening, tuple((row.memory_id, row.text) for row in tx.execute(query)))


def model_texts_with(
    tx: Tx, memory_id: int, shown_in: Collection[int] = ()
) -> list[tuple[int, str, int]]:
    """The replies, titles and summaries of the conversations whose lists contained this memory, and
    of those it was ``shown_in``: (session id, text, 1 for a title or summary and 0 for a reply)."""
    return tx.rows(_TEXTS, memory_id, records.json_list(shown_in))


def sent_to_models(tx: Tx, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories were sent to a model, by the lists and receipts."""
    return {row[0] for row in tx.rows(_SENT_ANYWHERE, records.json_list(memory_ids))}


def remove_lines(tx: Tx, memory_ids: Collection[int]) -> None:
    """Remove memories' lines from all lists, and the openings and hashes of those lists."""
    held = select(_l.list_id).where(_l.memory_id.in_(memory_ids))
    tx.execute(update(fact_lists).where(_f.id.in_(held)).values(hash=None, opening=None))
    tx.execute(delete(fact_list_lines).where(_l.memory_id.in_(memory_ids)))


def add_uses(tx: Tx, *, matched: Collection[int], read: Collection[int]) -> None:
    """Add one to the counts of these memories; ids that no longer exist are ignored."""
    for ids, column in ((matched, _m.match_count), (read, _m.read_count)):
        if ids:
            tx.execute(update(memories).where(_m.id.in_(ids)).values({column: column + 1}))


def uses_of(tx: Tx, memory_id: int) -> tuple[int, int]:
    """How often a memory was found for a message, and how often it was sent to a model."""
    row = tx.execute(select(_m.match_count, _m.read_count).where(_m.id == memory_id)).one()
    return row.match_count, row.read_count
