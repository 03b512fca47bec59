"""Facts, messages and notes of a period of time, and facts that end in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Select, and_, select

from memchat.store import raw_sql
from memchat.store.schema import (
    chunks,
    memories,
    messages,
    searched_messages,
    sessions,
    sources,
)

Kind = Literal["memories", "messages", "chunks"]
_f, _m, _c, _s = memories.c, messages.c, chunks.c, sources.c
_facts = select(_f.id).where(_f.active == 1)
# A message that is only a question says nothing.
_turns = (
    select(_m.id)
    .join(sessions, sessions.c.id == _m.session_id)
    .where(_m.role == "user", searched_messages)
    .where(~and_(_m.content.like("%?"), ~_m.content.like("%.%")))
)
_chunks = select(_c.id).join(sources, _s.id == _c.source_id)
_SAID: dict[Kind, tuple[Select[Any], Any, Any]] = {
    "memories": (_facts.order_by(_f.said_at.desc(), _f.id.desc()), _f.app_id, _f.said_at),
    "messages": (_turns.order_by(_m.id.desc()), sessions.c.app_id, _m.created_at),
    "chunks": (_chunks.order_by(_s.created_at.desc(), _c.id.desc()), _s.app_id, _s.created_at),
}
"""Each kind's rows, the newest first, with the columns of their scope and time."""


def said(
    tx: Connection,
    kind: Kind,
    app_ids: Sequence[int],
    period: tuple[datetime, datetime],
    limit: int,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of what was said from the start of a period until before its end, the newest first:
    active facts, the user's messages, or chunks of notes. Messages that were sent with memory off,
    that are copies, or that are only a question, are left out."""
    query, home, at = _SAID[kind]
    start, end = period
    query = query.where(home.in_(app_ids), at >= start, at < end)
    query = query.where(query.selected_columns[0].not_in(raw_sql.id_list(without)))
    return list(tx.execute(query.limit(limit)).scalars())


def ending(
    tx: Connection, app_ids: Sequence[int], first: date, limit: int, without: Collection[int] = ()
) -> list[int]:
    """The ids of active facts that end on ``first`` or later, the soonest first."""
    query = select(_f.id).where(_f.app_id.in_(app_ids), _f.active == 1, _f.expires_at >= first)
    query = query.where(_f.id.not_in(raw_sql.id_list(without)))
    return list(tx.execute(query.order_by(_f.expires_at, _f.id).limit(limit)).scalars())
