"""One thread for what is to be done beside something else, one piece at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Aside:
    """Made at first need. A daemon: a program that ends does not wait for it, nor trip over it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._todo: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what was begun."""
        if self._thread is not None:
            self._todo.put(None)
            self._thread.join()

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Do it there; the future holds what it gives or raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._todo.put((work, future))
        return future

    def _work(self) -> None:
        while (item := self._todo.get()) is not None:
            work, future = item
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)
