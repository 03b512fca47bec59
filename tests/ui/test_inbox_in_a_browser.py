"""The inbox in a real browser: many answers at once, each with its way back, and a new space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps
from memchat.facts import proposals
from memchat.types import Proposal, Scope
from tests.support import private
from tests.support.ui.browser import Server, findings, needs_browser, opened, settled

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
COUNT = 25


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("inbox")
    with MemChat(settings=Settings(home=folder / "store", embed_model="none")) as mc:
        mc.user("ana").memories.add("preference", "tea", "green tea")
        with private.database(mc).write() as tx:
            own = apps.ensure(tx, Scope("ana")).own
            for n in range(COUNT):
                words = f"tea number {n}"
                held = Proposal("unsure", memory_type="fact", key="tea", value=words)
                proposals.add(tx, own, held)
    with Server(folder) as running:
        yield running


@pytest.mark.slow
def test_all_are_rejected_by_two_clicks_and_are_back_after_a_third(
    server: Server, browser: Any
) -> None:
    page = opened(browser.new_page(color_scheme="dark"), f"{server.url}inbox")
    page.get_by_role("link", name=f"Inbox ({COUNT})").wait_for()
    page.get_by_text("Select all").click()
    page.get_by_text(f"{COUNT} selected of {COUNT}").wait_for()
    assert findings(settled(page)) == []
    page.get_by_role("button", name=f"Reject {COUNT}").click()
    page.get_by_role("heading", name="Nothing waits").wait_for()
    page.get_by_text(f"Rejected: {COUNT} items.").wait_for()
    # The keyboard is on the button that takes it back.
    page.locator(".st-key-undo-bar button:focus").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("link", name=f"Inbox ({COUNT})").wait_for()
    page.get_by_text(f"And {COUNT - 20} more, when these are done.").wait_for()
    page.close()


def press(page: Any, key: str, code: str, *, repeats: int = 0) -> None:
    """Press Alt and a key of a keyboard that may write another script."""
    keyboard = page.context.new_cdp_session(page)
    for n in range(repeats + 1):
        held = {"type": "keyDown", "key": key, "code": code, "autoRepeat": n > 0, "modifiers": 1}
        keyboard.send("Input.dispatchKeyEvent", held)
    keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "code": code})


@pytest.mark.slow
def test_keys_answer_the_first_proposal_once_in_any_script_and_never_behind_a_dialog(
    server: Server, browser: Any
) -> None:
    from playwright.sync_api import expect

    page = opened(browser.new_page(), f"{server.url}inbox")
    first = page.locator("[class*=st-key-item-] button").first
    page.locator(".st-key-shortcuts button[aria-keyshortcuts='Control+/']").wait_for()
    expect(first).to_have_attribute("aria-label", "Keep: Remember tea: tea number 0?")
    page.keyboard.press("Control+/")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Alt+x")
    page.keyboard.press("Alt+y")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")

    press(page, "ч", "KeyX", repeats=5)
    page.get_by_text("Rejected: Tea: tea number 0.").wait_for()
    undo = page.get_by_role("button", name="Undo: Rejected: Tea: tea number 0.", exact=True)
    page.get_by_role("link", name=f"Inbox ({COUNT - 1})").wait_for()
    assert undo.evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    page.locator("[class*=st-key-item-] button:focus").wait_for()
    expect(first).to_have_attribute("aria-label", "Keep: Remember tea: tea number 0?")
    page.get_by_role("link", name=f"Inbox ({COUNT})").wait_for()

    page.keyboard.press("Alt+e")
    page.locator("[class*=st-key-decided-] input:focus").wait_for()
    page.keyboard.type("k")
    page.keyboard.press("Escape")
    page.locator("[class*=st-key-decide-] button:focus").wait_for()
    page.keyboard.press("Alt+e")
    page.locator("[class*=st-key-decided-] input:focus").fill("in other words")
    page.keyboard.press("Enter")
    page.get_by_text("Kept: Tea: in other words.").wait_for()
    page.locator(".st-key-undo-bar button:focus").press("Enter")
    page.get_by_role("link", name=f"Inbox ({COUNT})").wait_for()
    page.close()


def test_a_new_space_is_made_by_its_button_and_empty(server: Server, browser: Any) -> None:
    width, height = 390, 844
    page = browser.new_page(viewport={"width": width, "height": height})
    opened(page, f"{server.url}?app=default")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("Give the space a name.").wait_for()
    page.get_by_label("Name", exact=True).fill("Work")
    page.get_by_label("Name", exact=True).press("Enter")
    page.get_by_role("dialog").wait_for(state="detached")
    page.wait_for_url("**/?app=Work")
    page.get_by_role("link", name="Inbox", exact=True).wait_for(state="attached")
    page.close()
