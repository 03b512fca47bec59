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

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from memchat.db import Tx, apps, jobs, messages, records, sessions
from memchat.facts import changes, history, lists, memories, proposals
from memchat.facts.history import Cause
from memchat.facts.memories import FORGOTTEN
from memchat.forget import redaction, tombstones
from memchat.forget.tombstones import Mark
from memchat.language import text
from memchat.language.text import folded
from memchat.notes import rows as notes_rows
from memchat.search import keywords, passages, render, turns
from memchat.types import Hit, Memory, Message

KEEP_TRANSCRIPT = "keep-transcript"
"""The kind of a purge that leaves the users' messages as they are."""


def hide(tx: Tx, memory: Memory, *, hold: float | None, how: str | None = None) -> None:
    """Take a memory, and those merged into it, out of sight, and queue the purge in ``hold``
    seconds; with None no purge is queued before ``queue_purge``.

    Nothing said until now brings it back.
    """
    now = tx.now
    gone = with_merged(tx, [memory])
    # One that was deleted by itself has a purge of its own.
    there = [one for one in gone.values() if one.inactive_reason != FORGOTTEN]
    for traces in redaction.traces_of(tx, there):
        _add_tombstones(tx, traces, now)
        changes.hide(tx, traces.memory, traces.app_id, Cause(now, "user"))
        _drop_proposals(tx, keywords.related_app_ids(tx, traces.app_id), traces.facts)
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
            changes.unhide(tx, one.id, app_id, Cause(tx.now, "user", "deletion undone"))


def purge_hidden_duplicate(tx: Tx, app_id: int, sha1: str) -> None:
    """Purge a hidden row at once where the same fact is about to be stored by hand."""
    for memory in changes.listed(tx, [app_id], sha1=sha1):
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
    now = tx.now
    gone = with_merged(tx, chosen) if tombstone else {memory.id: memory for memory in chosen}
    if not gone:
        return
    ids = list(gone)
    homes = history.app_ids_of(tx, ids)
    every = redaction.traces_of(tx, gone.values())
    occurrences = redaction.Occurrences(shown_in)
    for traces in every:
        if tombstone:
            hidden = traces.memory.inactive_reason == FORGOTTEN
            # What was said between hiding and purging counts as said after it was forgotten.
            _add_tombstones(tx, traces, traces.memory.updated_at if hidden else now)
        redaction.collect_occurrences(tx, traces, occurrences)
    redaction.drop_receipt_lines(tx, every)
    changes.remove(tx, ids)
    reworded: set[int] = set()
    if tombstone:
        for app_id, facts in occurrences.scopes.items():
            app_ids = keywords.related_app_ids(tx, app_id)
            _drop_proposals(tx, app_ids, facts)
            reworded |= strip_cues(tx, app_ids, facts)
    rewritten = redaction.blank_sessions(tx, occurrences, keep_transcript, describe=tombstone)
    # The search text of a turn holds the facts that were learned from it.
    for session_id in occurrences.values:
        turns.write(tx, session_id)
        homes.add(sessions.app_id_of(tx, session_id))
    touched = reworded.union(history.proved_memories(tx, rewritten) if rewritten else ())
    history.blank_events(tx, ids)
    cause = Cause(now, "user")
    for traces in every:
        history.record(tx, traces.memory.id, traces.app_id, "forget", cause)
    unquoted = rewritten if keep_transcript else ()
    homes |= redaction.reindex(tx, touched, cause, without=unquoted)
    tx.forget_bytes(*homes)


def turns_that_may_mention(tx: Tx, traces: redaction.Traces) -> set[int]:
    """The turns whose receipt lines may hold words of this memory, or a title that mentions it."""
    titled = sessions.titles(tx, [proof.session_id for proof in traces.proofs])
    turns = {proof.message_id for proof in traces.proofs}
    for session_id in (i for i, title in titled.items() if title is not None):
        turns.update(messages.ids_of(tx, session_id))
    return turns


