"""Forgetting for good: the row, its vector, keyword rows, quotes, and its words wherever they echo.

What stays is a tombstone of keyed hashes, which recognises the fact when the same old messages are
read again, and an event without words. What is to be blanked is gathered first, from the text as it
was said, and each conversation is then read and blanked once, with a filler of the same length, so
that the quotes of other facts keep their place. The bytes leave the file in a second step,
``scrub``, which waits for readers and is repeated until it is done.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
_SHORTEST_UNSPACED = 2


@dataclass(slots=True)
class _Traces:
    """Where the words of forgotten facts stand, gathered before anything is changed."""

    spans: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → the places of the quotes that proved them."""
    quotes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → those quotes: one that taught a fact."""
    values: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → values now and before: one that taught a fact, or was given it."""
    scopes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Scope row → values now and before."""


def forget(tx: Connection, chosen: Iterable[Memory], zone: ZoneInfo, now: datetime) -> set[int]:
    """Purge memories, and those merged into them, from every table, in the caller's transaction.

    Gives the scope rows whose saved vectors know too much now.
    """
    gone = _with_merged(tx, chosen)
    ids = list(gone)
    stale = events.scopes(tx, ids)
    homes = {memory_id: memories.app_id_of(tx, memory_id) for memory_id in ids}
    hashes = [memories.hash_of(tx, memory_id) for memory_id in ids]
    traces = _Traces()
    for memory in gone.values():
        _gather(tx, memory, homes[memory.id], traces, now)
    jobs.cancel(tx, "embed", ids)
    memories.remove(tx, ids)
    for app_id, values in traces.scopes.items():
        _blank_inbox(tx, app_id, values)
    touched = _blank_sessions(tx, traces)
    embeddings.drop_unused(tx, hashes)
    events.blank(tx, ids)
    cause = Cause(now, "user")
    for memory_id, app_id in homes.items():
        events.record(tx, memory_id, app_id, "forget", cause)
    _to_scrub(tx)
    return stale | _reindex(tx, touched, zone, cause)


def forget_session(tx: Connection, session_id: int, zone: ZoneInfo, now: datetime) -> set[int]:
    """Remove a conversation. What was learnt from it stays, but without its words as proof.

    Gives the scope rows whose saved vectors know too much now.
    """
    turns = messages.of_session(tx, session_id)
    touched = _drop_turns(tx, turns)
    jobs.cancel(tx, "extract", [session_id])
    sessions.remove(tx, session_id)
    events.detach_session(tx, session_id)
    _to_scrub(tx)
    return _reindex(tx, touched, zone, Cause(now, "user"))


def forget_app(tx: Connection, app_id: int, zone: ZoneInfo, now: datetime) -> tuple[int, set[int]]:
    """Remove an app with all it holds: how many memories, and the scope rows whose saved vectors
    know too much now."""
    rows = memories.of_app(tx, app_id)
    touched = _drop_turns(tx, messages.of_app(tx, app_id)) - rows.keys()
    keywords.remove(tx, "memories", list(rows))
    apps.remove(tx, app_id)
    events.drop_app(tx, app_id)
    embeddings.drop_unused(tx, list(rows.values()))
    _to_scrub(tx)
    return len(rows), {app_id} | _reindex(tx, touched, zone, Cause(now, "user"))


def scrub(database: Database) -> bool:
    """Make deleted words leave the file's bytes. False while a reader still holds them back."""
    with database.read() as tx:
        pending = meta.get(tx, SCRUB_PENDING)
    if pending is None:
        return True
    with database.write() as tx:
        keywords.scrub(tx)
    if not database.truncate_wal():
        return False
    with database.write() as tx:
        # Only now: a process killed before leaves the work to the next. And only this mark: what
        # another forgot meanwhile is not scrubbed yet.
        if meta.get(tx, SCRUB_PENDING) == pending:
            meta.drop(tx, SCRUB_PENDING)
    return True


def _to_scrub(tx: Connection) -> None:
    meta.put(tx, SCRUB_PENDING, secrets.token_hex(8))


def _with_merged(tx: Connection, chosen: Iterable[Memory]) -> dict[int, Memory]:
    gone: dict[int, Memory] = {}
    todo = list(chosen)
    while todo:
        memory = todo.pop()
        if memory.id not in gone:
            gone[memory.id] = memory
            replaced = memories.replaced_by(tx, memory.id)
            todo += [other for other in replaced if other.inactive_reason == "merged"]
    return gone


