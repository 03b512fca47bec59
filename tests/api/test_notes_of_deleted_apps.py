"""An app or a person that is deleted takes its notes along, and no byte of them is left."""

from __future__ import annotations

import logging

import pytest

from tests.support import leftovers, private

WORDS = ("quarterly", "zephyr", "Pfefferminz")


@pytest.fixture
def ana(mc):
    person = mc.user("ana")
    person.notes.add("The quarterly zephyr budget. Pfefferminz!", title="zephyr plan")
    person.notes.add("Something about rent.", title="Rent")
    other = mc.user("ana", app="work")
    other.notes.add("A desk at work.")
    assert all(leftovers.rows_with(mc, word) for word in WORDS)
    return person


def held(mc, table: str) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


def assert_gone(mc) -> None:
    for word in WORDS:
        assert (leftovers.rows_with(mc, word), leftovers.files_with(mc, word)) == ([], [])
    left = held(mc, "chunks")
    assert held(mc, "embeddings") == held(mc, "passages_fts") == left
    assert mc.repair() == []


def test_an_app_goes_with_its_notes_and_no_other_app_s(mc, ana) -> None:
    assert ana.apps.delete("default").notes == 2
    assert_gone(mc)
    assert [app.notes for app in ana.apps.list()] == [1]
    assert len(mc.user("ana", app="work").notes.list()) == 1


def test_the_log_has_the_id_and_length_of_a_deleted_note_and_no_word(mc, ana, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    (note,) = [n for n in ana.notes.list() if n.title == "zephyr plan"]
    ana.notes.delete(note.id)
    assert f"Deleted note {note.id}: 41 characters" in caplog.text
    assert not any(word.lower() in caplog.text.lower() for word in WORDS)


def test_a_person_goes_with_the_notes_of_every_app(mc, ana) -> None:
    bo = mc.user("bo")
    bo.notes.add("A boat.")
    assert ana.delete_all().notes == 3
    assert_gone(mc)
    assert held(mc, "sources") == 1 and bo.notes.search("boat").hits
