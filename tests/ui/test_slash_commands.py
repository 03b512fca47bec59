"""Commands behind a slash, in the box at the foot of the chat."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.chat import command_words
from tests.support.ui.tab import ANA, answers, app, buttons, number, press, say, send, text, until
from ui.components import desk


def give(at: AppTest, words: str) -> None:
    """Write something that brings no reply."""
    send(at, words)
    assert not at.exception


def test_help_is_shown_and_begins_no_chat(mc: MemChat) -> None:
    at = app()
    give(at, "/help")
    for name in command_words.COMMANDS:
        assert f"/{name}" in text(at)
    assert mc.user(**ANA).sessions.list() == []
    say(at, "Hello.")
    assert "/incognito" not in text(at)


def test_an_unknown_command_is_said_and_sent_nowhere(mc: MemChat) -> None:
    at = app()
    give(at, "/memoires")
    assert "There is no command /memoires" in text(at)
    assert mc.user(**ANA).sessions.list() == []


def test_memories_are_listed_in_rows_and_forgetting_asks(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    at = app()
    say(at, "/memories")
    assert buttons(at, "forget-told-")
    say(at, "/forget city")
    assert answers(at) == ["yes", "no"]
    press(at, next(key for key in buttons(at, "say-yes")))
    until(at, lambda: not ana.memories.list())


def test_why_opens_the_explanation_of_the_last_reply(mc: MemChat) -> None:
    mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app()
    give(at, "/why")
    assert "There is no reply in this chat yet" in text(at)
    say(at, "Where do I live?")
    at = app(c=str(number(at)))  # as after a reload: the chat is not open here
    give(at, "/why")
    assert "The model was given" in text(at)


def test_incognito_begins_a_new_chat_and_exit_leaves_one(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    give(at, "/incognito")
    assert "Incognito chat" in text(at) and "I live in Lisbon." not in text(at)
    give(at, "My boat is called Zephyrus.")
    until(at, lambda: "offline stand-in" in text(at))
    assert len(mc.user(**ANA).sessions.list()) == 1
    give(at, "/exit")
    assert "What is on your mind?" in text(at)
    desk().sweep()
    assert all(talk.ended_at for talk in mc.user(**ANA).sessions.list())


def test_note_keeps_the_text_behind_it(mc: MemChat) -> None:
    at = app()
    say(at, "Hello.")
    give(at, "/note --title Tea Buy green tea.")
    assert "page failed" not in text(at)
    assert "Kept as the note “Tea”" in text(at)
    (note,) = mc.user(**ANA).notes.list()
    assert mc.user(**ANA).notes.get(note.id).text == "Buy green tea."
