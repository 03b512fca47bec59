"""What a person does in the app, each action timed inside the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.ui_store import THINGS, TURNS, TYPES
from tests.support.ui.browser import opened

WATCH = """(() => {
  const over = () => (%s);
  window.began = window.ended = window.signed = null;
  const begin = () => { window.began ??= performance.now(); };
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, begin, true);
  const line = () => getComputedStyle(document.querySelector(".stApp"), "::before").opacity > 0;
  const look = () => {
    if (window.began === null) return requestAnimationFrame(look);
    const done = over();
    if (window.signed === null && (done || line())) window.signed = performance.now();
    if (done) window.ended = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})()"""
TIMES = "window.ended && [window.ended - window.began, window.signed - window.began]"
MOST_SECONDS = 10.0
"""What takes longer is given up: that commit does not have the action, or not by this name."""


class Actions:
    """The actions of one server's app, again and again."""

    def __init__(self, page: Any, url: str, count: int) -> None:
        self._page = page
        self._url = url
        self._count = count
        self.times: dict[str, list[tuple[float, float]]] = {}

    def run(self, n: int) -> None:
        """Take the milliseconds of each action, and those until there was a sign of it. A first
        round, number 0, warms all up and is left out."""
        if n == 0:
            self._open()
        for part in (self._pages, self._memories, self._row, self._chat):
            try:
                part(n)
            except Exception as error:  # noqa: BLE001
                # Playwright's errors and our own alike: the next part begins with a fresh page.
                print(f"{self._url} {part.__name__}: {str(error).splitlines()[0]}")
                self._open()
        if n == 0:
            self.times.clear()

    def _open(self) -> None:
        opened(self._page, self._url)
        self._page.set_default_timeout(MOST_SECONDS * 1000)

    def _take(self, name: str, act: Callable[[], object], holds: str) -> None:
        page = self._page
        page.evaluate(WATCH % holds)
        act()
        end = time.monotonic() + MOST_SECONDS
        while (taken := page.evaluate(TIMES)) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"{name}: not done after {MOST_SECONDS:.0f} s")
            page.wait_for_timeout(20)
        self.times.setdefault(name, []).append(tuple(taken))
        page.locator(".stApp:not([data-test-script-state='running'])").wait_for()
        page.wait_for_timeout(150)

    def _pages(self, _n: int) -> None:
        there = {
            "Insights": "document.body.innerText.includes('Worth a look')",
            "Inbox": "document.querySelector('h1')?.innerText === 'Inbox'",
            "Settings": "document.body.innerText.includes('Wipe everything')",
            "Memories": "document.body.innerText.includes('Page 1 of')",
        }
        for name, holds in there.items():
            link = self._page.get_by_role("link", name=name, exact=name != "Inbox").first
            self._take(f"open {name}", link.click, holds)

    def _memories(self, _n: int) -> None:
        page = self._page
        text = "document.body.innerText.includes({!r})".format
        rows = "document.querySelectorAll('.memchat-row').length > {}".format
        last = page.locator(".memchat-row").nth(49)
        self._take("fifty more", last.scroll_into_view_if_needed, rows(50))
        shared = len(range(4, self._count, len(TYPES)))
        pill = page.get_by_text(f"Preferences {shared:,}", exact=True)
        self._take("choose a group", pill.click, text(f"{shared:,} memories"))
        self._take("filter off", pill.click, text(f"{self._count:,} memories"))

    def _row(self, n: int) -> None:
        page, box = self._page, self._page.get_by_label("Search memories")
        text = "document.body.innerText.includes({!r})".format
        # Each round has a memory of its own: what is forgotten and brought back was changed.
        number = n * 37 % self._count
        box.fill(f"{THINGS[number % 10]} {number:05}")
        self._take("search", lambda: box.press("Enter"), text("1 memory"))
        row = page.locator(".memchat-row").first
        about = "document.querySelector('.memchat-row small').textContent.includes('pinned')"

        def choose(name: str, label: str, holds: str) -> None:
            row.get_by_role("button", name="What can be done").click()
            item = page.get_by_role("menuitem", name=label, exact=True)
            self._take(name, item.click, holds)

        choose("pin", "Pin", about)
        choose("unpin", "Unpin", f"!{about}")
        dialog = "document.querySelector('[role=dialog]')?.innerText.includes({!r})".format
        closed = "document.querySelector('[role=dialog]') === null"
        choose("open details", "Details", dialog("What happened"))
        self._take("close details", lambda: page.keyboard.press("Escape"), closed)
        choose("open editor", "Edit", dialog("Save"))
        self._take("leave it", page.get_by_role("button", name="Cancel").click, closed)
        dots = "document.querySelector('.memchat-row .dots')"
        choose("forget", "Forget", f"{dots} === null")
        undo = row.get_by_role("button", name="Undo")
        self._take("undo", undo.click, f"{dots} !== null")
        box.fill("")
        self._take("show all again", lambda: box.press("Enter"), text(f"{self._count:,} memories"))

    def _chat(self, n: int) -> None:
        page = self._page
        talk = page.get_by_role("button", name="Turn 0", exact=True)
        said = "[...document.querySelectorAll('.memchat-said')].some(e => "
        last = f"{said}e.innerText.includes('Turn {TURNS - 1}'))"
        self._take("open a chat of 1,000 messages", talk.click, last)
        earlier = page.get_by_role("button", name="Show earlier messages")
        self._take("show 40 earlier turns", earlier.click, last.replace(str(TURNS - 1), "470"))
        new = page.get_by_role("button", name="New chat")
        self._take("new chat", new.first.click, "document.body.innerText.includes('on your mind?')")
        box = page.locator("#memchat-message")
        box.fill(f"Where is thing {n}?")
        stands = f"{said}e.innerText.trim())"
        self._take("say something: own words", lambda: box.press("Enter"), stands)
        why = page.get_by_role("button", name="Why this answer")
        why.wait_for(timeout=60_000)  # the first reply of a server loads litellm
        self._take("why this answer", why.click, "!!document.querySelector('[role=dialog] h2')")
        closed = "document.querySelector('[role=dialog]') === null"
        self._take("close it", lambda: page.keyboard.press("Escape"), closed)
