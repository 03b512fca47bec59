"""Where a person is: in a long chat, in a list, in an editor, with words that are not sent yet."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import WAIT, Server, becomes, needs_browser, opened, say, settled

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
MORE = """WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
INSERT INTO messages (session_id, role, content, created_at, status, memory)
SELECT 1, iif(i % 2, 'assistant', 'user'), 'Turn ' || i, created_at, 'complete', 0
FROM n, (SELECT created_at FROM messages LIMIT 1)"""
WRITTEN = "document.querySelector('#memchat-message')?.value"
FOCUSED = "document.activeElement.closest('[class*=st-key-{}]') !== null"
SEEN = """e => { const box = e.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight; }"""
OUTLINED = "e => getComputedStyle(e).outlineStyle === 'solid'"


def opened_store(home: Path) -> MemChat:
    settings = Settings(
        home=home / "store",
        embed_model="none",
        chat_model="offline/chat",
        extract_model="offline/extract",
    )
    return MemChat(settings=settings)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store with a chat of 1,000 turns whose first one taught something, another chat, and 25
    memories."""
    home: Path = tmp_path_factory.mktemp("place")
    with opened_store(home) as mc:
        ana = mc.user("ana", app="default")
        with ana.chat() as talk:
            talk.send("I live in Lisbon.").read()
        with ana.chat() as talk:
            talk.send("What is a heron?").read()
        for n in range(25):
            ana.memories.add("fact", "island", f"number {n}")
    store = sqlite3.connect(home / "store" / "memchat.db")
    store.execute(MORE)
    store.commit()
    store.close()
    with Server(home) as found:
        yield found


def holds(found: Any, script: str) -> None:
    """Wait until a script is true of an element, which may be drawn anew meanwhile."""
    end = time.monotonic() + WAIT / 1000
    while not found.evaluate(script):
        assert time.monotonic() < end, script
        found.page.wait_for_timeout(50)


@pytest.mark.slow
def test_open_that_message_lands_on_it_in_a_chat_of_a_thousand_turns(
    page: Any, server: Server
) -> None:
    opened(page, server.url + "memories")
    page.get_by_label("Search memories").fill("Lisbon")
    page.get_by_label("Search memories").press("Enter")
    row = page.locator(".memchat-row").filter(has_text="Lisbon")
    page.locator(".memchat-row mark").get_by_text("Lisbon").wait_for()  # what was found is here
    row.get_by_role("button", name="What can be done").click()
    page.get_by_role("menuitem", name="Details").click()
    page.get_by_role("button", name="Open that message").click()
    marked = page.locator(".memchat-said-marked")
    marked.get_by_text("I live in Lisbon.").wait_for()
    holds(marked, SEEN)
    holds(marked.locator(".memchat-words"), OUTLINED)
    page.get_by_role("button", name="Show the latest messages").click()
    page.get_by_text("Turn 998", exact=True).wait_for()


@pytest.mark.slow
def test_a_button_leads_down_and_sending_scrolls_to_the_new_turn(page: Any, server: Server) -> None:
    opened(page, server.url + "?c=1")
    down = page.get_by_role("button", name="To the latest message")
    page.get_by_text("Turn 998", exact=True).hover()
    for words in ("A message.", "Another message."):
        page.mouse.wheel(0, -2500)
        down.wait_for()
        say(page, words)
        new = page.locator(".memchat-said").get_by_text(words, exact=True)
        new.wait_for()
        becomes(page, "document.querySelector('.memchat-down').hidden")
        settled(page)
        holds(new, SEEN)
    page.mouse.wheel(0, -2500)
    down.click()
    down.wait_for(state="hidden")
    holds(new, SEEN)


@pytest.mark.slow
def test_what_is_written_stays_with_its_chat_while_pages_are_switched(
    page: Any, server: Server
) -> None:
    opened(page, server.url)
    box = page.locator("#memchat-message")
    box.fill("half a thought")
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    page.get_by_role("link", name="Chat", exact=True).click()
    becomes(page, WRITTEN, "half a thought")
    page.get_by_role("button", name="Incognito").click()
    page.get_by_text("No memory is used").wait_for()
    becomes(page, WRITTEN, "")
    box.fill("zanzibarquark")
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    page.get_by_role("link", name="Chat", exact=True).click()
    becomes(page, WRITTEN, "zanzibarquark")
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "zanzibarquark" not in kept and "half a thought" in kept
    page.reload()
    becomes(page, WRITTEN, "half a thought")
    assert page.get_by_text("No memory is used").count() == 0


