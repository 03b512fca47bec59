"""The lists of facts that prompts were sent whatever was asked, each kept once a conversation."""

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
    """A list as a prompt had it."""

    opening: str | None
    """The system text before it; None where a fact of the list was forgotten since."""
    lines: tuple[Line, ...]


def add(
    tx: Connection, session_id: int, opening: str | None, lines: Sequence[Line], now: datetime
) -> int:
    """The number of this list in a conversation; written where it is not there yet.

    One without an opening is never another reply's too: something of it is gone.
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
    """A known list, as far as it is still there."""
    opening = tx.execute(select(_f.opening).where(_f.id == list_id)).scalar_one()
    query = select(_l.memory_id, _l.text).where(_l.list_id == list_id).order_by(_l.position)
    return FactList(opening, tuple((row.memory_id, row.text) for row in tx.execute(query)))


def model_texts_with(tx: Connection, memory_id: int) -> list[tuple[int, str, int]]:
    """What models wrote in the conversations that were sent a list with this memory, replies,
    titles and summaries: the conversation's id, the text, and whether it describes the whole."""
    return raw_sql.rows(tx, _TEXTS, memory_id)


def sent_to_models(tx: Connection, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories have a line in a list or in a receipt."""
    return {row[0] for row in raw_sql.rows(tx, _SENT_ANYWHERE, raw_sql.json_list(memory_ids))}


def remove_lines(tx: Connection, memory_id: int) -> None:
    """Take a memory's line out of every list; the hash and the prompts of those go with it."""
    held = select(_l.list_id).where(_l.memory_id == memory_id)
    tx.execute(update(fact_lists).where(_f.id.in_(held)).values(hash=None, opening=None))
    tx.execute(delete(fact_list_lines).where(_l.memory_id == memory_id))
