"""The tables as SQLAlchemy Core sees them. The baseline migration creates them.

A scope is one row of ``apps``: one app of a user, or, with an empty name, what the user has in
every app. Every scoped table has its ``app_id``, so deleting an app is a cascade, and a query that
names the app needs no user. Times are UTC text of fixed width, which sorts by time.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    or_,
    text,
)

from memchat.db.records import UtcTime, VectorBytes

HEAD = "0100"
"""The revision this code reads and writes. A test compares it with the newest migration. Numbers
below 0100 are of stores from before there was one baseline."""


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def id_column() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def foreign_key(target: str, *, nullable: bool = False, ondelete: str = "CASCADE") -> Column[int]:
    name = target.partition(".")[0].removesuffix("s") + "_id"
    return Column(name, Integer, ForeignKey(target, ondelete=ondelete), nullable=nullable)


def time_column(name: str, *, nullable: bool = False) -> Column[datetime]:
    default = None if nullable else text("(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))")
    return Column(name, UtcTime, nullable=nullable, server_default=default)


def count_column(name: str, start: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(start)))


apps = Table(
    "apps",
    metadata,
    id_column(),
    Column("user", String, nullable=False),
    Column("name", String, nullable=False),
    count_column("memory", 1),
    time_column("created_at"),
    Column("instructions", Text),
    UniqueConstraint("user", "name"),
    sqlite_autoincrement=True,
)
topics = Table(
    "topics",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("name", Text),
    time_column("made_at"),
    count_column("change_id"),
    Index("ix_topics_app_id", "app_id"),
    sqlite_autoincrement=True,
)
"""Groups of notes and conversations that speak of the same, each of which is in one or in none.
``name`` is what a model called it; the words that describe it are counted where it is shown, so
that no forgotten one stays. ``change_id`` is the last of ``changes`` when the groups were made."""
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
    Column("shelf", String),
    count_column("memory", 1),
    Column("through", String),
    foreign_key("topics.id", nullable=True, ondelete="SET NULL"),
    Index("ix_sessions_topic_id", "topic_id", sqlite_where=text("topic_id IS NOT NULL")),
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
    # The last two of the turns, and the two before these, by which a program's own are found.
    Column("ends", String, nullable=False, server_default=text("''")),
    Column("before", String, nullable=False, server_default=text("''")),
    Index("ix_external_sessions_ends", "app_id", "ends"),
    Index("ix_external_sessions_before", "app_id", "before"),
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
    # Of a message and what was said in its place, each has the first one's id here but that one.
    Column("version_of", Integer),
    # The message that begins the version with which it is set aside; NULL while it is shown.
    Column("aside_with", Integer),
    count_column("read_all"),
    # A JSON array, NULL for none: as it is in the row, it goes wherever the message goes.
    Column("attachments", Text),
    CheckConstraint("role IN ('user', 'assistant')", name="role"),
    CheckConstraint("status IN ('complete', 'partial', 'failed')", name="status"),
    Index("ix_messages_session_id_id", "session_id", "id"),
    Index("ix_messages_copied_from", "copied_from", sqlite_where=text("copied_from IS NOT NULL")),
    Index("ix_messages_aside_with", "aside_with", sqlite_where=text("aside_with IS NOT NULL")),
    sqlite_autoincrement=True,
)
unread_messages = and_(
    messages.c.role == "user",
    messages.c.memory == 1,
    messages.c.aside_with.is_(None),
    messages.c.id > sessions.c.extracted_to,
)
"""The user's messages, joined with their sessions, that no extraction has read yet."""
searched_messages = and_(
    messages.c.memory == 1, messages.c.copied_from.is_(None), messages.c.aside_with.is_(None)
)
"""A condition for messages that are passages, and once they were read get a vector. Of a message
and its copies only the message itself is searched and learned from, of its versions the one that is
shown."""
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


