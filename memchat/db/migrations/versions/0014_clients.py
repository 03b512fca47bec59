"""Programs that use the store for a person over MCP, and what each of them wrote.

Revision ID: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
NOW = sa.text("(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))")


def upgrade() -> None:
    op.create_table(
        "clients",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("first_call_at", sa.String(27), server_default=NOW, nullable=False),
        sa.Column("last_call_at", sa.String(27), server_default=NOW, nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("mode IN ('ask', 'trust')", name=op.f("ck_clients_mode")),
        _parent("clients", "app_id", "apps", "CASCADE"),
        _parent("clients", "session_id", "sessions", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clients")),
        sa.UniqueConstraint("app_id", "name", name=op.f("uq_clients_app_id_name")),
    )
    op.create_index("ix_clients_session_id", "clients", ["session_id"])
    op.create_table(
        "client_writes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("client_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(27), server_default=NOW, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('memory', 'inbox', 'note', 'forget')", name=op.f("ck_client_writes_kind")
        ),
        _parent("client_writes", "client_id", "clients", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_client_writes")),
    )
    op.create_index("ix_client_writes_client_id_at", "client_writes", ["client_id", "at"])


def _parent(table: str, column: str, parent: str, ondelete: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{parent}")
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=name, ondelete=ondelete)
