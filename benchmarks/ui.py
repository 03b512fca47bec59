"""How quick the app is in a real browser, over a store of 10,000 memories.

    python -m benchmarks.ui [--memories 10000] [--rounds 20] [--home FOLDER]

A server of its own, Debian's Chromium through Playwright, the stand-in for a model, words alone for
search. Each time is taken inside the page: from the person's click or key to the frame in which
what was asked for stands there. The goal is 200 ms for every action, or a sign of progress by then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memchat import MemChat
from memchat.config import Settings
from memchat.store import apps, memory_changes
from memchat.store.events import Cause
from memchat.store.new_memory import NewMemory
from memchat.testing import ScriptedModel
from memchat.types import Scope
from tests.support.ui.browser import Server, chromium, missing, opened

USER = "ana"
GOAL = 200.0
TURNS = 500
THINGS = ("book", "lamp", "chair", "plate", "print", "seed", "stone", "cable", "photo", "letter")
PLACES = ("shelf", "drawer", "box", "cellar", "garden", "study", "attic", "hall", "kitchen", "shed")
TYPES = ("fact", "fact", "fact", "other", "preference", "profile")
WATCH = """(holds) => {
  const test = new Function("return (" + holds + ")");
  window.began = window.ended = window.signed = null;
  const begin = () => { window.began ??= performance.now(); };
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, begin, true);
  const line = () => getComputedStyle(document.querySelector(".stApp"), "::before").opacity > 0;
  const look = () => {
    if (window.began === null) return requestAnimationFrame(look);
    const done = test();
    if (window.signed === null && (done || line())) window.signed = performance.now();
    if (done) window.ended = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""


def main() -> int:
    """Measure it, and print a line an action."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    if why_not := missing():
        print(why_not, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as work:
        home = options.home or Path(work)
        fill(home / "store", options.memories)
        with Server(home) as server, chromium() as browser:
            # What is waited for is JavaScript text, which the app's own policy refuses.
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            actions = Actions(page, server.url, options.memories)
            actions.run(options.rounds)
    print(f"{options.memories:,} memories, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"{'':32}{'done p50':>10}{'p95':>7}{'sign p95':>10}  ms")
    for name, taken in actions.times.items():
        done, sign = ([pair[n] for pair in taken] for n in (0, 1))
        mark = "  over" if _p95(sign) > GOAL else ""
        print(f"{name:32}{statistics.median(done):10.0f}{_p95(done):7.0f}{_p95(sign):10.0f}{mark}")
    return 0


def _p95(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=20, method="inclusive")[-1] if len(taken) > 1 else taken[0]


def fill(home: Path, count: int) -> None:
    """A store with so many memories, and one conversation of a thousand messages."""
    if home.exists():
        return
    now = datetime.now(UTC)
    settings = Settings(home=home, timezone="Europe/Lisbon", embed_model="none")
    model = ScriptedModel(["Fine."] * TURNS, name="scripted/chat", window=100_000)
    with MemChat(settings=settings, chat_model=model, extract_model=ScriptedModel()) as mc:
        talk = mc.user(USER).chat()
        for n in range(TURNS):
            for _ in talk.send(f"Turn {n}"):
                pass
        talk.abandon()
        with mc._assembly.database.write() as tx:
            own, _ = apps.ensure(tx, Scope(USER), now)
            for n in range(count):
                thing, place = THINGS[n % 10], PLACES[n // 10 % 10]
                words = f"number {n:05} stands in the {place}, behind the others"
                said = now - timedelta(minutes=30 * (count - n))
                kind: Any = TYPES[n % len(TYPES)]
                new = NewMemory(kind, thing, words, True, f"{thing}: {words}", said, "manual")
                memory_changes.add(tx, own, new, Cause(said, "user"))


class Actions:
    """What a person does, again and again."""

    def __init__(self, page: Any, url: str, count: int) -> None:
        self._page = page
        self._url = url
        self._count = count
        self.times: dict[str, list[tuple[float, float]]] = {}

    def run(self, rounds: int) -> None:
        """Take the milliseconds of each action, and those until there was a sign of it, in each
        round but for a first one that warms all up."""
        opened(self._page, self._url)
        for n in range(rounds + 1):
            if n == 1:
                self.times.clear()
            self._pages()
            self._memories(n)
            self._chat(n)

    def _take(self, name: str, act: Callable[[], object], holds: str) -> None:
        page = self._page
        page.evaluate(WATCH, holds)
        act()
        page.wait_for_function("window.ended !== null")
        taken = page.evaluate("[window.ended - window.began, window.signed - window.began]")
        self.times.setdefault(name, []).append(tuple(taken))
        page.wait_for_function(
            "document.querySelector('.stApp')?.dataset.testScriptState !== 'running'"
        )
        page.wait_for_timeout(150)

    def _pages(self) -> None:
        there = {
            "Insights": "document.querySelectorAll('.memchat-chart, .memchat-bars').length >= 4",
            "Inbox": "document.querySelector('h1')?.innerText === 'Inbox'",
            "Settings": "document.body.innerText.includes('Wipe everything')",
            "Memories": f"document.body.innerText.includes('Page 1 of {self._last:,}')",
        }
        for name, holds in there.items():
            link = self._page.get_by_role("link", name=name, exact=name != "Inbox").first
            self._take(f"open {name}", link.click, holds)

    @property
    def _last(self) -> int:
        return (self._count - 1) // 20 + 1

    def _memories(self, n: int) -> None:
        page, box = self._page, self._page.get_by_label("Search memories")
        text = "document.body.innerText.includes({!r})".format
        self._take("next page", page.get_by_role("button", name="Next →").click, text("Page 2 of"))
        self._take(
            "page before", page.get_by_role("button", name="← Before").click, text("Page 1 of")
        )
        number = n * 37 % self._count
        box.fill(f"{THINGS[number % 10]} {number:05}")
        self._take("search", lambda: box.press("Enter"), text("1 memory"))
        self._row()
        box.fill("")
        self._take("show all again", lambda: box.press("Enter"), text(f"{self._count:,} memories"))
        pill = page.get_by_role("button", name="Preference", exact=True)
        shared = len(range(4, self._count, len(TYPES)))
        self._take("filter by type", pill.click, text(f"{shared:,} memories"))
        self._take("filter off", pill.click, text(f"{self._count:,} memories"))

    def _row(self) -> None:
        page = self._page
        row = page.locator("[class*=st-key-row-]").first
        button = "[...document.querySelectorAll('button')].some(b => b.innerText === {!r})".format
        pin = row.locator("[class*=st-key-pin-] button")
        self._take("pin", pin.click, button("Unpin"))
        self._take("unpin", pin.click, button("Pin"))
        dialog = "document.querySelector('[role=dialog]')?.innerText.includes('What happened')"
        self._take("open details", row.get_by_role("button", name="Details").click, dialog)
        closed = "document.querySelector('[role=dialog]') === null"
        self._take("close details", lambda: page.keyboard.press("Escape"), closed)
        self._take("open editor", row.get_by_role("button", name="Edit").click, button("Save"))
        self._take("leave it", page.get_by_role("button", name="Cancel").click, button("Edit"))
        gone = "document.querySelector('[class*=st-key-pick-]') === null"
        self._take("forget", row.get_by_role("button", name="Forget").click, gone)
        back = "document.querySelector('[class*=st-key-pick-]') !== null"
        self._take("undo", page.locator(".st-key-undo-bar button").first.click, back)

    def _chat(self, n: int) -> None:
        page = self._page
        talk = page.get_by_role("button", name="Turn 0", exact=True)
        last = "[...document.querySelectorAll('[class*=st-key-said-]')].some(e => "
        last += f"e.innerText.includes('Turn {TURNS - 1}'))"
        self._take("open a chat of 1,000 messages", talk.click, last)
        earlier = page.get_by_role("button", name="Show earlier messages")
        self._take("show 40 earlier turns", earlier.click, last.replace(str(TURNS - 1), "470"))
        new = page.get_by_role("button", name="New chat", exact=True)
        self._take("new chat", new.click, "document.body.innerText.includes('on your mind?')")
        box = page.get_by_test_id("stChatInputTextArea")
        words = f"Where is thing {n}?"
        box.fill(words)
        said = "[...document.querySelectorAll('[class*=st-key-said-]')].some(e => "
        self._take(
            "say something: own words", lambda: box.press("Enter"), f"{said}e.innerText.trim())"
        )
        page.get_by_role("button", name="Why this answer").wait_for()
        why = page.get_by_role("button", name="Why this answer")
        self._take("why this answer", why.click, "!!document.querySelector('[role=dialog] h2')")
        closed = "document.querySelector('[role=dialog]') === null"
        self._take("close it", lambda: page.keyboard.press("Escape"), closed)


if __name__ == "__main__":
    sys.exit(main())
