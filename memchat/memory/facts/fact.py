"""A fact on its way into the store, and as a question to the person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from memchat.memory.extraction.candidate import Relation
from memchat.store.inbox import NewInboxItem
from memchat.types import CreatedBy, Memory, MemoryType

REJECTED = "you said no to it before"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that passed the gate, or that a person entered by hand, on its way into the store."""

    memory_type: MemoryType
    key: str
    value: str
    said_at: datetime
    search_text: str
    created_by: CreatedBy
    many: bool = False
    expires_at: date | None = None
    relation: Relation = "new"
    target_id: int | None = None
    """The known fact that ``relation`` speaks of."""
    proofs: tuple[tuple[int, int, str], ...] = ()
    """(message id, start, quote)."""
    near: tuple[tuple[int, float], ...] = ()
    """(memory id, cosine) of its nearest neighbours."""
    starts_at: date | None = None
    cues: tuple[str, ...] = ()
    sensitive: bool = False
    detail: dict[str, str] | None = None
    """What a second look said of it, for its events."""
    sentence: str | None = None
    """The sentence that the first quote stands in."""

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(quote for _, _, quote in self.proofs)


def search_text(
    key: str,
    value: str,
    said_at: datetime,
    zone: ZoneInfo,
    quote: str = "",
    cues: Sequence[str] = (),
) -> str:
    """What is embedded and indexed: when it was said, ``key: value``, how it was said, and cues."""
    day = said_at.astimezone(zone)
    said = f"[{day.day} {day:%B %Y}] {_slot(key)}{value}\n{quote or value}"
    return f"{said}\n{' '.join(cues)}" if cues else said


def _slot(key: str) -> str:
    return f"{key.replace('_', ' ')}: "


def proposal(fact: Fact, reason: str, target: Memory | None = None) -> NewInboxItem:
    """What the inbox keeps of a fact that waits for a yes; ``target`` is what that would change."""
    message_id, start, quote = fact.proofs[0] if fact.proofs else (None, None, None)
    ends = target if fact.relation == "ends" else None
    return NewInboxItem(
        reason,
        message_id=message_id,
        memory_type=fact.memory_type if ends is None else ends.memory_type,
        key=fact.key if ends is None else ends.key,
        value=fact.value if ends is None else ends.value,
        quote=quote,
        start=start,
        expires_at=fact.expires_at,
        many=fact.many,
        relation=fact.relation if target is not None else "new",
        target_id=target.id if target is not None else None,
        starts_at=fact.starts_at,
        sentence=fact.sentence,
        cues=fact.cues,
        sensitive=fact.sensitive,
    )


def last_day(over_from: date | None, until: date | None, known: Memory, today: date) -> date | None:
    """The last day of a memory that is said to end; None where it is over now. An end is never put
    off by that."""
    said = [until] if until is not None else []
    if over_from is not None:
        said.append(over_from - timedelta(days=1))
    if not said or min(said) < today:
        return None
    return min([*said, known.expires_at] if known.expires_at is not None else said)


def in_the_slot_of(fact: Fact, target: Memory) -> Fact:
    """A change keeps to the slot that it changes."""
    text = fact.search_text.replace(_slot(fact.key), _slot(target.key), 1)
    return replace(fact, key=target.key, many=target.many, search_text=text)


def without_cues(fact: Fact, common: Collection[str]) -> Fact:
    """The fact as it is searched for without some of its cues; the row keeps them all."""
    words = fact.search_text.removesuffix(f"\n{' '.join(fact.cues)}")
    left = [cue for cue in fact.cues if cue not in common]
    return replace(fact, search_text="\n".join([words, *([" ".join(left)] if left else [])]))
