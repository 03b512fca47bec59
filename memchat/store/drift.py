"""Stores whose migrations were edited after they had run, as a few were on 21 November 2026.

A migration that landed is never edited any more. Stores of that day may have part of what a later
migration adds: it is set aside here before the migrations run. Migration 0008 puts it back, and
adds what other stores of that day lack.
"""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Connection, Integer, inspect, text

SET_ASIDE = ("prompts", "muted")
"""Tables that an early 0002 made, and 0003 makes; their rows wait in ``<name>_before``."""
COUNTS = "counts_before"
"""Where the counters that an early 0002 kept with each memory wait."""


def set_aside(tx: Connection, revision: str | None) -> None:
    """Make a store of the early 0002, which held part of 0003, as 0002 leaves it today."""
    tables = set(inspect(tx).get_table_names())
    if revision != "0002" or "muted" not in tables:
        return
    for statement in (
        "DROP INDEX ix_muted_memory_id",
        *(f"ALTER TABLE {name} RENAME TO {name}_before" for name in SET_ASIDE),
        f"CREATE TABLE {COUNTS} AS SELECT id, match_count, read_count FROM memories",
        "ALTER TABLE memories DROP COLUMN match_count",
        "ALTER TABLE memories DROP COLUMN read_count",
        "DROP INDEX ix_messages_text_hash",
        "ALTER TABLE messages DROP COLUMN search_text",
        "ALTER TABLE messages DROP COLUMN text_hash",
    ):
        tx.execute(text(statement))
    if "memory_id" not in {column["name"] for column in inspect(tx).get_columns("tombstones")}:
        _own_tombstones(tx)


def _own_tombstones(tx: Connection) -> None:
    """What migration 0002 does today: a tombstone knows whose it is."""
    columns = ["app_id", "memory_id", "kind", "hash"]
    with Operations(MigrationContext.configure(tx)).batch_alter_table("tombstones") as batch:
        batch.add_column(Column("memory_id", Integer, server_default=text("0"), nullable=False))
        batch.drop_constraint("uq_tombstones_app_id_kind_hash", type_="unique")
        batch.create_unique_constraint("uq_tombstones_app_id_memory_id_kind_hash", columns)
