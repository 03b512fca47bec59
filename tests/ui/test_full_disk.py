"""What the app's pages say where the disk is full."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat import MemChat
from tests.support.full_disk import Tiny
from tests.support.ui.tab import ANA, app, buttons, forget_desk, press, say, send, text, until
from ui import components
from ui.desk import Desk

FULL = "is full. Nothing that was kept is lost. Free some space and try again"


@pytest.fixture
def desk(desk: Desk, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose store is on the small disk."""
    forget_desk()
    monkeypatch.setenv("MEMCHAT_HOME", str(tiny.home))
    return components.desk()


def test_a_message_that_cannot_be_kept_says_so_and_is_sent_when_there_is_room(
    mc: MemChat, tiny: Tiny
) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    tiny.fill()
    send(at, "long words " * 100_000)
    until(at, lambda: FULL in text(at))
    tiny.free()
    say(at, "And I am a nurse.")
    said = [m.content for m in ana.sessions.messages(ana.sessions.list()[0].id)]
    assert said[0] == "I live in Lisbon."
    assert said[-2] == "And I am a nurse."


@pytest.mark.parametrize("page", ["chat", "memories", "notes", "inbox", "insights", "settings"])
def test_every_page_opens_on_a_full_disk_or_says_why_it_does_not(
    mc: MemChat, tiny: Tiny, page: str
) -> None:
    tiny.fill()
    at = app(None if page == "chat" else page)
    assert not at.exception
    assert all(FULL in error.value for error in at.error)


@pytest.mark.slow
def test_a_note_that_cannot_be_kept_says_so_and_its_words_stay_in_the_form(
    mc: MemChat, tiny: Tiny
) -> None:
    at = app("notes")
    press(at, "notes-add")
    tiny.fill()
    at.text_area(key="draft-text-new").set_value("long words " * 100_000)
    press(at, "save-note")
    assert FULL in text(at)
    tiny.free()
    press(at, "save-note")
    (note,) = mc.user(**ANA).notes.list()
    assert FULL not in text(at) and buttons(at, "note-") == [f"note-{note.id}"]


def test_a_store_that_cannot_be_opened_for_want_of_room_says_so(
    desk: Desk, tiny: Tiny, tmp_path: Path
) -> None:
    forget_desk()
    shutil.rmtree(tiny.home)
    tiny.fill()
    at = app()
    assert FULL in text(at)
    tiny.free()
    at.run()
    assert FULL not in text(at)
