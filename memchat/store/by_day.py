"""Facts, messages and notes of a period of time, and facts that end in it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import date, datetime

from sqlalchemy import ColumnElement, Connection, and_, func, select

from memchat.store.schema import chunks as parts
from memchat.store.schema import memories, messages, searched_messages, sessions, sources

_f = memories.c
_m = messages.c
_c, _s = parts.c, sources.c


def facts(
    tx: Connection,
    app_ids: Sequence[int],
    start: datetime,
    end: datetime,
    limit: int,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of active facts said at ``start`` or later and before ``end``, the newest first."""
    query = select(_f.id).where(_f.app_id.in_(app_ids), _f.active == 1)
    query = query.where(_f.said_at >= start, _f.said_at < end, _not_among(_f.id, without))
    return list(tx.execute(query.order_by(_f.said_at.desc(), _f.id.desc()).limit(limit)).scalars())


def turns(
    tx: Connection,
    app_ids: Sequence[int],
    start: datetime,
    end: datetime,
    limit: int,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of the user's messages from ``start`` until before ``end``, the newest first.
    Messages that were sent with memory off, that are copies, or that are only a question, are left
    out."""
    query = select(_m.id).join(sessions, sessions.c.id == _m.session_id)
    query = query.where(sessions.c.app_id.in_(app_ids), _m.role == "user", searched_messages)
    query = query.where(~and_(_m.content.like("%?"), ~_m.content.like("%.%")))
    query = query.where(_m.created_at >= start, _m.created_at < end, _not_among(_m.id, without))
    return list(tx.execute(query.order_by(_m.id.desc()).limit(limit)).scalars())


def chunks(
    tx: Connection,
    app_ids: Sequence[int],
    start: datetime,
    end: datetime,
    limit: int,
    without: Collection[int] = (),
) -> list[int]:
    """The ids of chunks of notes from ``start`` until before ``end``, the newest first."""
    query = select(_c.id).join(sources, _s.id == _c.source_id).where(_s.app_id.in_(app_ids))
    query = query.where(_s.created_at >= start, _s.created_at < end, _not_among(_c.id, without))
    query = query.order_by(_s.created_at.desc(), _c.id.desc())
    return list(tx.execute(query.limit(limit)).scalars())


def ending(
    tx: Connection, app_ids: Sequence[int], first: date, limit: int, without: Collection[int] = ()
) -> list[int]:
    """The ids of active facts that end on ``first`` or later, the soonest first."""
    query = select(_f.id).where(_f.app_id.in_(app_ids), _f.active == 1, _f.expires_at >= first)
    query = query.where(_not_among(_f.id, without))
    return list(tx.execute(query.order_by(_f.expires_at, _f.id).limit(limit)).scalars())


def _not_among(column: ColumnElement[int], ids: Collection[int]) -> ColumnElement[bool]:
    """That a column has none of these ids, bound as one value however many there are."""
    listed = func.json_each(json.dumps(sorted(ids))).table_valued("value")
    return column.not_in(select(listed.c.value))
