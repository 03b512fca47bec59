"""What is forgotten while a model answers: its purge ran before the answer was there to be read.

A deletion that is only held back changes nothing here: its purge finds the answer kept, and an
undoing finds it whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.forgetting import purge, redaction
from memchat.memory.recall import render
from memchat.store import evidence, hidden_memories, messages, sessions
from memchat.types import Hit, Message

Fact = tuple[int, str, str]
"""Id, key and value."""


def taught(tx: Connection, turns: Sequence[Message]) -> set[Fact]:
    """The facts whose words stand in turns that a model is about to read."""
    drawn = evidence.learned_from(tx, [turn.id for turn in turns])
    return {(fact.memory_id, fact.key, fact.value) for fact in drawn}


def leave_out(
    tx: Connection, hits: Sequence[Hit], read: Collection[Fact], reply: str, zone: ZoneInfo
) -> tuple[list[Hit], str]:
    """The lines given for a reply, and the reply, without what was forgotten since.

    ``read`` are the facts that its model read of beside those lines.
    """
    facts = [_facts_in(hit) for hit in hits]
    told = {*read}.union(*facts)
    there = hidden_memories.existing(tx, {memory_id for memory_id, _, _ in told})
    gone = {fact for fact in told if fact[0] not in there}
    words = {w for _, key, value in gone for w in (value, f"{key}: {value}")}
    turns = messages.by_ids(tx, [hit.id for hit in hits if hit.kind == "message"])
    titles = sessions.titles(tx, [turn.session_id for turn in turns.values()])
    kept = [
        hit
        for hit, mine in zip(hits, facts, strict=True)
        if gone.isdisjoint(mine)
        and (hit.kind == "memory" or _reads_as_before(hit, turns.get(hit.id), titles, zone))
    ]
    return kept, redaction.blanked(reply, redaction.places(words, reply))


def strip_cues(tx: Connection, app_id: int, read: Iterable[Fact]) -> set[int]:
    """Take out the cues that tell any of these facts that was forgotten since a model read them.

    It is for the transaction that wrote the model's answer; gives the memories whose searched text
    is to be made anew.
    """
    told = {*read}
    there = hidden_memories.existing(tx, {memory_id for memory_id, _, _ in told})
    gone = {(key, value) for memory_id, key, value in told if memory_id not in there}
    if not gone:
        return set()
    purge.to_scrub(tx)  # the cues were written, if only for a moment
    return purge.strip_cues(tx, app_id, gone)


def _facts_in(hit: Hit) -> set[Fact]:
    """The facts that a line was made of."""
    own = hit.memory
    return {*hit.tells} if own is None else {*hit.tells, (own.id, own.key, own.value)}


def _reads_as_before(
    hit: Hit, turn: Message | None, titles: Mapping[int, str | None], zone: ZoneInfo
) -> bool:
    """Whether a line about a turn holds nothing that was since deleted or blanked."""
    if turn is None or (hit.session_title and hit.session_title != titles[turn.session_id]):
        return False
    now = render.moment(turn, zone, title=hit.session_title, changed=hit.since_changed)
    return now == hit.text
