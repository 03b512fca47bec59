"""The app in a real browser: its server as a process of its own, Chromium through Playwright."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from tests.support import empty_store
from tests.support.forks import Forked

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WAIT = 60_000
"""Milliseconds: no test's outcome hangs on how busy the machine is."""
START = """
import sys
from ui import desk
desk.GRACE_SECONDS = float(sys.argv[1])
from memchat.cli import main
sys.exit(main(sys.argv[2:]))
"""


def missing() -> str | None:
    """Why no browser can be had here, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed; run make to bring .venv up to date"
    if CHROMIUM is None:
        return "no chromium; on Debian: apt install chromium"
    return None


needs_browser = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        try:
            yield found
        finally:
            found.close()


class Server:
    """``memchat ui`` over a store, until the block ends; or another ``command`` that serves a page,
    and takes its port as the last word."""

    def __init__(
        self,
        home: Path,
        *,
        user: str = "ana",
        grace: float = 120.0,
        command: list[str] | None = None,
        public_url: str | None = None,
        **env: str,
    ) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._args = [str(grace), "ui", "--user", user, "--port", str(self.port)]
        self._args += ["--public-url", public_url] if public_url else []
        self._host = urlsplit(public_url or self.url).netloc
        self._command = [*command, str(self.port)] if command else None
        named = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        self._env = named | {
            "MEMCHAT_HOME": str(home / "store"),
            "MEMCHAT_CHAT_MODEL": "offline/chat",
            "MEMCHAT_EXTRACT_MODEL": "offline/extract",
            "MEMCHAT_EMBED_MODEL": "none",
            "MEMCHAT_TIMEZONE": "Europe/Lisbon",
            "STREAMLIT_SERVER_HEADLESS": "true",
            **env,
        }
        self._process: subprocess.Popen[bytes] | Forked | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop(signal.SIGKILL)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        empty_store.place(self.home / self._env["MEMCHAT_HOME"])
        self._process = process = self._begin()
        end = time.monotonic() + 60
        health = urllib.request.Request(self.url + "_stcore/health", headers={"host": self._host})
        while time.monotonic() < end:
            with contextlib.suppress(OSError), urllib.request.urlopen(health):
                return
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        raise AssertionError("the server did not answer")

    def _begin(self) -> subprocess.Popen[bytes] | Forked:
        with open(os.devnull, "r+b") as nothing:
            if self._command is None:
                stdio = [nothing.fileno()] * 3
                return Forked(START, self._args, env=self._env, cwd=self.home, stdio=stdio)
            return subprocess.Popen(
                self._command, cwd=self.home, env=self._env, stdout=nothing, stderr=nothing
            )

    def stop(self, how: signal.Signals) -> None:
        """End it, as gently as that signal is."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def opened(page: Any, url: str) -> Any:
    """The page, once it is drawn and still."""
    page.set_default_timeout(WAIT)
    page.goto(url)
    return settled(page)


def settled(page: Any) -> Any:
    """The page, once its run is over."""
    page.locator(".stApp h1, .stApp h2, .stApp h3").first.wait_for()
    # By locators: the page's content security policy refuses what waits for a JavaScript text.
    page.locator(".stApp:not([data-test-script-state='running'])").wait_for()
    page.wait_for_timeout(400)
    return page


def becomes(page: Any, script: str, value: object = True) -> None:
    """Wait until a script has this value in the page. Playwright's own way runs it with ``eval``,
    which the page forbids."""
    end = time.monotonic() + WAIT / 1000
    while page.evaluate(script) != value:
        assert time.monotonic() < end, page.evaluate(script)
        page.wait_for_timeout(50)


def say(page: Any, words: str) -> None:
    """Write a message and send it."""
    box = page.locator("#memchat-message")
    box.fill(words)
    box.press("Enter")


def findings(page: Any) -> list[str]:
    """What axe-core finds that is serious or critical, each with where it is."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None and found.origin is not None
    page.evaluate(Path(found.origin).with_name("axe.min.js").read_text())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']}: {node['target'][0]} {node.get('failureSummary', '')}"
        for v in result["violations"]
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]
