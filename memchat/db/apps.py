"""Scopes: a row for each app of a user, and one with an empty name for what all of them share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import from_row
from memchat.types import EVERY_APP, AppInfo, MemorySwitch, Scope, Session, UserInfo

_a = t.apps.c
_OF_USER = sa.select(_a.id).where(_a.user == sa.bindparam("user"))
_this = _a.name.in_((sa.bindparam("app"), EVERY_APP))
_NAMED = sa.select(_a.name, _a.id).where(_a.user == sa.bindparam("user"), _this)
_ORDERED = _OF_USER.order_by(_a.name == EVERY_APP, _a.id)
_SHARED = _OF_USER.where(_a.name == EVERY_APP)
_OFF = _NAMED.where(_a.memory == 0).order_by(_a.name)
_WANTED = sa.select(_a.instructions).where(_a.id == sa.bindparam("app"))
_here = t.apps.alias().c
_OF_SAME_USER = sa.select(_a.id).where(_a.user == _here.user, _here.id == sa.bindparam("app"))
_OTHERS = _OF_SAME_USER.where(_a.id != _here.id)
_RELATED = _OF_SAME_USER.where(
    sa.or_(_a.id == _here.id, _here.name == EVERY_APP, _a.name == EVERY_APP)
)


def find(tx: Tx, scope: Scope) -> Tx:
    """The transaction about this scope; no row is made."""
    found = dict(tx.rows(_NAMED, user=scope.user, app=scope.app))
    return tx.within(found.get(scope.app, 0), found.get(EVERY_APP, 0))


def ensure(tx: Tx, scope: Scope) -> Tx:
    """The transaction about this scope, whose rows are made where there are none."""
    found = find(tx, scope)
    found.own = found.own or _make(tx, scope.user, scope.app)
    found.shared = found.shared or _make(tx, scope.user, EVERY_APP)
    return found


def shared_id(tx: Tx, user: str) -> int:
    """The id of the user's shared row; 0 where there is none."""
    return int(tx.value(_SHARED, user=user) or 0)


def ensure_shared(tx: Tx, user: str) -> int:
    """The id of the user's shared row, which is made if it is missing."""
    return shared_id(tx, user) or _make(tx, user, EVERY_APP)


def _make(tx: Tx, user: str, name: str) -> int:
    return tx.insert(t.apps, user=user, name=name, created_at=tx.now)


def memory_switch(tx: Tx, scope: Scope, *, all_apps: bool = False) -> MemorySwitch:
    """Whether memory is on in the scope, or with ``all_apps`` for the user, whatever the switches
    of single apps say. It is on until somebody switches it off."""
    app = EVERY_APP if all_apps else scope.app
    for row in tx.rows(_OFF, user=scope.user, app=app):
        off = f"the app {row.name}" if row.name else scope.user
        return MemorySwitch(False, f"memory is off for {off}")
    return MemorySwitch(True, "memory is on")


OFF_HERE = MemorySwitch(False, "memory is off for this chat")


def memory_of(tx: Tx, session: Session) -> MemorySwitch:
    """Whether memory takes part in a conversation: for its user, in its app, and in itself."""
    found = memory_switch(tx, Scope(session.user, session.app))
    return found if session.memory or not found.on else OFF_HERE


def set_memory(tx: Tx, app_id: int, on: bool) -> None:
    """Switch memory on or off for one row: an app's, or the shared one for the whole user."""
    change(tx, app_id, memory=int(on))


def instructions(tx: Tx, app_id: int) -> str:
    """What the person wants of every reply in one row; empty where that is nothing."""
    return tx.value(_WANTED, app=app_id) or ""


def change(tx: Tx, app_id: int, **values: object) -> None:
    """Set columns of one row."""
    tx.execute(sa.update(t.apps).where(_a.id == app_id).values(**values))


def _each(table: sa.Table, column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """A count or a date of what each app holds in a table."""
    return sa.select(column).where(table.c.app_id == _a.id).scalar_subquery()


_n, _to = t.sources.c, t.topics.c
_HELD = {
    "memories": _each(t.memories, sa.func.count().filter(t.memories.c.active == 1)),
    "sessions": _each(t.sessions, sa.func.count()),
    "notes": _each(t.sources, sa.func.count()),
}
_LATEST = (
    _each(t.memories, sa.func.max(t.memories.c.updated_at)),
    _each(t.sessions, sa.func.max(t.sessions.c.last_activity_at)),
    _each(t.sources, sa.func.max(sa.func.coalesce(_n.updated_at, _n.created_at))),
)


def of_user(tx: Tx, user: str) -> list[AppInfo]:
    """The user's apps in order of their names, with how much each holds. The shared row is left
    out."""
    held = [query.label(name) for name, query in _HELD.items()]
    query = sa.select(_a.name, _a.memory, *held, _a.created_at).order_by(_a.name)
    rows = tx.execute(query.where(_a.user == user, _a.name != EVERY_APP))
    return [from_row(AppInfo, row) for row in rows]


def with_news(tx: Tx, since: datetime, user: str | None = None) -> list[Scope]:
    """The apps, of a user or of all, whose topics were found before then, or never, and of which
    something is to be indexed that was not there then."""
    at, known = (_each(t.topics, sa.func.max(c)) for c in (_to.made_at, _to.change_id))
    newest = _each(t.changes, sa.func.max(t.changes.c.id))
    query = sa.select(_a.user, _a.name).where(_a.name != EVERY_APP)
    query = query.where(newest > sa.func.coalesce(known, 0), sa.or_(at.is_(None), at <= since))
    query = query.where(_a.user == user) if user is not None else query
    return [Scope(*row) for row in tx.execute(query.order_by(_a.id))]


def users(tx: Tx) -> list[UserInfo]:
    """Everybody of whom something is kept, in order of their names."""
    named = sa.func.count().filter(_a.name != EVERY_APP)
    held = [sa.func.sum(query) for query in _HELD.values()]
    dates = [sa.func.max(date) for date in (_a.created_at, *_LATEST)]
    query = sa.select(_a.user, named, *held, *dates).group_by(_a.user).order_by(_a.user)
    rows = ([*row[:5], max(filter(None, row[5:]))] for row in tx.execute(query))
    return [UserInfo(*values) for values in rows]


def ids_of_user(tx: Tx, user: str) -> list[int]:
    """The ids of all rows of a user, the shared one last."""
    return tx.column(_ORDERED, user=user)


def other_ids(tx: Tx, app_id: int) -> list[int]:
    """The ids of the same user's other rows."""
    return tx.column(_OTHERS, app=app_id)


def related_ids(tx: Tx, app_id: int) -> list[int]:
    """The scope rows whose texts may mention the facts of this one: itself and the user's shared
    row; for the shared row all of the user's."""
    return tx.column(_RELATED, app=app_id)


def remove(tx: Tx, app_id: int) -> None:
    """Delete an app's row. Its memories, sessions and jobs are deleted with it by cascade."""
    tx.execute(sa.delete(t.apps).where(_a.id == app_id))


def all_ids(tx: Tx) -> list[int]:
    """The ids of all rows of all users."""
    return list(tx.execute(sa.select(_a.id)).scalars())
