"""Helpers for reading and writing rows that the modules of several tables share.

Rows become records and back, field by field, each by the type that the record declares. ``get`` and
``put`` are for single values about the store itself.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Row, delete
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.db import Tx, database
from memchat.db.schema import meta

T = TypeVar("T", bound=Hashable)
Reader = Callable[[Any], Any]


def _words(value: str | None) -> tuple[str, ...]:
    return tuple(value.split()) if value else ()


def _time(value: str | None) -> datetime | None:
    return None if value is None else database.parse_time(value)


def _object(value: str | None) -> Any:
    return None if value is None else json.loads(value)


_READERS: dict[str, Reader] = {
    "bool": bool,
    "tuple[str, ...]": _words,
    "dict[str, Any] | None": _object,
}
_TEXT_READERS: dict[str, Reader] = _READERS | {
    "datetime": database.parse_time,
    "datetime | None": _time,
    "ExternalId": json.loads,
    "date | None": database.parse_day,
}
"""The same for rows of plain SQL, whose times and days are text."""


def from_row(record: type[T], row: Row[Any], **given: Any) -> T:
    """The record that the columns of its fields' names give; ``given`` fields are taken as they
    are, and those without a column keep their defaults."""
    values = row._mapping
    for name, reader in _fields(record):
        if name not in given and name in values:
            given[name] = reader(values[name]) if reader else values[name]
    return record(**given)


def from_text(record: type[T], values: Sequence[Any]) -> T:
    """The record of a plain SQL row, whose columns come in the order of the fields."""
    readers = _text_readers(record)
    read = zip(readers, values, strict=True)
    return record(*[reader(value) if reader else value for reader, value in read])


def columns(record: Any, shape: type[Any] | None = None) -> dict[str, Any]:
    """The fields of a record, or those that ``shape`` has of them, as its table stores them; days
    and times stay as they are."""
    fields = dataclasses.fields(shape or record)
    return {f.name: _stored(getattr(record, f.name)) for f in fields}


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, tuple) else value


@cache
def _fields(record: type[Any]) -> tuple[tuple[str, Reader | None], ...]:
    return tuple((f.name, _READERS.get(str(f.type))) for f in dataclasses.fields(record))


@cache
def _text_readers(record: type[Any]) -> tuple[Reader | None, ...]:
    return tuple(_TEXT_READERS.get(str(f.type)) for f in dataclasses.fields(record))


def get(tx: Tx, key: str) -> str | None:
    """The value of a key, or None."""
    found = tx.rows("SELECT value FROM meta WHERE key = ?", key)
    return found[0][0] if found else None


def put(tx: Tx, key: str, value: str) -> None:
    """Set the value of a key."""
    statement = upsert(meta).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def remove(tx: Tx, key: str) -> None:
    """Remove a key."""
    tx.execute(delete(meta).where(meta.c.key == key))


def hash_key(tx: Tx) -> bytes:
    """The secret key under which the store hashes forgotten texts. It is made when first needed."""
    found = get(tx, "hash_key")
    if found is None:
        found = secrets.token_hex(32)
        put(tx, "hash_key", found)
    return bytes.fromhex(found)


def store_id(tx: Tx) -> str:
    """A random id of this store. It is made when first needed."""
    found = get(tx, "store_id")
    if found is None:
        found = secrets.token_hex(16)
        put(tx, "store_id", found)
    return found
