"""The list of memories in a real browser: how much of it is seen, loaded, and done by keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import Server, becomes, findings, needs_browser, opened, settled

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
COUNT = 10_000
LONG = "a very long story of how the boat was found, mended, painted, lost and found again " * 2
SEEN = """[...document.querySelectorAll(".memchat-row")]
  .filter(row => row.getBoundingClientRect().bottom <= innerHeight).length"""
SMALLEST = """Math.min(...[...document.querySelectorAll(".memchat-row .dots")]
  .map(dots => dots.getBoundingClientRect()).flatMap(box => [box.width, box.height]))"""
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll(".memchat-menu button")]
    .map(item => item.getBoundingClientRect());
  return boxes.slice(1).filter((box, n) => box.top < boxes[n].bottom).length;
})()"""
FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Ten thousand memories, the newest with a long value."""
    home: Path = tmp_path_factory.mktemp("list")
    settings = Settings(home=home / "store", embed_model="none")
    with MemChat(settings=settings) as mc:
        mc.user("ana").memories.add("fact", "thing", "the first")
        mc.user("ana").memories.add("fact", "boat", LONG.strip())
    with closing(sqlite3.connect(home / "store" / "memchat.db")) as store, store:
        store.execute(
            """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
            INSERT INTO memories (memory_type, key, value, sha1, app_id, said_at)
            SELECT 'fact', 'thing', 'value ' || i, 'sha' || i, app_id, '2026-01-01T00:00:00Z'
            FROM n, (SELECT app_id FROM memories LIMIT 1)""",
            (COUNT - 2,),
        )
    with Server(home) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "least"), [(1280, 800, 12), (390, 844, 7)])
def test_many_rows_are_seen_and_each_has_a_button_that_a_finger_hits(
    browser: Any, server: Server, width: int, height: int, least: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark")
    opened(page, f"{server.url}memories?app=default")
    page.get_by_text("10,000 memories").wait_for()
    assert page.evaluate(SEEN) >= least
    assert page.evaluate(SMALLEST) >= 24
    first, second = (page.locator(".memchat-row").nth(n).bounding_box() for n in (0, 1))
    assert first["height"] > 1.4 * second["height"], "a long one is on several lines"
    assert second["height"] <= 44
    assert findings(page) == []


@pytest.mark.slow
def test_fifty_rows_are_in_the_page_and_fifty_more_as_one_scrolls(
    browser: Any, server: Server
) -> None:
    page = opened(browser.new_page(), f"{server.url}memories?app=default")
    rows = page.locator(".memchat-row")
    page.get_by_text("10,000 memories").wait_for()
    assert rows.count() == 50
    page.locator(".memchat-row").nth(49).scroll_into_view_if_needed()
    rows.nth(99).wait_for(state="attached")
    assert rows.count() == 100
    page.get_by_label("Search memories").fill("value 7321")
    page.get_by_text("1 memory", exact=True).wait_for()
    becomes(
        page,
        "[...document.querySelectorAll('.memchat-row mark')].map(e => e.textContent).join()",
        "value,7321",
    )


def test_by_keys_a_memory_is_forgotten_brought_back_and_many_are_pinned(
    browser: Any, server: Server
) -> None:
    page = opened(browser.new_page(), f"{server.url}memories?app=default")
    boat = page.locator(".memchat-row").filter(has_text="Boat")
    boat.get_by_role("button", name="What can be done").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Edit").wait_for()
    assert page.evaluate(OVERLAPS) == 0
    assert page.evaluate(FOCUSED) == "Edit"
    page.keyboard.press("Escape")
    assert str(page.evaluate(FOCUSED)).startswith("What can be done: Boat")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    boat.get_by_text("Forgotten: Boat").wait_for()
    becomes(page, f"({FOCUSED}).startsWith('Undo: Forgotten: Boat')")
    page.keyboard.press("Enter")
    boat.get_by_role("button", name="What can be done").wait_for()
    becomes(page, f"({FOCUSED}).startsWith('What can be done: Boat')")
    for n in (1, 2):
        page.get_by_role("checkbox", name="Select: Thing").nth(n).check()
    page.get_by_text("2 selected").wait_for()
    page.get_by_role("button", name="Pin", exact=True).click()
    page.locator(".memchat-row").filter(has_text="pinned").nth(1).wait_for()
    settled(page)
    page.close()
