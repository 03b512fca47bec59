"""Memories as rows: what to select, and the record that a row makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select

from memchat.store import records
from memchat.store.schema import apps, memories, memory_tags
from memchat.types import Memory

SELECT = """
    SELECT m.id, m.created_at, m.memory_type, m.key, m.value, m.sha1, m.expires_at, m.seen_count,
        m.last_seen_at, m.active, a.user, a.name, m.many, m.created_by, m.said_at, m.updated_at,
        m.inactive_reason, m.replaced_by, m.pinned, m.starts_at, m.cues, m.sensitive,
        (SELECT group_concat(tag, ' ') FROM
            (SELECT tag FROM memory_tags WHERE memory_id = m.id ORDER BY tag))
    FROM memories m JOIN apps a ON a.id = m.app_id
"""
"""Every row, hidden ones too, with the columns in the order of a Memory's fields."""
_sorted = select(memory_tags.c.tag).where(memory_tags.c.memory_id == memories.c.id)
_sorted_rows = _sorted.order_by(memory_tags.c.tag).correlate(memories).subquery()
tags_of_row = select(func.group_concat(_sorted_rows.c.tag, " ")).scalar_subquery()
"""The tags of a row of memories, separated by spaces; null where it has none."""
with_scope: Select[Any] = select(
    memories, apps.c.user, apps.c.name.label("app"), tags_of_row.label("tags")
).join(apps, apps.c.id == memories.c.app_id)
"""Every row with the names of its scope, hidden ones too."""


def memory_of_text(row: Sequence[Any]) -> Memory:
    """The record of a row that ``SELECT`` gave."""
    return records.from_text(Memory, row)


def memory_of(row: Row[Any]) -> Memory:
    """The record of a row that ``with_scope`` gave."""
    return records.from_row(Memory, row)
