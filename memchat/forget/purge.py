"""Forgetting for good: a memory is removed from every table, from conversations and from the file.

``hide`` takes a memory out of sight at once and queues the purge, which is ``forget``. What stays
is a tombstone of keyed hashes, which recognises the fact when it comes again, and an event without
words. What is to be blanked is collected first, from the unchanged text; then each conversation is
read and blanked once, with a filler of the same length, so that the quotes of other facts keep
their place. After the commit the bytes leave the files: ``Tx.forget_bytes``.

A reply that a model is writing meanwhile cannot be seen by the purge. ``drop_forgotten`` takes the
words out of it before it is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from memchat.db import Tx, apps, jobs, messages, sessions
from memchat.db import schema as t
from memchat.facts import changes, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.memories import FORGOTTEN, search_text
from memchat.forget import tombstones
from memchat.forget.tombstones import Mark
from memchat.forget.wording import (
    FILLER,
    blank,
    may_say,
    meaningful_words,
    mentions_any,
    spans_of,
    strip_cues,
    strip_sentences,
)
from memchat.language import sentences, text
from memchat.notes import rows as notes_rows
from memchat.search import embeddings, passages, receipts, render, turns
from memchat.search.embed import shortened
from memchat.types import Event, Evidence, Hit, Memory, Message
from memchat.workflows import rows as workflows


@dataclass(slots=True)
class Occurrences:
    """Where the words of forgotten facts stand, collected before anything is changed."""

    shown_in: Collection[int] = ()
    """Conversations whose replies the facts may have been shown to, whatever receipts say."""
    spans: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → (start, end) of the quotes that proved the facts."""
    quotes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → those quotes, for sessions that taught a fact."""
    values: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → values now and before, for sessions that taught a fact or were shown it."""
    scopes: defaultdict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Scope row → keys and values now and before."""
    sentences: set[str] = field(default_factory=set)
    """The sentences of the facts, which lists in replies have."""
    spared: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → (start, end) of clauses in ``spans`` that prove another fact and have no word of
    these."""


@dataclass(frozen=True, slots=True)
class Traces:
    """A memory with what its rows say of it, read before anything of it is changed."""

    memory: Memory
    app_id: int
    events: Sequence[Event]
    proofs: Sequence[Evidence]

    @property
    def facts(self) -> set[tuple[str, str]]:
        """(key, value) in all the wordings that the memory ever had."""
        said = {(state["key"], state["value"]) for state in self._states if "value" in state}
        return said | {(self.memory.key, self.memory.value)}

    @property
    def sentences(self) -> set[str]:
        """The sentences that the memory ever had."""
        told = [self.memory.sentence, *(state.get("sentence") for state in self._states)]
        return {sentence for sentence in told if sentence}

    @property
    def _states(self) -> list[dict[str, Any]]:
        """What the memory was before and after each event."""
        return [state for event in self.events for state in (event.old, event.new) if state]

    def shown(self, tx: Tx) -> list[int]:
        """The memories whose lines may hold words of this one, itself first: a replaced value is
        shown with the values that replaced it."""
        related = [event.related_id for event in self.events if event.related_id is not None]
        return [self.memory.id, *related, *changes.successors(tx, self.memory)]


def traces_of(tx: Tx, chosen: Iterable[Memory]) -> list[Traces]:
    """What is stored of each of these memories."""
    there = {memory.id: memory for memory in chosen}
    homes = memories.homes_of(tx, there)
    events = changes.events_of_memories(tx, there)
    proofs = changes.evidence_of_memories(tx, there)
    return [
        Traces(memory, homes[i], events.get(i, []), proofs.get(i, []))
        for i, memory in there.items()
    ]


def collect_occurrences(tx: Tx, traces: Traces, occurrences: Occurrences) -> None:
    """Add where the words of a memory stand to ``occurrences``."""
    memory, facts = traces.memory, traces.facts
    # However short a value is, a line "key: value" of memchat reveals it.
    values = searched_wordings(facts)
    occurrences.sentences |= traces.sentences
    occurrences.scopes[traces.app_id] |= facts
    said: list[int] = []
    for proof in traces.proofs:
        # A copy has the same words in the same places.
        for message_id, session_id in sessions.same_message(tx, proof.message_id):
            occurrences.spans[message_id].add((proof.start, proof.start + len(proof.quote)))
            occurrences.quotes[session_id].add(proof.quote)
            occurrences.values[session_id] |= values
            said.append(message_id)
    session_ids = {*receipts.sessions_with(tx, "memory", traces.shown(tx))}
    if said:
        session_ids.update(receipts.sessions_with(tx, "message", said))
    pieces = [text.normal_value(value).split() for value in values]
    bare = {value for _, value in facts}
    words = [[word] for value in bare for word in meaningful_words(value)]
    texts = receipts.model_texts_with(tx, memory.id, occurrences.shown_in)
    for session_id, content, describes in texts:
        # The list was sent with every message, so only texts that say the value are blanked: for a
        # title or summary one word of it is enough, for a reply it takes the whole value.
        if session_id in session_ids or not may_say(words if describes else pieces, content):
            continue
        if mentions_any(content, bare) if describes else spans_of(values, content):
            session_ids.add(session_id)
    for session_id in session_ids:
        occurrences.values[session_id] |= values


