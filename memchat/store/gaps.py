"""What search is to find and has no vector of a service yet: facts, turns, summaries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, exists, func, select

from memchat.store import backlog
from memchat.store.schema import embeddings, memories, messages, searched, sessions

Kind = Literal["memory", "message", "session"]
KINDS: tuple[Kind, ...] = ("memory", "message", "session")
_e = embeddings.c


@dataclass(frozen=True, slots=True)
class Gap:
    """A text without a vector; None for a summary's, which is not kept as it is embedded."""

    kind: Kind
    id: int
    hash: str
    text: str | None


def after(tx: Connection, service_id: int, kind: Kind, last_id: int, limit: int) -> list[Gap]:
    """The next gaps of a kind behind an id, so that one which cannot be filled is passed by."""
    table, hashed, text = _source(kind)
    columns = [table.c.id, hashed] if text is None else [table.c.id, hashed, text]
    query = _lacking(select(*columns), kind, service_id).where(table.c.id > last_id)
    rows = tx.execute(query.order_by(table.c.id).limit(limit))
    return [Gap(kind, row[0], row[1], None if text is None else row[2]) for row in rows]


def count(tx: Connection, service_id: int) -> int:
    """How many there are."""
    return sum(
        tx.execute(_lacking(select(func.count()), kind, service_id)).scalar_one() for kind in KINDS
    )


def total(tx: Connection) -> int:
    """How many texts are to be found by meaning at all."""
    return sum(
        tx.execute(select(func.count()).select_from(_source(k)[0]).where(_wanted(k))).scalar_one()
        for k in KINDS
    )


def queue(tx: Connection, service_id: int, now: datetime) -> int:
    """Have the worker fill every gap; how many there are."""
    backlog.queue(tx, service_id, now)
    return count(tx, service_id)


def _lacking(query: Select[Any], kind: Kind, service_id: int) -> Select[Any]:
    table, hashed, _ = _source(kind)
    held = exists().where(and_(_e.hash == hashed, _e.service_id == service_id))
    return query.select_from(table).where(_wanted(kind), ~held)


def _source(kind: Kind) -> tuple[Table, ColumnElement[str], ColumnElement[str] | None]:
    if kind == "memory":
        return memories, memories.c.text_hash, memories.c.search_text
    if kind == "message":
        return messages, messages.c.text_hash, messages.c.search_text
    return sessions, sessions.c.summary_hash, None


def _wanted(kind: Kind) -> ColumnElement[bool]:
    return searched if kind == "memory" else _source(kind)[1].is_not(None)
