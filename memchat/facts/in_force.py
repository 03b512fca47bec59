"""Which memories hold today, by their first and last days.

Of the values of a key that holds one, the one said last holds, from its first day to its last. Days
pass without anything being written: ``as_of`` computes the state for readers, and
``apply_due_dates`` writes it down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from memchat.db import Tx
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.memories import ValuesInForce
from memchat.facts.proposals import REJECTED, change_question
from memchat.types import EVERY_APP, LEARNED, Memory, Proposal

EXPIRED = "its day is over"
STARTED = "its day has come"


def as_of(tx: Tx, app_ids: Sequence[int]) -> ValuesInForce:
    """Which memories of these scope rows are replaced or back in use today, though it is not
    written down yet."""
    today = tx.today
    due = memories.with_due_date(tx, app_ids, today) if app_ids else []
    if not due:
        return ValuesInForce(today)
    displaced: dict[int, int] = {}
    back: dict[int, int] = {}
    over = frozenset(memory.id for memory in due if memories.is_over(memory, today))
    for app, key in dict.fromkeys((m.app, m.key) for m in due if is_single_valued(m.key)):
        rows = [m for m in memories.of_key(tx, app_ids, key) if m.app == app]
        _decide_values(rows, today, displaced, back)
    for memory in due:
        if not is_single_valued(memory.key) and memories.holds_on(memory, today):
            target = replaced_by_plan(tx, app_ids, memory, displaced)
            if target is not None:
                loser, winner = sorted((memory, target), key=said_order)
                if _needs_confirmation(loser, winner):
                    loser, winner = winner, loser
                displaced[loser.id] = winner.id
    return ValuesInForce(today, displaced, back, over)


def apply_due_dates(tx: Tx) -> None:
    """Write down what the first and last days that have passed change in the scope."""
    over, begun = Cause("system", EXPIRED), Cause("system", STARTED)
    found = as_of(tx, tx.ids)
    for memory in memories.by_ids(tx, tx.ids, [*found.displaced, *found.over]).values():
        if memory.id not in found.displaced:
            changes.deactivate(tx, memory, "expired", over)
            continue
        winner_id = found.displaced[memory.id]
        winner = memories.by_ids(tx, tx.ids, [winner_id])[winner_id]
        changes.deactivate(tx, memory, "superseded", begun, replaced_by=winner.id)
        since = winner.starts_at or winner.said_at.astimezone(tx.zone).date()
        if memory.starts_at is not None and memory.starts_at >= since:
            _ask_user(tx, memory, winner)
    for memory in memories.by_ids(tx, tx.ids, [*found.back.values()]).values():
        changes.reactivate(tx, memory, over)
        drop_replacement_question(tx, memory)


def is_single_valued(key: str) -> bool:
    """Whether a key is known to hold one value at a time."""
    return keys.cardinality(key) == "one"


def said_order(memory: Memory) -> tuple[datetime, date, int]:
    """Sort key of values by when they were said; said at one time, by their first day."""
    return memory.said_at, memory.starts_at or date.min, memory.id


def values_of_key(tx: Tx, app_id: int, key: str) -> list[Memory]:
    """The values that hold today under a key that holds one at a time; none of another key."""
    if not is_single_valued(key):
        return []
    found = memories.with_key(tx, (app_id,), key)
    return [memory for memory in found if memories.holds_on(memory, tx.today)]


def planned_target(tx: Tx, memory_id: int) -> int | None:
    """The memory that one with a later first day was said to replace, or None."""
    past = [e for e in changes.events_of_memory(tx, memory_id) if e.kind in ("add", "restore")]
    return past[-1].related_id if past else None


def replaced_by_plan(
    tx: Tx, app_ids: Sequence[int], plan: Memory, displaced: Mapping[int, int]
) -> Memory | None:
    """The memory that one with a later first day was said to replace, as it is now, unless that is
    done. ``displaced`` are memories that are replaced today, though it is not written down yet."""
    linked = planned_target(tx, plan.id)
    if linked is None:
        return None
    done = any(
        e.kind == "supersede" and e.related_id == plan.id
        for e in changes.events_of_memory(tx, linked)
    )
    if done:
        return None
    found = changes.current(tx, app_ids, [linked]).get(linked)
    while found is not None and found.id in displaced:
        found = memories.get(tx, app_ids, displaced[found.id])
    if found is None or found.id == plan.id or not memories.holds_on(found, tx.today):
        return None
    return found


def _decide_values(
    rows: Sequence[Memory], today: date, displaced: dict[int, int], back: dict[int, int]
) -> None:
    """Decide which of the values of one key holds."""
    active = [m for m in rows if m.active]
    holding = sorted((m for m in active if memories.holds_on(m, today)), key=said_order)
    if holding:
        kept = [m for m in holding[:-1] if _needs_confirmation(m, holding[-1])]
        winner = (kept or holding)[-1]
        for memory in (m for m in holding if m is not winner):
            if winner.starts_at is not None or memory.starts_at is not None:
                displaced[memory.id] = winner.id
        return
    over = [m for m in active if memories.is_over(m, today)]
    others = [m for m in rows if memories.holds_on(m, today) and m.inactive_reason != "merged"]
    before = max(others, key=said_order, default=None)
    if over and before and before.inactive_reason == "superseded" and before.replaced_by:
        # After "in Porto until the end of the month" the city before it holds again.
        back[max(over, key=said_order).id] = before.id


def _needs_confirmation(memory: Memory, newer: Memory) -> bool:
    """Whether a value stays until the user is asked, although a newer one has started: it is pinned
    or kept for every app, and the newer one was learned from a conversation."""
    mine, newers = (m.pinned or m.app == EVERY_APP for m in (memory, newer))
    learned = newer.starts_at is not None and newer.created_by in LEARNED
    return mine and learned and not newers


def _ask_user(tx: Tx, memory: Memory, winner: Memory) -> None:
    """Ask the user whether a memory that starts now replaces one that was said later."""
    app_id = memories.app_id_of(tx, memory.id)
    proofs = [p for p in changes.evidence_of_memory(tx, memory.id) if p.role == "user"]
    proof = proofs[-1] if proofs else None
    quote = proof.quote if proof is not None else f"{memory.key}: {memory.value}"
    names = ("memory_type", "key", "value", "expires_at", "many", "cues", "sensitive")
    fields = {name: getattr(memory, name) for name in names}
    reason = change_question("updates", quote, winner)
    held = Proposal(reason, relation="updates", target_id=winner.id, **fields)
    if proof is not None:
        end, words = proof.start + len(proof.quote), proof.quote
        held = replace(held, message_id=proof.message_id, start=proof.start, end=end, quote=words)
    if proposals.add(tx, app_id, held) == "rejected" and proof is not None:
        refused = replace(held, reason=REJECTED, quote=None)
        proposals.add_refused(tx, app_id, proof.session_id, [refused])


def drop_replacement_question(tx: Tx, memory: Memory) -> None:
    """Remove the question whether a value replaces another, once the value is in use."""
    app_id = memories.app_id_of(tx, memory.id)
    proposals.remove_question(tx, app_id, memory.key, memory.value)
