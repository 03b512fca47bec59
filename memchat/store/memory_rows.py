"""Memories as plain rows: what to ask for, and the record that one makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memchat.store import raw_sql
from memchat.types import Memory

PLAIN = """
    SELECT m.id, m.created_at, m.memory_type, m.key, m.value, m.sha1, m.expires_at, m.seen_count,
        m.last_seen_at, m.active, a.user, a.name, m.many, m.created_by, m.said_at, m.updated_at,
        m.inactive_reason, m.replaced_by, m.pinned, m.starts_at, m.cues, m.sensitive
    FROM memories m JOIN apps a ON a.id = m.app_id
"""
"""Every row, the hidden ones too, its columns in the order of a Memory's fields."""
_TIMES, _FLAGS, _DAYS, _CUES = (1, 8, 14, 15), (9, 12, 18, 21), (6, 19), 20


def plain_memory(row: Sequence[Any]) -> Memory:
    """The record of a row that ``PLAIN`` gave."""
    fields = [*row]
    for place in _TIMES:
        fields[place] = raw_sql.parse_time(fields[place])
    for place in _FLAGS:
        fields[place] = bool(fields[place])
    for place in _DAYS:
        fields[place] = raw_sql.parse_day(fields[place])
    fields[_CUES] = tuple(fields[_CUES].split())
    return Memory(*fields)
