"""A fact is forgotten whose words stand in a note, too: the note is named, and stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memchat import MemChat, NotFound
from tests.support import notes
from tests.support.leftovers import files_with, rows_with

TEXT = "Minutes of May. Quokkaland wants the boxes earlier. The rest was about lamps."


@pytest.fixture
def number(mc: MemChat) -> int:
    """A fact whose words are in a note, and in none of another app."""
    mc.user("ana").notes.add(TEXT, title="The meeting")
    mc.user("ana").notes.add("Green tea is too bitter.", title="Tea")
    mc.user("ana", app="work").notes.add(TEXT)
    return mc.user("ana").memories.add("profile", "employer", "Quokkaland Ltd").id


def test_the_note_is_named_with_its_words_blanked(mc: MemChat, number: int) -> None:
    found = mc.user("ana").mentions.find([number])
    assert found is not None and found.counted == "1 note"
    (place,) = found.notes
    assert (place.kind, place.id) == ("note", 1)
    assert place.text.startswith("The meeting: Minutes of May. ··········") and (
        "okkaland" not in place.text
    )
    assert found.without_notes.places == ()


def test_a_fact_of_every_app_is_looked_for_in_the_notes_of_all(mc: MemChat) -> None:
    mc.user("ana", app="work").notes.add(TEXT)
    kept = mc.user("ana").memories.add("profile", "employer", "Quokkaland Ltd", all_apps=True)
    found = mc.user("ana").mentions.find([kept.id])
    assert found is not None and [place.kind for place in found.places] == ["note"]


def test_a_title_counts_as_well(mc: MemChat) -> None:
    mc.user("ana").notes.add("Boxes, lamps.", title="Visit to Quokkaland")
    kept = mc.user("ana").memories.add("profile", "employer", "Quokkaland Ltd")
    found = mc.user("ana").mentions.find([kept.id])
    assert found is not None and found.notes[0].text == "Visit to ··········"


def test_forgetting_leaves_the_note_and_blanking_takes_only_the_words(
    mc: MemChat, number: int
) -> None:
    ana = mc.user("ana")
    found = ana.mentions.find([number])
    assert found is not None
    ana.memories.delete(number)
    before = ana.notes.get(1)
    assert before.text == TEXT
    ana.mentions.blank(found)
    after = ana.notes.get(1)
    assert after.text == TEXT.replace("Quokkaland", "··········")
    assert (after.title, after.created_at) == ("The meeting", before.created_at)
    assert ana.notes.search("lamps").hits[0].note_id == 1
    assert not any(hit.confident for hit in ana.notes.search("Quokkaland").hits)
    mc.user("ana", app="work").notes.delete(3)
    assert rows_with(mc, "quokkaland") == [] and files_with(mc, "quokkaland") == []


def test_no_undo_of_a_deleted_note_brings_back_words_that_were_blanked_meanwhile(
    mc: MemChat, number: int
) -> None:
    ana = mc.user("ana")
    deleted = ana.notes.add(f"Again: {TEXT}", title="Another meeting")
    ana.notes.delete(deleted.id, hold=10)
    found = ana.mentions.find([number])
    assert found is not None and [place.id for place in found.notes] == [1]
    ana.memories.delete(number)
    ana.mentions.blank(found)
    with pytest.raises(NotFound):
        ana.notes.restore(deleted.id)


def test_only_the_chunks_that_held_a_word_are_embedded_anew(mc: MemChat, number: int) -> None:
    ana = mc.user("ana")
    long = ana.notes.add(f"{notes.essay()}\n\n{TEXT}\n\nThe password is hunter2-Quux.", title="Big")
    assert long is not None and long.chunks > 2
    found = ana.mentions.find([number])
    assert found is not None
    chosen = replace(found, places=tuple(p for p in found.notes if p.id == long.id))
    before = notes.chunks(mc)
    ana.memories.delete(number)
    ana.mentions.blank(chosen)
    after = notes.chunks(mc)
    assert len(before) == len(after) and len({*before} - {*after}) == 1
    assert ana.notes.report().waiting == 1
    mc.jobs.run(user="ana")
    assert ana.notes.report().chunks_without_vector == 0


def test_the_words_of_a_title_are_blanked_and_undoing_brings_all_back(mc: MemChat) -> None:
    ana = mc.user("ana")
    note = ana.notes.add("Boxes, lamps.", title="Visit to Quokkaland")
    kept = ana.memories.add("profile", "employer", "Quokkaland Ltd")
    found = ana.mentions.find([kept.id])
    assert note is not None and found is not None
    ana.memories.delete(kept.id, hold=10)
    ana.mentions.blank(found, hold=10)
    ana.memories.restore(kept.id)
    mc.jobs.run(user="ana")
    assert ana.notes.get(note.id) == note
    ana.memories.delete(kept.id, blank=found)
    assert ana.notes.get(note.id).title == "Visit to ··········"


def test_a_note_with_a_file_is_told_apart(mc: MemChat, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(TEXT)
    ana = mc.user("ana")
    ana.notes.add_files([tmp_path / "a.md"])
    kept = ana.memories.add("profile", "employer", "Quokkaland Ltd")
    found = ana.mentions.find([kept.id])
    assert found is not None and [place.has_file for place in found.notes] == [True]
    ana.memories.delete(kept.id, blank=found)
    assert "Quokkaland" not in ana.notes.list()[0].text
    assert "Quokkaland" in (tmp_path / "a.md").read_text()
    assert ana.notes.add_files([tmp_path / "a.md"]).unchanged == 1, "read again after a change only"


def test_the_chat_names_the_note_and_asks_only_about_the_rest(mc: MemChat, number: int) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Forget my employer.").read()
    assert chat.question is not None
    said = chat.send("yes").read()
    assert "It is also in the note 1 of 2026-05-01 (“The meeting: Minutes of May." in said
    assert "`memchat notes delete ID` deletes it" in said and "Blank all" not in said
    assert chat.question is None and ana.notes.get(1).text == TEXT
