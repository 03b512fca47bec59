"""Memories as rows: what to select, and the record that a row makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, select

from memchat.store import records
from memchat.store.schema import apps, memories
from memchat.types import Memory

SELECT = """
    SELECT m.id, m.created_at, m.memory_type, m.key, m.value, m.sha1, m.expires_at, m.seen_count,
        m.last_seen_at, m.active, a.user, a.name, m.many, m.created_by, m.said_at, m.updated_at,
        m.inactive_reason, m.replaced_by, m.pinned, m.starts_at, m.cues, m.sensitive
    FROM memories m JOIN apps a ON a.id = m.app_id
"""
"""Every row, hidden ones too, with the columns in the order of a Memory's fields."""
with_scope: Select[Any] = select(memories, apps.c.user, apps.c.name.label("app")).join(
    apps, apps.c.id == memories.c.app_id
)
"""Every row with the names of its scope, hidden ones too."""


def memory_of_text(row: Sequence[Any]) -> Memory:
    """The record of a row that ``SELECT`` gave."""
    return records.from_text(Memory, row)


def memory_of(row: Row[Any]) -> Memory:
    """The record of a row that ``with_scope`` gave."""
    return records.from_row(Memory, row)
