"""The contract of a store, part on notes: rows, chunks, figures, what fits a model."""

from __future__ import annotations

from datetime import timedelta

from memchat.db import Tx, apps
from memchat.db.database import Database
from memchat.notes import rows
from memchat.notes.rows import Filter, NewChunk
from memchat.search import embeddings, passages, question_dates
from memchat.search.ranking import ScoreParts
from memchat.types import NewNote, NoteCounts, NoteUse, Service
from tests.support.notes import chunk_ids
from tests.support.rows import ANA, BO
from tests.support.store import NOON

TEXT = "The boat is blue. The key is under the mat."
PARTS = [NewChunk(0, 17, 5), NewChunk(18, 25, 7, "The key is [place].")]


def keep(tx: Tx, app_id: int, external_id: int | str = 1, text: str = TEXT) -> int:
    new = NewNote(text, "Notes", external_id=external_id, created_at=NOON)
    note_id, reworded = rows.put(tx, app_id, new, NOON, sized_for="some/model 256")
    assert not reworded
    parts = [part for part in PARTS if part.offset < len(text)]
    rows.replace_chunks(tx, note_id, parts, 3, 4)
    return note_id


def test_a_note_is_put_read_replaced_and_removed(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        other = apps.ensure(tx, BO).own
        note_id = keep(tx, own)
        note = rows.get(tx, [own], note_id)
        assert note is not None and rows.by_external_id(tx, own, "memo", 1) == note
        assert rows.get(tx, [other], note_id) is None
        assert rows.by_external_id(tx, own, "memo", "1") is None
        assert (note.text, note.title, note.chunks) == (TEXT, "Notes", 2)
        assert rows.ids(tx, [own, other]) == [note_id]
        assert (len(rows.ids(tx, [own])), rows.ids(tx, [other])) == (1, [])
        assert rows.app_id_of(tx, note_id) == own
        assert rows.indexed(tx, [note_id, 99]) == {}  # its vectors are still to be made
        (listed,) = rows.listed(tx, [own], Filter(type="memo"), limit=5)
        assert listed.id == note_id and listed.text == ""
        assert rows.listed(tx, [own], limit=5, before=(NOON, note_id)) == []
        rows.change(tx, [note_id], missing=1)
        marked = rows.get(tx, [own], note_id)
        assert marked is not None and marked.missing
        later = NOON + timedelta(days=1)
        new = NewNote("Shorter.", external_id=1, profile="document")
        assert rows.put(tx, own, new, later, sized_for=None) == (note_id, True)
        again = rows.get(tx, [own], note_id)
        assert again is not None and (again.created_at, again.updated_at) == (NOON, later)
        assert (again.title, again.profile, again.missing) == (None, "document", True)
        rows.remove(tx, own, again)
        assert rows.get(tx, [own], note_id) is None and rows.app_id_of(tx, note_id) is None
        assert chunk_ids(tx, note_id) == []


def test_what_a_model_reads_whole_is_noted(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        first, second = keep(tx, own), keep(tx, own, "two")
        assert rows.sized_for(tx, first) == "some/model 256"
        assert rows.not_sized_for(tx, "some/model 256", 5) == []
        assert rows.not_sized_for(tx, "other 8", 1) == [first]
        rows.change(tx, [first], sized_for="other 8")
        assert rows.not_sized_for(tx, "other 8", 5) == [second]
        assert rows.sized_for(tx, 99) is None


def test_chunks_are_stored_with_their_words_and_found_by_every_filter(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        note_id = keep(tx, own)
        assert rows.chunk_parts(tx, note_id) == PARTS
        assert rows.chunk_texts(tx, note_id) == ["The boat is blue.", "The key is [place]."]
        boat, key = chunk_ids(tx, note_id)
        assert rows.listed(tx, [own], limit=1)[0].id == note_id
        assert rows.chunk_ids(tx, [own], Filter()) == [boat, key]
        for one in (Filter(note_ids=[note_id]), Filter(type="memo"), Filter(pair_id=3)):
            assert rows.chunk_ids(tx, [own], one) == [boat, key]
        for one in (Filter(note_ids=[]), Filter(type="file"), Filter(parent_id=3)):
            assert rows.chunk_ids(tx, [own], one) == []
        day = NOON, NOON + timedelta(days=1)
        assert question_dates.said(tx, "chunk", [own], day, 5, []) == [key, boat]
        parts = ScoreParts(1.0, None, 1.0)
        (hit,) = rows.hits(tx, {key: parts}, with_text=True)
        assert hit.text == "The key is under the mat." and hit.hash == passages.text_hash(
            "The key is [place]."
        )


def test_chunks_lack_vectors_until_they_are_made(store: Database) -> None:
    import numpy as np

    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        note_id = keep(tx, own)
        service = embeddings.register_service(tx, Service("hash", "words", 2, 100))
        embeddings.use_service(tx, service)
        ids = chunk_ids(tx, note_id)
        found = passages.to_embed(tx, service, [i << 2 | 3 for i in ids]).values()
        assert sorted(text for _, text in found) == ["The boat is blue.", "The key is [place]."]
        lacking = [key for key, _ in found]
        assert rows.count_with_chunks(tx, ids) == 1
        assert (
            passages.unqueued(tx, service, own, "chunk") == []
        )  # they wait since they were written
        assert len(ids) == 2
        assert rows.queued(tx, own) == (1, 0) and rows.indexed(tx, [note_id]) == {}
        assert passages.count_chunks_lacking(tx, service, own) == 2
        vector = np.array([1, 0], np.float32)
        before = passages.latest_change(tx, own)
        passages.keep_vectors(tx, service, dict.fromkeys(lacking, vector))
        assert passages.latest_change(tx, own) > before
        assert rows.queued(tx, own) == (0, 0) and [*rows.indexed(tx, [note_id])] == [note_id]
        held = embeddings.of_kind(tx, service, "chunk", own)
        assert len(held.ids) == 2 and held.waiting == [] and held.vectors.tolist() == [[1, 0]] * 2
        assert passages.count_chunks_lacking(tx, service, own) == 0


def test_matches_and_reads_are_counted_in_their_scope(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        other = apps.ensure(tx, BO).own
        note_id = keep(tx, own)
        boat, key = chunk_ids(tx, note_id)
        rows.count_matches(tx, [boat, key, 99])
        assert rows.unread(tx, own, 5) == [NoteUse(note_id, "memo", "Notes", 2, 0)]
        assert rows.count_reads(tx, [other], [boat]) == 0
        assert rows.count_reads(tx, [own], [boat, 99]) == 1
        assert rows.unread(tx, own, 5) == []
        assert rows.by_type(tx, own) == {"memo": NoteCounts(1, 2, 2, 1)}
        assert rows.queued(tx, own) == (1, 0)
