"""Tombstones: keyed hashes of forgotten texts. A text can be recognised by them, but not read from
them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from memchat.store import meta, raw_sql
from memchat.store.schema import tombstones, utc_text

Mark = tuple[str, str]
"""A kind (value, quote, source, word, name or key; for a note: note) and a text."""
_t = tombstones.c


def add(tx: Connection, app_id: int, memory_id: int, marks: Iterable[Mark], now: datetime) -> None:
    """Store that these texts of a memory were forgotten in a scope, or update the time.

    ``memory_id`` is 0 for what never was a memory.
    """
    key, at = meta.hash_key(tx), utc_text(now)
    raw_sql.run_many(
        tx,
        "INSERT INTO tombstones (app_id, memory_id, kind, hash, created_at)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (app_id, memory_id, kind, hash)"
        " DO UPDATE SET created_at = excluded.created_at",
        [(app_id, memory_id, kind, _hash(key, text), at) for kind, text in sorted(set(marks))],
    )


def remove_of_memory(tx: Connection, memory_id: int) -> None:
    """Delete a memory's tombstones. Those of other memories with the same words stay."""
    tx.execute(delete(tombstones).where(_t.memory_id == memory_id))


def any_in(tx: Connection, app_id: int) -> bool:
    """Whether anything was forgotten in a scope."""
    return bool(raw_sql.rows(tx, "SELECT 1 FROM tombstones WHERE app_id = ? LIMIT 1", app_id))


def remove(tx: Connection, app_ids: Iterable[int], marks: Iterable[Mark]) -> None:
    """Delete the tombstones of these texts, of any memory, because a person wants them known
    again."""
    scopes, key = raw_sql.json_list(app_ids), meta.hash_key(tx)
    wanted = {(kind, _hash(key, text)) for kind, text in marks}
    for kind in {kind for kind, _ in wanted}:
        hashes = [hashed for of_kind, hashed in wanted if of_kind == kind]
        raw_sql.rows(
            tx,
            "DELETE FROM tombstones WHERE app_id IN (SELECT value FROM json_each(?)) AND kind = ?"
            " AND hash IN (SELECT value FROM json_each(?))",
            *(scopes, kind, raw_sql.json_list(hashes)),
        )


def find(tx: Connection, app_ids: Iterable[int], marks: Iterable[Mark]) -> dict[Mark, datetime]:
    """Those of these texts that were forgotten in one of the scopes, and when last."""
    key = meta.hash_key(tx)
    by_hash = {(kind, _hash(key, text)): (kind, text) for kind, text in marks}
    query = select(_t.kind, _t.hash, func.max(_t.created_at)).where(
        _t.app_id.in_(list(app_ids)), _t.hash.in_([hashed for _, hashed in by_hash])
    )
    rows = tx.execute(query.group_by(_t.kind, _t.hash)).all()
    return {by_hash[row[0], row[1]]: row[2] for row in rows if (row[0], row[1]) in by_hash}


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
