"""Scopes: a row for each app of a user, and one with an empty name for what all of them share.

A new name of a user or an app must not hold invisible characters, or two names could look alike and
yet be two users. Names that were stored before this rule stay usable, so that their data can be
read and deleted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from sqlalchemy import delete, func, select, update

from memchat.db import Tx
from memchat.db.schema import apps, memories, sessions, sources
from memchat.errors import ScopeError
from memchat.types import EVERY_APP, AppInfo, MemorySwitch, Scope

_HIDDEN = ("Cf", "Cn", "Co", "Zl", "Zp")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and signs that are drawn as blanks."""
_JOINERS = "\u200c\u200d"


def refuse_invisible(name: str, what: str) -> None:
    """Raise ScopeError for a new name with a character that is invisible or changes the direction
    of the line."""
    if name.isascii() or name == EVERY_APP:
        return
    for place, char in enumerate(name):
        if _is_hidden(char) and not _is_needed(name, place):
            raise ScopeError(
                f"the {what} name holds a character that cannot be seen (U+{ord(char):04X}); "
                "type it again without it"
            )


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or char in _BLANK or _selects(char)


def _selects(char: str) -> bool:
    """Whether it is a variation selector, which chooses the form of the character before it."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_needed(name: str, place: int) -> bool:
    """Whether an invisible character changes what is seen: in an emoji, or in a script that needs
    joiners."""
    before, after = name[place - 1 : place], name[place + 1 : place + 2]
    if name[place] == "\ufe0f":
        return _is_symbol(before)
    if name[place] not in _JOINERS or not before or not after:
        return False
    if _is_symbol(after) and (_is_symbol(before) or before == "\ufe0f"):
        return True
    return unicodedata.combining(before) == 9 or (
        unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"
    )


def _is_symbol(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("So", "Sk")


def find(tx: Tx, scope: Scope) -> Tx:
    """The transaction about this scope; no row is made. Raises ScopeError for a name that is not in
    the store and has invisible characters."""
    sql = "SELECT name, id FROM apps WHERE user = ? AND name IN (?, ?)"
    found: dict[str, int] = dict(tx.rows(sql, scope.user, scope.app, EVERY_APP))
    _check(found, scope)
    return tx.within(found.get(scope.app, 0), found.get(EVERY_APP, 0))


def _check_user(tx: Tx, user: str) -> None:
    if not tx.rows("SELECT 1 FROM apps WHERE user = ? LIMIT 1", user):
        refuse_invisible(user, "user")


def _check(found: Collection[str], scope: Scope) -> None:
    if not found:
        refuse_invisible(scope.user, "user")
    if scope.app not in found:
        refuse_invisible(scope.app, "app")


def ensure(tx: Tx, scope: Scope) -> Tx:
    """The transaction about this scope, whose rows are made where there are none."""
    found = find(tx, scope)
    found.own = found.own or _make(tx, scope.user, scope.app)
    found.shared = found.shared or _make(tx, scope.user, EVERY_APP)
    return found


def shared_id(tx: Tx, user: str) -> int:
    """The id of the user's shared row; 0 where there is none."""
    found = tx.rows("SELECT id FROM apps WHERE user = ? AND name = ''", user)
    return int(found[0][0]) if found else 0


def ensure_shared(tx: Tx, user: str) -> int:
    """The id of the user's shared row, which is made if it is missing."""
    found = shared_id(tx, user)
    if not found:
        _check_user(tx, user)
    return found or _make(tx, user, EVERY_APP)


def _make(tx: Tx, user: str, name: str) -> int:
    return tx.insert("apps", user=user, name=name, created_at=tx.now)


def memory_switch(tx: Tx, scope: Scope) -> MemorySwitch:
    """Whether memory is on in the scope. It is on until somebody switches it off."""
    rows = tx.execute(
        select(apps.c.name, apps.c.memory).where(
            apps.c.user == scope.user, apps.c.name.in_((scope.app, EVERY_APP))
        )
    )
    found = {name: bool(memory) for name, memory in rows}
    _check(found, scope)
    if not found.get(EVERY_APP, True):
        return _off_for(scope.user)
    if not found.get(scope.app, True):
        return MemorySwitch(False, f"memory is off for the app {scope.app}")
    return MemorySwitch(True, "memory is on")


def user_switch(tx: Tx, user: str) -> MemorySwitch:
    """Whether memory is on for the user, whatever the switches of single apps say."""
    query = select(apps.c.memory).where(apps.c.user == user, apps.c.name == EVERY_APP)
    on = tx.execute(query).scalar()
    if on is None:
        _check_user(tx, user)
    return MemorySwitch(True, "memory is on") if on in (None, 1) else _off_for(user)


def _off_for(user: str) -> MemorySwitch:
    return MemorySwitch(False, f"memory is off for {user}")


def set_memory(tx: Tx, app_id: int, on: bool) -> None:
    """Switch memory on or off for one row: an app's, or the shared one for the whole user."""
    tx.execute(update(apps).where(apps.c.id == app_id).values(memory=int(on)))


def of_user(tx: Tx, user: str) -> list[AppInfo]:
    """The user's apps in order of their names, with how much each holds. The shared row is left
    out."""
    held = (
        select(func.count())
        .where(memories.c.app_id == apps.c.id, memories.c.active == 1)
        .scalar_subquery()
    )
    talked = select(func.count()).where(sessions.c.app_id == apps.c.id).scalar_subquery()
    kept = select(func.count()).where(sources.c.app_id == apps.c.id).scalar_subquery()
    rows = tx.execute(
        select(apps.c.name, apps.c.memory, held, talked, kept, apps.c.created_at)
        .where(apps.c.user == user, apps.c.name != EVERY_APP)
        .order_by(apps.c.name)
    )
    found = [AppInfo(name, bool(memory), m, s, n, at) for name, memory, m, s, n, at in rows]
    if not found:
        _check_user(tx, user)
    return found


def ids_of_user(tx: Tx, user: str) -> list[int]:
    """The ids of all rows of a user, the shared one last."""
    query = select(apps.c.id).where(apps.c.user == user)
    found = list(tx.execute(query.order_by(apps.c.name == EVERY_APP, apps.c.id)).scalars())
    if not found:
        _check_user(tx, user)
    return found


def other_ids(tx: Tx, app_id: int) -> list[int]:
    """The ids of the same user's other rows."""
    sql = (
        "SELECT a.id FROM apps here JOIN apps a USING (user) WHERE here.id = ? AND a.id != here.id"
    )
    return [row[0] for row in tx.rows(sql, app_id)]


def remove(tx: Tx, app_id: int) -> None:
    """Delete an app's row. Its memories, sessions and jobs are deleted with it by cascade."""
    tx.execute(delete(apps).where(apps.c.id == app_id))


def all_ids(tx: Tx) -> list[int]:
    """The ids of all rows of all users."""
    return list(tx.execute(select(apps.c.id)).scalars())
