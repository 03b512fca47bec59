"""The tables, as SQLAlchemy Core sees them; the migrations make them.

Rows are the truth. A scope is one row of ``apps``: a user's app, or, under the empty name, what
the user has in every app. So every scoped table carries one integer, ``app_id``, deleting an app
is a cascade, and no query can forget the user. Times are UTC text of fixed width, which sorts.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime

from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    or_,
    text,
)
from sqlalchemy.engine import Dialect

HEAD = "0009"
"""The revision this code reads and writes; a test holds it to the newest migration."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as ``2026-11-21T09:30:00.000000Z``."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else utc_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


@functools.lru_cache(maxsize=16)
def utc_text(value: datetime) -> str:
    """The stored form of an aware datetime."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _fk(target: str, *, nullable: bool = False, ondelete: str = "CASCADE") -> Column[int]:
    name = target.partition(".")[0].removesuffix("s") + "_id"
    return Column(name, Integer, ForeignKey(target, ondelete=ondelete), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> Column[datetime]:
    default = None if nullable else text("(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))")
    return Column(name, UtcTime, nullable=nullable, server_default=default)


def _count(name: str, start: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(start)))


apps = Table(
    "apps",
    metadata,
    _id(),
    Column("user", String, nullable=False),
    Column("name", String, nullable=False),
    _count("memory", 1),
    _time("created_at"),
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
    _id(),
    _fk("apps.id"),
    Column("title", Text),
    Column("summary", Text),
    _time("started_at"),
    _time("last_activity_at"),
    _time("ended_at", nullable=True),
    Column("lease_owner", String),
    _time("lease_until", nullable=True),
    _count("extracted_to"),
    Column("summary_hash", String(64)),
    Index("ix_sessions_app_id_id", "app_id", "id"),
    Index("ix_sessions_summary_hash", "summary_hash"),
    Index("ix_sessions_open", "lease_until", sqlite_where=text("ended_at IS NULL")),
    sqlite_autoincrement=True,
)

external_sessions = Table(
    "external_sessions",
    metadata,
    Column("app_id", Integer, ForeignKey("apps.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String, primary_key=True),
    _fk("sessions.id", nullable=True, ondelete="SET NULL"),
    Column("turns", Text, nullable=False, server_default=text("''")),
    Index("ix_external_sessions_session_id", "session_id"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    _fk("sessions.id"),
    Column("role", String, nullable=False),
    Column("content", Text, nullable=False),
    Column("status", String, nullable=False, server_default=text("'complete'")),
    _count("memory", 1),
    _time("created_at"),
    Column("search_text", Text),
    Column("text_hash", String(64)),
    CheckConstraint("role IN ('user', 'assistant')", name="role"),
    CheckConstraint("status IN ('complete', 'partial', 'failed')", name="status"),
    Index("ix_messages_session_id_id", "session_id", "id"),
    Index("ix_messages_text_hash", "text_hash"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    _id(),
    _fk("apps.id"),
    Column("kind", String, nullable=False),
    Column("item_id", Integer, nullable=False),
    _time("at"),
    Index("ix_changes_app_id_kind_id", "app_id", "kind", "id"),
    sqlite_autoincrement=True,
)
"""What an index has to read anew of the things that leave no events: ids alone, no words."""

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

memories = Table(
    "memories",
    metadata,
    _id(),
    _time("created_at"),
    Column("memory_type", String, nullable=False),
    Column("key", String, nullable=False),
    Column("value", Text, nullable=False),
    Column("sha1", String(40), nullable=False),
    Column("expires_at", Date),
    _count("seen_count", 1),
    _time("last_seen_at"),
    _count("active", 1),
    _fk("apps.id"),
    Column("content", Text, Computed("key || ': ' || value", persisted=False), nullable=False),
    _time("updated_at"),
    _time("said_at"),
    _count("many", 1),
    Column("created_by", String, nullable=False, server_default=text("'manual'")),
    Column("inactive_reason", String),
    Column("replaced_by", Integer, ForeignKey("memories.id", ondelete="SET NULL")),
    Column("search_text", Text, nullable=False),
    Column("text_hash", String(64), nullable=False),
    _count("match_count"),
    _count("read_count"),
    _count("pinned"),
    Column("starts_at", Date),
    Column("cues", Text, nullable=False, server_default=text("''")),
    _count("sensitive"),
    UniqueConstraint("app_id", "sha1"),
    CheckConstraint("memory_type IN ('preference', 'profile', 'fact', 'other')", name="type"),
    CheckConstraint("created_by IN ('manual', 'auto', 'import', 'mcp')", name="created_by"),
    CheckConstraint("(active = 1) = (inactive_reason IS NULL)", name="inactive_reason"),
    Index("ix_memories_app_id_active_key", "app_id", "active", "key"),
    Index("ix_memories_replaced_by", "replaced_by", sqlite_where=text("replaced_by IS NOT NULL")),
    Index("ix_memories_superseded", "id", sqlite_where=text("inactive_reason = 'superseded'")),
    Index("ix_memories_text_hash", "text_hash"),
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

prompts = Table(
    "prompts",
    metadata,
    Column("message_id", Integer, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    Column("system", Text),
    Column("first_message_id", Integer, nullable=False),
    _count("tools"),
    _count("turns"),
    _count("shown"),
    _count("dropped"),
    Column("degraded", Text),
    Column("list_id", Integer, ForeignKey("fact_lists.id")),
    Index("ix_prompts_list_id", "list_id"),
)
"""What a reply's model was sent: this, and so many turns from the first one on. With a list of
facts, ``system`` is only what stood behind it. Where a memory that was shown in it was forgotten,
the system text is gone."""

fact_lists = Table(
    "fact_lists",
    metadata,
    _id(),
    _fk("sessions.id"),
    Column("hash", String(64)),
    Column("opening", Text),
    _time("created_at"),
    UniqueConstraint("session_id", "hash"),
)
"""The facts that prompts of a conversation were sent whatever was asked, and the system text before
them. Where one of them was forgotten, ``hash`` and ``opening`` are gone."""

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
    _time("created_at"),
    Index("ix_muted_memory_id", "memory_id"),
)
"""Memories that a person called not relevant, for the rest of that conversation."""

searched = or_(memories.c.active == 1, memories.c.inactive_reason == "superseded")
"""Which memories have a keyword row and a vector in the index: those in use, and replaced values,
by which people ask for what is there now."""

memory_sources = Table(
    "memory_sources",
    metadata,
    _id(),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE"), nullable=False),
    _fk("messages.id"),
    Column("start", Integer, nullable=False),
    Column("quote", Text, nullable=False),
    UniqueConstraint("memory_id", "message_id", "start", "quote"),
    Index("ix_memory_sources_message_id", "message_id"),
)

memory_events = Table(
    "memory_events",
    metadata,
    _id(),
    Column("memory_id", Integer, nullable=False),
    Column("app_id", Integer, nullable=False),
    Column("kind", String, nullable=False),
    _time("at"),
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
    _id(),
    _fk("apps.id"),
    _count("memory_id"),
    Column("kind", String, nullable=False),
    Column("hash", String(64), nullable=False),
    _time("created_at"),
    UniqueConstraint("app_id", "memory_id", "kind", "hash"),
)

sources = Table(
    "sources",
    metadata,
    _id(),
    _fk("apps.id"),
    Column("type", String, nullable=False),
    Column("external_id", String, nullable=False),
    Column("title", Text),
    _time("created_at"),
    UniqueConstraint("app_id", "type", "external_id"),
)

chunks = Table(
    "chunks",
    metadata,
    _id(),
    Column("hash", String(64), nullable=False),
    Column("source_type", String, nullable=False),
    _fk("sources.id"),
    Column("pair_id", Integer),
    Column("parent_id", Integer),
    Column("offset", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    _count("match_count"),
    _count("read_count"),
    _time("created_at"),
    Index("ix_chunks_source_id", "source_id"),
    Index("ix_chunks_hash", "hash"),
)

services = Table(
    "services",
    metadata,
    _id(),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
    Column("version", String, nullable=False, server_default=text("''")),
    Column("dimensions", Integer, nullable=False),
    Column("max_tokens", Integer, nullable=False),
    _time("created_at"),
    UniqueConstraint("provider", "model", "version", "dimensions"),
)

embeddings = Table(
    "embeddings",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("service_id", Integer, ForeignKey("services.id", ondelete="CASCADE"), primary_key=True),
    Column("embedding", LargeBinary, nullable=False),
    _count("token_count"),
    _time("created_at"),
)

jobs = Table(
    "jobs",
    metadata,
    _id(),
    Column("kind", String, nullable=False),
    _fk("apps.id"),
    Column("source_type", String, nullable=False),
    Column("source_id", Integer, nullable=False),
    Column("text", Text),
    Column("status", Integer, nullable=False, server_default=text("-1")),
    Column("error_message", Text),
    _count("attempts"),
    _time("run_at"),
    Column("lease_owner", String),
    _time("lease_until", nullable=True),
    _time("created_at"),
    _time("processed_at", nullable=True),
    UniqueConstraint("kind", "source_type", "source_id"),
    CheckConstraint("typeof(status) = 'integer' AND status >= -1", name="status"),
    Index("ix_jobs_due", "kind", "run_at", sqlite_where=text("status = -1")),
    Index("ix_jobs_app_id", "app_id"),
    sqlite_autoincrement=True,
)

inbox = Table(
    "inbox",
    metadata,
    _id(),
    _fk("apps.id"),
    _fk("messages.id", nullable=True),
    Column("status", String, nullable=False, server_default=text("'pending'")),
    Column("reason", Text, nullable=False),
    Column("memory_type", String),
    Column("key", String),
    Column("value", Text),
    Column("quote", Text),
    Column("start", Integer),
    Column("expires_at", Date),
    _count("many", 1),
    _count("masked"),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE")),
    Column("related_id", Integer, ForeignKey("memories.id", ondelete="CASCADE")),
    _time("created_at"),
    Column("relation", String, nullable=False, server_default=text("'new'")),
    Column("target_id", Integer),
    Column("starts_at", Date),
    Column("sentence", Text),
    Column("cues", Text, nullable=False, server_default=text("''")),
    _count("unchecked"),
    _count("sensitive"),
    CheckConstraint("status IN ('pending', 'accepted', 'rejected')", name="status"),
    Index("ix_inbox_app_id_status", "app_id", "status"),
    Index("ix_inbox_message_id", "message_id"),
    Index("ix_inbox_memory_id", "memory_id"),
    Index("ix_inbox_related_id", "related_id"),
)

refusals = Table(
    "refusals",
    metadata,
    _id(),
    _fk("apps.id"),
    _fk("sessions.id"),
    _fk("messages.id", nullable=True),
    Column("reason", Text, nullable=False),
    Column("start", Integer),
    Column("end", Integer),
    Column("memory_type", String),
    Column("key", String),
    Column("value", Text),
    Column("relation", String, nullable=False, server_default=text("'new'")),
    Column("target_id", Integer),
    Column("expires_at", Date),
    Column("starts_at", Date),
    _count("many", 1),
    Column("cues", Text, nullable=False, server_default=text("''")),
    _time("created_at"),
    _count("sensitive"),
    Index("ix_refusals_app_id", "app_id"),
    Index("ix_refusals_session_id", "session_id"),
    Index("ix_refusals_message_id", "message_id"),
)
"""What was proposed and not kept, with the reason; reason alone where the words may not be kept."""

usage = Table(
    "usage",
    metadata,
    _id(),
    _fk("apps.id"),
    Column("session_id", Integer, ForeignKey("sessions.id", ondelete="SET NULL")),
    Column("message_id", Integer),
    _time("at"),
    Column("purpose", String, nullable=False),
    Column("model", String, nullable=False),
    _count("prompt_tokens"),
    _count("completion_tokens"),
    Column("cost_usd", Float),
    Column("seconds", Float, nullable=False, server_default=text("0")),
    Index("ix_usage_app_id", "app_id"),
    Index("ix_usage_session_id", "session_id"),
)

meta = Table(
    "meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)
