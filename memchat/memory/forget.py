"""Forgetting for good: the row, its vector, keyword rows, quotes, and its words wherever they echo.

``hide`` takes a fact out of everybody's sight at once and queues the purge, which ``forget`` is.
What stays is a tombstone of keyed hashes, which recognises the fact when it comes again, and an
event without words. What is to be blanked is gathered first, from the text as it was said, and each
conversation is then read and blanked once, with a filler of the same length, so that the quotes of
other facts keep their place. The bytes leave the file in a last step, ``scrub``, which waits for
readers and is repeated until it is done.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language import text
from memchat.memory import buried, moments
from memchat.memory.consolidate import search_text
from memchat.memory.meaning import shortened
from memchat.store import (
    apps,
    cues,
    embeddings,
    events,
    evidence,
    fact_lists,
    hidden,
    inbox,
    jobs,
    keywords,
    memories,
    messages,
    meta,
    prompts,
    refusals,
    services,
    sessions,
    succession,
    tombstones,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.memories import FORGOTTEN
from memchat.store.tombstones import Mark
from memchat.types import Event, Memory, Message

FILLER = "·"
SCRUB_PENDING = "scrub_pending"
KEEP_TRANSCRIPT = "keep-transcript"
"""How a purge is queued that leaves people's words where they stand."""
_SHORTEST_ECHO = 3
_SHORTEST_UNSPACED = 2
"""Characters from which a value is blanked wherever it stands; with a digit in it, too."""


@dataclass(slots=True)
class _Traces:
    """Where the words of forgotten facts stand, gathered before anything is changed."""

    spans: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → the places of the quotes that proved them."""
    quotes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → those quotes: one that taught a fact."""
    values: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → values now and before: one that taught a fact, or was given it."""
    scopes: defaultdict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Scope row → keys and values now and before."""


def hide(
    tx: Connection, memory: Memory, now: datetime, *, purge_at: datetime, how: str | None = None
) -> set[int]:
    """Take a memory, and those merged into it, out of sight, and queue the purge.

    Nothing said until now brings it back. Gives the scope rows whose saved vectors know too much.
    """
    gone = _with_merged(tx, [memory])
    for one in gone.values():
        if one.inactive_reason == FORGOTTEN:
            continue  # on its own, before: its own purge and undoing stand
        app_id = memories.app_id_of(tx, one.id)
        facts = _facts(one, events.of_memory(tx, one.id))
        tombstones.bury(tx, app_id, one.id, _marks(tx, one.id, facts), now)
        hidden.hide(tx, one, app_id, Cause(now, "user"))
        _drop_proposals(tx, app_id, facts)
    app_id = memories.app_id_of(tx, memory.id)
    jobs.enqueue(tx, "forget", app_id, "memory", memory.id, now, run_at=purge_at, how=how)
    return events.scopes(tx, list(gone))


def bring_back(tx: Connection, memory: Memory, now: datetime) -> None:
    """Undo ``hide`` while the purge is still held back."""
    jobs.cancel(tx, "forget", [memory.id])
    for one in _with_merged(tx, [memory]).values():
        if one.inactive_reason == FORGOTTEN and one.updated_at == memory.updated_at:
            tombstones.exhume(tx, one.id)
            app_id = memories.app_id_of(tx, one.id)
            hidden.show(tx, one.id, app_id, Cause(now, "user", "deletion undone"))


def make_way(tx: Connection, app_id: int, sha1: str, zone: ZoneInfo, now: datetime) -> None:
    """Purge a hidden row at once where the very same fact is about to be written by hand.

    Its vector left the saved index when it was hidden.
    """
    for memory in hidden.listed(tx, [app_id], sha1=sha1):
        kept = jobs.how(tx, "forget", memory.id) == KEEP_TRANSCRIPT
        forget(tx, [memory], zone, now, keep_transcript=kept)


