"""Copying a whole store from a data folder into PostgreSQL or back, and what is in a store.

Rows are copied as they are: ids, vectors, what was forgotten and the key of its hashes. So nothing
is embedded, learned or numbered anew; keyword rows alone are made again. A copy is one transaction:
of one that is broken off nothing is there.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sa

from memchat import assembly
from memchat.config.settings import DATABASE_URL, Settings, database_address
from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.database import FILE, Database
from memchat.errors import ConfigError, InputError, NotFound, StoreError
from memchat.search import embeddings, repair
from memchat.types import OnProgress, counted, timed

BATCH = 500
"""Rows that are read and written at once."""
_Batches: TypeAlias = Generator[Sequence[sa.Row[Any]], None, None]
_TABLES: Sequence[sa.Table] = t.metadata.sorted_tables


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is the same in both stores."""

    table: str
    rows: int
    sha256: str
    """Of all its rows, in the order of their keys."""


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Where a store is, and what is in it."""

    store: str
    engine: str
    schema: str
    rows: dict[str, int]
    """How many each table has."""


def open_store(place: str, settings: Settings, *, new: bool = False) -> Database:
    """The store at a ``postgresql://`` address, in a data folder, or for ``env`` at
    MEMCHAT_DATABASE_URL. Only with ``new`` is one made in a folder.

    Raises NotFound for a folder without a store, ConfigError for what is no address.
    """
    url = settings.database_url if place == "env" else place
    if url is None:
        raise ConfigError(f"env stands for {DATABASE_URL}, which is not set")
    if "://" in url:
        url = database_address("what you gave", url)
        return assembly.open_database(settings.with_(database_url=url))
    home = Path(url).expanduser()
    if not new and not (home / FILE).is_file():
        raise NotFound(f"there is no store in the folder {home}")
    return assembly.open_database(settings.with_(home=home, database_url=None))


def status(store: Database) -> StoreStatus:
    """Where a store is, and what is in it. Counts all rows."""
    with store.read() as tx:
        engine, place = f"SQLite {sqlite3.sqlite_version}", str(store.path)
        if tx.on_postgres:
            server, vector = tx.execute(_VERSIONS).one()
            engine, place = f"PostgreSQL {server}, pgvector {vector}", store.name
        return StoreStatus(place, engine, t.HEAD, {one.name: _count(tx, one) for one in _TABLES})


_extensions = sa.table("pg_extension", sa.column("extname"), sa.column("extversion")).c
_VERSIONS = sa.select(sa.func.current_setting("server_version"), _extensions.extversion).where(
    _extensions.extname == "vector"
)


def copy(
    source: Database, target: Database, progress: OnProgress | None = None
) -> list[CopiedTable]:
    """Copy all of a store into an empty one, and compare them row by row.

    What is written to ``source`` after it began is not in the copy. Raises InputError where there
    is nothing to copy or ``target`` is not empty, StoreError where the two differ: then nothing
    was copied.
    """
    report, done = timed(progress, "rows written and checked"), 0

    def told(more: int) -> None:
        nonlocal done
        report(done := done + more, 2 * total)

    with source.read() as there, target.write() as here:
        total = sum(_count(there, table) for table in _TABLES)
        if not _count(there, t.apps):
            raise InputError("there is nothing in the store that is to be copied")
        for table in _TABLES:
            if table is not t.meta and (held := _count(here, table)):
                there_is = f"{target.name} holds {counted(held, 'row')} of {table.name} already"
                raise InputError(f"{there_is}; a store is copied into an empty one alone")
        here.execute(sa.delete(t.meta))  # its own number and key, which the other's replace
        copied = [_copied(there, here, table, told) for table in _TABLES]
        for one, table in zip(copied, _TABLES, strict=True):
            if _digest(_batches(here, table), table, told) != one:
                raise StoreError(f"the copy of {table.name} is not as it was; nothing was copied")
        _number_on(here, _last_ids(there))
        repair.repair_keywords(here)
        if (in_use := embeddings.in_use(here)) is not None:
            embeddings.use_service(here, in_use)  # makes PostgreSQL's index of its vectors
    if not here.on_postgres:  # of a store that was there before
        shutil.rmtree(target.home / embeddings.FOLDER, ignore_errors=True)
    return copied


def _count(tx: Tx, table: sa.Table) -> int:
    return int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def _batches(tx: Tx, table: sa.Table) -> _Batches:
    """All rows by their keys, but for columns that the database computes."""
    query = sa.select(*(one for one in table.c if one.computed is None))
    query = query.order_by(*table.primary_key)
    with tx.execute(query, execution_options={"yield_per": BATCH}) as rows:
        yield from rows.partitions()


def _copied(there: Tx, here: Tx, table: sa.Table, told: Callable[[int], object]) -> CopiedTable:
    # Rows that name rows of their own table get these once all are there.
    own = [one for one in table.c for key in one.foreign_keys if key.column.table is table]
    late: list[dict[str, Any]] = []

    def write(batch: Sequence[sa.Row[Any]]) -> None:
        rows = [dict(row._mapping) for row in batch]
        for row in rows if own else ():
            late.append({"of": row["id"], **{one.name: row.pop(one.name) for one in own}})
        here.execute(sa.insert(table), rows)

    found = _digest(_batches(there, table), table, told, write)
    if late:
        named: dict[str, Any] = {one.name: sa.bindparam(one.name) for one in own}
        here.execute(sa.update(table).where(table.c.id == sa.bindparam("of")).values(named), late)
    return found


def _digest(
    batches: _Batches,
    table: sa.Table,
    told: Callable[[int], object],
    also: Callable[[Sequence[sa.Row[Any]]], object] = len,
) -> CopiedTable:
    count, digest = 0, hashlib.sha256()
    with closing(batches):
        for batch in batches:
            digest.update("".join(f"{tuple(row)!r}\n" for row in batch).encode())
            also(batch)
            count += len(batch)
            told(len(batch))
    return CopiedTable(table.name, count, digest.hexdigest())


_given = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
_sequences = sa.table("pg_sequences", sa.column("sequencename"), sa.column("last_value"))
_LAST = sa.select(_sequences).where(
    sa.column("schemaname") == sa.func.current_schema(), _sequences.c.last_value.is_not(None)
)


def _last_ids(tx: Tx) -> dict[str, int]:
    """The last id that each table gave, also of rows that are gone: none is given twice."""
    found = tx.execute(_LAST if tx.on_postgres else sa.select(_given))
    return {name.removesuffix("_id_seq"): last for name, last in found}


def _number_on(tx: Tx, given: Mapping[str, int]) -> None:
    for table in (one for one in _TABLES if one.autoincrement_column is not None):
        highest = tx.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
        last = max(highest, given.get(table.name, 0))
        if tx.on_postgres and last:
            from memchat.db import postgres

            postgres.go_on_after(tx, table.name, last)
        elif not tx.on_postgres and table.dialect_options["sqlite"]["autoincrement"]:
            tx.execute(sa.delete(_given).where(_given.c.name == table.name))
            tx.execute(sa.insert(_given).values(name=table.name, seq=last))
