"""Replaced values have keyword rows from now on, and a tombstone knows whose it is.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

from memchat.store.keywords import terms

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("tombstones") as batch:
        batch.add_column(
            sa.Column("memory_id", sa.Integer(), server_default=sa.text("0"), nullable=False)
        )
        batch.drop_constraint("uq_tombstones_app_id_kind_hash", type_="unique")
        columns = ["app_id", "memory_id", "kind", "hash"]
        batch.create_unique_constraint("uq_tombstones_app_id_memory_id_kind_hash", columns)
    _index_replaced(op.get_bind())


def _index_replaced(tx: sa.Connection) -> None:
    rows = tx.exec_driver_sql(
        "SELECT id, app_id, search_text FROM memories WHERE inactive_reason = 'superseded'"
    ).all()
    for memory_id, app_id, words in rows:
        tx.exec_driver_sql(
            "INSERT INTO memories_fts (rowid, scope, text) VALUES (?, ?, ?)",
            (memory_id, f"a{app_id}", terms(words)),
        )
