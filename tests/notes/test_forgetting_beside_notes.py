"""A fact is forgotten whose words stand in a note, too: the note is named, and stays."""

from __future__ import annotations

import pytest

from memchat import MemChat
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


def test_forgetting_leaves_the_note_and_blanking_it_deletes_it(mc: MemChat, number: int) -> None:
    ana = mc.user("ana")
    found = ana.mentions.find([number])
    assert found is not None
    ana.memories.delete(number)
    assert ana.notes.get(1).text == TEXT
    ana.mentions.blank(found)
    assert [note.title for note in ana.notes.list()] == ["Tea"]
    assert [note.text for note in mc.user("ana", app="work").notes.list()] == [""]  # not there
    mc.user("ana", app="work").notes.delete(3)
    assert rows_with(mc, "quokkaland") == [] and files_with(mc, "quokkaland") == []


def test_the_chat_names_the_note_and_asks_only_about_the_rest(mc: MemChat, number: int) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Forget my employer.").read()
    assert chat.question is not None
    said = chat.send("yes").read()
    assert "It is also in the note 1 of 2026-05-01 (“The meeting: Minutes of May." in said
    assert "`memchat notes delete ID` deletes it" in said and "Blank all" not in said
    assert chat.question is None and ana.notes.get(1).text == TEXT
