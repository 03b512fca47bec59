"""Tables of memories: their proofs, their history, and what did not become one.

Tables of the programs that use the store for a person over MCP.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Date,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    or_,
    text,
)

from memchat.db.schema.columns import count_column, foreign_key, id_column, metadata, time_column

memories = Table(
    "memories",
    metadata,
    id_column(),
    time_column("created_at"),
    Column("memory_type", String, nullable=False),
    Column("key", String, nullable=False),
    Column("value", Text, nullable=False),
    Column("sha1", String(40), nullable=False),
    Column("expires_at", Date),
    count_column("seen_count", 1),
    time_column("last_seen_at"),
    count_column("active", 1),
    foreign_key("apps.id"),
    Column("content", Text, Computed("key || ': ' || value", persisted=False), nullable=False),
    time_column("updated_at"),
    time_column("said_at"),
    count_column("many", 1),
    Column("created_by", String, nullable=False, server_default=text("'manual'")),
    Column("inactive_reason", String),
    Column("replaced_by", Integer, ForeignKey("memories.id", ondelete="SET NULL")),
    count_column("match_count"),
    count_column("read_count"),
    count_column("pinned"),
    Column("starts_at", Date),
    Column("cues", Text, nullable=False, server_default=text("''")),
    count_column("sensitive"),
    UniqueConstraint("app_id", "sha1"),
    CheckConstraint("memory_type IN ('preference', 'profile', 'fact', 'other')", name="type"),
    CheckConstraint("created_by IN ('manual', 'auto', 'import', 'mcp')", name="created_by"),
    CheckConstraint("(active = 1) = (inactive_reason IS NULL)", name="inactive_reason"),
    Index("ix_memories_app_id_active_key", "app_id", "active", "key"),
    Index("ix_memories_replaced_by", "replaced_by", sqlite_where=text("replaced_by IS NOT NULL")),
    Index("ix_memories_superseded", "id", sqlite_where=text("inactive_reason = 'superseded'")),
    Index(
        "ix_memories_expiring",
        "app_id",
        "expires_at",
        sqlite_where=text("active = 1 AND expires_at IS NOT NULL"),
    ),
    Index(
        "ix_memories_starting",
        "app_id",
        "starts_at",
        sqlite_where=text("active = 1 AND starts_at IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
searched = or_(memories.c.active == 1, memories.c.inactive_reason == "superseded")
"""A condition for memories that search finds: active ones, and replaced values, since people ask
for what is current with words of the past."""
memory_tags = Table(
    "memory_tags",
    metadata,
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
    Index("ix_memory_tags_tag", "tag"),
    sqlite_with_rowid=False,
)
memory_sources = Table(
    "memory_sources",
    metadata,
    id_column(),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE"), nullable=False),
    foreign_key("messages.id"),
    Column("start", Integer, nullable=False),
    Column("quote", Text, nullable=False),
    UniqueConstraint("memory_id", "message_id", "start", "quote"),
    Index("ix_memory_sources_message_id", "message_id"),
)
memory_events = Table(
    "memory_events",
    metadata,
    id_column(),
    Column("memory_id", Integer, nullable=False),
    Column("app_id", Integer, nullable=False),
    Column("kind", String, nullable=False),
    time_column("at"),
    Column("actor", String, nullable=False),
    Column("cause", String, nullable=False, server_default=text("''")),
    Column("session_id", Integer),
    Column("message_id", Integer),
    Column("related_id", Integer),
    Column("old", Text),
    Column("new", Text),
    Column("detail", Text),
    Index("ix_memory_events_app_id_id", "app_id", "id"),
    Index("ix_memory_events_memory_id_id", "memory_id", "id"),
    sqlite_autoincrement=True,
)
tombstones = Table(
    "tombstones",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    count_column("memory_id"),
    Column("kind", String, nullable=False),
    Column("hash", String(64), nullable=False),
    time_column("created_at"),
    UniqueConstraint("app_id", "memory_id", "kind", "hash"),
)
proposals = Table(
    "proposals",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    foreign_key("sessions.id", nullable=True),
    foreign_key("messages.id", nullable=True),
    Column("status", String, nullable=False, server_default=text("'pending'")),
    Column("reason", Text, nullable=False),
    Column("by", String),
    Column("start", Integer),
    Column("end", Integer),
    Column("memory_type", String),
    Column("key", String),
    Column("value", Text),
    Column("quote", Text),
    Column("sentence", Text),
    Column("relation", String, nullable=False, server_default=text("'new'")),
    Column("target_id", Integer),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE")),
    Column("related_id", Integer, ForeignKey("memories.id", ondelete="CASCADE")),
    Column("expires_at", Date),
    Column("starts_at", Date),
    count_column("many", 1),
    count_column("masked"),
    count_column("sensitive"),
    Column("cues", Text, nullable=False, server_default=text("''")),
    Column("tags", Text),
    time_column("created_at"),
    CheckConstraint("status IN ('unchecked', 'pending', 'rejected', 'refused')", name="status"),
    Index("ix_proposals_app_id_status", "app_id", "status"),
    Index("ix_proposals_session_id", "session_id"),
    Index("ix_proposals_message_id", "message_id"),
    Index("ix_proposals_memory_id", "memory_id"),
    Index("ix_proposals_related_id", "related_id"),
    sqlite_autoincrement=True,
)
"""What is no fact: it waits for the person (``unchecked`` while a second look may still decide),
got a no, or was not kept, with the reason; the reason alone where the words may not be kept."""


clients = Table(
    "clients",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("name", String, nullable=False),
    Column("mode", String, nullable=False),
    count_column("calls"),
    time_column("first_call_at"),
    time_column("last_call_at"),
    foreign_key("sessions.id", nullable=True, ondelete="SET NULL"),
    UniqueConstraint("app_id", "name"),
    CheckConstraint("mode IN ('ask', 'trust')", name="mode"),
    Index("ix_clients_session_id", "session_id"),
)
"""Programs, by the name that the person gave them. What one of them says is in the conversation
``session_id``, so that it is the proof of what was stored, and is undone with it."""
client_writes = Table(
    "client_writes",
    metadata,
    id_column(),
    foreign_key("clients.id"),
    time_column("at"),
    Column("kind", String, nullable=False),
    Column("target_id", Integer, nullable=False),
    CheckConstraint("kind IN ('memory', 'inbox', 'note', 'forget')", name="kind"),
    Index("ix_client_writes_client_id_at", "client_id", "at"),
)
"""What each program wrote: the ids of memories, inbox items and notes, and of what it asked to
forget."""
