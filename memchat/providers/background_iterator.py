"""An iterator read in a thread of its own, so that the wait for its next item can be ended."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class BackgroundIterator(Generic[Item]):
    """The items of ``source``, which is read in the background from the first ``next`` on.

    What the source raises is raised here. After ``end``, which any thread may call, nothing more is
    given; the background thread ends with the item that it is waiting for.
    """

    def __init__(self, source: Iterable[Item], name: str) -> None:
        """``name`` is that of the thread."""
        self._source = source
        self._name = name
        self._ended = threading.Event()
        self._came: queue.SimpleQueue[tuple[Item] | BaseException | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[Item]:
        threading.Thread(target=self._read, name=self._name, daemon=True).start()
        while not self._ended.is_set():
            came = self._came.get()
            if came is None or self._ended.is_set():
                return
            if isinstance(came, BaseException):
                raise came
            yield came[0]

    def end(self) -> None:
        """Give nothing more."""
        self._ended.set()
        self._came.put(None)

    def _read(self) -> None:
        try:
            for item in self._source:
                if self._ended.is_set():
                    return
                self._came.put((item,))
        except Exception as error:  # noqa: BLE001 - it is raised where the items are read
            self._came.put(error)
        else:
            self._came.put(None)
