"""What a conversation's reading proposed and did not keep, so that a person can find it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select

from memchat.store import raw_sql
from memchat.store.records import columns, from_row
from memchat.store.schema import refusals
from memchat.types import EVERY_APP, MemoryType, Refusal

_r = refusals.c
_TEXTS = """
    SELECT r.id, r.value, r.reason FROM apps here
    JOIN apps a ON a.user = here.user JOIN refusals r ON r.app_id = a.id
    WHERE here.id = ? AND (a.id = here.id OR here.name = ?) AND r.key IS NOT NULL
"""
_FACTS = """
    SELECT r.id, r.key, r.value FROM apps here
    JOIN apps a ON a.user = here.user JOIN refusals r ON r.app_id = a.id
    WHERE here.id = ? AND (a.id = here.id OR here.name = ?) AND r.value IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class NewRefusal:
    """One proposal that is not kept. Only the reason is given where its words may not stay."""

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
        """By what the same proposal is known again; without words, only the reason tells."""
        if self.key is None:
            return (self.reason,)
        value = " ".join((self.value or "").split()).casefold()
        return (self.key, value, "ends" if self.relation == "ends" else "")


def replace(
    tx: Connection,
    app_id: int,
    session_id: int,
    refused: Iterable[NewRefusal],
    now: datetime,
    *,
    read_to: int,
) -> None:
    """Note what a reading of the messages after ``read_to`` did not keep, each proposal once.

    Rows of an earlier reading of these messages give way.
    """
    again = _r.message_id > read_to
    if read_to == 0:
        again = or_(again, _r.message_id.is_(None))
    tx.execute(delete(refusals).where(_r.session_id == session_id, again))
    add(tx, app_id, session_id, refused, now)


def add(
    tx: Connection, app_id: int, session_id: int, refused: Iterable[NewRefusal], now: datetime
) -> None:
    """Note what is not kept beside what is noted of a conversation, each proposal once."""
    known = {from_row(NewRefusal, row).proposal for row in tx.execute(_of(session_id))}
    for one in refused:
        if one.proposal not in known:
            known.add(one.proposal)
            values = columns(one) | {"session_id": session_id, "created_at": now}
            tx.execute(insert(refusals).values(app_id=app_id, **values))


def listed(tx: Connection, app_id: int, session_id: int | None = None) -> list[Refusal]:
    """The refusals of a scope row, or of one of its conversations, oldest first."""
    query = select(refusals).where(_r.app_id == app_id).order_by(_r.id)
    if session_id is not None:
        query = query.where(_r.session_id == session_id)
    return [from_row(Refusal, row) for row in tx.execute(query)]


def get(tx: Connection, app_ids: Sequence[int], refusal_id: int) -> Refusal | None:
    """One refusal of these scope rows."""
    row = tx.execute(select(refusals).where(_r.id == refusal_id, _r.app_id.in_(app_ids))).first()
    return None if row is None else from_row(Refusal, row)


def texts(tx: Connection, app_id: int) -> dict[int, str]:
    """The words of every refusal of a scope row; of the shared row, of every app of its user."""
    rows = raw_sql.rows(tx, _TEXTS, app_id, EVERY_APP)
    return {refusal_id: "\n".join(filter(None, words)) for refusal_id, *words in rows}


def facts(tx: Connection, app_id: int) -> dict[int, tuple[str, str]]:
    """Key and value of every refusal of a scope row; of the shared row, of every app of its
    user."""
    rows = raw_sql.rows(tx, _FACTS, app_id, EVERY_APP)
    return {refusal_id: (key, value) for refusal_id, key, value in rows}


def texts_of(tx: Connection, session_id: int) -> dict[int, str]:
    """The words of every refusal of a conversation."""
    rows = tx.execute(_of(session_id))
    return {row.id: "\n".join(filter(None, (row.value, row.reason))) for row in rows if row.key}


def remove(tx: Connection, ids: Sequence[int]) -> None:
    """Remove refusals."""
    if ids:
        tx.execute(delete(refusals).where(_r.id.in_(ids)))


def remove_of_messages(tx: Connection, message_ids: Sequence[int]) -> None:
    """Remove what was proposed from words of these messages."""
    tx.execute(delete(refusals).where(_r.message_id.in_(message_ids)))


def remove_without_message(tx: Connection, session_id: int) -> None:
    """Remove proposals of a conversation of which no message is known, but not bare reasons."""
    tx.execute(
        delete(refusals).where(
            _r.session_id == session_id, _r.message_id.is_(None), _r.key.is_not(None)
        )
    )


def _of(session_id: int) -> Any:
    return select(refusals).where(_r.session_id == session_id)
