"""What surrounds the pages, in a real browser: name, icon, links, a phone's header, incognito
chats, and what is said when the server is gone."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import Server, becomes, needs_browser, opened, say, settled
from ui.server import SCRIPTS

pytestmark = [needs_browser, pytest.mark.xdist_group("browser"), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store with two chats; tests may add to it."""
    home: Path = tmp_path_factory.mktemp("shell")
    settings = Settings(home=home / "store", embed_model="none", chat_model="offline/chat")
    with MemChat(settings=settings) as mc:
        for words in ("What is a heron?", "What is a plover?"):
            with mc.user("ana").chat() as talk:
                talk.send(words).read()
    with Server(home) as found:
        yield found


def test_the_page_has_its_own_name_and_icon_and_can_be_installed(page: Any, server: Server) -> None:
    assert "<title>memchat</title>" in page.request.get(server.url + "memories").text()
    opened(page, server.url + "?c=1")
    becomes(page, "document.title.startsWith('What is a heron?')")
    page.get_by_role("link", name="Memories").click()
    becomes(page, "document.title", "Memories · memchat")
    icon = page.locator("link[rel='shortcut icon']").evaluate("link => link.href")
    assert page.request.get(icon).body() == Path(SCRIPTS, "icon.png").read_bytes()
    manifest = page.locator("link[rel=manifest]").evaluate("link => link.href")
    said = json.loads(page.request.get(manifest).text())
    assert (said["name"], said["display"]) == ("memchat", "standalone")
    assert all(page.request.get(server.url + one["src"][1:]).ok for one in said["icons"])


def test_a_chat_is_a_link_that_a_middle_click_opens_in_another_tab(
    page: Any, server: Server
) -> None:
    opened(page, server.url + "memories")
    link = page.locator("[class*=st-key-talk-] a").filter(has_text="heron")
    with page.context.expect_page() as coming:
        link.click(button="middle")
    other = coming.value
    other.wait_for_url("**/?c=1")
    other.get_by_role("heading", level=3).get_by_text("What is a heron?").wait_for()
    assert page.url.endswith("/memories")
    link.click()
    page.get_by_role("heading", level=3).get_by_text("What is a heron?").wait_for()
    assert page.url.endswith("/?c=1")
    other.close()


def test_a_chat_is_pinned_and_renamed_in_its_menu(page: Any, server: Server) -> None:
    opened(page, server.url)
    page.get_by_role("button", name="More: What is a plover?").click()
    page.get_by_text("Pin", exact=True).click()
    page.get_by_role("heading", name="Pinned").wait_for()
    page.get_by_role("button", name="More: What is a plover?").click()
    page.get_by_text("Rename …", exact=True).click()
    page.get_by_label("Title").fill("Waders")
    page.get_by_label("Title").press("Enter")
    page.get_by_role("link", name="Waders").wait_for()
    page.get_by_role("button", name="More: Waders").click()
    page.get_by_text("Unpin", exact=True).click()
    page.get_by_role("heading", name="Pinned").wait_for(state="detached")


def test_an_incognito_chat_is_seen_and_asks_before_it_is_lost(page: Any, server: Server) -> None:
    opened(page, server.url)
    plain = page.evaluate("getComputedStyle(document.querySelector('.stMain')).backgroundColor")
    page.get_by_role("button", name="Incognito").click()
    page.get_by_text("No memory is used").wait_for()
    becomes(
        page, f"getComputedStyle(document.querySelector('.stMain')).backgroundColor !== '{plain}'"
    )
    say(page, "My code word is zanzibarquark.")
    page.get_by_role("button", name="Try again").wait_for()
    page.locator("[class*=st-key-talk-] a").first.click()
    asked = page.get_by_role("dialog")
    asked.get_by_role("button", name="Stay").click()
    asked.wait_for(state="detached")
    page.get_by_text("zanzibarquark").first.wait_for()
    settled(page)
    page.locator("[class*=st-key-talk-] a").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_text("zanzibarquark").first.wait_for(state="detached")
    page.wait_for_url("**/?c=*")


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_has_a_header_with_menu_title_and_new_chat(
    browser: Any, server: Server, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    opened(page, server.url + "?c=1")
    header = page.locator("#memchat-header")
    header.get_by_text("What is a heron?").wait_for()
    assert header.bounding_box()["width"] == width
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    page.locator("[data-testid=stSidebar][data-collapsed=true]").wait_for(state="attached")
    header.get_by_role("button", name="New chat").click()
    page.get_by_role("heading", name="What is on your mind?").wait_for()
    page.close()


def test_a_server_that_is_gone_is_told_in_the_apps_own_words(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        server.stop(signal.SIGKILL)
        asked = page.get_by_role("dialog")
        asked.get_by_text("memchat is not running").wait_for()
        asked.get_by_text("Start it again").wait_for()
        assert "Streamlit" not in page.locator("body").inner_text()
        page.close()
