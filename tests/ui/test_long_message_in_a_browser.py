"""A very long message in the browser: sent, drawn, and asked about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.long_text import WINDOW, long_text
from tests.support.ui.browser import Server, becomes, chromium, needs_browser, opened

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
PASTE = """(box, text) => {
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
  set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
}"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[Any]:
    with Server(home, MEMCHAT_CONTEXT=str(WINDOW)) as server, chromium() as browser:
        yield opened(browser.new_page(), server.url)


@pytest.mark.slow
def test_a_paste_of_1_mb_is_drawn_short_and_its_reading_is_chosen(home: Path, page: Any) -> None:
    box = page.locator("#memchat-message")
    box.evaluate(PASTE, long_text(1_000_000))
    box.press("Enter")
    page.get_by_role("button", name="Show all (").wait_for()
    page.get_by_role("button", name="Read beginning and end").wait_for()
    becomes(page, "document.querySelector('.memchat-words').innerText.length < 3000")
    page.get_by_role("button", name="Read all of it (").click()
    page.get_by_text("All of this message is read for memories.").wait_for()
    with MemChat(settings=Settings(home / "store")) as mc:
        sessions = mc.user("ana").sessions
        (long,) = sessions.long_messages(sessions.list()[0].id)
        assert long.read_all and long.characters > 999_000
    page.get_by_role("button", name="Show all (").click()
    page.get_by_role("button", name="Show less").click()
    page.get_by_role("button", name="Show all (").wait_for()
