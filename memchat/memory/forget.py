"""Forgetting for good: the row, its vector, keyword rows, quotes, and its words wherever they echo.

What stays is a tombstone of keyed hashes, which recognises the fact when the same old messages are
read again, and an event without words. Spans are blanked with a filler of the same length, so that
the quotes of other facts keep their place. The bytes leave the file in a second step, ``scrub``,
which waits for readers and is repeated until it is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory import text
from memchat.memory.consolidate import forgotten_form, search_text
from memchat.memory.meaning import shortened
from memchat.store import (
    apps,
    embeddings,
    events,
    evidence,
    inbox,
    jobs,
    keywords,
    memories,
    messages,
    meta,
    sessions,
    tombstones,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.types import Memory, Message

FILLER = "·"
SCRUB_PENDING = "scrub_pending"
_SHORTEST_ECHO = 3


def forget(tx: Connection, memory: Memory, zone: ZoneInfo, now: datetime) -> None:
    """Purge a memory, and those merged into it, from every table, in the caller's transaction."""
    for merged in memories.replaced_by(tx, memory.id):
        if merged.inactive_reason == "merged":
            forget(tx, merged, zone, now)
    app_id = memories.app_id_of(tx, memory.id)
    cause = Cause(now, "user")
    turns = _source_turns(tx, memory.id)
    # A value that was replaced is also shown behind the one that took its place.
    shown = [memory.id] if memory.replaced_by is None else [memory.id, memory.replaced_by]
    echoes = messages.replies_given(tx, "memory", shown)
    _bury(tx, memory, app_id, now)
    hashed = memories.hash_of(tx, memory.id)
    messages.drop_receipts(tx, "memory", shown)
    _drop_row(tx, memory.id)
    _blank_turns(tx, memory, turns, zone, cause)
    _blank_echoes(tx, memory, echoes)
    embeddings.drop_unused(tx, [hashed])
    events.blank(tx, [memory.id])
    events.record(tx, memory.id, app_id, "forget", cause)
    meta.put(tx, SCRUB_PENDING, "1")


def forget_session(tx: Connection, session_id: int, zone: ZoneInfo, now: datetime) -> None:
    """Remove a conversation. What was learnt from it stays, but without its words as proof."""
    turns = messages.of_session(tx, session_id)
    ids = [turn.id for turn in turns]
    touched = evidence.proved_by(tx, ids)
    keywords.remove(tx, "messages", ids)
    jobs.cancel(tx, "extract", [session_id])
    sessions.remove(tx, session_id)
    events.detach_session(tx, session_id)
    _drop_questions(tx, turns)
    for memory_id in touched:
        _reindex(tx, memory_id, zone, Cause(now, "user"))
    meta.put(tx, SCRUB_PENDING, "1")


def forget_app(tx: Connection, app_id: int) -> int:
    """Remove an app with all it holds; how many memories that were."""
    rows = memories.of_app(tx, app_id)
    turns = messages.of_app(tx, app_id)
    keywords.remove(tx, "memories", list(rows))
    keywords.remove(tx, "messages", [turn.id for turn in turns])
    apps.remove(tx, app_id)
    events.drop_app(tx, app_id)
    embeddings.drop_unused(tx, list(rows.values()))
    _drop_questions(tx, turns)
    meta.put(tx, SCRUB_PENDING, "1")
    return len(rows)


def scrub(database: Database) -> bool:
    """Make deleted words leave the file's bytes. False while a reader still holds them back."""
    with database.read() as tx:
        if meta.get(tx, SCRUB_PENDING) is None:
            return True
    with database.write() as tx:
        keywords.scrub(tx)
        meta.drop(tx, SCRUB_PENDING)
    if database.truncate_wal():
        return True
    with database.write() as tx:
        meta.put(tx, SCRUB_PENDING, "1")
    return False


