"""What holds today. A value may begin and end on a day, and nobody need have written that down.

Of the values of a key that holds one, that which was said last holds, once its first day has come
and until its last day is over. ``as_of`` finds that out for whoever reads; ``settle`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.facts.fact import REJECTED
from memchat.memory.gate.checks import keys
from memchat.store import (
    events,
    evidence,
    inbox,
    memories,
    memory_changes,
    messages,
    refusals,
    replacements,
    values_in_force,
)
from memchat.store.events import Cause
from memchat.store.inbox import NewInboxItem
from memchat.store.refusals import NewRefusal
from memchat.store.values_in_force import ValuesInForce
from memchat.types import EVERY_APP, Memory

OVER = "its day is over"
BEGUN = "its day has come"


def as_of(tx: Connection, app_ids: Sequence[int], today: date) -> ValuesInForce:
    """How the memories of these scope rows stand today."""
    due = values_in_force.with_due_date(tx, app_ids, today) if app_ids else []
    if not due:
        return ValuesInForce(today)
    displaced: dict[int, int] = {}
    back: dict[int, int] = {}
    for app, key in dict.fromkeys((m.app, m.key) for m in due if holds_one(m.key)):
        rows = [m for m in values_in_force.of_key(tx, app_ids, key) if m.app == app]
        _stand(rows, today, displaced, back)
    for memory in due:
        if not holds_one(memory.key) and values_in_force.holds_on(memory, today):
            target = _target(tx, app_ids, memory, displaced, today)
            if target is not None:
                loser, winner = sorted((memory, target), key=said)
                if _keeps_its_place(loser, winner):
                    loser, winner = winner, loser
                displaced[loser.id] = winner.id
    return ValuesInForce(today, displaced, back)


def to_settle(tx: Connection, app_ids: Sequence[int], today: date) -> bool:
    """Whether the days that have come since did anything to these scope rows."""
    due = values_in_force.with_due_date(tx, app_ids, today)
    return any(_over(m, today) for m in due) or bool(due and as_of(tx, app_ids, today).displaced)


def settle(tx: Connection, app_ids: Sequence[int], zone: ZoneInfo, now: datetime) -> None:
    """Write down what the days that have come since did to these scope rows."""
    today = now.astimezone(zone).date()
    found = as_of(tx, app_ids, today)
    ids = [
        *found.displaced,
        *(m.id for m in values_in_force.with_due_date(tx, app_ids, today) if _over(m, today)),
    ]
    for memory in memories.by_ids(tx, app_ids, ids).values():
        app_id = memories.app_id_of(tx, memory.id)
        if memory.id not in found.displaced:
            memory_changes.deactivate(tx, memory, app_id, "expired", Cause(now, "system", OVER))
            continue
        winner = memories.by_ids(tx, app_ids, [found.displaced[memory.id]])[
            found.displaced[memory.id]
        ]
        begun = Cause(now, "system", BEGUN)
        memory_changes.deactivate(tx, memory, app_id, "superseded", begun, replaced_by=winner.id)
        if memory.starts_at is not None and memory.starts_at >= first_day(winner, zone):
            _ask(tx, app_id, memory, winner, now)
    for memory in memories.by_ids(tx, app_ids, [*found.back.values()]).values():
        app_id = memories.app_id_of(tx, memory.id)
        memory_changes.reactivate(tx, memory, app_id, Cause(now, "system", OVER))
        drop_question(tx, app_id, memory)


def holds_one(key: str) -> bool:
    """Whether a key is known to hold one value at a time."""
    return keys.cardinality(key) == "one"


def said(memory: Memory) -> tuple[datetime, date, int]:
    """By what the later said of two values is told; of one moment, that which begins later."""
    return memory.said_at, memory.starts_at or date.min, memory.id


def first_day(memory: Memory, zone: ZoneInfo) -> date:
    """The day from which a memory holds."""
    return memory.starts_at or memory.said_at.astimezone(zone).date()


def link_of(tx: Connection, memory_id: int) -> int | None:
    """The memory whose place one that is still to come was said to take, or None."""
    past = [e for e in events.of_memory(tx, memory_id) if e.kind in ("add", "restore")]
    return past[-1].related_id if past else None


def _stand(
    rows: Sequence[Memory], today: date, displaced: dict[int, int], back: dict[int, int]
) -> None:
    """Decide on the rows of one slot."""
    active = [m for m in rows if m.active]
    holding = sorted((m for m in active if values_in_force.holds_on(m, today)), key=said)
    if holding:
        kept = [m for m in holding[:-1] if _keeps_its_place(m, holding[-1])]
        winner = (kept or holding)[-1]
        for memory in (m for m in holding if m is not winner):
            if winner.starts_at is not None or memory.starts_at is not None:
                displaced[memory.id] = winner.id
        return
    over = [m for m in active if _over(m, today)]
    before = [
        m
        for m in rows
        if values_in_force.holds_on(m, today) and _gave_way_to_the_past(m, rows, today)
    ]
    if over and before:
        # "In Porto until the end of the month" must not cost the city that was there before.
        back[max(over, key=said).id] = max(before, key=said).id


def _keeps_its_place(memory: Memory, newer: Memory) -> bool:
    """Whether a value stays until its person is asked, though the day of a newer one has come: it
    is pinned or kept for every app, and the newer one was learned from a chat."""
    mine, newers = (m.pinned or m.app == EVERY_APP for m in (memory, newer))
    learned = newer.starts_at is not None and newer.created_by == "auto"
    return mine and learned and not newers


def _gave_way_to_the_past(memory: Memory, rows: Sequence[Memory], today: date) -> bool:
    """Whether a memory was replaced, and all that stood in its place since is over by its date."""
    by_id = {m.id: m for m in rows}
    seen: set[int] = set()
    found: Memory | None = memory
    while found is not None and found.inactive_reason == "superseded" and found.id not in seen:
        seen.add(found.id)
        found = by_id.get(found.replaced_by or 0)
    if found is None or found is memory:
        return False
    return found.inactive_reason == "expired" or (found.active and _over(found, today))


def _target(
    tx: Connection,
    app_ids: Sequence[int],
    memory: Memory,
    displaced: dict[int, int],
    today: date,
) -> Memory | None:
    """What a memory whose day has come was said to replace, as long as that is still to be done."""
    linked = link_of(tx, memory.id)
    if linked is None:
        return None
    done = any(
        e.kind == "supersede" and e.related_id == memory.id for e in events.of_memory(tx, linked)
    )
    if done:
        return None
    found = replacements.current(tx, app_ids, [linked]).get(linked)
    while found is not None and found.id in displaced:
        found = memories.get(tx, app_ids, displaced[found.id])
    if found is None or found.id == memory.id or not values_in_force.holds_on(found, today):
        return None
    return found


def _ask(tx: Connection, app_id: int, memory: Memory, winner: Memory, now: datetime) -> None:
    """What was to begin found something newer in its place: a person decides."""
    proofs = [p for p in evidence.of_memory(tx, memory.id) if p.role == "user"]
    proof = proofs[-1] if proofs else None
    quote = proof.quote if proof is not None else f"{memory.key}: {memory.value}"
    held = NewInboxItem(
        question("updates", quote, winner),
        message_id=proof.message_id if proof is not None else None,
        memory_type=memory.memory_type,
        key=memory.key,
        value=memory.value,
        quote=proof.quote if proof is not None else None,
        start=proof.start if proof is not None else None,
        expires_at=memory.expires_at,
        many=memory.many,
        relation="updates",
        target_id=winner.id,
        cues=memory.cues,
        sensitive=memory.sensitive,
    )
    if inbox.add(tx, app_id, held, now) == "rejected" and proof is not None:
        said_in = messages.by_ids(tx, [proof.message_id])[proof.message_id].session_id
        refusals.add(tx, app_id, said_in, [_not_asked(held)], now)


def _not_asked(held: NewInboxItem) -> NewRefusal:
    """What is listed of a question that got a no before."""
    return NewRefusal(
        REJECTED,
        message_id=held.message_id,
        start=held.start,
        end=(held.start or 0) + len(held.quote or ""),
        memory_type=held.memory_type,
        key=held.key,
        value=held.value,
        relation=held.relation,
        target_id=held.target_id,
        expires_at=held.expires_at,
        many=held.many,
        cues=held.cues,
        sensitive=held.sensitive,
    )


def drop_question(tx: Connection, app_id: int, memory: Memory) -> None:
    """Whether a value is to take another's place is not to be asked once it is in use."""
    asked = (item for item in inbox.listed(tx, app_id, "pending") if item.relation == "updates")
    same = [i.id for i in asked if (i.key, i.value) == (memory.key, memory.value)]
    inbox.remove(tx, same)


def question(relation: str, quote: str, target: Memory) -> str:
    """What a person is asked about a change that may not be made unasked, in plain words."""
    asked = f"You said “{' '.join(quote.split())}”. "
    if relation == "ends":
        return f"{asked}Is {target.key}: {target.value} over?"
    return f"{asked}Replace {target.key}: {target.value}?"


def _over(memory: Memory, today: date) -> bool:
    return memory.expires_at is not None and memory.expires_at < today