def forget_message(tx: Tx, message: Message) -> None:
    """Remove one turn, and title and summary of its conversation where they mention it."""
    touched = _drop_turns(tx, [message])
    app_id = sessions.app_id_of(tx, message.session_id)
    messages.remove(tx, [message.id])
    proposals.remove_refused(tx, message.session_id)
    said = redaction.meaningful_words(message.content)
    gone = []
    for one in proposals.of_session(tx, message.session_id):
        why = one.reason if one.status == "refused" and one.key is not None else ""
        if one.status != "rejected" and redaction.meaningful_words(f"{one.value} {why}") & said:
            gone.append(one.id)
    proposals.remove(tx, gone)
    redaction.blank_description(tx, message.session_id, [message.content])
    tx.forget_bytes(app_id, *redaction.reindex(tx, touched, Cause(tx.now, "user")))


def forget_session(tx: Tx, session_id: int) -> None:
    """Remove a conversation. What it taught stays, but without its quotes as proof."""
    turns = messages.of_session(tx, session_id)
    touched = _drop_turns(tx, turns)
    app_id = sessions.app_id_of(tx, session_id)
    for kind in ("extract", "verify"):
        jobs.cancel(tx, kind, [session_id])
    sessions.remove(tx, session_id)
    history.detach_session(tx, session_id)
    tx.forget_bytes(app_id, *redaction.reindex(tx, touched, Cause(tx.now, "user")))


def forget_app(tx: Tx, app_id: int) -> int:
    """Remove an app with all it holds, and what other apps of the user were shown of it; how
    many memories it had."""
    rows = lists.ids_in_app(tx, app_id)
    there = [*memories.by_ids(tx, [app_id], rows).values(), *changes.listed(tx, [app_id])]
    every = redaction.traces_of(tx, there)
    facts = {fact for traces in every for fact in traces.facts}
    shown = [traces.shown(tx) for traces in every]
    others = apps.other_ids(tx, app_id)
    touched = _drop_turns(tx, messages.of_app(tx, app_id)).difference(rows)
    notes_rows.purge_all(tx, app_id)
    passages.drop_app(tx, app_id)
    apps.remove(tx, app_id)
    # Only what other apps hold is left now.
    left = lists.sent_to_models(tx, {i for ids in shown for i in ids})
    given = [traces for traces, ids in zip(every, shown, strict=True) if not left.isdisjoint(ids)]
    redaction.drop_receipt_lines(tx, given)
    if others:
        touched |= strip_cues(tx, keywords.related_app_ids(tx, others[0]), facts)
    history.remove_app(tx, app_id)
    tx.forget_bytes(app_id, *redaction.reindex(tx, touched, Cause(tx.now, "user")))
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


def _add_tombstones(tx: Tx, traces: redaction.Traces, when: datetime) -> None:
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
    lines = redaction.searched_wordings(facts)
    every = proposals.in_scopes(tx, app_ids)
    proposals.remove(
        tx,
        [
            one.id
            for one in every
            if (one.value is not None and (one.key, text.normal_value(one.value)) in gone)
            or redaction.spans_of(lines, proposals.words_of(one))
        ],
    )


_CUES = " UNION ALL ".join(
    f"SELECT '{table}', id, cues FROM {table}"
    " WHERE app_id IN (SELECT value FROM json_each(?1)) AND cues != ''"
    for table in ("memories", "proposals")
)


def strip_cues(tx: Tx, app_ids: Sequence[int], facts: Iterable[tuple[str, str]]) -> set[int]:
    """Remove the cues that reveal any of these facts from what these scope rows hold; the memories
    that had such cues, whose search text has to be written again."""
    words = {
        w
        for key, value in facts
        for w in redaction.meaningful_words(f"{key.replace('_', ' ')} {value}")
    }

    found = tx.rows(_CUES, records.json_list(app_ids))
    every = {cue for _, _, cues in found for cue in cues.split()}
    gone = {cue for cue in every if _cue_contains(cue, words)} | _same_stem(every, words)
    changed = set()
    for table, row_id, cues in found:
        left = " ".join(cue for cue in cues.split() if cue not in gone)
        if left != cues:
            tx.rows(f"UPDATE {table} SET cues = ? WHERE id = ?", left, row_id)
            if table == "memories":
                changed.add(int(row_id))
    return changed