def occurrences_of(tx: Tx, every: Iterable[Traces], shown_in: Collection[int] = ()) -> Occurrences:
    """Where the words of these memories stand, and which clauses among them are spared."""
    found, ids = Occurrences(shown_in), set()
    for traces in every:
        ids.add(traces.memory.id)
        collect_occurrences(tx, traces, found)
    quoted = messages.by_ids(tx, [*found.spans])
    others = [i for i in changes.proved_memories(tx, quoted) if i not in ids]
    values = {one.id: one.value for one in memories.read(tx, memories.OF_IDS, ids=others)}
    gone = {w for facts in found.scopes.values() for _, v in facts for w in meaningful_words(v)}
    for memory_id, proofs in changes.evidence_of_memories(tx, others).items():
        wanted = meaningful_words(values[memory_id])
        for proof in proofs:
            for message_id, _ in sessions.same_message(tx, proof.message_id):
                turn, span = quoted.get(message_id), (proof.start, proof.start + len(proof.quote))
                if turn is not None:
                    found.spared[message_id] |= _clauses(turn.content, span, wanted, gone)
    return found


def _clauses(
    content: str, span: tuple[int, int], wanted: Collection[str], gone: Collection[str]
) -> set[tuple[int, int]]:
    """The clauses of a quote that have one of the words wanted and none of those that go."""

    def holds(place: tuple[int, int], words: Collection[str]) -> bool:
        said = content[slice(*place)]
        return any(text.holds_word(said, word) or word in text.numbers(said) for word in words)

    places = sentences.clauses(content, *span)
    return {place for place in places if holds(place, wanted) and not holds(place, gone)}


def drop_receipt_lines(tx: Tx, every: Iterable[Traces]) -> None:
    """Remove the lines of memories from all receipts and lists, and the prompts that had them."""
    traces = list(every)
    shown = {i for each in traces for i in each.shown(tx)}
    if receipts.sent_to_models(tx, shown):
        receipts.remove(tx, "memory", shown)
        receipts.remove_list_lines(tx, [each.memory.id for each in traces])


def searched_wordings(facts: Collection[tuple[str, str]]) -> set[str]:
    """The values, and the lines "key: value" that memchat writes."""
    return {value for _, value in facts} | {f"{key}: {value}" for key, value in facts}


def blank_sessions(
    tx: Tx, occurrences: Occurrences, keep_transcript: bool, *, describe: bool
) -> list[int]:
    """Blank the words in every conversation; the ids of the turns that held any."""
    every: list[int] = []
    for session_id, values in occurrences.values.items():
        if describe and session_id in occurrences.quotes:
            set_description(tx, session_id, None, None)  # they may mention it in other words
        elif describe:
            blank_description(tx, session_id, values)
        turns = messages.of_session(tx, session_id, every=describe)
        receipts.remove_prompts(tx, [turn.id for turn in turns if turn.role == "assistant"])
        held = {
            turn.id: content
            for turn in turns
            if (content := redacted_text(turn, occurrences)) != turn.content
        }
        every += rewrite_turns(tx, session_id, turns, held, keep_transcript, occurrences.spared)
        if session_id in occurrences.quotes:
            proposals.remove_refused(tx, session_id)  # they may come from its words
    return every


def _blank_aside(tx: Tx, occurrences: Occurrences) -> list[int]:
    """Blank the words in versions of messages that are not shown, which prove nothing; the ids of
    those that held any."""
    every: list[int] = []
    for app_id, facts in occurrences.scopes.items():
        values = searched_wordings(facts) | occurrences.sentences
        for turn in messages.aside(tx, apps.related_ids(tx, app_id)):
            if found := spans_of(values, turn.content):
                texts = {turn.id: blank(turn.content, found)}
                every += rewrite_turns(tx, turn.session_id, [turn], texts)
    return every


