"""Where memories come from: a conversation, and the app that they were kept in before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from memchat.store import raw_sql
from memchat.types import MemoryOrigin

_ORIGINS = """
    SELECT m.id,
        (SELECT t.session_id FROM memory_sources s JOIN messages t ON t.id = s.message_id
            JOIN sessions c ON c.id = t.session_id
            WHERE s.memory_id = m.id AND t.role = 'user' AND c.app_id = ?2
            ORDER BY t.id DESC LIMIT 1),
        (SELECT b.name FROM memory_events e JOIN apps b ON b.id = e.app_id
            WHERE e.memory_id = m.id AND e.kind = 'move' AND b.name <> ''
            ORDER BY e.id DESC LIMIT 1),
        h.name
    FROM memories m JOIN apps h ON h.id = m.app_id WHERE m.id IN (SELECT value FROM json_each(?1))
"""


def of_memories(tx: Connection, app_id: int, memory_ids: Sequence[int]) -> dict[int, MemoryOrigin]:
    """The origin of each of these memories, by its id, as it is seen in one app."""
    rows = raw_sql.rows(tx, _ORIGINS, raw_sql.json_list(memory_ids), app_id)
    return {
        memory_id: MemoryOrigin(session_id, None if home else before)
        for memory_id, session_id, before, home in rows
    }
