"""Searching while one types, and the keys that lead to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import Server, becomes, needs_browser, opened

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
FOCUS = "document.activeElement.getAttribute('aria-label')"
CARET = "[document.activeElement.value, document.activeElement.selectionStart]"

OUTLINE = """getComputedStyle(document.querySelector('[class*=-marked] .memchat-words')
  ?? document.body).outlineStyle"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store with three memories and two chats."""
    home: Path = tmp_path_factory.mktemp("search")
    settings = Settings(
        home=home / "store",
        embed_model="none",
        chat_model="offline/chat",
        extract_model="offline/extract",
    )
    with MemChat(settings=settings) as mc:
        ana = mc.user("ana", app="default")
        for key, value in (("kayak", "red"), ("home town", "São Paulo"), ("garden", "roses")):
            ana.memories.add("fact", key, value)
        for words in ("There is a lighthouse in Łódź, they say.", "Good morning!"):
            with ana.chat() as talk:
                talk.send(words).read()
    with Server(home) as found:
        yield found


def row(page: Any, words: str) -> Any:
    return page.locator(".memchat-row").filter(has_text=words)


@pytest.mark.slow
def test_memories_are_found_while_one_types_and_the_caret_stays(page: Any, server: Server) -> None:
    opened(page, server.url + "memories")
    row(page, "roses").wait_for()
    page.get_by_label("Search memories").focus()
    page.keyboard.type("sapaulo")
    page.get_by_text("No memory has these words").wait_for()
    for _ in "paulo":
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("o ")
    row(page, "São Paulo").locator("mark").nth(1).wait_for()
    row(page, "roses").wait_for(state="detached")
    marked = row(page, "São Paulo").locator("mark").all_inner_texts()
    assert marked == ["São", "Paulo"]
    assert page.evaluate(FOCUS) == "Search memories"
    assert page.evaluate(CARET) == ["sao paulo", 4]


def test_a_chat_is_found_while_one_types_and_a_click_leads_to_the_message(
    page: Any, server: Server
) -> None:
    opened(page, server.url + "memories")
    page.get_by_label("Search chats").focus()
    page.keyboard.type("lodz light")
    hit = page.locator("[class*=st-key-found-] button")
    hit.get_by_text("Łódź").wait_for()
    page.get_by_role("button", name="Good morning!").wait_for(state="detached")
    assert page.evaluate(CARET) == ["lodz light", 10]
    assert page.evaluate(FOCUS) == "Search chats"
    hit.click()
    page.locator("[class*=-marked]").get_by_text("There is a lighthouse").wait_for()
    becomes(page, OUTLINE, "solid")
    hit.wait_for()
    page.get_by_label("Search chats").fill("zebra")
    page.get_by_text("No chat has “zebra”").wait_for()


@pytest.mark.slow
def test_keys_lead_to_the_boxes_and_do_nothing_in_them(page: Any, server: Server) -> None:
    opened(page, server.url + "memories")
    # Set last, when all of the page is there.
    page.locator(".st-key-keyboard button[aria-keyshortcuts='?']").wait_for()
    row(page, "roses").wait_for()
    assert page.get_by_role("button", name="New chat").get_attribute("title") == "New chat (N)"
    assert page.get_by_label("Search chats").get_attribute("title") == "Search chats (S)"
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Begin a new chat").wait_for()
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.url.endswith("/memories")
    page.keyboard.press("Control+s")
    page.keyboard.press("s")
    becomes(page, FOCUS, "Search memories")
    page.keyboard.type("nms?")
    becomes(page, CARET, ["nms?", 4])
    page.get_by_text("No memory has these words").wait_for()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("m")
    becomes(page, FOCUS, "Write a message")
    page.keyboard.type("snm")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("s")
    becomes(page, FOCUS, "Search chats")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("m")
    becomes(page, CARET, ["snm", 3])


@pytest.mark.slow
def test_on_a_narrow_screen_the_key_unfolds_the_sidebar(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    opened(page, server.url)
    page.get_by_test_id("stExpandSidebarButton").wait_for()
    becomes(page, "window.memchatShortcuts")
    becomes(page, FOCUS, "Write a message")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("s")
    becomes(page, FOCUS, "Search chats")
    box = "document.activeElement.getBoundingClientRect().left >= 0"
    becomes(page, box)
    page.keyboard.type("light")
    # By its words: "li" alone, half typed, is in other messages as well.
    page.locator("[class*=st-key-found-] button").filter(has_text="lighthouse").click()
    page.get_by_test_id("stExpandSidebarButton").wait_for()
    page.close()
