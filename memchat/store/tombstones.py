"""What was forgotten, as keyed hashes: enough to recognise it again, not to read it."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.store import meta
from memchat.store.schema import tombstones


def bury(tx: Connection, app_id: int, kind: str, texts: Iterable[str], now: datetime) -> None:
    """Remember that these texts (of a kind: value, quote, message) were forgotten in a scope."""
    key = meta.hash_key(tx)
    rows = [
        {"app_id": app_id, "kind": kind, "hash": _hash(key, text), "created_at": now}
        for text in texts
    ]
    if rows:
        statement = upsert(tombstones)
        again = {"created_at": statement.excluded.created_at}
        unique = ["app_id", "kind", "hash"]
        tx.execute(statement.on_conflict_do_update(index_elements=unique, set_=again), rows)


def lift(tx: Connection, app_id: int, kind: str, text: str) -> None:
    """A person says it again by hand: it may be known again."""
    c = tombstones.c
    hashed = _hash(meta.hash_key(tx), text)
    tx.execute(delete(tombstones).where(c.app_id == app_id, c.kind == kind, c.hash == hashed))


def buried(tx: Connection, app_ids: Iterable[int], kind: str, text: str, said_at: datetime) -> bool:
    """Whether this text was forgotten in one of the scopes after it was said."""
    c = tombstones.c
    hashed = _hash(meta.hash_key(tx), text)
    query = select(c.id).where(
        c.app_id.in_(list(app_ids)), c.kind == kind, c.hash == hashed, c.created_at >= said_at
    )
    return tx.execute(query.limit(1)).first() is not None


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