def _bury(tx: Connection, memory: Memory, app_id: int, now: datetime) -> None:
    proofs = evidence.of_memory(tx, memory.id)
    tombstones.bury(tx, app_id, "value", [forgotten_form(memory.key, memory.value)], now)
    sources = {f"{memory.key}|{proof.message_id}" for proof in proofs}
    tombstones.bury(tx, app_id, "source", sorted(sources), now)


def _drop_row(tx: Connection, memory_id: int) -> None:
    inbox.drop_memory(tx, memory_id)
    jobs.cancel(tx, "embed", [memory_id])
    memories.remove(tx, [memory_id])


def _source_turns(tx: Connection, memory_id: int) -> dict[int, list[str]]:
    """Session id → the quotes in it that proved the memory."""
    found: dict[int, list[str]] = {}
    for proof in evidence.of_memory(tx, memory_id):
        found.setdefault(proof.session_id, []).append(proof.quote)
    return found


def _blank_turns(
    tx: Connection, memory: Memory, quotes: dict[int, list[str]], zone: ZoneInfo, cause: Cause
) -> None:
    touched: set[int] = set()
    for session_id, said in quotes.items():
        for turn in messages.of_session(tx, session_id):
            # A reply echoes the value, seldom the quote; both go, wherever they stand.
            wanted = [*said, memory.value] if len(memory.value) >= _SHORTEST_ECHO else said
            blanked = _blanked(turn.content, wanted)
            if blanked != turn.content:
                _rewrite(tx, turn, blanked)
                touched |= set(evidence.proved_by(tx, [turn.id]))
        _blank_description(tx, session_id, memory.value)
    for memory_id in touched:
        _reindex(tx, memory_id, zone, cause)


def _blank_echoes(tx: Connection, memory: Memory, replies: Iterable[Message]) -> None:
    """Blank the value in replies of other conversations that were given it."""
    if len(memory.value) < _SHORTEST_ECHO:
        return
    fresh = messages.by_ids(tx, [reply.id for reply in replies])
    for reply in fresh.values():
        blanked = _blanked(reply.content, [memory.value])
        if blanked != reply.content:
            _rewrite(tx, reply, blanked)
            _blank_description(tx, reply.session_id, memory.value)


def _blanked(content: str, wanted: Iterable[str]) -> str:
    for words in wanted:
        for span in text.find_spans(words, content):
            filler = FILLER * (span.end - span.start)
            content = content[: span.start] + filler + content[span.end :]
    return content


def _rewrite(tx: Connection, turn: Message, content: str) -> None:
    messages.rewrite(tx, turn.id, sessions.app_id_of(tx, turn.session_id), content)
    messages.drop_receipts(tx, "message", [turn.id])
    inbox.drop_message(tx, turn.id)
    evidence.requote(tx, turn.id, content)
    _drop_questions(tx, [turn])


def _blank_description(tx: Connection, session_id: int, value: str) -> None:
    forgotten = text.content_words(value)
    title, summary = (
        None if words and text.content_words(words) & forgotten else words
        for words in sessions.description(tx, session_id)
    )
    sessions.describe(tx, session_id, title, summary)


def _reindex(tx: Connection, memory_id: int, zone: ZoneInfo, cause: Cause) -> None:
    """Write a memory's searched text anew, from the quotes as they are now."""
    app_id = memories.app_id_of(tx, memory_id)
    memory = memories.get(tx, [app_id], memory_id)
    assert memory is not None
    old = memories.hash_of(tx, memory_id)
    proofs = [p for p in evidence.of_memory(tx, memory_id) if FILLER not in p.quote]
    words = search_text(
        memory.memory_type,
        memory.key,
        memory.value,
        memory.user,
        memory.said_at,
        zone,
        proofs[0].quote if proofs else "",
    )
    memories.reindex(tx, memory_id, app_id, words, cause)
    jobs.enqueue(tx, "embed", app_id, "memory", memory_id, cause.at)
    embeddings.drop_unused(tx, [old])


def _drop_questions(tx: Connection, turns: Iterable[Message]) -> None:
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    embeddings.drop_unused(tx, hashes)
