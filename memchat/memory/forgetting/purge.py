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
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language import text
from memchat.memory.forgetting import redaction, tombstone_marks
from memchat.memory.recall import turn_texts
from memchat.store import (
    apps,
    cues,
    embeddings,
    events,
    evidence,
    fact_lists,
    hidden_memories,
    inbox,
    jobs,
    keywords,
    memories,
    memory_changes,
    memory_lists,
    messages,
    meta,
    refusals,
    replacements,
    services,
    sessions,
    tombstones,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.memories import FORGOTTEN
from memchat.store.tombstones import Mark
from memchat.types import Memory, Message

SCRUB_PENDING = "scrub_pending"
KEEP_TRANSCRIPT = "keep-transcript"
"""How a purge is queued that leaves people's words where they stand."""


def hide(
    tx: Connection, memory: Memory, now: datetime, *, purge_at: datetime, how: str | None = None
) -> set[int]:
    """Take a memory, and those merged into it, out of sight, and queue the purge.

    Nothing said until now brings it back. Gives the scope rows whose saved vectors know too much.
    """
    gone = with_merged(tx, [memory])
    for one in gone.values():
        if one.inactive_reason == FORGOTTEN:
            continue  # on its own, before: its own purge and undoing stand
        app_id = memories.app_id_of(tx, one.id)
        facts = redaction.facts_of(one, events.of_memory(tx, one.id))
        tombstones.add(tx, app_id, one.id, _marks(tx, one.id, facts), now)
        hidden_memories.hide(tx, one, app_id, Cause(now, "user"))
        _drop_proposals(tx, app_id, facts)
    app_id = memories.app_id_of(tx, memory.id)
    jobs.enqueue(tx, "forget", app_id, memory.id, now, run_at=purge_at, how=how)
    return events.app_ids_of(tx, list(gone))


def bring_back(tx: Connection, memory: Memory, now: datetime) -> None:
    """Undo ``hide`` while the purge is still held back."""
    jobs.cancel(tx, "forget", [memory.id])
    for one in with_merged(tx, [memory]).values():
        if one.inactive_reason == FORGOTTEN and one.updated_at == memory.updated_at:
            tombstones.remove_of_memory(tx, one.id)
            app_id = memories.app_id_of(tx, one.id)
            hidden_memories.unhide(tx, one.id, app_id, Cause(now, "user", "deletion undone"))


def make_way(tx: Connection, app_id: int, sha1: str, zone: ZoneInfo, now: datetime) -> None:
    """Purge a hidden row at once where the very same fact is about to be written by hand.

    Its vector left the saved index when it was hidden.
    """
    for memory in hidden_memories.listed(tx, [app_id], sha1=sha1):
        kept = jobs.instructions(tx, "forget", memory.id) == KEEP_TRANSCRIPT
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
    gone = with_merged(tx, chosen) if bury else {memory.id: memory for memory in chosen}
    if not gone:
        return set()
    ids = list(gone)
    stale = events.app_ids_of(tx, ids)
    homes = {memory_id: memories.app_id_of(tx, memory_id) for memory_id in ids}
    hashes = [memories.hash_of(tx, memory_id) for memory_id in ids]
    traces = redaction.Traces()
    for memory in gone.values():
        if bury:
            # What was said between hiding and purging was said after it was forgotten.
            when = memory.updated_at if memory.inactive_reason == FORGOTTEN else now
            facts = redaction.facts_of(memory, events.of_memory(tx, memory.id))
            tombstones.add(tx, homes[memory.id], memory.id, _marks(tx, memory.id, facts), when)
        redaction.gather(tx, memory, homes[memory.id], traces)
        redaction.drop_shown(tx, redaction.shown_with(tx, memory.id))
    jobs.cancel(tx, "embed", ids)
    memory_changes.remove(tx, ids)
    reworded: set[int] = set()
    if bury:
        for app_id, every in traces.scopes.items():
            _drop_proposals(tx, app_id, every)
            reworded |= strip_cues(tx, app_id, every)
    rewritten = redaction.blank_sessions(tx, traces, keep_transcript, describe=bury)
    # What was drawn from a turn stands in its searched text.
    in_use = services.in_use(tx)
    for session_id in traces.values:
        turn_texts.write(tx, session_id, zone, in_use, {}, now)
        stale.add(sessions.app_id_of(tx, session_id))
    touched = reworded.union(evidence.proved_memories(tx, rewritten))
    embeddings.remove_unused(tx, hashes)
    events.blank(tx, ids)
    cause = Cause(now, "user")
    for memory_id, app_id in homes.items():
        events.record(tx, memory_id, app_id, "forget", cause)
    to_scrub(tx)
    return stale | redaction.reindex(
        tx, touched, zone, cause, without=rewritten if keep_transcript else ()
    )


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
    refusals.remove_without_message(tx, message.session_id)
    refused = refusals.texts_of(tx, message.session_id)
    said = redaction.said_words(message.content)
    refusals.remove(
        tx, [one_id for one_id, words in refused.items() if redaction.said_words(words) & said]
    )
    waiting = inbox.values_of_session(tx, message.session_id)
    inbox.remove(
        tx, [item_id for item_id, value in waiting.items() if redaction.said_words(value) & said]
    )
    redaction.blank_description(tx, message.session_id, [message.content])
    to_scrub(tx)
    return {app_id} | redaction.reindex(tx, touched, zone, Cause(now, "user"))


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
    to_scrub(tx)
    return {app_id} | redaction.reindex(tx, touched, zone, Cause(now, "user"))


def forget_app(tx: Connection, app_id: int, zone: ZoneInfo, now: datetime) -> tuple[int, set[int]]:
    """Remove an app with all it holds: how many memories, and the scope rows whose saved vectors
    know too much now. What the user's other apps were shown of it, and their cues that tell it, go
    too."""
    rows = memory_lists.text_hashes(tx, app_id)
    facts, shown = _words_of(tx, app_id, rows)
    others = apps.other_ids(tx, app_id)
    touched = _drop_turns(tx, messages.of_app(tx, app_id)) - rows.keys()
    keywords.remove(tx, "memories", list(rows))
    sessions.remove_summaries(tx, app_id)
    apps.remove(tx, app_id)
    # From here on only what other apps hold is left to look at.
    left = fact_lists.sent_to_models(tx, {i for every in shown for i in every})
    for every in shown:
        if not left.isdisjoint(every):
            redaction.drop_shown(tx, every)
    if others:
        touched |= strip_cues(tx, others[0], facts)
    events.remove_app(tx, app_id)
    embeddings.remove_unused(tx, list(rows.values()))
    to_scrub(tx)
    return len(rows), {app_id} | redaction.reindex(tx, touched, zone, Cause(now, "user"))


def _words_of(
    tx: Connection, app_id: int, ids: Collection[int]
) -> tuple[set[tuple[str, str]], list[list[int]]]:
    """The keys and values of an app's memories, now and before, and for each of them the memories
    whose lines may hold its words."""
    there = [
        *memories.by_ids(tx, [app_id], list(ids)).values(),
        *hidden_memories.listed(tx, [app_id]),
    ]
    facts: set[tuple[str, str]] = set()
    for memory in there:
        facts |= redaction.facts_of(memory, events.of_memory(tx, memory.id))
    return facts, [redaction.shown_with(tx, memory.id) for memory in there]


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
            meta.remove(tx, SCRUB_PENDING)
    return True


def to_scrub(tx: Connection) -> None:
    """Note that words were deleted whose bytes are still in the file."""
    meta.put(tx, SCRUB_PENDING, secrets.token_hex(8))


def with_merged(tx: Connection, chosen: Iterable[Memory]) -> dict[int, Memory]:
    """Memories that are to go, and those merged into them, by id."""
    gone: dict[int, Memory] = {}
    todo = list(chosen)
    while todo:
        memory = todo.pop()
        if memory.id not in gone:
            gone[memory.id] = memory
            replaced = replacements.replaced_memories(tx, memory.id)
            todo += [other for other in replaced if other.inactive_reason in ("merged", FORGOTTEN)]
    return gone


def _marks(tx: Connection, memory_id: int, facts: Iterable[tuple[str, str]]) -> set[Mark]:
    """By what a fact, in all these words, is recognised when it comes again."""
    marks: set[Mark] = set()
    proofs = [p for p in evidence.of_memory(tx, memory_id) if p.role == "user"]
    for key, value in facts:
        marks |= tombstone_marks.marks_of(key, value)
        for proof in proofs:
            marks |= tombstone_marks.marks_of_proof(key, proof.quote, proof.message_id)
    return marks


def _drop_proposals(tx: Connection, app_id: int, facts: Collection[tuple[str, str]]) -> None:
    """Take what waits, and what was not kept, out where it has the words of any of these facts, or
    is one of them, however short."""
    gone = {(key, text.normal_value(value)) for key, value in facts}
    lines = redaction.lines(facts)
    for store in (inbox, refusals):
        same = {
            one_id
            for one_id, (key, value) in store.facts(tx, app_id).items()
            if (key, text.normal_value(value)) in gone
        }
        echoes = {
            i for i, words in store.texts(tx, app_id).items() if redaction.places(lines, words)
        }
        store.remove(tx, sorted(same | echoes))


def strip_cues(tx: Connection, app_id: int, facts: Iterable[tuple[str, str]]) -> set[int]:
    """No cue of anything else tells what is forgotten; the memories that had such cues."""
    words = {
        w for key, value in facts for w in redaction.said_words(f"{key.replace('_', ' ')} {value}")
    }

    def telling(every: set[str]) -> set[str]:
        return {cue for cue in every if _holds(cue, words)} | _same_stem(every, words)

    return cues.remove_words(tx, app_id, telling)


def _holds(cue: str, words: Iterable[str]) -> bool:
    said = text.fold(cue).text
    return any(w == said or (len(w) >= _shortest(w) and w in said) for w in words)


def _same_stem(every: Iterable[str], words: Iterable[str]) -> set[str]:
    """The cues that the search holds for another form of any of these words."""
    # Times and decimals ("day:2") are no words of their own to the index.
    wanted = {keywords.folded(word) for word in words if word.isalpha()}
    said = {cue: keywords.folded(cue) for cue in every}
    stems = keywords.stems(wanted.union(said.values()))
    forgotten = {stems.get(word, word) for word in wanted}
    return {cue for cue, word in said.items() if stems.get(word, word) in forgotten}


def _shortest(word: str) -> int:
    unspaced = text.UNSPACED.search(word)
    return redaction.SHORTEST_UNSPACED if unspaced else redaction.SHORTEST_ECHO


def _drop_turns(tx: Connection, turns: Sequence[Message]) -> set[int]:
    """Take turns about to go out of search; the memories that their words prove."""
    ids = [turn.id for turn in turns]
    messages.unindex(tx, ids)
    redaction.drop_lines(tx, ids)
    redaction.drop_questions(tx, turns)
    return set(evidence.proved_memories(tx, ids))
