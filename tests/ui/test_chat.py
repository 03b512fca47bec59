"""The chat page: what is said, what comes back, what it taught."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.ui.tab import (
    ANA,
    app,
    buttons,
    chats,
    do,
    editing,
    lines,
    number,
    parts,
    press,
    room,
    say,
    say_anew,
    send,
    text,
    until,
    work_through,
)
from ui.components import desk
from ui.desk import Desk, Talk


def test_an_empty_chat_greets_and_suggests(desk: Desk) -> None:
    at = app()
    assert "What is on your mind?" in text(at)
    assert len(at.get("button_group")[0].options) == 3


def test_a_message_is_answered_and_stands_in_the_sidebar_and_the_address(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    stored = ana.sessions.list()
    assert ana.sessions.messages(stored[0].id)[0].content == "I live in Lisbon."
    assert number(at) == stored[0].id
    assert [*chats(at)] == [f"/?c={stored[0].id}"]


def test_a_suggestion_is_sent_as_a_message(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    at.get("button_group")[0].set_value("Help me plan a quiet weekend.").run()
    until(at, lambda: buttons(at, "why-"))
    first = ana.sessions.messages(ana.sessions.list()[0].id)[0]
    assert first.content == "Help me plan a quiet weekend."


def test_a_new_chat_ends_the_old_one_and_says_what_it_taught(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    press(at, "new")
    until(at, lambda: at.expander)
    assert lines(at) == ["Remembered: **You live in Lisbon**"]
    session = ana.sessions.list()[0]
    assert session.status == "extracted"
    ended = session.ended_at
    press(at, "new")
    work_through(desk())
    assert mc.user(**ANA).sessions.list()[0].ended_at == ended


def test_what_a_chat_taught_stands_under_it_and_can_be_undone(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    here = str(number(at))
    press(at, "new")
    until(at, lambda: at.expander)
    at = app(c=here)
    assert "Learnt: You live in Lisbon" in text(at) and not at.expander
    press(at, buttons(at, "unlearn-")[0])
    assert "Learnt" not in text(at)
    assert mc.user(**ANA).memories.list() == []
    assert "I live in Lisbon." in text(at)


def test_a_new_chat_says_that_the_old_one_taught_nothing_new(mc: MemChat) -> None:
    at = app()
    say(at, "What is the capital of France?")
    press(at, "new")
    until(at, lambda: "Nothing new was learnt from this chat." in text(at))
    assert not at.expander


def test_a_reply_that_ends_while_its_page_is_drawn_is_shown(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    still = iter([True])  # it comes in when the page first asks, and is there when it asks again
    monkeypatch.setattr(Talk, "answering", property(lambda talk: next(still, False)))
    at.run()
    assert not buttons(at, "why-") and room(at)["version"] == "1+"
    do(at, "look")  # the page hears "1" and asks anew
    assert buttons(at, "why-")


def test_words_are_not_lost_where_something_else_is_done_before_they_are_heard(mc: MemChat) -> None:
    at = app()
    do(at, "say", "What is a heron?", then="look")
    until(at, lambda: buttons(at, "redo-"))
    assert mc.user(**ANA).sessions.messages(number(at))[0].content == "What is a heron?"
    assert room(at)["taken"] == 2


def test_trying_again_replaces_the_reply(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    first = ana.sessions.messages(ana.sessions.list()[0].id)
    press(at, buttons(at, "redo-")[0])
    until(at, lambda: buttons(at, "redo-"))
    second = ana.sessions.messages(ana.sessions.list()[0].id)
    assert [m.role for m in second] == ["user", "assistant"]
    assert second[0].id == first[0].id
    assert second[1].id != first[1].id


def test_editing_the_last_message_withdraws_what_only_its_old_words_proved(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "Remember that my sister is called Rita.")
    assert [m.value for m in ana.memories.list()]
    say_anew(at, 0, "What is a heron?")
    until(at, lambda: buttons(at, "redo-"))
    assert ana.memories.list() == []
    assert "Rita" not in text(at)


def test_a_new_app_whose_name_hides_a_character_is_refused_in_a_sentence(mc: MemChat) -> None:
    at = app(app="home\u200b")
    assert "holds a character that cannot be seen (U+200B)" in text(at)
    assert not at.exception
    assert at.session_state["app"] == "default"


def test_an_earlier_message_is_said_anew_in_its_place_and_the_old_version_can_be_shown(
    mc: MemChat,
) -> None:
    ana = mc.user(**ANA)
    at = app()
    for words in ("What is a heron?", "What is a stork?", "What is a crane?"):
        say(at, words)
    here = number(at)
    before = ana.sessions.messages(here)
    hints = [part["hint"] for part in parts(at) if "hint" in part]
    assert hints[1].startswith("What followed stays with the old words;")
    say_anew(at, 2, " ")
    assert "The message is empty; write something first." in text(at)
    say_anew(at, 2, "What is an ibis?")
    until(at, lambda: len(buttons(at, "why-")) == 2)
    said = [turn.content for turn in ana.sessions.messages(here) if turn.role == "user"]
    assert said == ["What is a heron?", "What is an ibis?"]
    assert number(at) == here and len(ana.sessions.list()) == 1
    until(at, lambda: "2 / 2" in text(at))
    do(at, f"version-earlier-{ana.sessions.messages(here)[2].id}")
    assert ana.sessions.messages(here) == before
    assert "What is a crane?" in text(at) and "1 / 2" in text(at)


def test_an_earlier_incognito_message_is_said_anew_and_the_rest_is_lost(mc: MemChat) -> None:
    at = app()
    press(at, "new-incognito")
    for count, words in enumerate(("What is a heron?", "What is a stork?"), 1):
        send(at, words)
        until(at, lambda: text(at).count("offline stand-in") == count)  # noqa: B023
    (hint, _) = [part["hint"] for part in parts(at) if "hint" in part]
    assert hint == "The old words and all that followed them are lost."
    say_anew(at, 0, "What is an ibis?")
    until(at, lambda: buttons(at, "redo-"))
    assert "What is an ibis?" in text(at) and "heron" not in text(at)
    assert "Incognito chat" in text(at)
    assert mc.user(**ANA).sessions.list() == []


def test_new_words_for_a_message_never_replace_one_that_another_tab_sent_meanwhile(
    mc: MemChat,
) -> None:
    at = app()
    say(at, "What is a heron?")
    other = app(c=str(number(at)))
    say(other, "And an egret?")
    say_anew(at, 0, "What is a stork?")
    assert "This chat went on in another tab, so nothing was sent" in text(at)
    turns = mc.user(**ANA).sessions.messages(number(at))
    assert [t.content for t in turns if t.role == "user"] == ["What is a heron?", "And an egret?"]
    assert editing(at) == ["What is a stork?"]
