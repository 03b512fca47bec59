"""The open chats of a store and the work that runs in threads beside them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from memchat.chat import Chat

Result = TypeVar("Result")

CLOSE_SECONDS = 5.0
"""How long closing waits for background work; what is not done then is done at the next start."""


class Background:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._threads: list[threading.Thread] = []

    def add(self, chat: Chat) -> None:
        """Keep track of an open chat, so that closing the store lets go of it."""
        with self._lock:
            self._chats.add(chat)

    def run(self, work: Callable[[], None]) -> threading.Thread:
        """Do some work in a thread of its own."""
        thread = threading.Thread(target=work, name="memchat-worker", daemon=True)
        with self._lock:
            self._threads = [other for other in self._threads if other.is_alive()]
            self._threads.append(thread)
            thread.start()
        return thread

    def run_within(self, seconds: float, work: Callable[[], Result]) -> Result:
        """Do some work in a thread, and return what it gives, or raise what it raises.

        Raises TimeoutError where it takes longer than ``seconds``; the work then goes on.
        """
        result: Future[Result] = Future()

        def run() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                result.set_exception(error)

        self.run(run)
        return result.result(seconds)

    def close(self) -> bool:
        """Let go of the chats and wait for the work; whether all of it has ended."""
        with self._lock:
            chats, threads = list(self._chats), list(self._threads)
        for chat in chats:
            chat.abandon()
        for thread in threads:
            thread.join(timeout=CLOSE_SECONDS)
        return not any(thread.is_alive() for thread in threads)
