"""What was forgotten, as keyed hashes: enough to recognise it again, not to read it."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.store import meta
from memchat.store.schema import tombstones

Mark = tuple[str, str]
"""A kind (value, quote, source, word, name) and the text that is recognised."""
_t = tombstones.c


def bury(tx: Connection, app_id: int, memory_id: int, marks: Iterable[Mark], now: datetime) -> None:
    """Remember that these texts of a memory were forgotten in a scope; the last time counts.

    The id is 0 for what never was a memory.
    """
    key = meta.hash_key(tx)
    rows = [
        {
            "app_id": app_id,
            "memory_id": memory_id,
            "kind": kind,
            "hash": _hash(key, text),
            "created_at": now,
        }
        for kind, text in sorted(set(marks))
    ]
    if rows:
        statement = upsert(tombstones)
        again = {"created_at": statement.excluded.created_at}
        unique = ["app_id", "memory_id", "kind", "hash"]
        tx.execute(statement.on_conflict_do_update(index_elements=unique, set_=again), rows)


def exhume(tx: Connection, memory_id: int) -> None:
    """Take back that a memory was forgotten; others that share its words stay so."""
    tx.execute(delete(tombstones).where(_t.memory_id == memory_id))


def lift(tx: Connection, app_ids: Iterable[int], marks: Iterable[Mark]) -> None:
    """Forget that these texts were forgotten, of whatever memory: a person wants them known."""
    key = meta.hash_key(tx)
    wanted = {(kind, _hash(key, text)) for kind, text in marks}
    scopes = list(app_ids)
    for kind in {kind for kind, _ in wanted}:
        hashes = [hashed for of_kind, hashed in wanted if of_kind == kind]
        tx.execute(
            delete(tombstones).where(_t.app_id.in_(scopes), _t.kind == kind, _t.hash.in_(hashes))
        )


def buried(tx: Connection, app_ids: Iterable[int], marks: Iterable[Mark]) -> dict[Mark, datetime]:
    """Which of these texts were forgotten in one of the scopes, and when last."""
    key = meta.hash_key(tx)
    by_hash = {(kind, _hash(key, text)): (kind, text) for kind, text in marks}
    query = select(_t.kind, _t.hash, func.max(_t.created_at)).where(
        _t.app_id.in_(list(app_ids)), _t.hash.in_([hashed for _, hashed in by_hash])
    )
    rows = tx.execute(query.group_by(_t.kind, _t.hash)).all()
    return {by_hash[row[0], row[1]]: row[2] for row in rows if (row[0], row[1]) in by_hash}


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
