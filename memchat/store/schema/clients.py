"""Tables of the programs that use the store for a person over MCP."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, Integer, String, Table, UniqueConstraint

from memchat.store.schema.columns import count_column, foreign_key, id_column, metadata, time_column

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
