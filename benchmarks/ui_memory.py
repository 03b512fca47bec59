"""What memory the app's server takes while somebody uses it, in a real browser.

    python -m benchmarks.ui_memory [--chats 40] [--messages 8]

In each chat so many messages are sent; then every page is opened, and the app is loaded anew. With
the stand-in for a model, and MiniLM. The goal is 300 MB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.ui.browser import Server, chromium, missing, opened, say, settled

ROOT = Path(__file__).resolve().parents[1]
GOAL = 300
SAID = (
    "I moved to Lisbon.",
    "What do I drink?",
    "My sister lives in Ghent.",
    "I like green tea.",
    "How far is Porto?",
    "I work as a gardener.",
    "Remember that I play the cello.",
)
PAGES = ("Memories", "Notes", "Inbox", "Insights", "Settings")


def held(port: int) -> int:
    """The megabytes that the process with this port holds."""
    found = subprocess.run(
        ["pgrep", "-f", f"memchat ui .*--port {port}"], capture_output=True, text=True, check=True
    )
    pages = Path(f"/proc/{found.stdout.split()[0]}/smaps_rollup").read_text("utf-8")
    return int(pages.split("Rss:")[1].split()[0]) // 1024


def main() -> int:
    """Use the app, and print what it holds after each chat."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--chats", type=int, default=40)
    options.add_argument("--messages", type=int, default=8)
    given = options.parse_args()
    if why_not := missing():
        print(why_not, file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "memchat", "ui", "--user", "ana", "--port"]
    models = {"MEMCHAT_EMBED_MODEL": "minilm", "PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium() as browser,
        Server(Path(folder), command=command, **models) as server,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        opened(page, server.url)
        began, sent = time.monotonic(), 0
        print(f"opened: {held(server.port)} MB", flush=True)
        for _ in range(given.chats):
            for _ in range(given.messages):
                say(page, SAID[sent % len(SAID)])
                settled(page)
                sent += 1
            for name in PAGES:
                page.get_by_role("link", name=name).first.click()
                settled(page)
            opened(page, server.url)
            now = held(server.port)
            print(f"{sent} messages, {time.monotonic() - began:.0f} s: {now} MB", flush=True)
    print(f"goal: {GOAL} MB at most: {'met' if now <= GOAL else 'missed'}")
    return 0 if now <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
