"""The lists of facts that prompts contained whatever was asked, each stored once a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from memchat.store import raw_sql
from memchat.store.schema import fact_list_lines, fact_lists

_f = fact_lists.c
_l = fact_list_lines.c
Line = tuple[int, str]
"""A memory's id, and its words."""
_SENT = """
    (SELECT f.session_id FROM fact_list_lines l JOIN fact_lists f ON f.id = l.list_id
     WHERE l.memory_id = ?1)
"""
_TEXTS = f"""
    SELECT session_id, content, 0 FROM messages WHERE role = 'assistant' AND session_id IN {_SENT}
    UNION ALL SELECT id, title, 1 FROM sessions WHERE title IS NOT NULL AND id IN {_SENT}
    UNION ALL SELECT id, summary, 1 FROM sessions WHERE summary IS NOT NULL AND id IN {_SENT}
"""

_SENT_ANYWHERE = """
    WITH wanted (id) AS (SELECT value FROM json_each(?1))
    SELECT memory_id FROM fact_list_lines WHERE memory_id IN wanted
    UNION SELECT item_id FROM receipts WHERE kind = 'memory' AND item_id IN wanted
"""


@dataclass(frozen=True, slots=True)
class FactList:
    """A list of facts as a prompt contained it."""

    opening: str | None
    """The system text before the list; None if one of its facts was forgotten since."""
    lines: tuple[Line, ...]


def add(
    tx: Connection, session_id: int, opening: str | None, lines: Sequence[Line], now: datetime
) -> int:
    """The id of this list in a conversation, stored if it is new.

    A list without an opening is incomplete, so it is never taken for an earlier one.
    """
    words = "\n".join([opening or "", *(f"{i} {text}" for i, text in lines)])
    hashed = hashlib.sha256(words.encode()).hexdigest() if opening is not None else None
    same = select(_f.id).where(_f.session_id == session_id, _f.hash == hashed)
    if hashed is not None and (known := tx.execute(same).scalar()) is not None:
        return int(known)
    values = {"session_id": session_id, "hash": hashed, "opening": opening, "created_at": now}
    added = tx.execute(insert(fact_lists).values(**values).returning(_f.id))
    list_id = int(added.scalar_one())
    rows = [(list_id, n, i, text) for n, (i, text) in enumerate(lines)]
    raw_sql.run_many(tx, "INSERT INTO fact_list_lines VALUES (?, ?, ?, ?)", rows)
    return list_id


def get(tx: Connection, list_id: int) -> FactList:
    """A stored list, without the lines of facts that were forgotten."""
    opening = tx.execute(select(_f.opening).where(_f.id == list_id)).scalar_one()
    query = select(_l.memory_id, _l.text).where(_l.list_id == list_id).order_by(_l.position)
    return FactList(opening, tuple((row.memory_id, row.text) for row in tx.execute(query)))


def model_texts_with(tx: Connection, memory_id: int) -> list[tuple[int, str, int]]:
    """The replies, titles and summaries of the conversations whose lists contained this memory:
    (session id, text, 1 for a title or summary and 0 for a reply)."""
    return raw_sql.rows(tx, _TEXTS, memory_id)


def sent_to_models(tx: Connection, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories were sent to a model, by the lists and receipts."""
    return {row[0] for row in raw_sql.rows(tx, _SENT_ANYWHERE, raw_sql.json_list(memory_ids))}


def remove_lines(tx: Connection, memory_id: int) -> None:
    """Remove a memory's lines from all lists, and the openings and hashes of those lists."""
    held = select(_l.list_id).where(_l.memory_id == memory_id)
    tx.execute(update(fact_lists).where(_f.id.in_(held)).values(hash=None, opening=None))
    tx.execute(delete(fact_list_lines).where(_l.memory_id == memory_id))
