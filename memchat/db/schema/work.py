"""Tables of vectors, queued work, usage, and facts about the store itself."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from memchat.db.schema.columns import count_column, foreign_key, id_column, metadata, time_column

_KIND = "CASE id & 3 WHEN 0 THEN 'fact' WHEN 1 THEN 'turn' WHEN 2 THEN 'summary' ELSE 'chunk' END"

sources = Table(
    "sources",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("type", String, nullable=False),
    Column("external_id", String, nullable=False),
    Column("title", Text),
    time_column("created_at"),
    Column("content", Text, nullable=False, server_default=text("''")),
    Column("profile", String, nullable=False, server_default=text("'memo'")),
    time_column("updated_at", nullable=True),
    count_column("missing"),
    Column("sized_for", String),
    UniqueConstraint("app_id", "type", "external_id"),
    Index("ix_sources_app_id_created_at", "app_id", "created_at"),
    sqlite_autoincrement=True,
)
"""Notes: memos and documents, whole. ``external_id`` is JSON, a text or a number, as the caller
names it; ``created_at`` is when it was said or written; ``missing`` a file that is gone;
``sized_for`` the embedding model that reads each of its chunks whole, where that is known."""
chunks = Table(
    "chunks",
    metadata,
    id_column(),
    Column("hash", String(64), nullable=False),
    Column("source_type", String, nullable=False),
    foreign_key("sources.id"),
    Column("pair_id", Integer),
    Column("parent_id", Integer),
    Column("offset", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    count_column("match_count"),
    count_column("read_count"),
    time_column("created_at"),
    count_column("position"),
    count_column("tokens"),
    Column("masked", Text),
    Index("ix_chunks_source_id", "source_id"),
    sqlite_autoincrement=True,
)
"""Parts of notes: so many characters of the text from ``offset`` on. ``hash`` is of what is
embedded: that part, or ``masked`` where it holds what looks like a secret."""
passages = Table(
    "passages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String, Computed(_KIND, persisted=False)),
    Column("owner_id", Integer, Computed("id >> 2", persisted=False)),
    foreign_key("apps.id"),
    Column("text", Text),
    Column("hash", String(64)),
    count_column("reply"),
    count_column("searched", 1),
    Column("status", Integer),
    Column("error_message", Text),
    count_column("attempts"),
    time_column("run_at", nullable=True),
    Column("lease_owner", String),
    time_column("lease_until", nullable=True),
    time_column("created_at", nullable=True),
    time_column("processed_at", nullable=True),
    CheckConstraint(
        "status IS NULL OR (typeof(status) = 'integer' AND status >= -1)", name="status"
    ),
    Index("ix_passages_app_id", "app_id"),
    Index("ix_passages_hash", "hash", sqlite_where=text("hash IS NOT NULL")),
    Index("ix_passages_queue", "status", "run_at", sqlite_where=text("status != 0")),
    Index("ix_passages_lease", "lease_owner", sqlite_where=text("lease_owner IS NOT NULL")),
)
"""Whatever search can find: facts, the turns and summaries of conversations, chunks of notes. The
id is made of the owner's id and of the kind, so that neither needs an index. ``text`` is what is
embedded, or NULL where the owner's row holds it; ``hash`` is the key of its vector, NULL for a turn
that was not read yet. ``reply`` marks the assistant's turns, and ``searched`` is 0 for a fact out
of use, which keeps its vector.

The other columns are the queue of embedding: ``status`` is -1 while the passage waits for its
vector, 0 once it has it, above that the code of the error for which it was given up, and NULL where
no vector was asked for. Once it is done no time is kept: the vector has it."""
changes = Table(
    "changes",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("passage_id", Integer, nullable=False),
    time_column("at"),
    Index("ix_changes_app_id_id", "app_id", "id"),
    sqlite_autoincrement=True,
)
"""Which passages of a scope an index has to read again. Ids only."""
services = Table(
    "services",
    metadata,
    id_column(),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
    Column("version", String, nullable=False, server_default=text("''")),
    Column("dimensions", Integer, nullable=False),
    Column("max_tokens", Integer, nullable=False),
    time_column("created_at"),
    UniqueConstraint("provider", "model", "version", "dimensions"),
)
embeddings = Table(
    "embeddings",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("service_id", Integer, ForeignKey("services.id", ondelete="CASCADE"), primary_key=True),
    Column("embedding", LargeBinary, nullable=False),
    count_column("token_count"),
    time_column("created_at"),
)
jobs = Table(
    "jobs",
    metadata,
    id_column(),
    Column("kind", String, nullable=False),
    foreign_key("apps.id"),
    Column("source_type", String, nullable=False),
    Column("source_id", Integer, nullable=False),
    Column("text", Text),
    Column("status", Integer, nullable=False, server_default=text("-1")),
    Column("error_message", Text),
    count_column("attempts"),
    time_column("run_at"),
    Column("lease_owner", String),
    time_column("lease_until", nullable=True),
    time_column("created_at"),
    time_column("processed_at", nullable=True),
    UniqueConstraint("kind", "source_type", "source_id"),
    CheckConstraint("typeof(status) = 'integer' AND status >= -1", name="status"),
    Index("ix_jobs_due", "kind", "run_at", sqlite_where=text("status = -1")),
    Index("ix_jobs_lease", "lease_owner", sqlite_where=text("lease_owner IS NOT NULL")),
    Index("ix_jobs_app_id", "app_id"),
)
usage = Table(
    "usage",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("session_id", Integer, ForeignKey("sessions.id", ondelete="SET NULL")),
    Column("message_id", Integer),
    time_column("at"),
    Column("purpose", String, nullable=False),
    Column("model", String, nullable=False),
    count_column("prompt_tokens"),
    count_column("completion_tokens"),
    Column("cost_usd", Float),
    Column("seconds", Float, nullable=False, server_default=text("0")),
    Index("ix_usage_app_id", "app_id"),
    Index("ix_usage_session_id", "session_id"),
)
scrubs = Table(
    "scrubs", metadata, id_column(), Column("app_id", Integer), sqlite_autoincrement=True
)
"""What was deleted and is still in the bytes of the files: words in the store's, and of a scope row
that is named the vectors in its saved index. A row stays until these are gone."""
meta = Table(
    "meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False)
)
