"""Tags of memories, and of what waits in the inbox to become one.

Revision ID: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "memory_tags",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_memory_tags_memory_id_memories"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("memory_id", "tag", name=op.f("pk_memory_tags")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_tags_tag", "memory_tags", ["tag"])
    op.add_column("inbox", sa.Column("tags", sa.Text(), nullable=True))
