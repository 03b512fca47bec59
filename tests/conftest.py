"""A store of its own for each test: scripted models, the hash embedder, a clock that waits."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from memchat import MemChat
from memchat.config import Settings
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from tests.support import command_tree, empty_store
from tests.support.store import NOON, WAIT, Opener

pytest_plugins = [
    "tests.support.cli",
    "tests.support.full_disk",
    "tests.support.later_version",
    "tests.support.minilm",
    "tests.support.terminal",
    "tests.support.ui.service",
]

# What the tests write lies in memory where there is room for it: they wait for a disk longer than
# they compute, and no test pulls a plug.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Speed is measured in benchmarks/; on a busy machine a deadline tells nothing.
hypothesis.settings.register_profile("memchat", deadline=None)
hypothesis.settings.load_profile("memchat")

# All stores share what SQLAlchemy makes of a statement: most tests open a store of their own, and
# compiling anew in each took a third of their time. The dialect is part of the cache's key.
_COMPILED: LRUCache[Any, Any] = LRUCache(2000)
Engine._compiled_cache = property(lambda _: _COMPILED, lambda *_: None)  # type: ignore[assignment]
SQLiteDialect_pysqlite.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore
SQLiteDialect_pysqlite.__hash__ = lambda self: hash(type(self))  # type: ignore

# Trusted certificates are read once, not by each client of httpx: that takes 20 ms.
_context = ssl.create_default_context


@functools.cache
def _trusting(file: str, _changed: int) -> ssl.SSLContext:
    return _context(cafile=file)


def _context_once(*args: Any, **given: Any) -> ssl.SSLContext:
    file = given.get("cafile")
    if args or not file or given.keys() != {"cafile"}:
        return _context(*args, **given)
    return _trusting(str(file), os.stat(file).st_mtime_ns)


ssl.create_default_context = _context_once  # type: ignore[assignment]

# Modules and tests stay to the end: they are not looked through for what can be cleared away.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


command_tree.build_once()


@pytest.fixture(scope="session", autouse=True)
def no_default_store() -> Iterator[None]:
    """A test that names no data folder fails, instead of writing into the one of its user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCHAT_HOME", "/dev/null/no-data-folder-was-named")
        yield


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def chat_model() -> ScriptedModel:
    """Answers "Fine." for ever."""
    model = ScriptedModel(name="scripted/chat")
    model.replies.extend(["Fine."] * 1000)
    return model


@pytest.fixture
def extract_model() -> ScriptedModel:
    return ScriptedModel(name="scripted/extract")


@pytest.fixture
def open_store(
    tmp_path: Path, clock: FakeClock, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> Iterator[Opener]:
    """Opens the test's store, again and again; everything opened is closed at the end."""
    opened: list[MemChat] = []

    def opener(**changes: Any) -> MemChat:
        home = changes.pop("home", None) or empty_store.place(tmp_path / "store")
        settings = Settings(home=home, timezone="Europe/Berlin", embed_patience=WAIT)
        given = {"chat_model": chat_model, "extract_model": extract_model, "clock": clock}
        given["embedder"] = changes.pop("embedder", HashEmbedder())
        for name in ("chat_model", "extract_model", "clock"):
            given[name] = changes.pop(name, given[name])
        opened.append(MemChat(settings=settings.with_(**changes), **given))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    return open_store()
