"""The contract of a store, part on notes whose deletion can still be undone."""

from __future__ import annotations

from datetime import timedelta

from memchat.db import Tx, apps, jobs, messages
from memchat.notes import rows
from memchat.notes.rows import NewChunk
from memchat.search import receipts
from memchat.search.ranking import ScoreParts
from memchat.types import Hit, NewNote, Note
from tests.support.rows import ANA, BO, talk
from tests.support.store import NOON

SCORE = ScoreParts(1.0, None, None)
PURGE_AT = NOON + timedelta(seconds=10)


def put(tx: Tx, own: int) -> Note:
    new = NewNote("The boat is blue.", "Boat", external_id=1, created_at=NOON)
    note_id, _ = rows.put(tx, own, new, NOON, sized_for="some/model 256")
    part = NewChunk(0, 17, 5, "The boat is [colour].")
    rows.replace_chunks(tx, note_id, [part], 3, 4)
    rows.count_matches(tx, [1])
    note = rows.get(tx, [own], note_id)
    assert note is not None
    return note


def test_a_note_whose_deletion_is_held_comes_back_as_it_was_or_is_purged(tx) -> None:
    own = apps.ensure(tx, ANA).own
    other = apps.ensure(tx, BO).own
    note = put(tx, own)
    parts, hits = rows.chunk_parts(tx, note.id), rows.hits(tx, {1: SCORE}, with_text=True)
    rows.hold(tx, own, note, purge_at=PURGE_AT)
    assert rows.get(tx, [own], note.id) is None and rows.chunk_parts(tx, note.id) == []
    assert rows.deleted_at(tx, own, "memo", 1) == NOON
    assert rows.restore(tx, other, note.id) is None
    assert rows.restore(tx, own, note.id) == note
    assert rows.chunk_parts(tx, note.id) == parts
    assert rows.hits(tx, {1: SCORE}, with_text=True) == hits
    assert rows.deleted_at(tx, own, "memo", 1) is None
    assert rows.restore(tx, own, note.id) is None, "nothing is held any more"
    rows.hold(tx, own, note, purge_at=PURGE_AT)
    how = jobs.instructions(tx, rows.KIND, note.id)
    assert how is not None
    rows.purge(tx, note.id, how)
    rows.purge_all(tx, own)
    assert jobs.instructions(tx, rows.KIND, note.id) is None


def test_what_chats_hold_of_a_note_is_removed(tx) -> None:
    own = apps.ensure(tx, ANA).own
    note = put(tx, own)
    session_id, _ = talk(tx, ANA, "Which boat?")
    reply = messages.add(tx, session_id, "assistant", "Blue.", NOON)
    given = Hit("note", note.id, "Boat: The boat is blue.", 1.0, None, None, "words", 4)
    receipts.add(tx, reply, [given])
    rows.remove_from_chats(tx, note.id)
    assert receipts.of_reply(tx, reply) == [] and rows.get(tx, [own], note.id) == note
