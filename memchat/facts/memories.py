"""Memories as rows: reading them within a scope, listing and counting them, and their tags.

A memory is unique by scope and sha1, active or not: a fact that is said again after another took
its place gets its old row back. A row says what was true when it was written; a value may have
begun or ended since, and ``ValuesInForce`` has these changes before they are written to the rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from memchat.db import Tx, apps, details
from memchat.db import schema as t
from memchat.db.records import among, from_row
from memchat.facts import keys
from memchat.language.text import folded
from memchat.learn.candidate import Relation
from memchat.search import keywords, passages
from memchat.types import CreatedBy, Memory, MemoryOrigin, Wanted

_m, _t = t.memories.c, t.memory_tags.c
_OWN = {one.name for one in fields(Memory)}
SELECT = sa.select(
    *(column for column in _m if column.name in _OWN),
    t.apps.c.user,
    t.apps.c.name.label("app"),
    details.tags_of_row(t.memories),
    details.of_row(t.memories),
).join_from(t.memories, t.apps)
"""Every row, hidden ones too, with the columns of a Memory."""
FORGOTTEN = "forgotten"
"""The reason of inactive rows that wait for their purge. They are hidden everywhere."""
visible = sa.or_(_m.inactive_reason.is_(None), _m.inactive_reason != FORGOTTEN)
in_scopes = among(_m.app_id, "app_ids")
scoped = among(_m.app_id + 0, "app_ids")
"""The same, where the index of the scope is not to be used."""
_KEY, _SHA1 = _m.key == sa.bindparam("of_key"), _m.sha1 == sa.bindparam("hashed")
OF_IDS = SELECT.where(among(_m.id, "ids"))
_BY_IDS = OF_IDS.where(visible, scoped)
_BY_SHA1 = SELECT.where(visible, in_scopes, _SHA1)
_WITH_KEY = SELECT.where(visible, in_scopes, _m.active == 1, _KEY)
_WITH_KEY = _WITH_KEY.order_by(_m.said_at.desc(), _m.id.desc())
_OF_KEY = SELECT.where(in_scopes, _m.active.in_((0, 1)), _KEY)
_HIDDEN = SELECT.where(in_scopes, _m.inactive_reason == FORGOTTEN).order_by(_m.id)
_HIDDEN_SHA1 = _HIDDEN.where(_SHA1)
_HOMES = sa.select(_m.id, _m.app_id).where(among(_m.id, "ids"))
_ID_OF = sa.select(_m.id, _m.inactive_reason).where(_m.app_id == sa.bindparam("app"), _SHA1)
_MANY = sa.select(_m.many).where(in_scopes, _m.active.in_((0, 1)), _KEY)
_MANY = _MANY.order_by(_m.id.desc()).limit(1)


def read(tx: Tx, statement: sa.Select[Any], **values: Any) -> list[Memory]:
    """The memories of a statement that begins with ``SELECT``."""
    return [from_row(Memory, row) for row in tx.rows(statement, **values)]


def get(tx: Tx, app_ids: Sequence[int], memory_id: int) -> Memory | None:
    """One memory, active or not; None if it does not belong to these scope rows."""
    found = by_ids(tx, app_ids, [memory_id])
    return found.get(memory_id)


def by_ids(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of these scope rows by id. Ids that are unknown or of other scopes are left out."""
    if not ids or not app_ids:
        return {}
    return {one.id: one for one in read(tx, _BY_IDS, ids=ids, app_ids=app_ids)}


def homes_of(tx: Tx, ids: Iterable[int]) -> dict[int, int]:
    """The scope rows of existing memories, by id."""
    return dict(tx.rows(_HOMES, ids=ids))


def app_id_of(tx: Tx, memory_id: int) -> int:
    """The scope row of an existing memory."""
    return homes_of(tx, [memory_id])[memory_id]


def by_sha1(tx: Tx, app_ids: Sequence[int], sha1: str) -> Memory | None:
    """The memory with this sha1, active or not: rather an active one, then rather the app's own."""
    found = read(tx, _BY_SHA1, app_ids=app_ids, hashed=sha1)
    return min(found, key=lambda m: (not m.active, m.app == ""), default=None)


def id_of(tx: Tx, app_id: int, sha1: str) -> tuple[int, bool] | None:
    """The id of the memory of a scope row with this sha1, also of one that waits for its purge, and
    whether it does; None if there is none."""
    found = tx.rows(_ID_OF, app=app_id, hashed=sha1)
    return (int(found[0][0]), found[0][1] == FORGOTTEN) if found else None


