"""The tables as SQLAlchemy Core sees them. The baseline migration creates them.

A scope is one row of ``apps``: one app of a user, or, with an empty name, what the user has in
every app. Every scoped table has its ``app_id``, so deleting an app is a cascade, and a query that
names the app needs no user. Times are UTC text of fixed width, which sorts by time.
"""

from memchat.db.schema.columns import UtcTime, metadata, utc_text
from memchat.db.schema.conversations import (
    apps,
    changes,
    external_sessions,
    fact_list_lines,
    fact_lists,
    messages,
    muted,
    prompts,
    receipts,
    searched_messages,
    sessions,
    settings,
    unread_messages,
)
from memchat.db.schema.memories import (
    client_writes,
    clients,
    inbox,
    memories,
    memory_events,
    memory_sources,
    memory_tags,
    refusals,
    searched,
    tombstones,
)
from memchat.db.schema.work import chunks, embeddings, jobs, meta, services, sources, usage

HEAD = "0100"
"""The revision this code reads and writes. A test compares it with the newest migration. Numbers
below 0100 are of stores from before there was one baseline."""