def _blank_attachments(tx: Tx, occurrences: Occurrences) -> None:
    """Blank the words in what was attached to messages, which no index holds; what a picture shows
    stays."""
    for app_id, facts in occurrences.scopes.items():
        values = searched_wordings(facts) | occurrences.sentences
        blanked = partial(_blanked, values)
        for turn in messages.with_attachments(tx, apps.related_ids(tx, app_id)):
            left = tuple(
                replace(one, name=blanked(one.name), text=blanked(one.text))
                for one in turn.attachments
            )
            if left != turn.attachments:
                messages.set_attachments(tx, turn.id, left)


def _blank_runs(tx: Tx, occurrences: Occurrences) -> None:
    """Blank the words in the runs of workflows."""
    for app_id, facts in occurrences.scopes.items():
        values = searched_wordings(facts) | occurrences.sentences
        blanked = partial(_blanked, values)
        workflows.blank(tx, apps.related_ids(tx, app_id), blanked)


def _blanked(values: Collection[str], words: str) -> str:
    return blank(words, spans_of(values, words))


def redacted_text(turn: Message, occurrences: Occurrences) -> str:
    """A turn's text after forgetting."""
    values = occurrences.values.get(turn.session_id)
    if values is None:
        return turn.content
    taught = occurrences.quotes.get(turn.session_id, set())
    content, spans = turn.content, set(occurrences.spans.get(turn.id, ()))
    if taught:
        spans |= spans_of(taught, content)
    blanked = blank(content, spans)
    for start, end in occurrences.spared.get(turn.id, ()):
        blanked = blanked[:start] + content[start:end] + blanked[end:]
    # Where the fact was only shown, replies may repeat it; the user's words came from elsewhere.
    if taught or turn.role == "assistant":
        blanked = blank(blanked, spans_of(values | occurrences.sentences, content))
    return blanked


def rewrite_turns(
    tx: Tx,
    session_id: int,
    turns: Sequence[Message],
    texts: Mapping[int, str],
    keep_transcript: bool = False,
    spared: Mapping[int, Collection[tuple[int, int]]] = MappingProxyType({}),
) -> list[int]:
    """Store the blanked texts of turns, or bar the turns from search and learning, and remove
    everything derived from their words; their ids."""
    ids = list(texts)
    if keep_transcript:
        messages.exclude(tx, ids)
    else:
        messages.rewrite(tx, session_id, texts)
        for message_id, content in texts.items():
            changes.update_quotes(tx, message_id, content, spared.get(message_id, ()))
    drop_query_vectors(tx, [turn for turn in turns if turn.id in texts])
    receipts.remove(tx, "message", ids)
    proposals.remove_of_messages(tx, ids)
    return ids


def blank_description(tx: Tx, session_id: int, values: Iterable[str]) -> None:
    """Clear title and summary of a conversation where they mention any of these values."""
    title, summary = sessions.description(tx, session_id)
    set_description(
        tx,
        session_id,
        None if title and mentions_any(title, values) else title,
        None if summary and mentions_any(summary, values) else summary,
    )


def set_description(tx: Tx, session_id: int, title: str | None, summary: str | None) -> None:
    """Set title and summary; where the title changes, the receipt lines with the old one go."""
    if sessions.description(tx, session_id)[0] != title:
        receipts.remove(tx, "message", messages.ids_of(tx, session_id))
    sessions.set_description(tx, session_id, title, summary)


def drop_query_vectors(tx: Tx, turns: Iterable[Message]) -> None:
    """Delete the vectors of these turns as search queries."""
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    passages.remove_unused(tx, hashes)


def present_search_text(
    tx: Tx, memory: Memory, app_id: int, *, without: Collection[int] = ()
) -> str:
    """The search text of a memory by the rows as they are, with its first quote that is not blanked
    and is not of the messages ``without``."""
    proofs = [
        proof
        for proof in changes.evidence_of_memory(tx, memory.id)
        if FILLER not in proof.quote and proof.message_id not in without
    ]
    quote = proofs[0].quote if proofs else ""
    left = memories.distinctive_cues(tx, app_id, memory.cues)
    return search_text(memory.key, memory.value, memory.said_at, tx.zone, quote, left)


