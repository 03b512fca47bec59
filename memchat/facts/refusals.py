"""Refusals: what an extraction proposed and the gate did not accept, so that a person can look it
up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import delete, insert, or_, select

from memchat.db import Tx, records
from memchat.db.records import columns, from_row
from memchat.db.schema import refusals
from memchat.types import MemoryType, Refusal

_r = refusals.c


@dataclass(frozen=True, slots=True)
class NewRefusal:
    """A refusal about to be stored. It has only the reason where the words may not be kept."""

    reason: str
    message_id: int | None = None
    start: int | None = None
    end: int | None = None
    memory_type: MemoryType | None = None
    key: str | None = None
    value: str | None = None
    relation: str = "new"
    target_id: int | None = None
    expires_at: date | None = None
    starts_at: date | None = None
    many: bool = True
    cues: tuple[str, ...] = ()
    sensitive: bool = False

    @property
    def proposal(self) -> tuple[str, ...]:
        """What two refusals of the same proposal have in common; without words it is the reason
        alone."""
        if self.key is None:
            return (self.reason,)
        value = " ".join((self.value or "").split()).casefold()
        return (self.key, value, "ends" if self.relation == "ends" else "")


def remove_read_again(tx: Tx, session_id: int, read_to: int) -> None:
    """Delete the refusals of a conversation's messages after ``read_to``, which are read again."""
    again = _r.message_id > read_to
    if read_to == 0:
        again = or_(again, _r.message_id.is_(None))
    tx.execute(delete(refusals).where(_r.session_id == session_id, again))


def add(tx: Tx, app_id: int, session_id: int, refused: Iterable[NewRefusal], now: datetime) -> None:
    """Store more refusals of a conversation, each proposal once."""
    known = {from_row(NewRefusal, row).proposal for row in tx.execute(_of(session_id))}
    for one in refused:
        if one.proposal not in known:
            known.add(one.proposal)
            values = columns(one) | {"session_id": session_id, "created_at": now}
            tx.execute(insert(refusals).values(app_id=app_id, **values))


def listed(tx: Tx, app_id: int, session_id: int | None = None) -> list[Refusal]:
    """The refusals of a scope row, or of one of its conversations, the oldest first."""
    query = select(refusals).where(_r.app_id == app_id).order_by(_r.id)
    if session_id is not None:
        query = query.where(_r.session_id == session_id)
    return [from_row(Refusal, row) for row in tx.execute(query)]


def get(tx: Tx, app_ids: Sequence[int], refusal_id: int) -> Refusal | None:
    """One refusal of these scope rows, or None."""
    row = tx.execute(select(refusals).where(_r.id == refusal_id, _r.app_id.in_(app_ids))).first()
    return None if row is None else from_row(Refusal, row)


def texts(tx: Tx, app_id: int) -> dict[int, str]:
    """The texts of a scope row's refusals by id; for the shared row those of every app of its
    user."""
    rows = records.read(tx, "refusals", "t.id, t.key, t.value, t.reason", app_id)
    return {row[0]: "\n".join(filter(None, row[2:])) for row in rows if row[1] is not None}


def facts(tx: Tx, app_id: int) -> dict[int, tuple[str, str]]:
    """Key and value of a scope row's refusals by id; for the shared row those of every app of its
    user."""
    return records.facts(tx, "refusals", app_id)


def texts_of(tx: Tx, session_id: int) -> dict[int, str]:
    """The texts of a conversation's refusals, by id."""
    rows = tx.execute(_of(session_id))
    return {row.id: "\n".join(filter(None, (row.value, row.reason))) for row in rows if row.key}


def remove(tx: Tx, ids: Sequence[int]) -> None:
    """Delete refusals."""
    if ids:
        tx.execute(delete(refusals).where(_r.id.in_(ids)))


def remove_of_messages(tx: Tx, message_ids: Sequence[int]) -> None:
    """Delete the refusals of proposals from these messages."""
    tx.execute(delete(refusals).where(_r.message_id.in_(message_ids)))


def remove_without_message(tx: Tx, session_id: int) -> None:
    """Delete the refusals of a conversation that have words but no message."""
    tx.execute(
        delete(refusals).where(
            _r.session_id == session_id, _r.message_id.is_(None), _r.key.is_not(None)
        )
    )


def _of(session_id: int) -> Any:
    return select(refusals).where(_r.session_id == session_id)
