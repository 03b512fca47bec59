"""A deleted note, and the words that an edit took out, are nowhere on the disk."""

from __future__ import annotations

import logging

import pytest

from memchat.providers.hash_embedder import HashEmbedder
from memchat.vectors import vector_index
from tests.support import leftovers, notes, private

SECRET = "The Zanzibar treasure lies below the Quixotic mill."
WORDS = ("Zanzibar", "Quixotic", "Krakatoa")


def bytes_of_vector(text: str) -> bytes:
    vectors, _ = HashEmbedder().embed_documents([text])
    return vectors[0].tobytes()


def files_with_bytes(mc, held: bytes) -> list[str]:
    files = [path for path in mc.settings.home.rglob("*") if path.is_file()]
    return [path.name for path in files if held in path.read_bytes()]


@pytest.fixture
def small_shards(monkeypatch) -> None:
    """Every index is large enough to be saved."""
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("how", ["deleted", "edited", "replaced"])
def test_nothing_is_left_of_a_note_or_of_what_an_edit_took_out(open_store, caplog, how) -> None:
    caplog.set_level(logging.DEBUG)
    mc = open_store()
    ana = mc.user("ana").notes
    other = notes.add(mc, "The other note stays where it is.")
    note = notes.add(mc, SECRET, title="About Krakatoa", external_id="z")
    assert ana.search("zanzibar treasure").hits and ana.search("other note").hits
    mc.close()
    held = bytes_of_vector(SECRET)
    assert len(files_with_bytes(mc, held)) == 2, "the rows and the saved index"
    mc = open_store()
    ana = mc.user("ana").notes
    assert ana.search("zanzibar").hits
    if how == "deleted":
        assert ana.delete(note.id).count == 1
    elif how == "edited":
        ana.update(note.id, text="Nothing of it.", title="Nothing")
    else:
        notes.add(mc, "Nothing of it.", external_id="z")
    for word in WORDS:
        assert leftovers.files_with(mc, word) == leftovers.rows_with(mc, word) == [], word
        assert word.lower() not in caplog.text.lower()
    assert files_with_bytes(mc, held) == []
    assert not any(h.note_id == note.id for h in ana.search("zanzibar treasure").hits)
    mc.close()
    assert files_with_bytes(mc, held) == []
    mc = open_store()
    assert [h.note_id for h in mc.user("ana").notes.search("other stays").hits] == [other.id]


def test_deleting_the_note_deletes_its_rows_and_no_others(mc) -> None:
    stays, goes = notes.add(mc, notes.essay(2)), notes.add(mc, notes.essay(3))
    chunk_count, vectors = stays.chunks, len({row[0] for row in notes.chunks(mc)})
    mc.user("ana").notes.delete(goes.id)
    assert notes.count(mc, "sources") == 1
    assert notes.count(mc, "chunks") == notes.count(mc, "chunks_fts") == chunk_count
    assert notes.count(mc, "embeddings") == chunk_count < vectors
    assert notes.count(mc, "jobs WHERE kind = 'note'") == 1


def test_a_chunk_that_is_gone_leaves_its_note(mc) -> None:
    note = notes.add(mc, "The tide is high.")
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("DELETE FROM chunks")
    assert mc.user("ana").notes.get(note.id).text == "The tide is high."
    assert mc.user("ana").notes.reindex().count == 1
    assert mc.user("ana").notes.search("tide").hits
