"""Keyword rows hold each word once, under the name of its scope; what few rows have is found by an
index of those rows alone.

Revision ID: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    tables = {
        "memories": "text, detail = none",
        "messages": "text, context, detail = column",
        "sessions": "text, detail = none",
    }
    for kind, columns in tables.items():
        op.execute(f"DROP TABLE IF EXISTS {kind}_fts")
        op.execute(
            f"CREATE VIRTUAL TABLE {kind}_fts"
            f" USING fts5({columns}, columnsize = 0, tokenize = 'porter ascii')"
        )
    op.drop_index("ix_memories_replaced_by", "memories")
    op.create_index(
        "ix_memories_replaced_by",
        "memories",
        ["replaced_by"],
        sqlite_where=sa.text("replaced_by IS NOT NULL"),
    )
    op.create_index(
        "ix_memories_superseded",
        "memories",
        ["id"],
        sqlite_where=sa.text("inactive_reason = 'superseded'"),
    )
