"""The notes page."""

from __future__ import annotations

from memchat import MemChat
from tests.support.ui.tab import ANA, app, buttons, press, text
from ui.desk import Desk


def test_no_notes_yet_says_what_they_are_and_offers_both_ways_in(desk: Desk) -> None:
    at = app("notes")
    assert "A note is a memo or a document" in text(at)
    assert buttons(at, "notes-") == ["notes-add", "notes-upload"]


def test_a_pasted_note_is_kept_and_read_whole(mc: MemChat) -> None:
    at = app("notes")
    press(at, "notes-add")
    at.text_area(key="draft-text-new").set_value("  The kiln is *hot*.\n\nWait.  ")
    press(at, "save-note")
    (note,) = mc.user(**ANA).notes.list()
    press(at, f"note-{note.id}")
    assert at.query_params["note"] == [str(note.id)]
    assert "The kiln is *hot*.\n\nWait." in text(at)