def forget(
    tx: Connection,
    chosen: Iterable[Memory],
    zone: ZoneInfo,
    now: datetime,
    *,
    keep_transcript: bool = False,
    bury: bool = True,
) -> set[int]:
    """Purge memories, and those merged into them, from every table, in the caller's transaction.

    ``keep_transcript`` leaves what people wrote, but lets nothing be found in it or learnt from it.
    Without ``bury`` it is these memories alone, the same may be learnt again, and what other
    conversations were called stays. Gives the scope rows whose saved vectors know too much now.
    """
    gone = _with_merged(tx, chosen) if bury else {memory.id: memory for memory in chosen}
    if not gone:
        return set()
    ids = list(gone)
    stale = events.scopes(tx, ids)
    homes = {memory_id: memories.app_id_of(tx, memory_id) for memory_id in ids}
    hashes = [memories.hash_of(tx, memory_id) for memory_id in ids]
    traces = _Traces()
    for memory in gone.values():
        if bury:
            # What was said between hiding and purging was said after it was forgotten.
            when = memory.updated_at if memory.inactive_reason == FORGOTTEN else now
            facts = _facts(memory, events.of_memory(tx, memory.id))
            tombstones.bury(tx, homes[memory.id], memory.id, _marks(tx, memory.id, facts), when)
        _gather(tx, memory, homes[memory.id], traces)
    jobs.cancel(tx, "embed", ids)
    memories.remove(tx, ids)
    if bury:
        for app_id, every in traces.scopes.items():
            _drop_proposals(tx, app_id, every)
            _strip_cues(tx, app_id, every)
    rewritten = _blank_sessions(tx, traces, keep_transcript, describe=bury)
    # What was drawn from a turn stands in its searched text.
    in_use = services.in_use(tx)
    for session_id in traces.values:
        moments.write(tx, session_id, zone, in_use, {}, now)
        stale.add(sessions.app_id_of(tx, session_id))
    touched = evidence.proved_by(tx, rewritten)
    embeddings.drop_unused(tx, hashes)
    events.blank(tx, ids)
    cause = Cause(now, "user")
    for memory_id, app_id in homes.items():
        events.record(tx, memory_id, app_id, "forget", cause)
    _to_scrub(tx)
    return stale | _reindex(tx, touched, zone, cause, without=rewritten if keep_transcript else ())


def shown_with(tx: Connection, memory_id: int) -> list[int]:
    """The memories whose lines may hold the words of this one, which is the first of them: a value
    that was replaced is shown behind all that took its place, one after another."""
    past = events.of_memory(tx, memory_id)
    related = [event.related_id for event in past if event.related_id is not None]
    return [memory_id, *related, *succession.after(tx, memory_id)]


def told_with(tx: Connection, memory_id: int) -> set[int]:
    """The turns whose lines may hold the words of this memory, or a title that speaks of it."""
    proofs = evidence.of_memory(tx, memory_id)
    titled = sessions.titles(tx, [proof.session_id for proof in proofs])
    turns = {proof.message_id for proof in proofs}
    for session_id in (i for i, title in titled.items() if title is not None):
        turns.update(messages.ids_of(tx, session_id))
    return turns


def forget_message(tx: Connection, message: Message, zone: ZoneInfo, now: datetime) -> set[int]:
    """Remove one turn; title and summary of its conversation go with it where they speak of it.

    Gives the scope rows whose saved vectors know too much now.
    """
    touched = _drop_turns(tx, [message])
    app_id = sessions.app_id_of(tx, message.session_id)
    messages.remove(tx, [message.id])
    refusals.drop_unplaced(tx, message.session_id)
    refused = refusals.texts_of(tx, message.session_id)
    said = _words(message.content)
    refusals.drop(tx, [one_id for one_id, words in refused.items() if _words(words) & said])
    waiting = inbox.values_of(tx, message.session_id)
    inbox.drop(tx, [item_id for item_id, value in waiting.items() if _words(value) & said])
    _blank_description(tx, message.session_id, [message.content])
    _to_scrub(tx)
    return {app_id} | _reindex(tx, touched, zone, Cause(now, "user"))


def forget_session(tx: Connection, session_id: int, zone: ZoneInfo, now: datetime) -> set[int]:
    """Remove a conversation. What was learnt from it stays, but without its words as proof.

    Gives the scope rows whose saved vectors know too much now.
    """
    turns = messages.of_session(tx, session_id)
    touched = _drop_turns(tx, turns)
    app_id = sessions.app_id_of(tx, session_id)
    for kind in ("extract", "verify", "index"):
        jobs.cancel(tx, kind, [session_id])
    sessions.remove(tx, session_id)
    events.detach_session(tx, session_id)
    _to_scrub(tx)
    return {app_id} | _reindex(tx, touched, zone, Cause(now, "user"))


def forget_app(tx: Connection, app_id: int, zone: ZoneInfo, now: datetime) -> tuple[int, set[int]]:
    """Remove an app with all it holds: how many memories, and the scope rows whose saved vectors
    know too much now."""
    rows = memories.of_app(tx, app_id)
    touched = _drop_turns(tx, messages.of_app(tx, app_id)) - rows.keys()
    keywords.remove(tx, "memories", list(rows))
    sessions.drop_summaries(tx, app_id)
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
            replaced = succession.replaced_by(tx, memory.id)
            todo += [other for other in replaced if other.inactive_reason in ("merged", FORGOTTEN)]
    return gone


