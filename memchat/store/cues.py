"""Cues: search words that a model added to memories, inbox items and refusals.

The model wrote a fact's cues with the whole conversation before it, so they may name other facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection

from memchat.store import raw_sql
from memchat.types import EVERY_APP

_TABLES = ("memories", "inbox", "refusals")
_LACKING = (
    "SELECT m.id, m.app_id, m.key, m.value, m.sensitive FROM memories m"
    " JOIN apps a ON a.id = m.app_id"
    " LEFT JOIN apps shared ON shared.user = a.user AND shared.name = ?"
    " WHERE m.active = 1 AND m.cues = '' AND (m.expires_at IS NULL OR m.expires_at >= ?)"
    " AND a.memory = 1 AND coalesce(shared.memory, 1) = 1"
)


def remove_words(tx: Connection, app_id: int, unwanted: Callable[[set[str]], set[str]]) -> set[int]:
    """Remove words from the cues of everything the scope's user has, in every app.

    ``unwanted`` is given all cues and returns those to remove. Returns the ids of the memories that
    lost a cue; their search text has to be written again.
    """
    found = {
        table: raw_sql.rows(
            tx,
            f"SELECT t.id, t.cues FROM apps here JOIN apps a ON a.user = here.user"
            f" JOIN {table} t ON t.app_id = a.id WHERE here.id = ? AND t.cues != ''",
            app_id,
        )
        for table in _TABLES
    }
    gone = unwanted({cue for rows in found.values() for _, cues in rows for cue in cues.split()})
    changed = set()
    for table, rows in found.items():
        for row_id, cues in rows:
            left = " ".join(cue for cue in cues.split() if cue not in gone)
            if left != cues:
                raw_sql.rows(tx, f"UPDATE {table} SET cues = ? WHERE id = ?", left, row_id)
                if table == "memories":
                    changed.add(int(row_id))
    return changed


@dataclass(frozen=True, slots=True)
class FactWithoutCues:
    """An active fact that has no cues."""

    id: int
    app_id: int
    key: str
    value: str
    sensitive: bool


def facts_without_cues(tx: Connection, today: date) -> list[FactWithoutCues]:
    """The facts in use today that have no cues, of all users whose memory is on."""
    return _read(raw_sql.rows(tx, f"{_LACKING} ORDER BY m.id", EVERY_APP, today.isoformat()))


def still_without_cues(
    tx: Connection, facts: Sequence[FactWithoutCues], today: date
) -> list[FactWithoutCues]:
    """Those of these facts that are still in use and unchanged, and still have no cues."""
    sql = f"{_LACKING} AND m.id IN (SELECT value FROM json_each(?))"
    ids = raw_sql.json_list(fact.id for fact in facts)
    there = {*_read(raw_sql.rows(tx, sql, EVERY_APP, today.isoformat(), ids))}
    return [fact for fact in facts if fact in there]


def _read(found: Sequence[Any]) -> list[FactWithoutCues]:
    return [
        FactWithoutCues(i, app_id, key, value, bool(sensitive))
        for i, app_id, key, value, sensitive in found
    ]


def set_cues(tx: Connection, fact: FactWithoutCues, words: Sequence[str]) -> bool:
    """Set the cues of a fact that is unchanged and has none; False if it changed or has some."""
    if not words:
        return False
    same = "id = ? AND active = 1 AND cues = '' AND key = ? AND value = ?"
    there = raw_sql.rows(tx, f"SELECT 1 FROM memories WHERE {same}", fact.id, fact.key, fact.value)
    if there:
        raw_sql.rows(tx, "UPDATE memories SET cues = ? WHERE id = ?", " ".join(words), fact.id)
    return bool(there)
