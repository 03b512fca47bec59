"""The settings page in a real browser: a file comes down, and goes back up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings, keys
from tests.support.ui.browser import (
    Server,
    becomes,
    chromium,
    findings,
    needs_browser,
    opened,
    settled,
)
from tests.support.wire import OpenAIServer

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
DRAFTED = "JSON.stringify({...sessionStorage}).includes('zanzibarquark')"


@pytest.mark.slow
def test_a_person_enters_a_key_exports_wipes_and_imports(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "store", embed_model="none")
    with MemChat(settings=settings) as mc:
        mc.user("ana").memories.add("profile", "city", "Lisbon")
    with OpenAIServer() as model, Server(tmp_path) as server, chromium() as browser:
        page = opened(browser.new_page(), server.url)
        page.locator("#memchat-message").fill("zanzibarquark")
        becomes(page, DRAFTED)
        page.get_by_role("button", name="Choose a model").click()
        page.get_by_role("heading", name="Settings").wait_for()
        settled(page)  # what is typed while the page is drawn anew may be lost
        page.get_by_label("Address", exact=True).fill(model.base)
        settled(page)
        page.get_by_label("Key", exact=True).fill(model.key)
        settled(page)
        page.get_by_role("button", name="Try and keep").click()
        page.get_by_text("OpenAI is kept and offers 2 models.").wait_for()
        settled(page)
        assert list(keys.read(tmp_path / "store").values()) == [model.key]
        assert page.get_by_label("Key", exact=True).input_value() == ""
        assert model.key not in page.content()
        assert findings(page) == []

        page.get_by_role("link", name="Data", exact=True).click()
        with page.expect_download() as coming:
            page.get_by_role("button", name="Export everything").click()
        file = tmp_path / coming.value.suggested_filename
        coming.value.save_as(file)
        assert json.loads(file.read_text().splitlines()[0])["user"] == "ana"

        page.get_by_role("button", name="Wipe everything …").click()
        page.get_by_label("Type your name").fill("ana")
        page.get_by_role("button", name="Wipe everything", exact=True, disabled=False).wait_for()
        page.get_by_label("Type your name").press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("Everything is gone.").wait_for()
        becomes(page, DRAFTED, False)
        settled(page)
        page.locator("input[type=file]").set_input_files(file)
        settled(page)
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("Imported: 1 memory.").wait_for()
    with MemChat(settings=settings) as mc:
        assert [m.value for m in mc.user("ana").memories.list()] == ["Lisbon"]
