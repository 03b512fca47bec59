"""Texts that may mention a fact and that the keyword index does not hold, or only in part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection

from memchat.store import raw_sql

_IN = "IN (SELECT value FROM json_each(?))"
_SAID = f"FROM sessions s JOIN messages m ON m.session_id = s.id WHERE s.app_id {_IN}"


def related_app_ids(tx: Connection, app_id: int) -> list[int]:
    """The scope rows whose texts may mention the facts of this one: itself and the user's shared
    row; for the shared row all of the user's."""
    sql = (
        "SELECT a.id FROM apps here JOIN apps a ON a.user = here.user"
        " WHERE here.id = ? AND (a.id = here.id OR here.name = '' OR a.name = '')"
    )
    return [row[0] for row in raw_sql.rows(tx, sql, app_id)]


def count_messages(tx: Connection, app_ids: Sequence[int]) -> int:
    """How many messages there are in these scope rows."""
    sql = f"SELECT count(*) {_SAID}"
    return int(raw_sql.rows(tx, sql, raw_sql.json_list(app_ids))[0][0])


def count_memories(tx: Connection, app_ids: Sequence[int]) -> int:
    """How many memories there are in these scope rows."""
    sql = f"SELECT count(*) FROM memories WHERE app_id {_IN}"
    return int(raw_sql.rows(tx, sql, raw_sql.json_list(app_ids))[0][0])


def partly_indexed(tx: Connection, app_ids: Sequence[int], beginnings: Sequence[str]) -> list[int]:
    """The ids of messages that are not indexed, or not completely, and may hold a word with one of
    these beginnings: those excluded from search, copies, and long replies."""
    like = " OR ".join("m.content LIKE ?" for _ in beginnings)
    # LIKE folds only ASCII: a text with other characters may hold the word with an accent.
    sql = (
        f"SELECT m.id {_SAID}"
        " AND (m.memory = 0 OR m.copied_from IS NOT NULL"
        " OR (m.role != 'user' AND m.search_text IS NOT NULL))"
        f" AND ({like} OR length(m.content) != length(CAST(m.content AS BLOB)))"
    )
    patterns = [f"%{beginning}%" for beginning in beginnings]
    return [row[0] for row in raw_sql.rows(tx, sql, raw_sql.json_list(app_ids), *patterns)]


def titles_and_summaries(tx: Connection, app_ids: Sequence[int]) -> list[Any]:
    """Id, title, summary and last activity of every conversation with a title or summary."""
    sql = (
        f"SELECT id, title, summary, last_activity_at FROM sessions WHERE app_id {_IN}"
        " AND (title IS NOT NULL OR summary IS NOT NULL)"
    )
    return raw_sql.rows(tx, sql, raw_sql.json_list(app_ids))


def unindexed_memories(tx: Connection, app_ids: Sequence[int]) -> list[int]:
    """The ids of memories that search does not find, or not by all of their words: inactive ones,
    without those being forgotten; edited ones, whose history holds their former words; and those
    with tags."""
    sql = (
        f"SELECT id FROM memories WHERE app_id {_IN} AND active = 0"
        " AND inactive_reason NOT IN ('superseded', 'forgotten')"
        f" UNION SELECT memory_id FROM memory_events WHERE app_id {_IN} AND kind = 'edit'"
        " UNION SELECT memory_id FROM memory_tags t JOIN memories m ON m.id = t.memory_id"
        f" WHERE m.app_id {_IN}"
    )
    scopes_ = raw_sql.json_list(app_ids)
    return [row[0] for row in raw_sql.rows(tx, sql, scopes_, scopes_, scopes_)]


def note_texts(tx: Connection, chunk_ids: Collection[int]) -> list[Any]:
    """Id, title, text and date of the notes with these chunks, and whether each has a file."""
    sql = (
        "SELECT id, coalesce(title, 'Untitled'), content, created_at, type = 'file' AND NOT missing"
        " FROM sources"
        f" WHERE id IN (SELECT source_id FROM chunks WHERE id {_IN})"
    )
    return raw_sql.rows(tx, sql, raw_sql.json_list(chunk_ids))


def inbox_texts(tx: Connection, app_ids: Sequence[int]) -> list[Any]:
    """Id, message id, time and text of every inbox item."""
    return _proposed(tx, "inbox", "value, quote, sentence, reason, tags", app_ids)


def refusal_texts(tx: Connection, app_ids: Sequence[int]) -> list[Any]:
    """Id, message id, time and text of every refusal."""
    return _proposed(tx, "refusals", "value, reason", app_ids)


def _proposed(tx: Connection, table: str, words: str, app_ids: Sequence[int]) -> list[Any]:
    sql = f"SELECT id, message_id, created_at, {words} FROM {table} WHERE app_id {_IN}"
    return [
        (row[0], row[1], raw_sql.parse_time(row[2]), "\n".join(filter(None, row[3:])))
        for row in raw_sql.rows(tx, sql, raw_sql.json_list(app_ids))
    ]
