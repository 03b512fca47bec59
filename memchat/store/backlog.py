"""What search is to find by meaning and has no vector of a service: counted, and put in the queue.

Facts are asked for one by one; turns and summaries with their conversation, as far as it was read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    case,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from memchat.store.jobs import WAITING, free, waits
from memchat.store.schema import UtcTime, embeddings, jobs, memories, messages, searched, sessions

_m, _s, _t, _j = memories.c, sessions.c, messages.c, jobs.c


def count(tx: Connection, service_id: int) -> int:
    """How many facts, turns and summaries have none."""
    counts = (
        select(func.count()).where(_lacking_fact(service_id)),
        select(func.count()).where(_t.session_id == _s.id, _lacking_turn(service_id)),
        select(func.count()).where(_lacking_summary(service_id)),
    )
    return sum(int(tx.execute(query).scalar_one()) for query in counts)


def queue(tx: Connection, service_id: int, now: datetime) -> None:
    """Ask for all of it now. What a worker has in hand is left to it; what failed begins anew."""
    facts = select(_m.id, _m.app_id).where(_lacking_fact(service_id))
    turn = select(_t.id).where(_t.session_id == _s.id, _lacking_turn(service_id)).exists()
    talks = select(_s.id, _s.app_id).where(or_(turn, _lacking_summary(service_id)))
    _ask(tx, "embed", "memory", facts, now)
    _ask(tx, "index", "session", talks, now)


def _ask(tx: Connection, kind: str, source: str, what: Select[Any], now: datetime) -> None:
    found = what.subquery()
    at = literal(now, UtcTime)
    columns = ["source_id", "app_id", "kind", "source_type", "status", "run_at", "created_at"]
    rows = select(
        found.c.id,
        found.c.app_id,
        literal(kind, String),
        literal(source, String),
        literal(WAITING),
        at,
        at,
    ).where(found.c.id.is_not(None))  # SQLite reads ON CONFLICT behind a join's ON without a WHERE
    fresh = {
        "status": WAITING,
        "run_at": now,
        # One that takes its worker down at every try is to end, however often this is run.
        "attempts": case((waits, _j.attempts), else_=0),
        "error_message": None,
        "lease_owner": None,
        "lease_until": None,
        "processed_at": None,
    }
    tx.execute(
        upsert(jobs)
        .from_select(columns, rows.order_by(found.c.id))
        .on_conflict_do_update(
            index_elements=["kind", "source_type", "source_id"],
            set_=fresh,
            where=or_(~waits, free(now)),
        )
    )


def _lacking_fact(service_id: int) -> ColumnElement[bool]:
    return and_(searched, ~_held(_m.text_hash, service_id))


def _lacking_turn(service_id: int) -> ColumnElement[bool]:
    """Of a conversation, which the caller joins: what was read of it, and may be found."""
    lacking = or_(_t.text_hash.is_(None), ~_held(_t.text_hash, service_id))
    return and_(_t.memory == 1, _t.id <= _s.extracted_to, lacking)


def _lacking_summary(service_id: int) -> ColumnElement[bool]:
    lacking = or_(_s.summary_hash.is_(None), ~_held(_s.summary_hash, service_id))
    return and_(_s.summary.is_not(None), _s.summary != "", lacking)


def _held(text_hash: ColumnElement[Any], service_id: int) -> ColumnElement[bool]:
    e = embeddings.c
    return select(e.hash).where(e.hash == text_hash, e.service_id == service_id).exists()
