"""The inbox: proposals and pairs of memories that wait for a person's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from memchat.db import Tx, records
from memchat.db.records import columns, from_row
from memchat.db.schema import apps, inbox, jobs, messages
from memchat.types import InboxItem, MemoryType, clean_tags

_i = inbox.c
FORGET, PROMOTE = "forget", "promote"
"""The relation of an item in which a program asks about a whole memory."""
_APART = ("ends", FORGET, PROMOTE)
"""Relations of which each is a question of its own."""
_REASON = """
    coalesce((SELECT substr(t.reason, length(c.name) + 1) FROM clients c WHERE c.app_id = t.app_id
        AND substr(t.reason, 1, length(c.name) + 1) = c.name || ' '
        ORDER BY length(c.name) DESC LIMIT 1), t.reason)
"""


@dataclass(frozen=True, slots=True)
class NewInboxItem:
    """An inbox item about to be stored: a proposal (key, value, quote), or a pair of memories."""

    reason: str
    message_id: int | None = None
    memory_type: MemoryType | None = None
    key: str | None = None
    value: str | None = None
    quote: str | None = None
    start: int | None = None
    expires_at: date | None = None
    many: bool = True
    masked: bool = False
    memory_id: int | None = None
    related_id: int | None = None
    relation: str = "new"
    target_id: int | None = None
    starts_at: date | None = None
    sentence: str | None = None
    cues: tuple[str, ...] = ()
    sensitive: bool = False
    tags: tuple[str, ...] = ()
    unchecked: bool = False
    """Whether a second look is still to come; it may decide before the person does."""


def add(tx: Tx, app_id: int, held: NewInboxItem, now: datetime) -> str | None:
    """Store an item and return None; if the same one is pending or was rejected, return its status.
    One that is pending gets the new tags beside its own."""
    ends = held.relation == "ends"
    # That a fact has ended, or is to be forgotten, is another proposal than that it holds.
    apart = held.relation in _APART
    kind = _i.relation == held.relation if apart else _i.relation.not_in(_APART)
    same = select(_i.id, _i.status, _i.tags).where(
        _i.app_id == app_id,
        _i.status != "accepted",
        _i.key.is_(held.key),
        _i.value.is_(held.value),
        _i.memory_id.is_(held.memory_id),
        _i.related_id.is_(held.related_id),
        kind,
    )
    if ends:
        same = same.where(_i.target_id.is_(held.target_id))
    if (known := tx.execute(same).first()) is not None:
        if held.tags and known.status == "pending":
            every = clean_tags([*(known.tags or "").split(), *held.tags])
            tx.execute(update(inbox).where(_i.id == known.id).values(tags=" ".join(every)))
        return str(known.status)
    tx.execute(insert(inbox).values(app_id=app_id, created_at=now, **columns(held)))
    return None


def listed(tx: Tx, app_id: int, status: str, limit: int | None = None) -> list[InboxItem]:
    """Items of a status, oldest first."""
    query = select(inbox).where(_i.app_id == app_id, _i.status == status).order_by(_i.id)
    return [
        from_row(InboxItem, row)
        for row in tx.execute(query if limit is None else query.limit(limit))
    ]


def get(tx: Tx, app_ids: Sequence[int], item_id: int) -> InboxItem | None:
    """One item of these scope rows."""
    row = tx.execute(select(inbox).where(_i.id == item_id, _i.app_id.in_(app_ids))).first()
    return None if row is None else from_row(InboxItem, row)


def awaiting_second_look(tx: Tx, session_id: int) -> list[InboxItem]:
    """A conversation's proposals whose second look is still to come, the oldest first."""
    said = select(messages.c.id).where(messages.c.session_id == session_id)
    waiting = select(inbox).where(_i.unchecked == 1, _i.status == "pending")
    return [
        from_row(InboxItem, row)
        for row in tx.execute(waiting.where(_i.message_id.in_(said)).order_by(_i.id))
    ]


