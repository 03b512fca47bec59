"""A tombstone knows whose it is.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

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