@pytest.mark.slow
def test_words_that_could_not_be_sent_are_kept_over_a_reload(page: Any, server: Server) -> None:
    with opened_store(server.home) as mc:
        ana = mc.user("ana", app="default")
        with ana.chat() as talk:
            talk.send("What is a plover?").read()
        opened(page, f"{server.url}?c={talk.session_id}")
        ana.sessions.delete(talk.session_id)
    say(page, "And a curlew?")
    page.get_by_test_id("stAlert").first.wait_for()
    becomes(page, WRITTEN, "And a curlew?")
    becomes(page, "sessionStorage.getItem('memchat drafts').includes('And a curlew?')")
    opened(page, page.url)
    becomes(page, WRITTEN, "And a curlew?")
    say(page, "And a curlew?")
    page.get_by_role("button", name="Why this answer").wait_for()
    becomes(page, "sessionStorage.getItem('memchat drafts').includes('curlew')", False)


@pytest.mark.slow
def test_back_and_forward_lead_through_chats_and_pages(page: Any, server: Server) -> None:
    opened(page, server.url)
    chats = page.get_by_test_id("stSidebar")
    heading = page.get_by_role("heading", level=3)
    chats.locator("[class*=st-key-talk-] a[href='/?c=1']").click()
    page.get_by_text("Turn 998", exact=True).wait_for()
    chats.locator("[class*=st-key-talk-] a[href='/?c=2']").click()
    heading.get_by_text("What is a heron?").wait_for()
    settled(page)
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    settled(page)
    for step, sign in (
        ("back", heading.get_by_text("What is a heron?")),
        ("back", page.get_by_text("Turn 998", exact=True)),
        ("forward", heading.get_by_text("What is a heron?")),
        ("forward", page.get_by_role("heading", name="Memories")),
        ("back", heading.get_by_text("What is a heron?")),
    ):
        page.evaluate(f"history.{step}()")
        sign.wait_for()
        settled(page)
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    chats.locator("[class*=st-key-talk-] a[href='/?c=1']").click()
    page.get_by_text("Turn 998", exact=True).wait_for()
    settled(page)
    page.evaluate("history.back()")
    page.get_by_role("heading", name="Memories").wait_for()
    settled(page)
    page.evaluate("history.back()")
    heading.get_by_text("What is a heron?").wait_for()


@pytest.mark.slow
def test_each_page_keeps_its_space_over_a_reload_and_back_leads_to_it(
    page: Any, server: Server
) -> None:
    space = page.locator(".st-key-space input")
    opened(page, server.url + "?app=Work")
    page.get_by_role("button", name="Choose a model").click()
    page.wait_for_url("**/settings?app=Work&part=models")
    page.get_by_role("heading", name="Settings").wait_for()
    settled(page)
    page.get_by_role("link", name="Memories").first.click()
    page.wait_for_url("**/memories?app=Work")
    settled(page)
    page.reload()
    settled(page)
    assert space.input_value() == "Work"
    space.click()
    page.get_by_role("option", name="default", exact=True).click()
    page.get_by_role("heading", name="What is on your mind?").wait_for()
    settled(page)
    assert space.input_value() == "default"
    for path in ("memories?app=Work", "settings?app=Work&part=models", "?app=Work"):
        page.evaluate("history.back()")
        page.wait_for_url(f"**/{path}")
        settled(page)
        assert space.input_value() == "Work"


@pytest.mark.slow
def test_back_from_a_chat_just_begun_leads_to_the_chat_before_it(page: Any, server: Server) -> None:
    opened(page, server.url + "?c=2")
    page.get_by_role("button", name="New chat").click()
    page.get_by_role("heading", name="What is on your mind?").wait_for()
    settled(page)
    say(page, "What is a stork?")
    page.get_by_role("button", name="Try again").wait_for()
    settled(page)
    page.locator("#memchat-message").fill("and a crane")
    page.evaluate("history.back()")
    page.get_by_role("heading", level=3).get_by_text("What is a heron?").wait_for()
    becomes(page, WRITTEN, "")
    page.evaluate("history.forward()")
    becomes(page, WRITTEN, "and a crane")


