"""Single values about the store itself: the service in use, the key for hashes, the store's id."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.store import raw_sql
from memchat.store.schema import meta


def get(tx: Connection, key: str) -> str | None:
    """The value of a key, or None."""
    found = raw_sql.rows(tx, "SELECT value FROM meta WHERE key = ?", key)
    return found[0][0] if found else None


def put(tx: Connection, key: str, value: str) -> None:
    """Set the value of a key."""
    statement = upsert(meta).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def remove(tx: Connection, key: str) -> None:
    """Remove a key."""
    tx.execute(delete(meta).where(meta.c.key == key))


def hash_key(tx: Connection) -> bytes:
    """The secret key under which the store hashes forgotten texts. It is made when first needed."""
    found = get(tx, "hash_key")
    if found is None:
        found = secrets.token_hex(32)
        put(tx, "hash_key", found)
    return bytes.fromhex(found)


def store_id(tx: Connection) -> str:
    """A random id of this store. It is made when first needed."""
    found = get(tx, "store_id")
    if found is None:
        found = secrets.token_hex(16)
        put(tx, "store_id", found)
    return found
