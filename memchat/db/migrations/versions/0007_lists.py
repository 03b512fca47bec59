"""The list of facts that a conversation's prompts begin with, kept once for all replies that were
sent it; which facts are sensitive.

Revision ID: 0007
"""

import sqlalchemy as sa
from alembic import op

from memchat.language.lexicon import is_sensitive

revision = "0007"
down_revision = "0006"

NOW = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"
ASKED = "%it is sensitive:%"
"""What the reason of a question holds that was asked because of it."""


def upgrade() -> None:
    _create_lists()
    for table in ("memories", "inbox", "refusals"):
        flag = sa.Column("sensitive", sa.Integer(), server_default=sa.text("0"), nullable=False)
        op.add_column(table, flag)
        _mark(table)
    asked = sa.text("UPDATE inbox SET sensitive = 1 WHERE reason LIKE :asked")
    op.get_bind().execute(asked, {"asked": ASKED})


def _create_lists() -> None:
    op.create_table(
        "fact_lists",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=True),
        sa.Column("opening", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        _parent("fact_lists", "session_id", "sessions"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fact_lists")),
        sa.UniqueConstraint("session_id", "hash", name=op.f("uq_fact_lists_session_id_hash")),
    )
    op.create_table(
        "fact_list_lines",
        sa.Column("list_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        _parent("fact_list_lines", "list_id", "fact_lists"),
        sa.PrimaryKeyConstraint("list_id", "position", name=op.f("pk_fact_list_lines")),
    )
    op.create_index("ix_fact_list_lines_memory_id", "fact_list_lines", ["memory_id"])
    # In SQL: Alembic adds no column with a reference to a table of SQLite.
    op.execute("ALTER TABLE prompts ADD COLUMN list_id INTEGER REFERENCES fact_lists (id)")
    op.create_index("ix_prompts_list_id", "prompts", ["list_id"])


def _parent(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{parent}")
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=name, ondelete="CASCADE")


def _mark(table: str) -> None:
    """Mark the rows of a table whose key tells that they are sensitive."""
    rows = op.get_bind().execute(sa.text(f"SELECT DISTINCT key FROM {table}")).scalars()
    for key in [key for key in rows if key is not None and is_sensitive(key)]:
        mark = sa.text(f"UPDATE {table} SET sensitive = 1 WHERE key = :key")
        op.get_bind().execute(mark, {"key": key})