def _cue_contains(cue: str, words: Iterable[str]) -> bool:
    said = text.fold(cue).text
    return any(w == said or (len(w) >= _shortest_match(w) and w in said) for w in words)


def _same_stem(every: Iterable[str], words: Iterable[str]) -> set[str]:
    """The cues that the search index treats as another form of any of these words."""
    # The index does not hold times and decimals ("day:2") as words.
    wanted = {folded(word) for word in words if word.isalpha()}
    said = {cue: folded(cue) for cue in every}
    stems = keywords.stems(wanted.union(said.values()))
    forgotten = {stems.get(word, word) for word in wanted}
    return {cue for cue, word in said.items() if stems.get(word, word) in forgotten}


def _shortest_match(word: str) -> int:
    unspaced = text.UNSPACED.search(word)
    return redaction.SHORTEST_UNSPACED if unspaced else redaction.SHORTEST_ECHO


def _drop_turns(tx: Tx, turns: Sequence[Message]) -> set[int]:
    """Remove turns from search before they are deleted; the memories that their quotes prove."""
    ids = [turn.id for turn in turns]
    messages.unindex(tx, ids)
    redaction.drop_turn_lines(tx, ids)
    redaction.drop_query_vectors(tx, turns)
    return set(history.proved_memories(tx, ids))


Fact = tuple[int, str, str]
"""Id, key and value."""


def facts_in_turns(tx: Tx, turns: Sequence[Message]) -> set[Fact]:
    """The facts whose quotes stand in turns that a model is about to read."""
    ids = {i for turn in turns for i in (turn.id, turn.copied_from) if i is not None}
    drawn = history.learned_from(tx, sorted(ids))
    return {(fact.memory_id, fact.key, fact.value) for fact in drawn}


def drop_forgotten(
    tx: Tx, hits: Sequence[Hit], read: Collection[Fact], reply: str
) -> tuple[list[Hit], str]:
    """The lines given for a reply, and the reply, without what was forgotten since.

    ``read`` are the facts that the model read besides those lines. A deletion that is not purged
    yet changes nothing here: its purge will find the stored reply.
    """
    facts = [_facts_in(hit) for hit in hits]
    facts_read = {*read}.union(*facts)
    there = changes.existing(tx, {memory_id for memory_id, _, _ in facts_read})
    gone = {fact for fact in facts_read if fact[0] not in there}
    words = {w for _, key, value in gone for w in (value, f"{key}: {value}")}
    turns = messages.by_ids(tx, [hit.id for hit in hits if hit.kind == "message"])
    titles = sessions.titles(tx, [turn.session_id for turn in turns.values()])
    kept = [
        hit
        for hit, mine in zip(hits, facts, strict=True)
        if gone.isdisjoint(mine)
        and (hit.kind == "memory" or _reads_as_before(hit, turns.get(hit.id), titles, tx.zone))
    ]
    return kept, redaction.blank(reply, redaction.spans_of(words, reply))


def strip_read_cues(tx: Tx, app_id: int, read: Iterable[Fact]) -> set[int]:
    """Remove the cues that reveal any of these facts that was forgotten since a model read them.

    To be called in the transaction that wrote the model's answer. Gives the memories whose search
    text must be written again.
    """
    facts_read = {*read}
    there = changes.existing(tx, {memory_id for memory_id, _, _ in facts_read})
    gone = {(key, value) for memory_id, key, value in facts_read if memory_id not in there}
    if not gone:
        return set()
    tx.forget_bytes()  # the cues were in the file for a moment
    return strip_cues(tx, keywords.related_app_ids(tx, app_id), gone)


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
