"""What the pages of these tests work at: a real store, the stand-in for a model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit

from memchat import MemChat
from memchat.providers import litellm_calls
from tests.support import empty_store
from tests.support.ui import scan
from tests.support.ui.browser import chromium
from tests.support.ui.tab import forget_desk
from ui import components, theme
from ui.desk import Desk


@pytest.fixture(autouse=True, scope="session")
def _warm() -> None:
    """Load litellm before any test: a desk does so in a thread, and the warnings of that import are
    silenced in a way that a test which ends meanwhile undoes."""
    litellm_calls.litellm()
    scan.scan_once()
    # As the app is started; Streamlit would otherwise rewrite each script at each run.
    streamlit.config.set_option("runner.magicEnabled", theme.SERVER["runner.magicEnabled"])


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("streamlit").setLevel(logging.ERROR)


@pytest.fixture
def models() -> dict[str, str]:
    """Which models answer and read, as the environment names them."""
    return {"MEMCHAT_CHAT_MODEL": "offline/chat", "MEMCHAT_EXTRACT_MODEL": "offline/extract"}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, str]) -> Iterator[Desk]:
    """The desk that the pages of this test work at."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "MEMCHAT_HOME": str(empty_store.place(tmp_path / "store")),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "none",
        "MEMCHAT_TIMEZONE": "Europe/Lisbon",
        **models,
    }.items():
        monkeypatch.setenv(name, value)
    yield components.desk()
    forget_desk()


@pytest.fixture
def mc(desk: Desk) -> MemChat:
    return desk.mc


@pytest.fixture(scope="module")
def module_browser() -> Iterator[Any]:
    """One browser for the tests of a module."""
    with chromium() as found:
        yield found


@pytest.fixture
def browser(module_browser: Any) -> Iterator[Any]:
    """The same; the windows of a test are closed after it. Each would go on drawing that it has
    lost its server, for the rest of the module."""
    before = module_browser.contexts
    yield module_browser
    for context in module_browser.contexts:
        if context not in before:
            context.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A window of its own."""
    found = browser.new_page()
    yield found
    found.close()
