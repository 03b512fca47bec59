"""What an index has to read anew of messages and summaries, which leave no events: ids alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from sqlalchemy import Connection, insert, select

from memchat.store import raw_sql
from memchat.store.schema import changes

Kind = Literal["messages", "sessions"]

_c = changes.c


def record(tx: Connection, app_id: int, kind: Kind, ids: Collection[int]) -> None:
    """Say that these are new, other than they were, or gone; in the transaction that does it."""
    rows = [{"app_id": app_id, "kind": kind, "item_id": i} for i in ids]
    if rows:
        tx.execute(insert(changes), rows)


def latest(tx: Connection, kind: Kind, app_id: int) -> int:
    """The number of the scope's newest change of this kind; 0 where there is none."""
    sql = "SELECT max(id) FROM changes WHERE app_id = ? AND kind = ?"
    return raw_sql.rows(tx, sql, app_id, kind)[0][0] or 0


def since(tx: Connection, kind: Kind, app_id: int, change_id: int) -> list[int]:
    """What changed in the scope after ``change_id``."""
    query = select(_c.item_id).where(_c.app_id == app_id, _c.kind == kind, _c.id > change_id)
    return list(tx.execute(query.distinct()).scalars())


def fingerprint(tx: Connection, change_id: int) -> str:
    """What tells this change from one of the same number in another past; empty for none."""
    row = tx.execute(select(_c.item_id, _c.at).where(_c.id == change_id)).first()
    return "" if row is None else f"{row.item_id}@{row.at.isoformat()}"