@pytest.mark.slow
def test_an_earlier_message_of_a_long_chat_has_versions_in_its_place(
    page: Any, server: Server
) -> None:
    opened(page, server.url + "?c=1")
    page.get_by_text("Turn 990", exact=True).wait_for()
    page.get_by_role("button", name="Edit: Turn 990").click()
    box = page.get_by_label("Say it in other words")
    box.wait_for()
    assert box.input_value() == "Turn 990"
    box.fill("What is an ibis?")
    page.locator(".memchat-editor").get_by_role("button", name="Send").click()
    page.locator(".memchat-said").get_by_text("What is an ibis?").wait_for()
    page.get_by_text("Turn 989", exact=True).wait_for()
    page.get_by_text("2 / 2", exact=True).wait_for()
    page.get_by_text("Turn 990", exact=True).wait_for(state="hidden")
    # Versions are chosen when the reply is there; a press on what is not yet to be used is lost.
    settled(page).get_by_role("button", name="earlier version", disabled=False).press("Enter")
    page.get_by_text("Turn 998", exact=True).wait_for()
    page.get_by_text("1 / 2", exact=True).wait_for()
    settled(page).get_by_role("button", name="later version", disabled=False).press("Enter")
    page.locator(".memchat-said").get_by_text("What is an ibis?").wait_for()
    page.get_by_text("Turn 998", exact=True).wait_for(state="hidden")
    becomes(page, "document.activeElement.textContent", "‹")


@pytest.mark.slow
def test_new_words_are_sent_by_ctrl_enter_and_the_keyboard_goes_on_to_the_message_box(
    page: Any, server: Server
) -> None:
    opened(page, server.url)
    say(page, "What is a wren?")
    page.locator("[data-key=edit-0]:enabled").press("Enter")
    editor = page.locator(".memchat-editor textarea")
    editor.fill(" ")
    editor.press("Control+Enter")
    page.locator(".memchat-editor .memchat-error").wait_for()
    becomes(page, "document.activeElement.closest('.memchat-editor') !== null")
    editor.fill("What is a robin?")
    editor.press("Control+Enter")
    page.locator(".memchat-said").get_by_text("What is a robin?", exact=True).wait_for()
    becomes(page, "document.activeElement.id", "memchat-message")


NAMED = "document.activeElement.getAttribute('aria-label')?.startsWith('{}')"


def choose(page: Any, name: str) -> None:
    """Choose in the menu of the row that has the keyboard."""
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name=name).focus()
    page.keyboard.press("Enter")


@pytest.mark.slow
def test_the_keyboard_stays_where_it_was_in_the_list(page: Any, server: Server) -> None:
    opened(page, server.url + "memories")
    page.get_by_role("button", name="What can be done: Island: number 24").focus()
    choose(page, "Edit")
    page.get_by_role("dialog").wait_for()
    settled(page).keyboard.press("Escape")
    becomes(page, NAMED.format("What can be done: Island: number 24"))
    choose(page, "Forget")
    becomes(page, NAMED.format("Undo: Forgotten: Island: number 24"))
    page.keyboard.press("Enter")
    becomes(page, NAMED.format("What can be done: Island: number 24"))


@pytest.mark.slow
def test_what_has_the_keyboard_is_not_under_the_line_that_undoes(page: Any, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    opened(page, server.url + "memories")
    page.get_by_label("Search memories").fill("island number 2")
    page.get_by_text("Only words are searched").wait_for()
    settled(page)
    page.locator(".memchat-row .dots").last.focus()
    choose(page, "Forget")
    becomes(page, NAMED.format("Undo: Forgotten"))
    page.locator(".st-key-undo-bar").wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    becomes(page, NAMED.format("Undo: Forgotten"))
    becomes(
        page,
        """document.activeElement.getBoundingClientRect().bottom <=
        document.querySelector('.st-key-undo-bar').getBoundingClientRect().top""",
    )
    page.keyboard.press("Enter")
    becomes(page, NAMED.format("What can be done"))
