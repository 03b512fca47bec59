"""Faults in what is derived from the texts of notes: doctor names them, and repair mends them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from memchat import MemChat
from memchat.db.database import FILE
from tests.support import private

LONG = " ".join(f"On day {n} John called about the rent of flat {n}." for n in range(150))
FAULTS = {
    "a chunk beyond the end of the text": "UPDATE chunks SET size = size + 5000 WHERE id = 2",
    "the hash of another text": "UPDATE chunks SET hash = 'x' WHERE id = 2",
    "a chunk at another place": 'UPDATE chunks SET "offset" = "offset" + 3 WHERE id = 2',
    "a chunk that is gone": "DELETE FROM chunks WHERE id = 2",
    "all chunks gone": "DELETE FROM chunks WHERE source_id = 1",
    "another text": "UPDATE sources SET content = 'John called.' WHERE id = 1",
}


@pytest.fixture
def mc(mc: MemChat) -> MemChat:
    ana = mc.user("ana")
    assert ana.notes.add(LONG, title="Rent", pair_id=5).chunks > 2
    ana.notes.add("The marketing budget is forty.")
    assert mc.repair() == []
    return mc


def run(mc: MemChat, *statements: str) -> None:
    with private.database(mc).write() as tx:
        for statement in statements:
            tx.connection.exec_driver_sql(statement)


def count(mc: MemChat, table: str) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


def state(mc: MemChat, name: str) -> str:
    return next((one.state for one in mc.doctor() if one.name == name), "ok")


def found(mc: MemChat) -> list[tuple[int, str | None]]:
    hits = mc.user("ana").notes.search("rent of flat 7", include_text=True).hits
    return [(hit.offset, hit.text) for hit in hits]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_note_whose_chunks_do_not_fit_its_text_is_cut_anew(mc, fault) -> None:
    before = found(mc)
    run(mc, FAULTS[fault])
    (check,) = [one for one in mc.doctor() if one.name == "notes"]
    assert check.state == "problem" and "1 note with chunks that do not fit" in check.detail
    assert "memchat doctor --repair" in check.remedy
    assert "cut 1 note anew, whose chunks did not fit the text" in mc.repair()
    mc.jobs.run()
    assert mc.repair() == [] and state(mc, "notes") == state(mc, "vectors") == "ok"
    if fault != "another text":
        assert found(mc) == before
    assert all(hit.pair_id in (5, None) for hit in mc.user("ana").notes.search("rent").hits)


def test_a_chunk_of_a_note_that_is_gone_is_deleted_with_words_and_vector(mc) -> None:
    left = count(mc, "chunks") - 1
    with closing(sqlite3.connect(mc.settings.home / FILE)) as db, db:
        db.execute("DELETE FROM sources WHERE id = 2")  # this connection cascades nothing
    assert state(mc, "notes") == "problem"
    assert mc.repair()[0] == "deleted 1 chunk of notes that are gone"
    assert count(mc, "chunks") == count(mc, "passages_fts") == count(mc, "embeddings") == left
    assert mc.repair() == [] and state(mc, "notes") == "ok"


def test_keyword_rows_of_chunks_are_written_anew(mc) -> None:
    run(mc, "DELETE FROM passages_fts WHERE rowid = 7")
    assert state(mc, "keyword search") == "problem"
    assert mc.repair() == ["wrote 1 keyword row anew"]
    assert state(mc, "keyword search") == "ok" and mc.repair() == []


def test_lost_vectors_of_chunks_are_queued_and_made(mc) -> None:
    before = found(mc)
    run(mc, "DELETE FROM embeddings WHERE hash = (SELECT hash FROM chunks WHERE id = 1)")
    assert state(mc, "vectors") == "problem"
    assert "queued 1 text without a vector; memchat jobs run makes them" in mc.repair()
    mc.jobs.run()
    assert mc.repair() == [] and state(mc, "vectors") == "ok"
    assert found(mc) == before


def test_doctor_counts_notes_and_the_vectors_of_their_chunks(mc) -> None:
    chunks = count(mc, "chunks")
    detail = {one.name: one.detail for one in mc.doctor()}
    assert detail["database"].endswith("0 memories, 2 notes")
    assert f"{chunks} of {chunks} chunks of notes" in detail["vectors"]