def _facts(memory: Memory, past: Sequence[Event]) -> set[tuple[str, str]]:
    """Key and value in all the words a memory ever had."""
    states = [state for event in past for state in (event.old, event.new) if state]
    return {(s["key"], s["value"]) for s in states if "value" in s} | {(memory.key, memory.value)}


def _marks(tx: Connection, memory_id: int, facts: Iterable[tuple[str, str]]) -> set[Mark]:
    """By what a fact, in all these words, is recognised when it comes again."""
    marks: set[Mark] = set()
    proofs = [p for p in evidence.of_memory(tx, memory_id) if p.role == "user"]
    for key, value in facts:
        marks |= buried.marks_of(key, value)
        for proof in proofs:
            marks |= buried.marks_of_proof(key, proof.quote, proof.message_id)
    return marks


def _gather(tx: Connection, memory: Memory, app_id: int, traces: _Traces) -> None:
    """Note where the words of a fact stand."""
    past = events.of_memory(tx, memory.id)
    proofs = evidence.of_memory(tx, memory.id)
    facts = _facts(memory, past)
    # However short a value is, memchat's own lines give it away behind its key.
    values = _lines(facts)
    traces.scopes[app_id] |= facts
    for proof in proofs:
        traces.spans[proof.message_id].add((proof.start, proof.start + len(proof.quote)))
        traces.quotes[proof.session_id].add(proof.quote)
        traces.values[proof.session_id] |= values
    shown = shown_with(tx, memory.id)
    said = [proof.message_id for proof in proofs]
    told = {*messages.sessions_given(tx, "memory", shown)}
    told.update(messages.sessions_given(tx, "message", said))
    for session_id, content in fact_lists.replies_beside(tx, memory.id):
        # It was sent whatever was asked: only what says it is to be blanked.
        if session_id not in told and places(values, content):
            told.add(session_id)
    for session_id in told:
        traces.values[session_id] |= values
    prompts.drop_given(tx, "memory", shown)
    messages.drop_receipts(tx, "memory", shown)
    fact_lists.drop(tx, memory.id)


def _lines(facts: Collection[tuple[str, str]]) -> set[str]:
    return {value for _, value in facts} | {f"{key}: {value}" for key, value in facts}


def _drop_proposals(tx: Connection, app_id: int, facts: Collection[tuple[str, str]]) -> None:
    """Take what waits, and what was not kept, out where it has the words of any of these facts, or
    is one of them, however short."""
    gone = {(key, text.normal_value(value)) for key, value in facts}
    lines = _lines(facts)
    for store in (inbox, refusals):
        same = {
            one_id
            for one_id, (key, value) in store.facts(tx, app_id).items()
            if (key, text.normal_value(value)) in gone
        }
        echoes = {i for i, words in store.texts(tx, app_id).items() if places(lines, words)}
        store.drop(tx, sorted(same | echoes))


def _strip_cues(tx: Connection, app_id: int, facts: Iterable[tuple[str, str]]) -> None:
    """No cue of anything else tells what is forgotten."""
    words = {w for key, value in facts for w in _words(f"{key.replace('_', ' ')} {value}")}

    def tells(cue: str) -> bool:
        said = text.fold(cue).text
        return any(w == said or (len(w) >= _shortest(w) and w in said) for w in words)

    cues.strip(tx, app_id, tells)


def _shortest(word: str) -> int:
    return _SHORTEST_UNSPACED if text.UNSPACED.search(word) else _SHORTEST_ECHO


def _blank_sessions(
    tx: Connection, traces: _Traces, keep_transcript: bool, *, describe: bool
) -> list[int]:
    """Take the words out of every conversation; the turns that held any."""
    every: list[int] = []
    for session_id, values in traces.values.items():
        if describe and session_id in traces.quotes:
            _describe(tx, session_id, None, None)  # in whatever words they tell of it
        elif describe:
            _blank_description(tx, session_id, values)
        rewritten = _blank_turns(tx, session_id, values, traces, keep_transcript)
        every += rewritten
        _drop_lines(tx, rewritten)
        inbox.drop_messages(tx, rewritten)
        refusals.drop_messages(tx, rewritten)
        if session_id in traces.quotes:
            refusals.drop_unplaced(tx, session_id)  # whatever words they are drawn from
    return every