CHOSEN = "(pinned = 1 OR memory_type IN ('profile', 'preference'))"
"""Which memories stand in a prompt whatever was asked, as an index has it."""
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
    Column("sentence", Text),
    UniqueConstraint("app_id", "sha1"),
    CheckConstraint(
        "memory_type GLOB '[a-z]*' AND length(memory_type) <= 24",
        name="type",
        info={"postgresql": "memory_type ~ '^[a-z]' AND length(memory_type) <= 24"},
    ),
    CheckConstraint("created_by IN ('manual', 'auto', 'import', 'mcp')", name="created_by"),
    CheckConstraint("(active = 1) = (inactive_reason IS NULL)", name="inactive_reason"),
    Index("ix_memories_app_id_active_key", "app_id", "active", "key"),
    # For what each prompt asks of a store with many facts: how many, the private, the newest, those
    # that are chosen whatever was asked.
    Index("ix_memories_shown", "app_id", "sensitive", "active", "expires_at"),
    Index("ix_memories_newest", "app_id", "active", "said_at", "id"),
    Index("ix_memories_chosen", "app_id", "active", "pinned", sqlite_where=text(CHOSEN)),
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
details = Table(
    "metadata",
    metadata,
    id_column(),
    Column("memory_id", Integer, ForeignKey("memories.id", ondelete="CASCADE")),
    foreign_key("sessions.id", nullable=True),
    foreign_key("sources.id", nullable=True),
    Column("key", String, nullable=False),
    Column("value", String, nullable=False),
    *(UniqueConstraint(owner, "key") for owner in ("memory_id", "session_id", "source_id")),
    Index("ix_metadata_key_value", "key", "value"),
)
"""What a program noted beside a memory, a conversation or a note, each value as JSON."""
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
    Column("run_id", Integer, ForeignKey("workflow_runs.id", ondelete="CASCADE")),
    Column("status", String, nullable=False, server_default=text("'pending'")),
    Column("reason", Text, nullable=False),
    Column("by", String),
    Column("start", Integer),
    Column("end", Integer),
    Column("memory_type", String),
    Column("key", String),
    Column("value", Text),
    Column("quote", Text),
    Column("around", Text),
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
    Index("ix_proposals_run_id", "run_id", sqlite_where=text("run_id IS NOT NULL")),
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
client_requests = Table(
    "client_requests",
    metadata,
    Column("client_id", Integer, ForeignKey("clients.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("request", String, nullable=False),
    Column("status", Integer),
    Column("row_id", Integer),
    time_column("at"),
)
"""Requests that a program may send twice, by the hash of its key; ``request`` is the hash of what
was sent, and ``status`` NULL while it is being done."""
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
    foreign_key("topics.id", nullable=True, ondelete="SET NULL"),
    UniqueConstraint("app_id", "type", "external_id"),
    Index("ix_sources_topic_id", "topic_id", sqlite_where=text("topic_id IS NOT NULL")),
    Index("ix_sources_app_id_created_at", "app_id", "created_at"),
    sqlite_autoincrement=True,
)
"""Notes: memos and documents, whole. ``external_id`` is JSON, a text or a number, as the caller
names it; ``created_at`` is when it was said or written; ``missing`` a file that is gone;
``sized_for`` the embedding model that reads each of its chunks whole, where that is known."""
note_tags = Table(
    "note_tags",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
    Index("ix_note_tags_tag", "tag"),
    sqlite_with_rowid=False,
)
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
        "status IS NULL OR (typeof(status) = 'integer' AND status >= -1)",
        name="status",
        info={"postgresql": "status IS NULL OR status >= -1"},
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
    Column("embedding", VectorBytes, nullable=False),
    count_column("token_count"),
    time_column("created_at"),
)
workflows = Table(
    "workflows",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("slug", String, nullable=False),
    Column("definition", Text, nullable=False),
    count_column("on_note"),
    time_column("next_at", nullable=True),
    Column("shared_with", Text, nullable=False, server_default=text("'[]'")),
    time_column("created_at"),
    UniqueConstraint("app_id", "slug"),
    Index("ix_workflows_next_at", "next_at", sqlite_where=text("next_at IS NOT NULL")),
    sqlite_autoincrement=True,
)
"""Workflows that the person added. ``definition`` is the JSON text as it was given, and
``shared_with`` a JSON array of the names of programs."""
workflow_runs = Table(
    "workflow_runs",
    metadata,
    id_column(),
    foreign_key("apps.id"),
    Column("slug", String, nullable=False),
    Column("definition", Text, nullable=False),
    Column("state", String, nullable=False, server_default=text("'running'")),
    Column("trigger", String, nullable=False),
    Column("input", Text, nullable=False),
    Column("steps", Text, nullable=False, server_default=text("'[]'")),
    Column("notes", Text, nullable=False, server_default=text("'[]'")),
    Column("error", Text),
    time_column("created_at"),
    time_column("finished_at", nullable=True),
    CheckConstraint("state IN ('running', 'waiting', 'stopped', 'failed', 'done')", name="state"),
    Index("ix_workflow_runs_app_id_id", "app_id", "id"),
    Index("ix_workflow_runs_created_at", "created_at"),
    sqlite_autoincrement=True,
)
"""Runs of workflows, each with the definition that it began with. ``input`` and ``steps`` are JSON,
and so is ``notes``, the ids of the notes that it was given: it goes with any of them."""
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
    CheckConstraint(
        "typeof(status) = 'integer' AND status >= -1",
        name="status",
        info={"postgresql": "status >= -1"},
    ),
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
