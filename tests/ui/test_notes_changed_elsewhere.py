"""Notes that are changed or deleted, here or in another tab, while a tab of the app shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.types import Note
from tests.support.ui.tab import ANA, app, buttons, press, text


def keep(mc: MemChat, words: str, title: str | None = None, **more: object) -> Note:
    note = mc.user(**ANA).notes.add(words, title=title, **more)  # type: ignore[arg-type]
    assert note is not None
    return note


def editing(note: Note) -> AppTest:
    at = app("notes")
    press(at, f"note-{note.id}")
    press(at, "edit-note")
    return at


def test_a_new_title_leaves_the_text_that_another_tab_saved_meanwhile(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.", "Kiln")
    at, notes = editing(note), mc.user(**ANA).notes
    notes.update(note.id, text="The kiln is cold.")
    at.text_input(key=f"draft-title-{note.id}").set_value("Old kiln")
    press(at, "save-note")
    kept = notes.get(note.id)
    assert (kept.title, kept.text) == ("Old kiln", "The kiln is cold.")


def test_a_text_that_another_tab_changed_is_replaced_only_when_it_is_saved_again(
    mc: MemChat,
) -> None:
    note = keep(mc, "The kiln is hot.")
    at, notes = editing(note), mc.user(**ANA).notes
    notes.update(note.id, text="The kiln is cold.")
    at.text_area(key=f"draft-text-{note.id}").set_value("The kiln is lit.")
    press(at, "save-note")
    assert "This note was changed elsewhere since you opened it" in text(at)
    assert notes.get(note.id).text == "The kiln is cold."
    assert at.text_area(key=f"draft-text-{note.id}").value == "The kiln is lit."
    press(at, "save-note")
    assert notes.get(note.id).text == "The kiln is lit."


def test_an_editor_that_is_opened_again_begins_with_the_note_as_it_is_then(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.")
    at, notes = editing(note), mc.user(**ANA).notes
    press(at, "leave-note")
    notes.update(note.id, text="The kiln is cold.")
    press(at, "edit-note")
    assert at.text_area(key=f"draft-text-{note.id}").value == "The kiln is cold."


def test_words_for_a_note_that_was_deleted_meanwhile_stay_in_the_form(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.")
    at = editing(note)
    mc.user(**ANA).notes.delete(note.id)
    at.text_area(key=f"draft-text-{note.id}").set_value("What I wrote for an hour.")
    press(at, "save-note")
    assert "This note was deleted elsewhere; copy your words to a new one." in text(at)
    assert at.text_area(key=f"draft-text-{note.id}").value == "What I wrote for an hour."
    press(at, "leave-note")
    assert "it was deleted, or is another's" in text(at) and "No notes yet" in text(at)


def test_a_long_note_is_shown_as_it_was_saved(mc: MemChat) -> None:
    words = "The river rose in the night. " * 10_000
    note = keep(mc, words)
    at = editing(note)
    at.text_area(key=f"draft-text-{note.id}").set_value(f"At last! {words}")
    press(at, "save-note")
    (body,) = [h.proto.body for h in at.get("html") if 'dir="auto"' in h.proto.body]
    assert "At last!" in body


def test_an_answer_is_put_away_with_a_note_that_is_deleted(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.", "Kiln")
    at = app("notes")
    at.text_input(key="notes-words").set_value("kiln")
    press(at, "ask-notes")
    assert "The kiln is hot." in text(at)
    press(at, f"note-{note.id}")
    press(at, "delete-note")
    assert "The kiln is hot." not in text(at)


def test_nothing_of_an_answer_is_left_after_everything_is_wiped(mc: MemChat) -> None:
    keep(mc, "The kiln is hot.", "Kiln")
    at = app("notes")
    at.text_input(key="notes-words").set_value("kiln")
    press(at, "ask-notes")
    assert "The kiln is hot." in text(at)
    at.switch_page("views/settings.py").run()
    press(at, "wipe")
    at.text_input(key="wipe-name").set_value("ana").run()
    press(at, "wipe-yes")
    keep(mc, "Another.")
    at.switch_page("views/notes.py").run()
    assert "Another." in [button.label.replace("\\", "") for button in at.button]
    assert "The kiln is hot." not in text(at) and not at.text_input(key="notes-words").value


def test_the_page_before_is_shown_when_all_notes_of_the_last_one_are_deleted(mc: MemChat) -> None:
    begun = datetime(2024, 5, 1, 12, tzinfo=UTC)
    for n in range(13):
        keep(mc, f"Memo {n}", created_at=begun + timedelta(days=n))
    at = app("notes")
    press(at, "next")
    (last,) = buttons(at, "note-")
    press(at, last)
    press(at, "delete-note")
    assert len(buttons(at, "note-")) == 12 and "Nothing fits" not in text(at)
