"""The settings page; and that every page opens."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.ui.tab import ANA, app, press, text
from ui.desk import Desk


def test_settings_tell_what_is_in_use_and_never_a_key(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-very-secret")
    at = app("settings")
    said = text(at)
    assert "offline/chat" in said
    assert "Groq" in said
    assert "gsk-very-secret" not in said


def test_the_switches_in_settings_are_kept_and_lead_to_the_memories(mc: MemChat) -> None:
    ana = mc.user("ana")
    mc.user(**ANA).set_memory(True)
    at = app("settings", part="memory")
    assert [e.proto.page for e in at.get("page_link")] == ["memories"]
    at.toggle(key="memory of user").set_value(False).run()
    assert not ana.memory_switch(all_apps=True).on
    at.toggle(key="memory of user").set_value(True).run()
    at.multiselect(key="memory off").set_value(["default"]).run()
    assert ana.memory_switch(all_apps=True).on
    assert not mc.user(**ANA).memory_switch().on


def test_notes_in_chats_are_switched_off_and_on_in_the_settings_file(mc: MemChat) -> None:
    file = mc.settings.home / "settings.toml"
    at = app("settings", part="memory")
    at.toggle(key="set-recall_notes").set_value(False).run()
    assert 'MEMCHAT_RECALL_NOTES = "off"' in file.read_text("utf-8")
    assert not at.toggle(key="set-recall_notes").value
    at.toggle(key="set-recall_notes").set_value(True).run()
    assert 'MEMCHAT_RECALL_NOTES = "on"' in file.read_text("utf-8")


def test_wiping_everything_wants_the_name_typed_and_leaves_others_alone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    bob = mc.user("bob")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "city", "Lisbon", all_apps=True)
    bob.memories.add("profile", "city", "Oslo")
    with ana.chat() as talk:
        talk.send("Hello there.").read()
    at = app("settings", part="data")
    press(at, "wipe")
    assert at.button(key="wipe-yes").disabled
    at.text_input(key="wipe-name").set_value("ana").run()
    press(at, "wipe-yes")
    assert mc.user("ana").apps.list() == []
    assert ana.memories.list() == []
    assert [m.value for m in bob.memories.list()] == ["Oslo"]


@pytest.mark.parametrize("page", ["memories", "inbox", "insights", "settings"])
def test_every_page_opens_on_an_empty_store(desk: Desk, page: str) -> None:
    assert app(page).title[0].value == page.capitalize()
