"""Where memory is off, and why: the three switches, incognito."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support.ui.tab import (
    ANA,
    act,
    app,
    buttons,
    listed,
    number,
    press,
    say,
    send,
    text,
    until,
    work_through,
)
from ui.components import desk


def test_an_incognito_chat_is_fixed_at_its_beginning_and_leaves_no_byte(
    mc: MemChat, tmp_path: Path
) -> None:
    at = app()
    press(at, "new-incognito")
    assert "Incognito chat" in text(at)
    assert not at.toggle
    say_incognito(at, "My code word is zanzibarquark.")
    assert "zanzibarquark" in text(at)
    assert mc.user(**ANA).sessions.list() == []
    press(at, "new")
    assert "zanzibarquark" not in text(at)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zanzibarquark" not in path.read_bytes(), path


def say_incognito(at: AppTest, words: str) -> None:
    send(at, words)
    until(at, lambda: buttons(at, "redo-"))


@pytest.mark.parametrize("user_on", [True, False])
@pytest.mark.parametrize("app_on", [True, False])
@pytest.mark.parametrize("incognito", [True, False])
def test_memory_is_on_only_where_all_three_switches_say_so_and_else_the_page_says_why(
    mc: MemChat, user_on: bool, app_on: bool, incognito: bool
) -> None:
    mc.user("ana").set_memory(user_on, all_apps=True)
    mc.user(**ANA).set_memory(app_on)
    at = app()
    if incognito:
        press(at, "new-incognito")
        assert "No memory is used" in text(at)
    elif user_on and app_on:
        assert at.toggle(key="memory").value
        assert "Nothing is remembered" not in text(at)
    else:
        assert not at.toggle(key="memory").value
        where = "in the space “default”" if user_on else "for ana"
        assert f"Nothing is remembered: memory is off {where}." in text(at)


def test_with_memory_off_nothing_is_injected_kept_or_queued_and_the_viewer_still_works(
    mc: MemChat,
) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.set_memory(False)
    before = len(mc.jobs.list(user="ana"))
    at = app()
    say(at, "I live in Porto. Where do I live?")
    reply = ana.sessions.messages(number(at))[-1]
    assert ana.sessions.receipt(reply.id) == []
    press(at, "new")
    work_through(desk())
    assert len(mc.jobs.list(user="ana")) == before
    at = app("memories")
    assert "Nothing new is remembered: memory is off in the space “default”." in text(at)
    assert "Lisbon" in text(at)
    act(at, "forget", listed(at)[0]["id"])
    assert ana.memories.list() == []


def test_the_switch_in_the_chat_is_kept(mc: MemChat) -> None:
    at = app()
    at.toggle(key="memory").set_value(False).run()
    assert not mc.user(**ANA).memory_switch().on
    assert "Nothing is remembered" in text(app())