def reindex(tx: Tx, ids: Iterable[int], cause: Cause, *, without: Collection[int] = ()) -> set[int]:
    """Write the search text of memories again, from their present quotes except those of the
    messages ``without``; their scope rows."""
    scopes = set()
    for memory_id in sorted(ids):
        app_id = memories.app_id_of(tx, memory_id)
        memory = memories.get(tx, [app_id], memory_id)
        if memory is None:
            continue  # it is hidden, and its purge is queued
        words = present_search_text(tx, memory, app_id, without=without)
        changes.reindex(tx, memory, app_id, words, cause)
        scopes.add(app_id)
    return scopes


KEEP_TRANSCRIPT = "keep-transcript"
"""The kind of a purge that leaves the users' messages as they are."""


def hide(tx: Tx, memory: Memory, *, hold: float | None, how: str | None = None) -> None:
    """Take a memory, and those merged into it, out of sight, and queue the purge in ``hold``
    seconds; with None no purge is queued before ``queue_purge``.

    Nothing said until now brings it back.
    """
    gone = with_merged(tx, [memory])
    # One that was deleted by itself has a purge of its own.
    there = [one for one in gone.values() if one.inactive_reason != FORGOTTEN]
    for traces in traces_of(tx, there):
        _add_tombstones(tx, traces, tx.now)
        changes.hide(tx, traces.memory, traces.app_id, Cause("user"))
        _drop_proposals(tx, apps.related_ids(tx, traces.app_id), traces.facts)
    if hold is not None:
        queue_purge(tx, memory, hold, how)


def queue_purge(tx: Tx, memory: Memory, hold: float, how: str | None = None) -> None:
    """Queue the purge of a hidden memory in ``hold`` seconds."""
    app_id, purge_at = memories.app_id_of(tx, memory.id), tx.now + timedelta(seconds=hold)
    jobs.enqueue(tx, "forget", app_id, memory.id, tx.now, run_at=purge_at, how=how)


def unhide(tx: Tx, memory: Memory) -> None:
    """Undo ``hide`` while the purge is not done yet."""
    jobs.cancel(tx, "forget", [memory.id])
    for one in with_merged(tx, [memory]).values():
        if one.inactive_reason == FORGOTTEN and one.updated_at == memory.updated_at:
            tombstones.remove_of_memory(tx, one.id)
            app_id = memories.app_id_of(tx, one.id)
            changes.unhide(tx, one.id, app_id, Cause("user", "deletion undone"))


def purge_hidden_duplicate(tx: Tx, app_id: int, sha1: str) -> None:
    """Purge a hidden row at once where the same fact is about to be stored by hand."""
    for memory in memories.hidden(tx, [app_id], sha1=sha1):
        kept = jobs.instructions(tx, "forget", memory.id) == KEEP_TRANSCRIPT
        forget(tx, [memory], keep_transcript=kept)


def forget(
    tx: Tx,
    chosen: Iterable[Memory],
    *,
    keep_transcript: bool = False,
    tombstone: bool = True,
    shown_in: Collection[int] = (),
) -> None:
    """Purge memories, and those merged into them, from every table, in the caller's transaction.

    ``keep_transcript`` leaves the messages, but lets nothing be found in them or learned from them.
    ``shown_in`` are conversations whose replies may repeat them, whatever receipts say. Without
    ``tombstone`` only these memories are purged, the same may be learned again, and titles
    of other conversations stay.
    """
    gone = with_merged(tx, chosen) if tombstone else {memory.id: memory for memory in chosen}
    if not gone:
        return
    ids = list(gone)
    homes = changes.app_ids_of(tx, ids)
    every = traces_of(tx, gone.values())
    occurrences = occurrences_of(tx, every, shown_in)
    for traces in every if tombstone else ():
        hidden = traces.memory.inactive_reason == FORGOTTEN
        # What was said between hiding and purging counts as said after it was forgotten.
        _add_tombstones(tx, traces, traces.memory.updated_at if hidden else tx.now)
    drop_receipt_lines(tx, every)
    changes.remove(tx, ids)
    reworded: set[int] = set()
    if tombstone:
        for app_id, facts in occurrences.scopes.items():
            app_ids = apps.related_ids(tx, app_id)
            _drop_proposals(tx, app_ids, facts)
            reworded |= strip_cues(tx, app_ids, facts)
            strip_sentences(tx, app_ids, facts)
    rewritten = blank_sessions(tx, occurrences, keep_transcript, describe=tombstone)
    if tombstone and not keep_transcript:
        rewritten += _blank_aside(tx, occurrences)
        _blank_attachments(tx, occurrences)
    if tombstone:
        _blank_runs(tx, occurrences)
    # The search text of a turn holds the facts that were learned from it.
    for session_id in occurrences.values:
        turns.write(tx, session_id)
        homes.add(sessions.app_id_of(tx, session_id))
    touched = reworded.union(changes.proved_memories(tx, rewritten) if rewritten else ())
    changes.blank_events(tx, ids)
    cause = Cause("user")
    for traces in every:
        changes.record(tx, traces.memory.id, traces.app_id, "forget", cause)
    unquoted = rewritten if keep_transcript else ()
    homes |= reindex(tx, touched, cause, without=unquoted)
    tx.forget_bytes(*homes)


