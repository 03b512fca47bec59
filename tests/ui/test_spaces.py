"""Spaces: what the library calls apps, chosen and made in the sidebar."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.ui.tab import ANA, app, press, say, text
from ui.desk import Desk


def make(at, name: str) -> None:
    """Make a space by the button, the name and the form's button."""
    press(at, "new-space")
    at.text_input(key="space-name").set_value(name)
    at.button[[b.label for b in at.button].index("Make it")].click().run()
    assert not at.exception


def test_a_new_space_is_entered_and_stays_in_the_list(mc: MemChat) -> None:
    mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    assert at.sidebar.selectbox[0].label == "Space" and "Lisbon" in text(at)
    make(at, "Work")
    assert at.sidebar.selectbox[0].value == "Work" and at.session_state["app"] == "Work"
    assert [each.name for each in mc.user(**ANA).apps.list()] == ["Work", "default"]
    at.sidebar.selectbox[0].set_value("default").run()
    assert at.sidebar.selectbox[0].options == ["Work", "default"]


def test_a_space_is_renamed_given_instructions_exported_and_deleted(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    make(at, "Work")
    say(at, "I live in Porto.")
    press(at, "more-space")
    at.text_input(key="space-new-name").set_value("Office")
    press(at, at.button[[b.label for b in at.button].index("Rename")].key)
    assert at.session_state["app"] == "Office"
    assert [each.name for each in ana.apps.list()] == ["Office"]
    assert len(mc.user("ana", app="Office").sessions.list()) == 1
    press(at, "more-space")
    at.text_area(key="space-instructions").set_value("Answer in Dutch.").run()
    assert mc.user("ana", app="Office").instructions() == "Answer in Dutch."
    assert at.get("download_button")
    assert at.button(key="delete-space").disabled
    at.checkbox(key="space-sure").check().run()
    press(at, "delete-space")
    assert at.session_state["app"] == "default" and ana.apps.list() == []


def test_the_first_space_keeps_its_name_and_cannot_be_deleted(mc: MemChat) -> None:
    mc.user(**ANA).set_memory(True)
    at = app()
    press(at, "more-space")
    assert at.text_area(key="space-instructions")
    assert "delete-space" not in [button.key for button in at.button]


def test_a_chat_of_a_new_space_is_kept_there_and_named_in_the_address(mc: MemChat) -> None:
    at = app()
    make(at, "Work")
    say(at, "I live in Porto.")
    assert len(mc.user("ana", app="Work").sessions.list()) == 1
    assert mc.user(**ANA).sessions.list() == []
    assert at.query_params["app"] in ("Work", ["Work"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (" ", "Give the space a name."),
        ("x" * 300, "The space name is longer than 200 characters."),
        ("de\u200bfault", "a character that cannot be seen"),
        ("default", "There is a space “default” already; choose it in the list."),
    ],
)
def test_a_name_that_cannot_be_is_refused_beside_its_field(
    mc: MemChat, name: str, said: str
) -> None:
    at = app()
    make(at, name)
    assert [said in error.value.replace("\\", "") for error in at.error] == [True]
    assert at.text_input(key="space-name").value == name
    assert mc.user(**ANA).apps.list() == []


@pytest.mark.parametrize("page", [None, "memories", "inbox", "insights", "settings"])
def test_no_page_calls_a_space_an_app(desk: Desk, page: str | None) -> None:
    desk.mc.user(**ANA).set_memory(False)
    desk.mc.user(**ANA).memories.add("profile", "city", "Lisbon", all_apps=True)
    words = text(app(page)).lower().split()
    assert not {"app", "apps", "app:", "app.", "apps."} & set(words)
