"""Ending a command that goes on until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[list[int]]:
    """In this block the first signal to end calls ``stop``, which lets what is in hand come to its
    end, and the second breaks it off.

    Gives a list that the signal's number is put into.
    """
    told: list[int] = []

    def first(number: int, frame: FrameType | None) -> None:
        for name in SIGNALS:
            signal.signal(name, signal.default_int_handler)
        told.append(number)
        stop()

    before = {name: signal.signal(name, first) for name in SIGNALS}
    try:
        yield told
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
