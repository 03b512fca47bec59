"""Threads that work in the background, one piece of work at a time each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class DaemonThreads:
    """So many threads at most, started when needed. As they are daemons, a program that ends does
    not wait for them.
    """

    def __init__(self, name: str, threads: int = 1, *, always_wait: bool = True) -> None:
        """Leaving the block waits for all work; without ``always_wait`` not after an error."""
        self._name = name
        self._most = threads
        self._always_wait = always_wait
        self._todo: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._begun: list[Future[Any]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _ in self._threads:
            self._todo.put(None)
        if error is None or self._always_wait:
            for thread in self._threads:
                thread.join()

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Do this work in a thread; the future holds its result or its error."""
        self._begun = [future for future in self._begun if not future.done()]
        if len(self._begun) >= len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            thread.start()
            self._threads.append(thread)
        future: Future[T] = Future()
        self._begun.append(future)
        self._todo.put((work, future))
        return future

    def _work(self) -> None:
        while (item := self._todo.get()) is not None:
            work, future = item
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)
