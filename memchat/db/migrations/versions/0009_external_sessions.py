"""The names that other programs give to the conversations they add, and which turns are known.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "external_sessions",
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.Column("turns", sa.Text(), server_default=sa.text("''"), nullable=False),
        _parent("app_id", "apps", "CASCADE"),
        _parent("session_id", "sessions", "SET NULL"),
        sa.PrimaryKeyConstraint("app_id", "name", name=op.f("pk_external_sessions")),
    )
    op.create_index("ix_external_sessions_session_id", "external_sessions", ["session_id"])


def _parent(column: str, parent: str, ondelete: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_external_sessions_{column}_{parent}")
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=name, ondelete=ondelete)
