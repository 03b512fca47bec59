"""A fact on its way into the store, and what is kept of one that waits for a yes or is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from memchat.db import Tx, messages
from memchat.facts import history, memories
from memchat.facts.inbox import NewInboxItem
from memchat.facts.memories import NewMemory
from memchat.facts.refusals import NewRefusal
from memchat.learn.candidate import Relation
from memchat.types import InboxItem, Memory, Refusal

ADDED_BY_HAND = "added by hand"
ACCEPTED = "accepted from the inbox"
KEPT_ANYWAY = "kept anyway"
REJECTED = "you said no to it before"
FORGOTTEN = "it was forgotten on request"
BLANKED = "its words were forgotten meanwhile"
WITHOUT_WORDS = (FORGOTTEN, BLANKED)
"""Reasons of refusals that keep no word of what was proposed."""


@dataclass(frozen=True, slots=True)
class Fact(NewMemory):
    """A new memory that passed the gate, or that the user entered, with what it does to others."""

    relation: Relation = "new"
    target_id: int | None = None
    """The stored memory that ``relation`` speaks of."""
    proofs: tuple[tuple[int, int, str], ...] = ()
    """(message id, start, quote)."""
    near: tuple[tuple[int, float], ...] = ()
    """(memory id, cosine) of its nearest neighbours."""
    detail: dict[str, str] | None = None
    """What a second look said of it, for its events."""
    sentence: str | None = None
    """The sentence that the first quote stands in."""
    tags: tuple[str, ...] = ()
    """Tags that a person or a program gave with it."""
    asks: str | None = None
    """Why the person is asked, once it is stored, whether it is over."""

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(quote for _, _, quote in self.proofs)


_PROPOSED = {one.name for one in fields(Fact)} & {one.name for one in fields(NewRefusal)}
"""The fields that say what is proposed, whatever is kept of it."""


def search_text(
    key: str,
    value: str,
    said_at: datetime,
    zone: ZoneInfo,
    quote: str = "",
    cues: Sequence[str] = (),
) -> str:
    """The text that is embedded and indexed: the day, ``key: value``, the quote, and the cues."""
    day = said_at.astimezone(zone)
    said = f"[{day.day} {day:%B %Y}] {_slot(key)}{value}\n{quote or value}"
    return f"{said}\n{' '.join(cues)}" if cues else said


def _slot(key: str) -> str:
    return f"{key.replace('_', ' ')}: "


def proposed(source: Fact | NewInboxItem | InboxItem | Refusal) -> dict[str, Any]:
    """The fields that say what is proposed, by name, as keyword arguments for another of these
    types."""
    return {name: getattr(source, name) for name in _PROPOSED}


def inbox_entry(fact: Fact, reason: str, target: Memory | None) -> NewInboxItem:
    """What the inbox keeps of a fact that waits for a yes; ``target`` is what that would change."""
    message_id, start, quote = fact.proofs[0] if fact.proofs else (None, None, None)
    entry = proposed(fact) | {"relation": "new", "target_id": None}
    if target is not None:
        entry |= {"relation": fact.relation, "target_id": target.id}
        if fact.relation == "ends":
            entry |= {name: getattr(target, name) for name in ("memory_type", "key", "value")}
    entry |= {"message_id": message_id, "start": start, "quote": quote, "tags": fact.tags}
    return NewInboxItem(reason, sentence=fact.sentence, **entry)


def refusal_entry(fact: Fact, reason: str) -> NewRefusal:
    """What is kept of a fact that passed the gate, and that the store did not take."""
    if reason in WITHOUT_WORDS:
        return NewRefusal(reason)
    message_id, start, quote = fact.proofs[0] if fact.proofs else (None, None, "")
    end = None if start is None else start + len(quote)
    return NewRefusal(reason, message_id=message_id, start=start, end=end, **proposed(fact))


def last_day(over_from: date | None, until: date | None, known: Memory, today: date) -> date | None:
    """The last day of a memory that is said to end; None where it is over now. It is never later
    than the last day that the memory already has."""
    said = [until] if until is not None else []
    if over_from is not None:
        said.append(over_from - timedelta(days=1))
    if not said or min(said) < today:
        return None
    return min([*said, known.expires_at] if known.expires_at is not None else said)


def in_the_slot_of(fact: Fact, target: Memory) -> Fact:
    """The fact under the key of the memory that it updates."""
    text = fact.search_text.replace(_slot(fact.key), _slot(target.key), 1)
    return replace(fact, key=target.key, many=target.many, search_text=text)


def without_cues(fact: Fact, common: Collection[str]) -> Fact:
    """The fact with a search text that leaves out the ``common`` cues. The row keeps all of
    them."""
    words = fact.search_text.removesuffix(f"\n{' '.join(fact.cues)}")
    left = [cue for cue in fact.cues if cue not in common]
    return replace(fact, search_text="\n".join([words, *([" ".join(left)] if left else [])]))


def as_item(tx: Tx, refused: Refusal) -> InboxItem:
    """A refusal that has its words as an inbox item, which a yes can keep."""
    wanted = [refused.message_id] if refused.message_id is not None else []
    turn = next(iter(messages.by_ids(tx, wanted).values()), None)
    quote = turn.content[refused.start : refused.end] if turn is not None else None
    return InboxItem(
        refused.id,
        "refused",
        refused.reason,
        refused.created_at,
        quote=quote if refused.start is not None else None,
        message_id=refused.message_id,
        start=refused.start,
        masked=False,
        memory_id=None,
        related_id=None,
        **proposed(refused),
    )


def target_of(tx: Tx, ids: tuple[int, ...], what: InboxItem) -> Memory | None:
    """The memory that a proposal replaces, ends or repeats; None where it is gone or was
    reworded."""
    if what.relation not in ("updates", "ends", "same"):
        return None
    if what.target_id is None:
        # Its target was taught by the same conversation and had no id yet.
        known = memories.with_key(tx, ids, what.key or "")
        return known[0] if len(known) == 1 and not known[0].many else None
    target = memories.get(tx, ids, what.target_id)
    if target is None or not target.active:
        return None
    return None if _changed_since(tx, target.id, what.created_at) else target


def _changed_since(tx: Tx, memory_id: int, at: datetime) -> bool:
    """Whether a memory was given other words; another last day does not count."""
    return any(
        event.at > at
        and event.kind == "edit"
        and (event.new or {}).get("value") != (event.old or {}).get("value")
        for event in history.events_of_memory(tx, memory_id)
    )
