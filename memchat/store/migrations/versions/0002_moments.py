"""Turns searched by meaning, the prompt behind each reply, and memories set aside for a while.

Replaced values have keyword rows from now on.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

from memchat.store.keywords import terms

revision = "0002"
down_revision = "0001"

NOW = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"


def upgrade() -> None:
    op.add_column("messages", sa.Column("search_text", sa.Text(), nullable=True))
    op.add_column("messages", sa.Column("text_hash", sa.String(64), nullable=True))
    op.create_index("ix_messages_text_hash", "messages", ["text_hash"])
    for name in ("match_count", "read_count"):
        count = sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
        op.add_column("memories", count)
    op.create_table(
        "prompts",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("first_message_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_prompts_message_id_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_prompts")),
    )
    op.create_table(
        "muted",
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_muted_session_id_sessions"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_muted_memory_id_memories"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_id", "memory_id", name=op.f("pk_muted")),
    )
    op.create_index("ix_muted_memory_id", "muted", ["memory_id"])
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
