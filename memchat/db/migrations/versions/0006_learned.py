"""When a memory starts to hold and what brings it to mind; inbox items that carry the whole
proposal; what was proposed and not kept; what a second look said, in the event.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

NOW = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"
PARENTS = {"app_id": "apps", "session_id": "sessions", "message_id": "messages"}


def _cues() -> sa.Column[str]:
    return sa.Column("cues", sa.Text(), server_default=sa.text("''"), nullable=False)


def _relation() -> sa.Column[str]:
    return sa.Column("relation", sa.String(), server_default=sa.text("'new'"), nullable=False)


def upgrade() -> None:
    op.add_column("memories", sa.Column("starts_at", sa.Date()))
    op.add_column("memories", _cues())
    op.create_index(
        "ix_memories_starting",
        "memories",
        ["app_id", "starts_at"],
        sqlite_where=sa.text("active = 1 AND starts_at IS NOT NULL"),
    )
    op.add_column("memory_events", sa.Column("detail", sa.Text()))
    op.add_column("inbox", _relation())
    op.add_column("inbox", sa.Column("target_id", sa.Integer()))
    op.add_column("inbox", sa.Column("starts_at", sa.Date()))
    op.add_column("inbox", sa.Column("sentence", sa.Text()))
    op.add_column("inbox", _cues())
    unchecked = sa.Column("unchecked", sa.Integer(), server_default=sa.text("0"), nullable=False)
    op.add_column("inbox", unchecked)
    _create_refusals()


def _create_refusals() -> None:
    op.create_table(
        "refusals",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=True),
        sa.Column("end", sa.Integer(), nullable=True),
        sa.Column("memory_type", sa.String(), nullable=True),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("value", sa.Text(), nullable=True),
        _relation(),
        sa.Column("target_id", sa.Integer(), nullable=True),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("starts_at", sa.Date(), nullable=True),
        sa.Column("many", sa.Integer(), server_default=sa.text("1"), nullable=False),
        _cues(),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        *(_parent(column, table) for column, table in PARENTS.items()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refusals")),
    )
    for column in PARENTS:
        op.create_index(f"ix_refusals_{column}", "refusals", [column])


def _parent(column: str, table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_refusals_{column}_{table}")
    return sa.ForeignKeyConstraint([column], [f"{table}.id"], name=name, ondelete="CASCADE")