def turns_that_may_mention(tx: Tx, traces: Traces) -> set[int]:
    """The turns whose receipt lines may hold words of this memory, or a title that mentions it."""
    found = sessions.known(tx, {proof.session_id for proof in traces.proofs})
    turns = {proof.message_id for proof in traces.proofs}
    for session_id in (i for i, session in found.items() if session.title is not None):
        turns.update(messages.ids_of(tx, session_id))
    return turns


def forget_message(tx: Tx, message: Message) -> None:
    """Remove one turn, and title and summary of its conversation where they mention it."""
    touched = _drop_turns(tx, [message])
    app_id = sessions.app_id_of(tx, message.session_id)
    messages.remove(tx, [message.id])
    proposals.remove_refused(tx, message.session_id)
    said = meaningful_words(message.content)
    gone = []
    for one in proposals.of_session(tx, message.session_id):
        why = one.reason if one.status == "refused" and one.key is not None else ""
        if one.status != "rejected" and meaningful_words(f"{one.value} {why}") & said:
            gone.append(one.id)
    proposals.remove(tx, gone)
    blank_description(tx, message.session_id, [message.content])
    tx.forget_bytes(app_id, *reindex(tx, touched, Cause("user")))


def leave_unsaid(tx: Tx, turns: Sequence[Message]) -> None:
    """Remove what was made of turns that are not shown any more, and stay: proposals, vectors of
    searches, and title and summary of their conversation where they mention them."""
    proposals.remove_of_messages(tx, [turn.id for turn in turns])
    drop_query_vectors(tx, turns)
    for session_id in {turn.session_id for turn in turns}:
        blank_description(tx, session_id, [turn.content for turn in turns])


def forget_session(tx: Tx, session_id: int) -> None:
    """Remove a conversation. What it taught stays, but without its quotes as proof."""
    turns = messages.of_session(tx, session_id, every=True)
    touched = _drop_turns(tx, turns)
    app_id = sessions.app_id_of(tx, session_id)
    for kind in ("extract", "verify"):
        jobs.cancel(tx, kind, [session_id])
    sessions.remove(tx, session_id)
    told = sa.update(t.memory_events).where(t.memory_events.c.session_id == session_id)
    tx.execute(told.values(session_id=None, message_id=None))
    tx.forget_bytes(app_id, *reindex(tx, touched, Cause("user")))


def forget_app(tx: Tx, app_id: int) -> int:
    """Remove an app with all it holds, and what other apps of the user were shown of it; how
    many memories it had."""
    rows = memories.ids_in_app(tx, app_id)
    there = [*memories.by_ids(tx, [app_id], rows).values(), *memories.hidden(tx, [app_id])]
    every = traces_of(tx, there)
    facts = {fact for traces in every for fact in traces.facts}
    shown = [traces.shown(tx) for traces in every]
    others = apps.other_ids(tx, app_id)
    touched = _drop_turns(tx, messages.of_app(tx, app_id)).difference(rows)
    notes_rows.purge_all(tx, app_id)
    passages.drop_app(tx, app_id)
    apps.remove(tx, app_id)
    # Only what other apps hold is left now.
    left = receipts.sent_to_models(tx, {i for ids in shown for i in ids})
    given = [traces for traces, ids in zip(every, shown, strict=True) if not left.isdisjoint(ids)]
    drop_receipt_lines(tx, given)
    if others:
        related = apps.related_ids(tx, others[0])
        touched |= strip_cues(tx, related, facts)
        strip_sentences(tx, related, facts)
    tx.execute(sa.delete(t.memory_events).where(t.memory_events.c.app_id == app_id))
    tx.forget_bytes(app_id, *reindex(tx, touched, Cause("user")))
    return len(rows)


