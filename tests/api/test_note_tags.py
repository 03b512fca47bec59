"""Tags of notes: the person's own, and those that are suggested, which never take their place."""

from __future__ import annotations

import pytest

from memchat import InputError, MemChat
from tests.support.leftovers import files_with
from tests.support.notes import add


def test_notes_are_tagged_listed_and_found_by_tags(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    first = add(mc, "We plant beans on Sunday.", tags=["Garden plot", "spring"])
    second = add(mc, "The roof leaks.")
    assert first.tags == ("garden-plot", "spring")
    notes.update(second.id, tags=["spring", "house"])
    assert notes.get(second.id).tags == ("house", "spring")
    assert {n.id for n in notes.list(tags=["spring"])} == {first.id, second.id}
    assert [n.id for n in notes.list(tags=["spring", "house"])] == [second.id]
    assert [hit.note_id for hit in notes.search("house").hits if hit.bm25] == [second.id]
    assert [hit.note_id for hit in notes.search("roof beans", tags=["house"]).hits] == [second.id]


def test_a_changed_text_keeps_its_tags_and_none_take_them_away(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    note = add(mc, "We plant beans.", tags=["garden"], external_id=7)
    assert notes.update(note.id, text="We plant peas.").tags == ("garden",)
    assert add(mc, "We plant corn.", external_id=7).tags == ("garden",)
    assert notes.update(note.id, tags=[]).tags == ()
    assert notes.search("garden").hits == () or not notes.search("garden").hits[0].bm25


def test_a_tag_that_is_a_secret_or_too_long_is_refused(mc: MemChat) -> None:
    note = add(mc, "We plant beans.")
    for bad in ("x" * 41, "AKIAIOSFODNN7EXAMPLE"):
        with pytest.raises(InputError):
            mc.user("ana").notes.update(note.id, tags=[bad])
    assert mc.user("ana").notes.get(note.id).tags == ()


def test_suggestions_come_from_tags_in_use_and_from_what_is_repeated(mc: MemChat) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "hobby", "grows beans", tags=["garden"])
    add(mc, "Elsewhere.", tags=["weekend", "nobody-says-this"])
    note = add(
        mc, "On the weekend we work in the garden with Ruth. Ruth digs, and I plant. Lime is short."
    )
    assert ana.notes.suggested_tags(note.id) == ["garden", "weekend", "ruth"]
    assert ana.notes.get(note.id).tags == ()  # nothing is taken without a yes
    ana.notes.update(note.id, tags=["garden"])
    assert ana.notes.suggested_tags(note.id) == ["weekend", "ruth"]


def test_suggestions_know_no_tag_of_another_person_or_app(mc: MemChat) -> None:
    mc.user("bo").notes.add("Other words.", tags=["garden"])
    mc.user("ana", app="work").notes.add("Other words.", tags=["garden"])
    note = add(mc, "We work in the garden.")
    assert mc.user("ana").notes.suggested_tags(note.id) == []


def test_suggestions_can_be_switched_off(open_store) -> None:
    mc = open_store(suggest_tags=False)
    add(mc, "Elsewhere.", tags=["garden"])
    note = add(mc, "We work in the garden.")
    assert not mc.user("ana").notes.suggested_tags(note.id)


def test_a_tag_that_goes_leaves_the_disk(mc: MemChat) -> None:
    note = add(mc, "We plant beans.", tags=["zanzibar"])
    mc.user("ana").notes.update(note.id, tags=["garden"])
    assert files_with(mc, "zanzibar") == []


def test_a_forgotten_value_is_named_and_taken_out_of_tags(mc: MemChat) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Zanzibar")
    note = add(mc, "We plant beans.", tags=["zanzibar", "garden"])
    found = ana.mentions.find([city.id])
    assert [(place.kind, place.id) for place in found.places] == [("note", note.id)]
    assert found.places[0].text == "Untitled: We plant beans. garden ········"
    ana.memories.delete(city.id, blank=found)
    assert ana.notes.get(note.id).tags == ("garden",)
    assert files_with(mc, "zanzibar") == []


def test_tags_travel_with_an_export(mc: MemChat, open_store, tmp_path) -> None:
    add(mc, "We plant beans.", tags=["garden", "spring"])
    mc.user("ana").export_file(tmp_path / "ana.jsonl")
    other = open_store(home=tmp_path / "other").user("ana")
    assert other.import_file(tmp_path / "ana.jsonl").added["note"] == 1
    assert other.notes.list()[0].tags == ("garden", "spring")
