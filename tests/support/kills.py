"""Child processes that are killed at a chosen point."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from benchmarks import crash
from memchat import MemChat
from memchat.config import Settings
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from tests.support import empty_store
from tests.support.store import NOON

PATIENCE = 60
"""Seconds for another process to get somewhere on a busy machine."""


def wait_for_the_kill(reached: Connection, what: Any = None) -> NoReturn:
    reached.send(what)
    while True:
        threading.Event().wait()


def child_store(home: Path, **doubles: Any) -> MemChat:
    given: dict[str, Any] = {
        "chat_model": ScriptedModel(["Fine."] * 5),
        "extract_model": ScriptedModel(),
        "embedder": HashEmbedder(),
        "clock": FakeClock(NOON),
        **doubles,
    }
    return MemChat(
        settings=Settings(home=empty_store.place(home), timezone="Europe/Berlin"), **given
    )


class Victim:
    """Another process, as far as ``target`` gets before it waits to be killed."""

    def __init__(self, target: Callable[[Path, Connection], None], home: Path) -> None:
        context = crash.forkserver()
        here, there = context.Pipe()
        self._process = context.Process(target=target, args=(home, there), daemon=True)
        self._process.start()
        there.close()
        assert here.poll(PATIENCE), "the process did not get there"
        self.said = here.recv()
        here.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def start_a_chat(mc: MemChat) -> None:
    """The next start of the person's chat, and all that it does in the background."""
    mc.user("ana").chat()
    for thread in threading.enumerate():
        if thread.name == "memchat-worker":
            thread.join(PATIENCE)
