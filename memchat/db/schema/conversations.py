"""Tables of apps and their conversations: what was said, and what each reply was given."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    text,
)

from memchat.db.schema.columns import count_column, foreign_key, id_column, metadata, time_column

apps = Table(
    "apps",
    metadata,
    id_column(),
    Column("user", String, nullable=False),
    Column("name", String, nullable=False),
    count_column("memory", 1),
    time_column("created_at"),
    UniqueConstraint("user", "name"),
    sqlite_autoincrement=True,
)
settings = Table(
    "settings",
    metadata,
    Column("user", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)
sessions = Table(
    "sessions",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("title", Text),
    Column("summary", Text),
    time_column("started_at"),
    time_column("last_activity_at"),
    time_column("ended_at", nullable=True),
    Column("lease_owner", String),
    time_column("lease_until", nullable=True),
    count_column("extracted_to"),
    Column("copied_from", Integer),
    Index("ix_sessions_app_id_id", "app_id", "id"),
    Index("ix_sessions_open", "lease_until", sqlite_where=text("ended_at IS NULL")),
    Index("ix_sessions_copied_from", "copied_from", sqlite_where=text("copied_from IS NOT NULL")),
    sqlite_autoincrement=True,
)
external_sessions = Table(
    "external_sessions",
    metadata,
    Column("app_id", Integer, ForeignKey("apps.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String, primary_key=True),
    foreign_key("sessions.id", nullable=True, ondelete="SET NULL"),
    Column("turns", Text, nullable=False, server_default=text("''")),
    Index("ix_external_sessions_session_id", "session_id"),
)
messages = Table(
    "messages",
    metadata,
    id_column(),
    foreign_key("sessions.id"),
    Column("role", String, nullable=False),
    Column("content", Text, nullable=False),
    Column("status", String, nullable=False, server_default=text("'complete'")),
    count_column("memory", 1),
    time_column("created_at"),
    Column("copied_from", Integer),
    count_column("read_all"),
    CheckConstraint("role IN ('user', 'assistant')", name="role"),
    CheckConstraint("status IN ('complete', 'partial', 'failed')", name="status"),
    Index("ix_messages_session_id_id", "session_id", "id"),
    Index("ix_messages_copied_from", "copied_from", sqlite_where=text("copied_from IS NOT NULL")),
    sqlite_autoincrement=True,
)
unread_messages = and_(
    messages.c.role == "user", messages.c.memory == 1, messages.c.id > sessions.c.extracted_to
)
"""The user's messages, joined with their sessions, that no extraction has read yet."""
searched_messages = and_(messages.c.memory == 1, messages.c.copied_from.is_(None))
"""A condition for messages that are passages, and once they were read get a vector. Of a message
and its copies only the message itself is searched and learned from."""
receipts = Table(
    "receipts",
    metadata,
    Column("message_id", Integer, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("item_id", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("score", Float, nullable=False),
    Column("cosine", Float),
    Column("bm25", Float),
    Column("prior", Float),
    Column("dated", Float),
    Column("channel", String, nullable=False),
    Column("tokens", Integer, nullable=False),
    Index("ix_receipts_kind_item_id", "kind", "item_id"),
)
prompts = Table(
    "prompts",
    metadata,
    Column("message_id", Integer, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    Column("system", Text),
    Column("first_message_id", Integer, nullable=False),
    count_column("tools"),
    count_column("turns"),
    count_column("shown"),
    count_column("dropped"),
    Column("degraded", Text),
    Column("list_id", Integer, ForeignKey("fact_lists.id")),
    Index("ix_prompts_list_id", "list_id"),
)
"""What a reply's model was sent: the system text, and ``turns`` messages from ``first_message_id``
on. If a list of facts was sent, ``system`` is only the text after it. If a memory in it was
forgotten, the system text is deleted."""
fact_lists = Table(
    "fact_lists",
    metadata,
    id_column(),
    foreign_key("sessions.id"),
    Column("hash", String(64)),
    Column("opening", Text),
    time_column("created_at"),
    UniqueConstraint("session_id", "hash"),
)
"""The facts that prompts of a conversation contained whatever was asked, and the system text before
them. If one of the facts was forgotten, ``hash`` and ``opening`` are deleted."""
fact_list_lines = Table(
    "fact_list_lines",
    metadata,
    Column("list_id", Integer, ForeignKey("fact_lists.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("memory_id", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Index("ix_fact_list_lines_memory_id", "memory_id"),
)
muted = Table(
    "muted",
    metadata,
    Column("session_id", Integer, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    time_column("created_at"),
    Index("ix_muted_memory_id", "memory_id"),
)
"""Memories that a person marked as not relevant for the rest of a conversation."""
