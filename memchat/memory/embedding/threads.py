"""Threads for what is to be done beside something else, one piece at a time each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class DaemonThreads:
    """So many threads at most, made at need. Daemons: a program that ends does not wait for them,
    nor trip over them.
    """

    def __init__(self, name: str, threads: int = 1, *, always_wait: bool = True) -> None:
        """Leaving the ``with`` block waits for what was begun; without ``always_wait`` not where an
        error leaves it.
        """
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
        """Do it there; the future holds what it gives or raises."""
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
