"""The contract of a store: what chats need to know of notes, run once."""

from __future__ import annotations

from memchat.db import apps, messages
from memchat.notes import rows
from memchat.notes.rows import NewChunk
from memchat.search import receipts
from memchat.search.receipts import SentPrompt
from memchat.types import Hit, NewNote
from tests.support.rows import ANA, talk
from tests.support.store import NOON


def test_notes_are_known_to_exist_until_they_are_removed_with_their_receipts(tx) -> None:
    own = apps.ensure(tx, ANA).own
    assert not rows.any_in_app(tx, own)
    note_id, _ = rows.put(
        tx, own, NewNote("Green tea.", "Tea", external_id=1), NOON, sized_for=None
    )
    assert rows.any_in_app(tx, own) and rows.existing(tx, [note_id, 99]) == {note_id}
    session_id, [said] = talk(tx, ANA, "Which tea?")
    reply = messages.add(tx, session_id, "assistant", "Green.", NOON)
    given = Hit("note", note_id, "“Tea”, 2026-05-01: Green tea.", 1.0, None, None, "words", 4)
    receipts.add(tx, reply, [given])
    receipts.add_prompt(tx, reply, SentPrompt("Green tea.", said, turns=1, shown=1))
    note = rows.get(tx, [own], note_id)
    assert note is not None
    rows.remove(tx, own, note)
    assert receipts.of_reply(tx, reply) == [] and rows.existing(tx, [note_id]) == set()
    sent = receipts.prompt_of_reply(tx, reply)
    assert sent is not None and (sent.system, sent.shown) == (None, 1)


def test_notes_that_may_mention_a_fact_are_read_by_their_chunks(tx) -> None:
    own = apps.ensure(tx, ANA).own
    note_id, _ = rows.put(tx, own, NewNote("Green tea.", external_id=1), NOON, sized_for=None)
    parts = [NewChunk(0, 5, 1, "[key]"), NewChunk(6, 4, 1)]
    chunk_id, other = rows.replace_chunks(tx, note_id, parts)
    assert rows.masked_texts(tx, [chunk_id, other]) == {chunk_id: "[key]", other: "tea."}
    assert rows.places(tx, [chunk_id, other]) == {chunk_id: 0, other: 1}
    (note,) = rows.with_chunks(tx, [chunk_id, 99])
    assert (note.id, note.title, note.text) == (note_id, None, "Green tea.")