def _blank_turns(
    tx: Connection, session_id: int, values: set[str], traces: _Traces, keep_transcript: bool
) -> list[int]:
    """The turns of a conversation that held any of the words, blanked, or barred as they are."""
    taught = session_id in traces.quotes
    wanted = values | traces.quotes.get(session_id, set())
    changed, turns = [], messages.of_session(tx, session_id)
    texts: dict[int, str] = {}
    prompts.drop(tx, [turn.id for turn in turns if turn.role == "assistant"])
    for turn in turns:
        spans = set(traces.spans.get(turn.id, ()))
        # Where it was only shown, the replies echo it; the user's own words are another matter.
        if taught or turn.role == "assistant":
            spans |= places(wanted, turn.content)
        content = blanked(turn.content, spans)
        if content == turn.content:
            continue
        changed.append(turn)
        texts[turn.id] = content
    if keep_transcript:
        messages.bar(tx, list(texts))
    else:
        messages.rewrite(tx, session_id, texts)
        for message_id, content in texts.items():
            evidence.requote(tx, message_id, content)
    _drop_questions(tx, changed)
    return [turn.id for turn in changed]


def _blank_description(tx: Connection, session_id: int, values: Iterable[str]) -> None:
    forgotten = {word for value in values for word in _words(value)}
    title, summary = (
        None if words and (_words(words) & forgotten or places(values, words)) else words
        for words in sessions.description(tx, session_id)
    )
    _describe(tx, session_id, title, summary)


def _describe(tx: Connection, session_id: int, title: str | None, summary: str | None) -> None:
    if sessions.description(tx, session_id)[0] != title:
        _drop_lines(tx, messages.ids_of(tx, session_id))  # they name it
    sessions.describe(tx, session_id, title, summary)


def _drop_lines(tx: Connection, turn_ids: Sequence[int]) -> None:
    """Take the lines about these turns out of every receipt, and the prompts they were in."""
    prompts.drop_given(tx, "message", turn_ids)
    messages.drop_receipts(tx, "message", turn_ids)


def _words(value: str) -> set[str]:
    return text.content_words(value) | text.numbers(value)


def places(wanted: Iterable[str], content: str) -> set[tuple[int, int]]:
    """Where any of these words stand in a text."""
    hay = text.fold(content)
    found: set[tuple[int, int]] = set()
    for words in wanted:
        needle = text.normal_value(words)
        if needle not in hay.text:
            continue
        # Without spaces there are no word boundaries; Korean hangs its particles on the word.
        running = text.UNSPACED.search(needle) or "\uac00" <= needle[-1:] <= "\ud7af"
        short = running or any(c.isdigit() for c in needle)
        if len(needle) < (_SHORTEST_UNSPACED if short else _SHORTEST_ECHO):
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


def blanked(content: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with a filler in these places."""
    chars = list(content)
    for start, end in spans:
        chars[start:end] = FILLER * len(chars[start:end])
    return "".join(chars)


def _drop_turns(tx: Connection, turns: Sequence[Message]) -> set[int]:
    """Take turns about to go out of search; the memories that their words prove."""
    ids = [turn.id for turn in turns]
    messages.unindex(tx, ids)
    _drop_lines(tx, ids)
    _drop_questions(tx, turns)
    return set(evidence.proved_by(tx, ids))


def _drop_questions(tx: Connection, turns: Iterable[Message]) -> None:
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    embeddings.drop_unused(tx, hashes)


def _reindex(
    tx: Connection,
    ids: Iterable[int],
    zone: ZoneInfo,
    cause: Cause,
    *,
    without: Collection[int] = (),
) -> set[int]:
    """Write the searched text of memories anew, from the quotes as they are now but for those of
    the messages ``without``; their scopes."""
    scopes = set()
    for memory_id in sorted(ids):
        app_id = memories.app_id_of(tx, memory_id)
        memory = memories.get(tx, [app_id], memory_id)
        if memory is None:
            continue  # hidden: its own purge is on its way
        old = memories.hash_of(tx, memory_id)
        proofs = [
            proof
            for proof in evidence.of_memory(tx, memory_id)
            if FILLER not in proof.quote and proof.message_id not in without
        ]
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
        if meta.get(tx, "service_id") is not None:
            jobs.enqueue(tx, "embed", app_id, "memory", memory_id, cause.at)
        embeddings.drop_unused(tx, [old])
        scopes.add(app_id)
    return scopes
