"""A deleted note, and the words that an edit took out, are nowhere on the disk."""

from __future__ import annotations

import logging

import pytest

from memchat.errors import NotFound
from memchat.providers.embedders import HashEmbedder
from memchat.search import vector_index
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
    assert notes.count(mc, "chunks") == notes.count(mc, "passages_fts") == chunk_count
    assert notes.count(mc, "embeddings") == chunk_count < vectors
    assert [job.target_id for job in mc.jobs.list() if job.kind == "note"] == [stays.id]


def test_a_chunk_that_is_gone_leaves_its_note(mc) -> None:
    note = notes.add(mc, "The tide is high.")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("DELETE FROM chunks")
    assert mc.user("ana").notes.get(note.id).text == "The tide is high."
    assert mc.user("ana").notes.reindex().count == 1
    assert mc.user("ana").notes.search("tide").hits


# --- held


def held_words(mc) -> list[str]:
    return [word for word in WORDS if leftovers.files_with(mc, word)]


def test_a_deletion_that_is_held_is_out_of_use_at_once_and_undone_as_it_was(mc) -> None:
    ana = mc.user("ana").notes
    note = notes.add(mc, SECRET, title="About Krakatoa", external_id="z", pair_id=3)
    (found,) = ana.search("zanzibar").hits
    vectors = notes.count(mc, "embeddings")
    assert ana.delete(note.id, hold=10).count == 1
    assert ana.search("zanzibar treasure").hits == () and not ana.list()
    assert ana.report().types == {} and "Quixotic" not in str([*mc.user("ana").export()])
    with pytest.raises(NotFound):
        ana.get(note.id)
    with pytest.raises(NotFound, match="cannot be undone"):
        mc.user("bo").notes.restore(note.id)
    assert ana.restore(note.id) == note
    assert ana.search("zanzibar treasure").hits[0].match_count == found.match_count + 1
    assert notes.count(mc, "embeddings") == vectors
    assert notes.count(mc, "tombstones") == notes.count(mc, "jobs WHERE kind = 'delete'") == 0
    assert mc.jobs.run(user="ana").failed == [] and ana.get(note.id) == note


def test_a_held_deletion_is_for_good_after_its_time_also_at_the_next_start(
    open_store, clock
) -> None:
    mc = open_store()
    note = notes.add(mc, SECRET, title="About Krakatoa", external_id="z")
    mc.user("ana").notes.delete(note.id, hold=10)
    mc.close()  # as when the app is killed
    mc = open_store()
    clock.advance(seconds=9)
    mc.jobs.run(user="ana")
    assert held_words(mc) == list(WORDS)
    clock.advance(seconds=2)
    assert mc.jobs.due(user="ana")
    mc.jobs.run(user="ana")
    assert held_words(mc) == [] and notes.count(mc, "embeddings") == 0
    with pytest.raises(NotFound, match="cannot be undone"):
        mc.user("ana").notes.restore(note.id)
    assert not mc.user("ana").notes.list()


def test_a_note_that_was_kept_anew_meanwhile_is_not_replaced_by_the_deleted_one(mc) -> None:
    ana = mc.user("ana").notes
    note = notes.add(mc, SECRET, external_id="z")
    ana.delete(note.id, hold=10)
    new = notes.add(mc, "Other words.", external_id="z")
    with pytest.raises(NotFound, match="cannot be undone"):
        ana.restore(note.id)
    assert [one.id for one in ana.list()] == [new.id]


def test_deleting_the_app_leaves_nothing_of_a_note_whose_deletion_is_held(mc) -> None:
    note = notes.add(mc, SECRET, title="About Krakatoa")
    mc.user("ana").notes.delete(note.id, hold=10)
    mc.user("ana").apps.delete("default")
    assert held_words(mc) == [] and notes.count(mc, "embeddings") == 0
    with pytest.raises(NotFound):
        mc.user("ana").notes.restore(note.id)