def made_at(tx: Tx, app_ids: Sequence[int], sha1: str, created_at: datetime) -> int | None:
    """The id of the memory of these scope rows with this sha1 that was made at this time."""
    there = read(tx, _BY_SHA1, app_ids=app_ids, hashed=sha1)
    return next((memory.id for memory in there if memory.created_at == created_at), None)


def with_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[Memory]:
    """The active memories with this key, the one said last first."""
    return read(tx, _WITH_KEY, app_ids=app_ids, of_key=key)


def holds_many(tx: Tx, app_ids: Sequence[int], key: str) -> bool | None:
    """Whether this key holds several values, by its newest memory; None for a key without any."""
    found = tx.value(_MANY, app_ids=app_ids, of_key=key)
    return None if found is None else bool(found)


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A fact that is about to be stored."""

    memory_type: str
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
    sentence: str | None = None

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
    near: tuple[int, ...] = ()
    """The memories so near to it that they may be copies."""
    detail: dict[str, str] | None = None
    """What a second look said of it, for its events."""
    around: str | None = None
    """The person's sentence that the first quote stands in."""
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


_active = sa.select(_m.id).where(in_scopes, _m.active == 1)
_over = _active.where(_m.expires_at < sa.bindparam("day"))
_begun = _active.where(_m.starts_at <= sa.bindparam("day"))
# A union, since each half uses an index of its own.
_DUE = SELECT.where(_m.id.in_(_over.union_all(_begun))).order_by(_m.starts_at, _m.id)


@dataclass(frozen=True, slots=True)
class ValuesInForce:
    """What has changed by date alone since the rows were written."""

    today: date
    displaced: Mapping[int, int] = field(default_factory=dict)
    """Active by their rows, but replaced today by another memory: id → id of the other."""
    back: Mapping[int, int] = field(default_factory=dict)
    """Ended memories: id → id of the value that they had replaced and that holds again."""
    over: frozenset[int] = frozenset()
    """Active by their rows, but past their last day."""

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

    def in_use(self) -> sa.ColumnElement[bool]:
        """A condition: the memory is shown as a fact today, being in force or still to come."""
        over = sa.and_(_m.expires_at.is_not(None), _m.expires_at < self.today)
        there = sa.and_(_m.active == 1, ~over, _m.id.not_in(self.displaced))
        return sa.or_(there, _m.id.in_(self.back.values())) if self.back else there

    def begun(self) -> sa.ColumnElement[bool]:
        """A condition: the first day of the memory has come."""
        return sa.or_(_m.starts_at.is_(None), _m.starts_at <= self.today)

    def out_of_use(self) -> sa.ColumnElement[bool]:
        """A condition: the memory is inactive by its row, or replaced today."""
        gone = sa.and_(_m.active == 0, _m.id.not_in(self.back.values()))
        return sa.or_(gone, _m.id.in_(self.displaced)) if self.displaced else gone


def is_over(memory: Memory, day: date) -> bool:
    """Whether a memory's last day lies before a day."""
    return memory.expires_at is not None and memory.expires_at < day


def holds_on(memory: Memory, day: date) -> bool:
    """Whether a day lies between a memory's first and last day."""
    begun = memory.starts_at is None or memory.starts_at <= day
    return begun and not is_over(memory, day)


def with_due_date(tx: Tx, app_ids: Sequence[int], today: date) -> list[Memory]:
    """The active memories whose last day is past or whose first day has come, the earliest first
    day first."""
    return read(tx, _DUE, app_ids=app_ids, day=today)


def of_key(tx: Tx, app_ids: Sequence[int], key: str) -> list[Memory]:
    """All memories with this key, active or not, hidden ones too."""
    return read(tx, _OF_KEY, app_ids=app_ids, of_key=key)


def hidden(tx: Tx, app_ids: Sequence[int], *, sha1: str | None = None) -> list[Memory]:
    """The hidden memories of these scope rows; with ``sha1`` only that fact."""
    if sha1 is None:
        return read(tx, _HIDDEN, app_ids=app_ids)
    return read(tx, _HIDDEN_SHA1, app_ids=app_ids, hashed=sha1)


