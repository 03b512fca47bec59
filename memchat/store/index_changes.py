"""Which messages, summaries and chunks changed, so that an index reads them again. Ids only.

Changes of memories are in ``events``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from sqlalchemy import Connection, insert, select

from memchat.store import raw_sql
from memchat.store.schema import changes

Kind = Literal["messages", "sessions", "chunks"]

_c = changes.c


def record(tx: Connection, app_id: int, kind: Kind, ids: Collection[int]) -> None:
    """Note that these items were added, changed or deleted, in the same transaction."""
    rows = [{"app_id": app_id, "kind": kind, "item_id": i} for i in ids]
    if rows:
        tx.execute(insert(changes), rows)


def latest(tx: Connection, kind: Kind, app_id: int) -> int:
    """The id of the scope's newest change of this kind; 0 if there is none."""
    sql = "SELECT max(id) FROM changes WHERE app_id = ? AND kind = ?"
    return raw_sql.rows(tx, sql, app_id, kind)[0][0] or 0


def since(tx: Connection, kind: Kind, app_id: int, change_id: int) -> list[int]:
    """The ids of the items of the scope that changed after ``change_id``."""
    query = select(_c.item_id).where(_c.app_id == app_id, _c.kind == kind, _c.id > change_id)
    return list(tx.execute(query.distinct()).scalars())


def fingerprint(tx: Connection, change_id: int) -> str:
    """A text that identifies this change, empty if it does not exist.

    After a backup was restored another change may have the same id, but not the same fingerprint.
    """
    row = tx.execute(select(_c.item_id, _c.at).where(_c.id == change_id)).first()
    return "" if row is None else f"{row.item_id}@{row.at.isoformat()}"
