"""Notes: the text of sources, and keyword rows of their chunks.

Revision ID: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    for table, columns in {
        "sources": (
            sa.Column("content", sa.Text, nullable=False, server_default=sa.text("''")),
            sa.Column("profile", sa.String, nullable=False, server_default=sa.text("'memo'")),
            sa.Column("updated_at", sa.String(27)),
            sa.Column("missing", sa.Integer, nullable=False, server_default=sa.text("0")),
            sa.Column("sized_for", sa.String),
        ),
        "chunks": (
            sa.Column("position", sa.Integer, nullable=False, server_default=sa.text("0")),
            sa.Column("tokens", sa.Integer, nullable=False, server_default=sa.text("0")),
            sa.Column("masked", sa.Text),
        ),
    }.items():
        # An id that was used once, also by a deleted row, never comes to mean something else. No
        # version before this one wrote rows here.
        kept = {"sqlite_autoincrement": True}
        with op.batch_alter_table(table, recreate="always", table_kwargs=kept) as batch:
            for column in columns:
                batch.add_column(column)
    op.create_index("ix_sources_app_id_created_at", "sources", ["app_id", "created_at"])
    op.execute(
        "CREATE VIRTUAL TABLE chunks_fts"
        " USING fts5(text, detail = none, columnsize = 0, tokenize = 'porter ascii')"
    )