_TAGS = sa.select(_t.tag).where(_t.memory_id == sa.bindparam("memory")).order_by(_t.tag)


def tags_of(tx: Tx, memory_id: int) -> tuple[str, ...]:
    """The tags of a memory, sorted."""
    return tuple(tx.column(_TAGS, memory=memory_id))


def tag_counts(tx: Tx, app_ids: Sequence[int], now: ValuesInForce) -> dict[str, int]:
    """How many memories in use in these scope rows have each tag, the most used first."""
    number = sa.func.count()
    query = sa.select(_t.tag, number).join_from(t.memory_tags, t.memories, _m.id == _t.memory_id)
    query = query.where(_m.app_id.in_(app_ids), now.in_use())
    rows = tx.execute(query.group_by(_t.tag).order_by(number.desc(), _t.tag))
    return {row[0]: row[1] for row in rows}


def ids_that_fit(tx: Tx, app_ids: Sequence[int], wanted: Wanted) -> list[int]:
    """The ids of the memories of these scope rows that match ``wanted``, whatever their status."""
    query = sa.select(_m.id).where(_m.app_id.in_(app_ids), *_narrowed(wanted))
    return list(tx.execute(query).scalars())


_ORDERS: dict[str, tuple[sa.ColumnElement[Any], ...]] = {
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


COMMON_FROM = 10
"""From how many facts on cues that most of them share are left out."""
COMMON_SHARE = 5
"""A cue of more than one in this many facts does not tell them apart."""


_COUNT_ACTIVE = sa.select(sa.func.count()).where(in_scopes, _m.active == 1)


def distinctive_cues(tx: Tx, app_id: int, cues: Sequence[str]) -> list[str]:
    """These cues without those that more than a fifth of the user's facts have."""
    if not cues:
        return []
    scopes = apps.related_ids(tx, app_id)
    count = tx.value(_COUNT_ACTIVE, app_ids=scopes)
    if count < COMMON_FROM:
        return list(cues)
    most = count // COMMON_SHARE
    return [cue for cue in cues if not keywords.is_held_by_more(tx, "fact", scopes, cue, most)]


_LASTS = sa.or_(_m.expires_at.is_(None), _m.expires_at >= sa.bindparam("day"))
_IN_USE = sa.or_(_m.active == 1, among(_m.id, "back"))
_SENSITIVE = sa.select(_m.key, _m.value).where(in_scopes, _m.sensitive == 1, _IN_USE, _LASTS)


def sensitive_words(
    tx: Tx, app_ids: Sequence[int], today: date, back: Collection[int]
) -> list[tuple[str, str]]:
    """The keys and values of the sensitive memories in use. Those of ``back`` count as in use
    too."""
    return tx.rows(_SENSITIVE, app_ids=app_ids, back=back, day=today)


def listed(
    tx: Tx,
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    *,
    by: date | None = None,
    limit: int | None = None,
    after: Position | None = None,
) -> list[Memory]:
    """The memories that match ``wanted``, in its order: at most ``limit``, those ``after`` a place.
    Those that are ``expiring`` end no later than ``by``."""
    query = _filtered(sa.select(_m.id), app_ids, wanted, now, by)
    query = query.where(*_behind(after, wanted.sort)).limit(limit)
    query = query.order_by(*_ORDERS[wanted.sort], _m.id.desc())
    return of_ids(tx, tx.execute(query).scalars().all(), now)


def _behind(after: Position | None, sort: str) -> list[sa.ColumnElement[bool]]:
    """What comes after a place in the order of ``listed``."""
    if after is None:
        return []
    behind = sa.or_(
        _m.said_at < after.said_at, sa.and_(_m.said_at == after.said_at, _m.id < after.id)
    )
    if sort != "ending first":
        return [behind]
    return [
        sa.or_(_m.expires_at > after.expires_at, sa.and_(_m.expires_at == after.expires_at, behind))
    ]


def ids(
    tx: Tx, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, by: date | None = None
) -> list[int]:
    """The ids of all that ``listed`` would give without a limit; pinned ones come first."""
    query = _filtered(sa.select(_m.id, _m.memory_type, _m.key), app_ids, wanted, now, by)
    rows = tx.execute(query.order_by(_m.pinned.desc(), *_ORDERS[wanted.sort], _m.id.desc()))
    group = wanted.group
    return [one for one, kind, key in rows if not group or keys.group(kind, key) == group]


def group_counts(tx: Tx, app_ids: Sequence[int], now: ValuesInForce) -> dict[str, int]:
    """How many memories in use each group of ``keys.GROUPS`` has, in that order."""
    query = _filtered(sa.select(_m.memory_type, _m.key), app_ids, Wanted(), now)
    found = Counter(keys.group(kind, key) for kind, key in tx.execute(query))
    return {group: found[group] for group in keys.GROUPS if found[group]}


def of_ids(tx: Tx, memory_ids: Sequence[int], now: ValuesInForce) -> list[Memory]:
    """These memories in this order, hidden ones too; unknown ones are left out."""
    found = {one.id: one for one in read(tx, OF_IDS, ids=memory_ids)}
    return [now.as_of_today(found[i]) for i in memory_ids if i in found]


def or_over(wanted: Wanted) -> Wanted:
    """The same filter, but inactive includes memories whose last day is past and that no sweep has
    marked as expired yet."""
    return replace(wanted, status="inactive or over") if wanted.status == "inactive" else wanted


def pinned_first(tx: Tx, app_ids: Sequence[int], now: ValuesInForce, limit: int) -> list[Memory]:
    """Pinned memories, then profile facts, then preferences. Within each, those confirmed most
    often and latest come first."""
    query = _filtered(sa.select(_m.id), app_ids, Wanted(), now)
    query = query.where(sa.text(t.CHOSEN))
    order = (_m.pinned.desc(), _m.memory_type.desc(), _m.seen_count.desc(), _m.last_seen_at.desc())
    return of_ids(tx, tx.execute(query.order_by(*order, _m.id).limit(limit)).scalars().all(), now)


_ACTIVE = SELECT.where(_m.app_id == sa.bindparam("app"), _m.active == 1)
_FOR_PROMPTS = _COUNT_ACTIVE.where(_m.sensitive == 0, _LASTS, ~among(_m.id, "without"))


def each_active(tx: Tx, app_id: int) -> Iterator[Memory]:
    """The active memories of a scope row, read one at a time, so that the caller may stop early."""
    for rows in tx.batches(_ACTIVE, 64, app=app_id):
        yield from (from_row(Memory, row) for row in rows)


def count_for_prompts(tx: Tx, app_ids: Sequence[int], today: date, without: Collection[int]) -> int:
    """How many facts a prompt could contain whatever was asked: active, not sensitive, and not
    among ``without``."""
    return int(tx.value(_FOR_PROMPTS, app_ids=app_ids, day=today, without=without))


def single_valued_keys(tx: Tx, app_id: int, keys: Sequence[str], now: ValuesInForce) -> set[str]:
    """Which of these keys have a value in this scope row today and hold only one."""
    query = _filtered(sa.select(_m.key), [app_id], Wanted(), now)
    query = query.where(_m.key.in_(keys), _m.many == 0, now.begun())
    return set(tx.execute(query).scalars())


def keys_in_use(tx: Tx, app_ids: Sequence[int]) -> list[str]:
    """The keys of active memories, those with the most memories first."""
    query = sa.select(_m.key).where(_m.app_id.in_(app_ids), _m.active == 1).group_by(_m.key)
    return list(tx.execute(query.order_by(sa.func.count().desc(), _m.key)).scalars())


def scopes_with_due_dates(tx: Tx, today: date, user: str | None) -> list[tuple[int, int]]:
    """The scopes, of a user or of all, with an active memory whose last day is past or whose first
    day has come."""
    shared = t.apps.alias().c
    theirs = sa.and_(shared.user == t.apps.c.user, shared.name == "", t.apps.c.name != "")
    query = sa.select(t.apps.c.id, sa.func.coalesce(shared.id, 0)).distinct()
    query = query.join_from(t.memories, t.apps).outerjoin(shared.id.table, theirs)
    query = query.where(_m.active == 1, sa.or_(_m.expires_at < today, _m.starts_at <= today))
    rows = tx.execute(query if user is None else query.where(t.apps.c.user == user))
    return [(own, common) for own, common in rows]


def ids_in_app(tx: Tx, app_id: int) -> list[int]:
    """All memories of a scope row, active or not."""
    return sorted(tx.execute(sa.select(_m.id).where(_m.app_id == app_id)).scalars())


def searched_ids(tx: Tx, app_id: int) -> set[int]:
    """The memories of a scope row that search may find."""
    return set(tx.execute(sa.select(_m.id).where(_m.app_id == app_id, t.searched)).scalars())


def _filtered(
    query: sa.Select[Any],
    app_ids: Sequence[int],
    wanted: Wanted,
    now: ValuesInForce,
    by: date | None = None,
) -> sa.Select[Any]:
    there = (_m.app_id.in_(app_ids), *_with_status(wanted.status, now, by))
    return query.where(*there, *_narrowed(wanted))


def _narrowed(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    only = details.tagged(t.memories, wanted.tags) if wanted.tags else []
    if wanted.metadata:
        only += details.noted_of_facts(wanted.metadata)
    if wanted.search and (words := folded(wanted.search).strip()):
        only.append(sa.func.memchat_holds_all(words, _m.key, _m.value, _m.sentence))
    if wanted.memory_types:
        only.append(_m.memory_type.in_(wanted.memory_types))
    if wanted.created_by:
        only.append(_m.created_by.in_(wanted.created_by))
    if wanted.key:
        only.append(_m.key == wanted.key)
    if wanted.since is not None:
        only.append(_m.said_at >= wanted.since)
    if wanted.until is not None:
        only.append(_m.said_at <= wanted.until)
    return only


def _with_status(status: str, now: ValuesInForce, by: date | None) -> list[sa.ColumnElement[bool]]:
    if status == "forgotten":
        return [sa.not_(visible)]
    if status in passages.STATUSES:
        return [visible, t.searched, _m.id.in_(passages.ids_with_status(status))]
    if status == "not embedded":
        return [visible, passages.is_unembedded(_m.id)]
    holds = now.in_use()
    over = sa.and_(_m.active == 1, _m.expires_at < now.today)
    conditions = {
        "active": [holds],
        "pinned": [holds, _m.pinned == 1],
        "inactive": [now.out_of_use()],
        "inactive or over": [sa.or_(now.out_of_use(), over)],
        "expired": [sa.or_(_m.inactive_reason == "expired", over)],
        "expiring": [holds, _m.expires_at.between(now.today, by)],
        "never used": [holds, _m.read_count == 0],
        "all": [],
    }
    return [visible, *conditions[status]]


_home, _before, _said, _sent = t.apps, t.apps.alias().c, t.memory_sources.c, t.messages.c
_taught_in = (
    sa.select(_sent.session_id)
    .select_from(t.memory_sources.join(t.messages).join(t.sessions))
    .where(_said.memory_id == _m.id, _sent.role == "user")
    .where(t.sessions.c.app_id == sa.bindparam("app"))
    .order_by(_sent.id.desc())
    .limit(1)
)
_moved = t.memory_events.c
_moved_from = (
    sa.select(_before.name)
    .where(_before.id == _moved.app_id, _before.name != "")
    .where(_moved.memory_id == _m.id, _moved.kind == "move")
    .order_by(_moved.id.desc())
    .limit(1)
)
_ORIGINS = (
    sa.select(_m.id, _taught_in.scalar_subquery(), _moved_from.scalar_subquery(), _home.c.name)
    .join_from(t.memories, _home)
    .where(among(_m.id, "ids"))
)


def origins_of(tx: Tx, app_id: int, memory_ids: Sequence[int]) -> dict[int, MemoryOrigin]:
    """The origin of each of these memories, by its id, as it is seen in one app."""
    rows = tx.rows(_ORIGINS, ids=memory_ids, app=app_id)
    return {
        memory_id: MemoryOrigin(session_id, None if home else before)
        for memory_id, session_id, before, home in rows
    }


_USED = sa.update(t.memories).where(among(_m.id, "ids"))
_MATCHED = _USED.values(match_count=_m.match_count + 1)
_READ = _USED.values(read_count=_m.read_count + 1)


def add_uses(tx: Tx, *, matched: Collection[int], read: Collection[int]) -> None:
    """Add one to the counts of these memories; ids that no longer exist are ignored."""
    for ids, statement in ((matched, _MATCHED), (read, _READ)):
        if ids:
            tx.rows(statement, ids=ids)


def uses_of(tx: Tx, memory_id: int) -> tuple[int, int]:
    """How often a memory was found for a message, and how often it was sent to a model."""
    row = tx.execute(sa.select(_m.match_count, _m.read_count).where(_m.id == memory_id)).one()
    return row.match_count, row.read_count
