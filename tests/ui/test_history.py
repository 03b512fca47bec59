"""Settings, Bring your history: a look at a file, a yes, how far it is read, and a way back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.histories import talk, write, zipped
from tests.support.ui.browser import Server, chromium, findings, needs_browser, opened, settled
from tests.support.ui.tab import app, give, press, text, until
from ui.desk import Desk

TALKS = [talk("a", "I live in Lisbon", "A fine city."), talk("b", "Hi", "Hello.")]
ZIP = zipped({"conversations.json": [*TALKS, {"mapping": {}}]})


def looked_at(desk: Desk, name: str = "theirs.zip", content: bytes = ZIP):
    at = app("settings", part="data")
    give(at, name, content)
    until(at, lambda: not at.button(key="import").disabled)
    return at


def test_a_file_is_shown_before_anything_is_kept(desk: Desk) -> None:
    at = app("settings", part="data")
    assert at.button(key="import").disabled
    at = looked_at(desk)
    said = text(at)
    assert "ChatGPT: 2 conversations, 4 messages" in said and "2023-09-06" in said
    assert "left out: conversations without a message that can be read: 1" in said
    assert re.search("to be read for memories: 2 conversations, with at most 4 calls", said)
    assert desk.mc.user("ana").sessions.list() == []
    at.number_input(key="newest").set_value(1).run()
    until(at, lambda: "to be read for memories: 1 conversation, with at most 2 calls" in text(at))


def test_it_is_imported_followed_and_taken_back(desk: Desk) -> None:
    ana = desk.mc.user("ana")
    at = looked_at(desk)
    press(at, "import")
    until(at, lambda: "Imported: 2 chats, 4 messages." in text(at))
    assert at.button(key="import").disabled, "it is done"
    (one,) = ana.imports()
    assert "ChatGPT · 2 chats" in text(at) and (one.conversations, one.product) == (2, "ChatGPT")
    desk.mc.jobs.run(user="ana")
    until(at, lambda: "to go." not in text(at))
    assert [memory.value for memory in ana.memories.list()] == ["Lisbon"]
    press(at, "import-undone-0")
    assert ana.sessions.list() == [] == ana.memories.list() and ana.imports() == []
    assert "ChatGPT" not in text(at).split("as you got it")[1] and "Imported" not in text(at)


def test_conversations_that_wait_are_counted(desk: Desk, tmp_path: Path) -> None:
    desk.mc.jobs.stop()  # nobody reads them
    desk.mc.user("ana").import_history(write(tmp_path / "theirs.json", TALKS))
    at = app("settings", part="data")
    assert "Being read for memories in the background: 2 chats to go." in text(at)


def test_saved_facts_lead_to_the_inbox(desk: Desk) -> None:
    at = looked_at(desk, "lines.txt", b"- [2024-05-01] Likes tea\n- [2024-06-01] Has a dog")
    press(at, "import")
    until(at, lambda: "Imported: 2 inbox items" in text(at))
    labels = [link.proto.label for link in at.get("page_link")]
    assert "2 saved facts to say yes or no to" in labels


def test_a_file_of_another_kind_is_named_as_the_person_knows_it(desk: Desk) -> None:
    at = app("settings", part="data")
    give(at, "holiday.png", b"\x89PNG\r\n")
    until(at, lambda: "oliday.png is no export that memchat knows" in text(at))
    assert at.button(key="import").disabled and "/tmp" not in text(at)
    give(at, "theirs.zip", ZIP)
    until(at, lambda: "ChatGPT: 2 conversations" in text(at))
    assert "oliday" not in text(at)


@needs_browser
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_person_brings_an_export_of_another_assistant_and_takes_it_back(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "store", embed_model="none")
    file = write(tmp_path / "theirs.zip", ZIP)
    with Server(tmp_path) as server, chromium() as browser:
        page = opened(browser.new_page(viewport={"width": 1000, "height": 1400}), server.url)
        page.get_by_role("button", name="Choose a model").click()
        page.get_by_role("link", name="Data", exact=True).click()
        page.get_by_role("heading", name="Bring your history").wait_for()
        settled(page)
        page.locator("input[type=file]").set_input_files(file)
        page.get_by_text("ChatGPT: 2 conversations, 4 messages").wait_for()
        settled(page)
        assert findings(page) == []
        page.screenshot(path=tmp_path / "look.png", full_page=True)
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("Imported: 2 chats, 4 messages.").wait_for()
        page.get_by_text("ChatGPT · 2 chats").wait_for()
        settled(page)
        assert findings(page) == []
        page.get_by_role("button", name="Undo").click()
        page.screenshot(path=tmp_path / "undo.png", full_page=True)
        page.get_by_role("button", name="Take it back").click()
        page.get_by_text("ChatGPT · 2 chats").wait_for(state="detached")
    with MemChat(settings=settings) as mc:
        assert mc.user("ana").sessions.list() == []