def _gather(tx: Connection, memory: Memory, app_id: int, traces: _Traces, now: datetime) -> None:
    """Bury a fact in all the words it ever had, and note where they stand."""
    past = events.of_memory(tx, memory.id)
    states = [state for event in past for state in (event.old, event.new) if state]
    facts = {(s["key"], s["value"]) for s in states if "value" in s} | {(memory.key, memory.value)}
    proofs = evidence.of_memory(tx, memory.id)
    forms = sorted({forgotten_form(key, value) for key, value in facts})
    tombstones.bury(tx, app_id, "value", forms, now)
    sources = {f"{key}|{proof.message_id}" for key, _ in facts for proof in proofs}
    tombstones.bury(tx, app_id, "source", sorted(sources), now)

    values = {value for _, value in facts}
    traces.scopes[app_id] |= values
    for proof in proofs:
        traces.spans[proof.message_id].add((proof.start, proof.start + len(proof.quote)))
        traces.quotes[proof.session_id].add(proof.quote)
        traces.values[proof.session_id] |= values
    # A value that was replaced is also shown behind the ones that took its place.
    shown = [memory.id, *(event.related_id for event in past if event.related_id is not None)]
    for session_id in messages.sessions_given(tx, "memory", shown):
        traces.values[session_id] |= values
    messages.drop_receipts(tx, "memory", shown)


def _blank_inbox(tx: Connection, app_id: int, values: Iterable[str]) -> None:
    held = inbox.texts(tx, app_id)
    inbox.drop(tx, [item_id for item_id, words in held.items() if _places(values, words)])


def _blank_sessions(tx: Connection, traces: _Traces) -> set[int]:
    """Take the words out of every conversation; the other memories that its words prove."""
    touched: set[int] = set()
    for session_id, values in traces.values.items():
        _blank_description(tx, session_id, values)
        rewritten = _blank_turns(tx, session_id, values, traces)
        touched |= set(evidence.proved_by(tx, rewritten))
        messages.drop_receipts(tx, "message", rewritten)
        inbox.drop_messages(tx, rewritten)
    return touched


def _blank_turns(tx: Connection, session_id: int, values: set[str], traces: _Traces) -> list[int]:
    """The turns of a conversation that held any of the words."""
    app_id = sessions.app_id_of(tx, session_id)
    taught = session_id in traces.quotes
    wanted = values | traces.quotes.get(session_id, set())
    changed = []
    for turn in messages.of_session(tx, session_id):
        spans = set(traces.spans.get(turn.id, ()))
        # Where it was only shown, the replies echo it; the user's own words are another matter.
        if taught or turn.role == "assistant":
            spans |= _places(wanted, turn.content)
        content = _blanked(turn.content, spans)
        if content != turn.content:
            messages.rewrite(tx, turn.id, app_id, content)
            evidence.requote(tx, turn.id, content)
            changed.append(turn)
    _drop_questions(tx, changed)
    return [turn.id for turn in changed]


def _blank_description(tx: Connection, session_id: int, values: Iterable[str]) -> None:
    forgotten = {word for value in values for word in text.content_words(value)}
    title, summary = (
        None
        if words and (text.content_words(words) & forgotten or _places(values, words))
        else words
        for words in sessions.description(tx, session_id)
    )
    sessions.describe(tx, session_id, title, summary)


def _places(wanted: Iterable[str], content: str) -> set[tuple[int, int]]:
    """Where any of these words stand in a text."""
    hay = text.fold(content)
    found: set[tuple[int, int]] = set()
    for words in wanted:
        needle = text.normal_value(words)
        if needle not in hay.text:
            continue
        # Without spaces there are no word boundaries; Korean hangs its particles on the word.
        running = text.UNSPACED.search(needle) or "\uac00" <= needle[-1:] <= "\ud7af"
        if len(needle) < (_SHORTEST_UNSPACED if running else _SHORTEST_ECHO):
            continue
        if not running:
            found |= {(span.start, span.end) for span in text.find_spans(words, content)}
            continue
        at = hay.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            found.add((hay.offsets[at], hay.ends[end - 1]))
            at = hay.text.find(needle, end)
    return found


def _blanked(content: str, spans: Iterable[tuple[int, int]]) -> str:
    chars = list(content)
    for start, end in spans:
        chars[start:end] = FILLER * len(chars[start:end])
    return "".join(chars)


def _drop_turns(tx: Connection, turns: Sequence[Message]) -> set[int]:
    """Take turns about to go out of search; the memories that their words prove."""
    ids = [turn.id for turn in turns]
    keywords.remove(tx, "messages", ids)
    _drop_questions(tx, turns)
    return set(evidence.proved_by(tx, ids))


def _drop_questions(tx: Connection, turns: Iterable[Message]) -> None:
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    embeddings.drop_unused(tx, hashes)


def _reindex(tx: Connection, ids: Iterable[int], zone: ZoneInfo, cause: Cause) -> set[int]:
    """Write the searched text of memories anew, from the quotes as they are now; their scopes."""
    scopes = set()
    for memory_id in sorted(ids):
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
        scopes.add(app_id)
    return scopes
