"""How quick the app is in a real browser, over a store of 10,000 memories.

    python -m benchmarks.ui [--memories 10000] [--rounds 20] [--before REVISION]

Three servers in one run, asked in turns: the app as it is here, the app of an earlier commit (the
one before, unless named), and an empty page of Streamlit. Each has a store of its own; Debian's
Chromium through Playwright, the stand-in for a model, words alone for search. Each time is taken
inside the page: from the click or key to the frame in which what was asked for stands there, and to
the first sign of it. The goals at the 95th percentile: a sign in 150 ms; all done in 400 ms within
a page, in 700 ms for another page or a chat of 1,000 messages.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ui_actions import Actions
from benchmarks.ui_store import USER
from tests.support.ui.browser import Server, chromium, missing, opened

ROOT = Path(__file__).resolve().parents[1]
EMPTY = Path(__file__).with_name("ui_empty_page.py")
STORE = Path(__file__).with_name("ui_store.py")
SIGN, WITHIN, ANOTHER = 150.0, 400.0, 700.0
OTHER_PAGES = ("open Insights", "open Inbox", "open Settings", "open Memories", "open a chat")


def main() -> int:
    """Measure it, and print a line an action."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--before", default="HEAD^")
    options = parser.parse_args()
    if why_not := missing():
        print(why_not, file=sys.stderr)
        return 1
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tree = stack.enter_context(earlier(options.before, work / "tree"))
        browser = stack.enter_context(chromium())
        subjects = {}
        for name, path in (("now", ROOT), ("before", tree)):
            fill_with(path, work / name / "store", options.memories)
            server = stack.enter_context(Server(work / name, user=USER, PYTHONPATH=str(path)))
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            subjects[name] = Actions(page, server.url, options.memories)
        empty = EmptyPage(browser, stack.enter_context(Server(work, command=empty_page())))
        for n in range(options.rounds + 1):
            for actions in subjects.values():
                actions.run(n)
            empty.run(n)
    print(f"{options.memories:,} memories, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"done and sign in ms: p50 and p95 now | of {options.before} | of an empty page")
    show(subjects["now"].times, subjects["before"].times, empty.times)
    return 0


@contextlib.contextmanager
def earlier(revision: str, tree: Path) -> Iterator[Path]:
    """A checkout of an earlier commit."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "-q", str(tree), revision], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def fill_with(code: Path, store: Path, memories: int) -> None:
    """A store made by the code of one checkout: an earlier one opens no newer store."""
    command = [sys.executable, "-P", str(STORE), str(store), str(memories)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(code)})


def empty_page() -> list[str]:
    """The command that serves the empty page; the port is added to it."""
    run = [sys.executable, "-m", "streamlit", "run", str(EMPTY), "--server.address", "127.0.0.1"]
    return [*run, "--browser.gatherUsageStats", "false", "--server.port"]


class EmptyPage(Actions):
    """The empty page's one action."""

    def __init__(self, browser: Any, server: Server) -> None:
        super().__init__(browser.new_page(), server.url, 0)

    def run(self, n: int) -> None:
        """Press the button once."""
        if n == 0:
            opened(self._page, self._url)
        pressed = f"document.body.innerText.includes('Pressed {n + 1} times')"
        self._take("press", self._page.get_by_role("button", name="Press").click, pressed)
        if n == 0:
            self.times.clear()


Times = dict[str, list[tuple[float, float]]]


def show(now: Times, before: Times, empty: Times) -> None:
    """One line an action: what is over its goal is marked."""
    print(f"{'':32}{'done':>6}{'p95':>6}{'sign':>6}{'p95':>6}  |{'done':>6}{'p95':>6}{'sign':>6}")
    for name, taken in [*now.items(), *((f"empty page: {n}", t) for n, t in empty.items())]:
        done, sign = ([pair[n] for pair in taken] for n in (0, 1))
        goal = ANOTHER if name.startswith(OTHER_PAGES) else WITHIN
        over = "  over" if _p95(sign) > SIGN or _p95(done) > goal else ""
        old = before.get(name, [])
        beside = f"{_p50([o[0] for o in old]):6}{_p95([o[0] for o in old]):6.0f}" if old else ""
        line = f"{name:32}{_p50(done):>6}{_p95(done):6.0f}{_p50(sign):>6}{_p95(sign):6.0f}  |"
        print(
            f"{line}{beside or '     -     -'}{_p50([o[1] for o in old]) if old else '-':>6}{over}"
        )


def _p50(taken: list[float]) -> str:
    return f"{statistics.median(taken):.0f}"


def _p95(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=20, method="inclusive")[-1] if len(taken) > 1 else taken[0]


if __name__ == "__main__":
    sys.exit(main())
