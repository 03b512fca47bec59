"""Takes the screenshots of ``docs/screenshots`` anew: every page, in both themes, wide and narrow.

    .venv/bin/python -m tools.screenshots [FOLDER [PAGE ...]]

Look at each before it is committed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.ui.browser import WAIT, Server, chromium, missing, opened
from tests.support.ui.seed import seed

SIZES = {1280: 800, 390: 844}
PAGES = {"new": "", "chat": "?c=1", "memories": "memories", "notes": "notes"}
PAGES |= {"note": "notes?note=3&at=185-110", "inbox": "inbox", "insights": "insights"}
PAGES |= {"settings": "settings"}
TALLEST = 1800
NOWHERE = """document.querySelectorAll('[data-testid=stCode] code').forEach(
  e => { e.textContent = '/home/ana/memchat/data/store'; })"""
"""The store is in a temporary folder of this machine's, which is nobody's business."""
HEIGHT = "Math.max(...[...document.querySelectorAll('.stMain')].map(e => e.scrollHeight))"


def main(folder: Path, wanted: Sequence[str]) -> None:
    """Take those of these pages."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        home = Path(work)
        seed(home / "store")
        env = {"MEMCHAT_EMBED_MODEL": "minilm"}
        with Server(home, **env) as server, chromium() as browser:
            for width, height in SIZES.items():
                for theme in ("light", "dark"):
                    take(browser, server, folder, wanted, (width, height), theme)


def take(
    browser: Any,
    server: Server,
    folder: Path,
    wanted: Sequence[str],
    size: tuple[int, int],
    theme: str,
) -> None:
    """These pages at one size in one theme."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(WAIT)
    name = f"{width}-{theme}"
    for title in wanted:
        if title in OPENED:
            OPENED[title](page, server)
            page.screenshot(path=folder / f"{title}-{name}.png")
            continue
        opened(page, server.url + PAGES[title])
        page.get_by_text("being indexed").first.wait_for(state="detached")
        page.wait_for_timeout(1200)
        tall = page.evaluate(HEIGHT)
        if title == "settings":
            page.evaluate(NOWHERE)
        if title != "new":
            page.set_viewport_size({"width": width, "height": min(max(tall, height), TALLEST)})
            page.wait_for_timeout(500)
        page.screenshot(path=folder / f"{title}-{name}.png")
        page.set_viewport_size({"width": width, "height": height})
    context.close()


def answer(page: Any, server: Server) -> None:
    """Ask the notes."""
    opened(page, server.url + "notes")
    page.get_by_label("Search or ask your notes").fill("What did I say about the herb bed?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("Sources").wait_for()
    page.wait_for_timeout(1000)


def why(page: Any, server: Server) -> None:
    """Open what a reply is taken from."""
    opened(page, server.url + "?c=3").get_by_role("button", name="Why this answer").click()
    page.get_by_role("dialog").wait_for()
    page.wait_for_timeout(1000)


OPENED: dict[str, Callable[[Any, Server], None]] = {"answer": answer, "why": why}
"""Pictures of what is opened by the mouse."""


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots"),
        sys.argv[2:] or [*PAGES, *OPENED],
    )
