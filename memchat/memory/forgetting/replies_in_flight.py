"""Replies that a model was writing while a fact was forgotten: the purge could not see them yet.

A deletion that is not purged yet changes nothing here: its purge will find the stored reply.
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


def facts_in_turns(tx: Connection, turns: Sequence[Message]) -> set[Fact]:
    """The facts whose quotes stand in turns that a model is about to read."""
    ids = {i for turn in turns for i in (turn.id, turn.copied_from) if i is not None}
    drawn = evidence.learned_from(tx, sorted(ids))
    return {(fact.memory_id, fact.key, fact.value) for fact in drawn}


def drop_forgotten(
    tx: Connection, hits: Sequence[Hit], read: Collection[Fact], reply: str, zone: ZoneInfo
) -> tuple[list[Hit], str]:
    """The lines given for a reply, and the reply, without what was forgotten since.

    ``read`` are the facts that the model read besides those lines.
    """
    facts = [_facts_in(hit) for hit in hits]
    facts_read = {*read}.union(*facts)
    there = hidden_memories.existing(tx, {memory_id for memory_id, _, _ in facts_read})
    gone = {fact for fact in facts_read if fact[0] not in there}
    words = {w for _, key, value in gone for w in (value, f"{key}: {value}")}
    turns = messages.by_ids(tx, [hit.id for hit in hits if hit.kind == "message"])
    titles = sessions.titles(tx, [turn.session_id for turn in turns.values()])
    kept = [
        hit
        for hit, mine in zip(hits, facts, strict=True)
        if gone.isdisjoint(mine)
        and (hit.kind == "memory" or _reads_as_before(hit, turns.get(hit.id), titles, zone))
    ]
    return kept, redaction.blank(reply, redaction.spans_of(words, reply))


def strip_cues(tx: Connection, app_id: int, read: Iterable[Fact]) -> set[int]:
    """Remove the cues that reveal any of these facts that was forgotten since a model read them.

    To be called in the transaction that wrote the model's answer. Gives the memories whose search
    text must be written again.
    """
    facts_read = {*read}
    there = hidden_memories.existing(tx, {memory_id for memory_id, _, _ in facts_read})
    gone = {(key, value) for memory_id, key, value in facts_read if memory_id not in there}
    if not gone:
        return set()
    purge.request_scrub(tx)  # the cues were in the file for a moment
    return purge.strip_cues(tx, app_id, gone)


def _facts_in(hit: Hit) -> set[Fact]:
    """The facts that a line was made from."""
    own = hit.memory
    return {*hit.tells} if own is None else {*hit.tells, (own.id, own.key, own.value)}


def _reads_as_before(
    hit: Hit, turn: Message | None, titles: Mapping[int, str | None], zone: ZoneInfo
) -> bool:
    """Whether a line about a turn is still the same, with nothing deleted or blanked since."""
    if turn is None or (hit.session_title and hit.session_title != titles[turn.session_id]):
        return False
    now = render.past_turn(turn, zone, title=hit.session_title, changed=hit.since_changed)
    return now == hit.text
