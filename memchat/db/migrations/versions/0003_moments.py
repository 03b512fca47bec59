"""Turns searched by meaning, the prompt behind each reply, and memories set aside for a while.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NOW = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"


def upgrade() -> None:
    op.add_column("messages", sa.Column("search_text", sa.Text(), nullable=True))
    op.add_column("messages", sa.Column("text_hash", sa.String(64), nullable=True))
    op.create_index("ix_messages_text_hash", "messages", ["text_hash"])
    for name in ("match_count", "read_count"):
        count = sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
        op.add_column("memories", count)
    op.add_column("usage", sa.Column("message_id", sa.Integer(), nullable=True))
    op.create_table(
        "prompts",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("system", sa.Text(), nullable=True),
        sa.Column("first_message_id", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
            for name in ("tools", "shown", "dropped")
        ),
        sa.Column("degraded", sa.Text(), nullable=True),
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
    for name in ("prior", "dated"):
        op.add_column("receipts", sa.Column(name, sa.Float(), nullable=True))
    op.add_column("sessions", sa.Column("summary_hash", sa.String(64), nullable=True))
    op.create_index("ix_sessions_summary_hash", "sessions", ["summary_hash"])
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_changes_app_id_apps"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_app_id_kind_id", "changes", ["app_id", "kind", "id"])
    _tighten_jobs()


def _tighten_jobs() -> None:
    """A status is -1, 0 or an error's code; and what waits is found by its kind."""
    op.drop_index("ix_jobs_due", "jobs")
    with op.batch_alter_table("jobs") as batch:
        is_code = "typeof(status) = 'integer' AND status >= -1"
        batch.create_check_constraint(op.f("ck_jobs_status"), is_code)
    waiting = sa.text("status = -1")
    op.create_index("ix_jobs_due", "jobs", ["kind", "run_at"], sqlite_where=waiting)
