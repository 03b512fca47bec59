"""A very long message on the chat page: drawn short, with the question what of it is read."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support.long_text import WINDOW, long_text
from tests.support.ui.tab import ANA, app, buttons, number, parts, press, say, send, text, until
from ui.long_message import DRAWN

ASKED = "What of it is to be read for memories?"


@pytest.fixture
def models() -> dict[str, str]:
    return {
        "MEMCHAT_CHAT_MODEL": "offline/chat",
        "MEMCHAT_EXTRACT_MODEL": "offline/extract",
        "MEMCHAT_CONTEXT": str(WINDOW),
    }


def said(at: AppTest) -> list[str]:
    """What stands in the person's bubbles."""
    return [part["text"] for part in parts(at) if part.get("who") == "you"]


def test_a_paste_is_drawn_short_and_all_of_it_on_request(mc: MemChat) -> None:
    at = app()
    send(at, long_text())
    until(at, lambda: buttons(at, "retry"))
    (shown,) = said(at)
    assert len(shown) <= DRAWN + 2 and shown.endswith(" …")
    press(at, "whole-0")
    assert said(at) == [long_text()]
    press(at, "whole-0")
    assert said(at) == [shown]


def test_it_is_asked_what_to_read_with_the_calls_it_takes(mc: MemChat) -> None:
    at = app()
    send(at, long_text())
    until(at, lambda: buttons(at, "read-all-"))
    assert ASKED in text(at)
    (key,) = buttons(at, "read-all-")
    (label,) = [part["button"] for part in parts(at) if part.get("key") == key]
    assert label == "Read all of it (23 calls, free)"
    (ends,) = buttons(at, "read-ends-")
    press(at, ends)
    assert ASKED not in text(at) and "The beginning and the end of this message" in text(at)
    press(at, "new")
    until(at, lambda: at.expander)
    assert {m.value for m in mc.user(**ANA).memories.list()} == {"Lisbon", "Otto"}


def test_all_of_it_is_read_when_that_is_chosen_also_after_it_was_read(mc: MemChat) -> None:
    at = app()
    send(at, long_text())
    until(at, lambda: buttons(at, "read-all-"))
    here = str(number(at))
    press(at, "new")
    until(at, lambda: at.expander)
    at = app(c=here)
    press(at, buttons(at, "read-all-")[0])
    assert "All of this message is read" in text(at) and buttons(at, "read-") == []
    until(at, lambda: mc.user(**ANA).sessions.get(int(here)).status == "extracted")
    assert "Zanzibar" in {m.value for m in mc.user(**ANA).memories.list(status="all")}


def test_turns_that_no_longer_fit_the_model_are_named(mc: MemChat) -> None:
    at = app()
    say(at, "Some word of the day. " * 160)
    assert "was sent this chat without" not in text(at)
    say(at, "Some word of the day. " * 160)
    assert "The model was sent this chat without its first 2 turns." in text(at)


def test_an_incognito_paste_is_not_asked_about(mc: MemChat) -> None:
    at = app()
    press(at, "new-incognito")
    send(at, long_text())
    until(at, lambda: buttons(at, "retry"))
    assert buttons(at, "whole-") and ASKED not in text(at)


def test_a_long_paste_is_kept_as_a_note_and_not_read(mc: MemChat) -> None:
    at = app()
    send(at, long_text())
    until(at, lambda: buttons(at, "keep-note-"))
    press(at, buttons(at, "keep-note-")[0])
    (note,) = mc.user(**ANA).notes.list()
    assert f"Kept as the note “{note.title}”" in text(at).replace("\\", "")
    assert ASKED not in text(at) and buttons(at, "keep-note-") == []
    assert mc.user(**ANA).notes.get(note.id).text == long_text()


def test_a_short_message_and_an_incognito_one_are_not_offered_to_be_kept(mc: MemChat) -> None:
    at = app()
    say(at, "Hello.")
    assert buttons(at, "keep-note-") == []
    press(at, "new-incognito")
    send(at, "Some word of the day. " * 160)
    until(at, lambda: buttons(at, "redo-"))
    assert buttons(at, "keep-note-") == []