def with_merged(tx: Tx, chosen: Iterable[Memory]) -> dict[int, Memory]:
    """These memories and those merged into them, by id."""
    gone: dict[int, Memory] = {}
    todo = {memory.id: memory for memory in chosen}
    while todo:
        gone |= todo
        replaced = changes.replaced_memories(tx, *todo)
        todo = {
            other.id: other
            for other in replaced
            if other.inactive_reason in ("merged", FORGOTTEN) and other.id not in gone
        }
    return gone


def _add_tombstones(tx: Tx, traces: Traces, when: datetime) -> None:
    """Store the marks by which a fact, in all its wordings, is recognised when it comes again."""
    marks: set[Mark] = set()
    for key, value in traces.facts:
        marks |= tombstones.fact_marks(key, value)
        for proof in traces.proofs:
            if proof.role == "user":
                marks |= tombstones.proof_marks(key, proof.quote, proof.message_id)
    tombstones.add(tx, traces.app_id, traces.memory.id, marks, when)


def _drop_proposals(tx: Tx, app_ids: Sequence[int], facts: Collection[tuple[str, str]]) -> None:
    """Remove proposals of one of these facts, and those that hold its words."""
    gone = {(key, text.normal_value(value)) for key, value in facts}
    lines = searched_wordings(facts)
    every = proposals.in_scopes(tx, app_ids)
    proposals.remove(
        tx,
        [
            one.id
            for one in every
            if (one.value is not None and (one.key, text.normal_value(one.value)) in gone)
            or spans_of(lines, proposals.words_of(one))
        ],
    )


def _drop_turns(tx: Tx, turns: Sequence[Message]) -> set[int]:
    """Remove turns from search before they are deleted; the memories that their quotes prove."""
    ids = [turn.id for turn in turns]
    passages.drop(tx, "turn", ids)
    receipts.remove(tx, "message", ids)
    drop_query_vectors(tx, turns)
    return set(changes.proved_memories(tx, ids))


Fact = tuple[int, str, str]
"""Id, key and value."""


def facts_in_turns(tx: Tx, turns: Sequence[Message]) -> set[Fact]:
    """The facts whose quotes stand in turns that a model is about to read."""
    ids = {i for turn in turns for i in (turn.id, turn.copied_from) if i is not None}
    return {taught.as_told() for taught in changes.taught_by(tx, ids)}


def drop_forgotten(
    tx: Tx, hits: Sequence[Hit], read: Collection[Fact], reply: str
) -> tuple[list[Hit], str]:
    """The lines given for a reply, and the reply, without what was forgotten since.

    ``read`` are the facts that the model read besides those lines. A deletion that is not purged
    yet changes nothing here: its purge will find the stored reply.
    """
    if not hits and not read:
        return [], reply
    facts = [_facts_in(hit) for hit in hits]
    gone = _forgotten(tx, {*read}.union(*facts))
    words = searched_wordings({(key, value) for _, key, value in gone})
    own = [hit.memory for hit in hits if hit.memory is not None and hit.memory.sentence]
    words |= {m.sentence for m in own if m.sentence and (m.id, m.key, m.value) in gone}
    turns = messages.by_ids(tx, [hit.id for hit in hits if hit.kind == "message"])
    found = sessions.known(tx, {turn.session_id for turn in turns.values()})
    titles = {i: session.title for i, session in found.items()}
    kept = [
        hit
        for hit, mine in zip(hits, facts, strict=True)
        if gone.isdisjoint(mine)
        and (hit.kind == "memory" or _reads_as_before(hit, turns.get(hit.id), titles, tx.zone))
    ]
    return kept, blank(reply, spans_of(words, reply))


def strip_read_cues(tx: Tx, app_id: int, read: Iterable[Fact]) -> set[int]:
    """Remove the cues and sentences that reveal any of these facts that was forgotten since a model
    read them.

    To be called in the transaction that wrote the model's answer. Gives the memories whose search
    text must be written again.
    """
    gone = [(key, value) for _, key, value in _forgotten(tx, {*read})]
    if not gone:
        return set()
    tx.forget_bytes()  # the cues were in the file for a moment
    related = apps.related_ids(tx, app_id)
    strip_sentences(tx, related, gone)
    return strip_cues(tx, related, gone)


def _forgotten(tx: Tx, facts: Collection[Fact]) -> set[Fact]:
    """Those of these facts whose memory is gone."""
    there = memories.homes_of(tx, {memory_id for memory_id, _, _ in facts})
    return {fact for fact in facts if fact[0] not in there}


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
    title, changed = hit.session_title, hit.since_changed
    now = render.past_turn(turn, zone, title=title, changed=changed, unread=hit.unread)
    return now == hit.text
