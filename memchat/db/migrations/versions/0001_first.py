"""The first schema: every table of the house, keyword search, and the founding paper's view.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NOW = "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))"
FTS = """porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"""


def upgrade() -> None:
    op.create_table(
        "apps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("memory", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_apps")),
        sa.UniqueConstraint("user", "name", name=op.f("uq_apps_user_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "memory_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), server_default=sa.text("('')"), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("related_id", sa.Integer(), nullable=True),
        sa.Column("old", sa.Text(), nullable=True),
        sa.Column("new", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_memory_events_app_id_id", "memory_events", ["app_id", "id"], unique=False)
    op.create_index(
        "ix_memory_events_memory_id_id", "memory_events", ["memory_id", "id"], unique=False
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "services",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.String(), server_default=sa.text("('')"), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("max_tokens", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_services")),
        sa.UniqueConstraint(
            "provider",
            "model",
            "version",
            "dimensions",
            name=op.f("uq_services_provider_model_version_dimensions"),
        ),
    )
    op.create_table(
        "settings",
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("user", "key", name=op.f("pk_settings")),
    )
    op.create_table(
        "embeddings",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("service_id", sa.Integer(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.Column("token_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["service_id"],
            ["services.id"],
            name=op.f("fk_embeddings_service_id_services"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hash", "service_id", name=op.f("pk_embeddings")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("source_type", sa.String(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("status", sa.Integer(), server_default=sa.text("(-1)"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("run_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.String(27), nullable=True),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("processed_at", sa.String(27), nullable=True),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_jobs_app_id_apps"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint(
            "kind", "source_type", "source_id", name=op.f("uq_jobs_kind_source_type_source_id")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_app_id", "jobs", ["app_id"], unique=False)
    op.create_index(
        "ix_jobs_due", "jobs", ["run_at"], unique=False, sqlite_where=sa.text("status = -1")
    )
    op.create_table(
        "memories",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("memory_type", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("sha1", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("seen_count", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_seen_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("active", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column(
            "content",
            sa.Text(),
            sa.Computed("key || ': ' || value", persisted=False),
            nullable=False,
        ),
        sa.Column("updated_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("said_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("many", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_by", sa.String(), server_default=sa.text("'manual'"), nullable=False),
        sa.Column("inactive_reason", sa.String(), nullable=True),
        sa.Column("replaced_by", sa.Integer(), nullable=True),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            "created_by IN ('manual', 'auto', 'import', 'mcp')", name=op.f("ck_memories_created_by")
        ),
        sa.CheckConstraint(
            "memory_type IN ('preference', 'profile', 'fact', 'other')",
            name=op.f("ck_memories_type"),
        ),
        sa.CheckConstraint(
            "(active = 1) = (inactive_reason IS NULL)", name=op.f("ck_memories_inactive_reason")
        ),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_memories_app_id_apps"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["replaced_by"],
            ["memories.id"],
            name=op.f("fk_memories_replaced_by_memories"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
        sa.UniqueConstraint("app_id", "sha1", name=op.f("uq_memories_app_id_sha1")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_memories_app_id_active_key", "memories", ["app_id", "active", "key"], unique=False
    )
    op.create_index(
        "ix_memories_expiring",
        "memories",
        ["app_id", "expires_at"],
        unique=False,
        sqlite_where=sa.text("active = 1 AND expires_at IS NOT NULL"),
    )
    op.create_index("ix_memories_replaced_by", "memories", ["replaced_by"], unique=False)
    op.create_index("ix_memories_text_hash", "memories", ["text_hash"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("started_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("last_activity_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("ended_at", sa.String(27), nullable=True),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.String(27), nullable=True),
        sa.Column("extracted_to", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_sessions_app_id_apps"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sessions_app_id_id", "sessions", ["app_id", "id"], unique=False)
    op.create_index(
        "ix_sessions_open",
        "sessions",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_sources_app_id_apps"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint(
            "app_id", "type", "external_id", name=op.f("uq_sources_app_id_type_external_id")
        ),
    )
    op.create_table(
        "tombstones",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_tombstones_app_id_apps"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tombstones")),
        sa.UniqueConstraint("app_id", "kind", "hash", name=op.f("uq_tombstones_app_id_kind_hash")),
    )
    op.create_table(
        "chunks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("source_type", sa.String(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("pair_id", sa.Integer(), nullable=True),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("offset", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("match_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("read_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["sources.id"],
            name=op.f("fk_chunks_source_id_sources"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
    )
    op.create_index("ix_chunks_hash", "chunks", ["hash"], unique=False)
    op.create_index("ix_chunks_source_id", "chunks", ["source_id"], unique=False)
    op.create_table(
        "messages",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), server_default=sa.text("'complete'"), nullable=False),
        sa.Column("memory", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.CheckConstraint("role IN ('user', 'assistant')", name=op.f("ck_messages_role")),
        sa.CheckConstraint(
            "status IN ('complete', 'partial', 'failed')", name=op.f("ck_messages_status")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_messages_session_id_sessions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_messages_session_id_id", "messages", ["session_id", "id"], unique=False)
    op.create_table(
        "usage",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_usage_app_id_apps"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_usage_session_id_sessions"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage")),
    )
    op.create_index("ix_usage_app_id", "usage", ["app_id"], unique=False)
    op.create_index("ix_usage_session_id", "usage", ["session_id"], unique=False)
    op.create_table(
        "inbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("memory_type", sa.String(), nullable=True),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("quote", sa.Text(), nullable=True),
        sa.Column("start", sa.Integer(), nullable=True),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("many", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("masked", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=True),
        sa.Column("related_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.String(27), server_default=sa.text(NOW), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'accepted', 'rejected')", name=op.f("ck_inbox_status")
        ),
        sa.ForeignKeyConstraint(
            ["app_id"], ["apps.id"], name=op.f("fk_inbox_app_id_apps"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_inbox_memory_id_memories"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_inbox_message_id_messages"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["related_id"],
            ["memories.id"],
            name=op.f("fk_inbox_related_id_memories"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
    )
    op.create_index("ix_inbox_app_id_status", "inbox", ["app_id", "status"], unique=False)
    op.create_index("ix_inbox_memory_id", "inbox", ["memory_id"], unique=False)
    op.create_index("ix_inbox_message_id", "inbox", ["message_id"], unique=False)
    op.create_index("ix_inbox_related_id", "inbox", ["related_id"], unique=False)
    op.create_table(
        "memory_sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_memory_sources_memory_id_memories"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_memory_sources_message_id_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_sources")),
        sa.UniqueConstraint(
            "memory_id",
            "message_id",
            "start",
            "quote",
            name=op.f("uq_memory_sources_memory_id_message_id_start_quote"),
        ),
    )
    op.create_index("ix_memory_sources_message_id", "memory_sources", ["message_id"], unique=False)
    op.create_table(
        "receipts",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("cosine", sa.Float(), nullable=True),
        sa.Column("bm25", sa.Float(), nullable=True),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_receipts_message_id_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("message_id", "position", name=op.f("pk_receipts")),
    )
    op.create_index("ix_receipts_kind_item_id", "receipts", ["kind", "item_id"], unique=False)
    for kind in ("memories", "messages"):
        op.execute(f'CREATE VIRTUAL TABLE {kind}_fts USING fts5(scope, text, tokenize = "{FTS}")')
    op.execute(
        "CREATE VIEW app_memories AS SELECT id, app_id, content,"
        " CAST(strftime('%s', created_at) AS INTEGER) AS created_at,"
        " CAST(strftime('%s', updated_at) AS INTEGER) AS updated_at FROM memories"
    )