def sessions_awaiting_second_look(tx: Tx, user: str) -> list[int]:
    """The ids of a user's conversations with proposals whose second look is still to come."""
    query = select(messages.c.session_id).join(inbox, _i.message_id == messages.c.id)
    mine = query.join(apps, apps.c.id == _i.app_id).where(apps.c.user == user)
    waiting = mine.where(_i.unchecked == 1, _i.status == "pending")
    return sorted(tx.execute(waiting.distinct()).scalars())


def leave_to_person(tx: Tx, item_id: int, reason: str, *, bare: bool = False) -> None:
    """Note that no second look will come, so that the person has to decide. With ``bare`` the
    sentence around the quote goes."""
    values = {"unchecked": 0, "reason": reason} | ({"sentence": None} if bare else {})
    tx.execute(update(inbox).where(_i.id == item_id).values(**values))


def give_up_looks(tx: Tx, reason: str) -> None:
    """Leave to the person what waits for a second look that has failed for good."""
    failed = select(jobs.c.source_id).where(jobs.c.kind == "verify", jobs.c.status > 0)
    said = select(messages.c.id).where(messages.c.session_id.in_(failed))
    waiting = update(inbox).where(_i.unchecked == 1, _i.message_id.in_(said))
    tx.execute(waiting.values(unchecked=0, reason=reason))


def of_message(tx: Tx, message_id: int) -> int | None:
    """The item that quotes a message."""
    return tx.execute(select(_i.id).where(_i.message_id == message_id)).scalar()


def set_reason(tx: Tx, item_id: int, reason: str) -> None:
    """Give an item another reason, without a quote, where no message of the person says it."""
    values = {"reason": reason, "message_id": None, "start": None, "quote": None, "sentence": None}
    tx.execute(update(inbox).where(_i.id == item_id).values(**values))


def decide(tx: Tx, item_id: int, status: str) -> None:
    """Store a decision: an accepted item is deleted, a rejected one kept so that it is not
    proposed again."""
    if status == "accepted":
        tx.execute(delete(inbox).where(_i.id == item_id))
    else:
        tx.execute(update(inbox).where(_i.id == item_id).values(status=status))


def reject_requests_to_forget(tx: Tx, memory_id: int) -> None:
    """Reject the items in which programs ask to forget a memory."""
    asked = update(inbox).where(_i.memory_id == memory_id, _i.relation == FORGET)
    tx.execute(asked.values(status="rejected"))


def holds(tx: Tx, app_id: int, values: Mapping[str, Any]) -> bool:
    """Whether a scope row has an item, decided or not, with these values by column."""
    same = [_i[name].is_not_distinct_from(value) for name, value in values.items()]
    return tx.execute(select(_i.id).where(_i.app_id == app_id, *same)).first() is not None


def texts(tx: Tx, app_id: int) -> dict[int, str]:
    """The texts of a scope row's items by id; for the shared row those of every app of its user.

    The name of the program that asked is left out of the reason: the person gave it.
    """
    columns = f"t.id, t.value, t.quote, t.sentence, {_REASON}, t.tags"
    rows = records.read(tx, "inbox", columns, app_id)
    return {item_id: "\n".join(filter(None, words)) for item_id, *words in rows}


def facts(tx: Tx, app_id: int) -> dict[int, tuple[str, str]]:
    """Key and value of a scope row's proposals by id; for the shared row those of every app of its
    user."""
    return records.facts(tx, "inbox", app_id)


def values_of_session(tx: Tx, session_id: int) -> dict[int, str]:
    """The values of a conversation's pending proposals, by id."""
    said = select(messages.c.id).where(messages.c.session_id == session_id)
    waiting = select(_i.id, _i.value).where(_i.status == "pending", _i.message_id.in_(said))
    return {row.id: row.value for row in tx.execute(waiting) if row.value}


def remove(tx: Tx, ids: Sequence[int]) -> None:
    """Delete items."""
    if ids:
        tx.execute(delete(inbox).where(_i.id.in_(ids)))


def remove_of_messages(tx: Tx, message_ids: Sequence[int]) -> None:
    """Delete the items that quote these messages."""
    tx.execute(delete(inbox).where(_i.message_id.in_(message_ids)))
