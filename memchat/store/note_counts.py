"""Figures about notes: how many there are, and how often their chunks were found and read."""

from __future__ import annotations

from sqlalchemy import Connection

from memchat.store import raw_sql
from memchat.types import NoteCounts, NoteUse

_TYPES = """
    SELECT s.type, count(DISTINCT s.id), count(c.id), coalesce(sum(c.match_count), 0),
        coalesce(sum(c.read_count), 0)
    FROM sources s LEFT JOIN chunks c ON c.source_id = s.id WHERE s.app_id = ?
    GROUP BY s.type ORDER BY s.type
"""
_UNREAD = """
    SELECT s.id, s.type, s.title, sum(c.match_count) AS matches, sum(c.read_count)
    FROM sources s JOIN chunks c ON c.source_id = s.id WHERE s.app_id = ?
    GROUP BY s.id HAVING sum(c.read_count) = 0 AND matches > 0
    ORDER BY matches DESC, s.id LIMIT ?
"""
_LACKING = """
    SELECT count(*) FROM sources s JOIN chunks c ON c.source_id = s.id WHERE s.app_id = ?
    AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.hash = c.hash AND e.service_id = ?)
"""
_QUEUE = """
    SELECT coalesce(sum(status < 0), 0), coalesce(sum(status > 0), 0) FROM jobs
    WHERE kind = 'note' AND app_id = ?
"""


def by_type(tx: Connection, app_id: int) -> dict[str, NoteCounts]:
    """The size and the use of a scope row's notes, by their type."""
    return {row[0]: NoteCounts(*row[1:]) for row in raw_sql.rows(tx, _TYPES, app_id)}


def unread(tx: Connection, app_id: int, limit: int) -> list[NoteUse]:
    """The notes that were found and never read, those with the most matches first."""
    return [NoteUse(*row) for row in raw_sql.rows(tx, _UNREAD, app_id, limit)]


def without_vector(tx: Connection, app_id: int, service_id: int) -> int:
    """How many chunks of a scope row have no vector of a service."""
    return int(raw_sql.rows(tx, _LACKING, app_id, service_id)[0][0])


def queued(tx: Connection, app_id: int) -> tuple[int, int]:
    """How many notes of a scope row wait for their vectors, and how many failed for good."""
    waiting, failed = raw_sql.rows(tx, _QUEUE, app_id)[0]
    return int(waiting), int(failed)
