"""A copy of the beginning of a conversation names the conversation and the messages it is made of.

Revision ID: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for table in ("sessions", "messages"):
        # Without a foreign key, for which SQLite would have to write the whole table anew.
        op.add_column(table, sa.Column("copied_from", sa.Integer(), nullable=True))
        op.create_index(
            f"ix_{table}_copied_from",
            table,
            ["copied_from"],
            sqlite_where=sa.text("copied_from IS NOT NULL"),
        )
