"""A reply read in a thread of its own, so that the wait for its next piece can be ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue

from memchat.providers import ChatStream, ToolCall
from memchat.types import Usage


class BackgroundStream:
    """A ``ChatStream`` over another one, which is read in the background from the first piece on.

    What that one raises is raised here. After ``close``, which any thread may call, or when the
    time is over, nothing more is given; the background thread ends with the piece that it is
    waiting for.
    """

    def __init__(
        self, stream: ChatStream, seconds_left: Callable[[], float | None] = lambda: None
    ) -> None:
        """``seconds_left`` tells how long its pieces may still be waited for, None for as long as
        they take."""
        self.late = False
        """Whether its time was over before its end."""
        self._stream = stream
        self._seconds_left = seconds_left
        self._closed = threading.Event()
        self._came: SimpleQueue[str | BaseException | None] = SimpleQueue()

    def __iter__(self) -> Iterator[str]:
        threading.Thread(target=self._read, name="memchat-stream", daemon=True).start()
        while not self._closed.is_set():
            came = self._next()
            if came is None or self._closed.is_set():
                return
            if isinstance(came, BaseException):
                raise came
            yield came

    @property
    def usage(self) -> Usage:
        """What the reply took."""
        return self._stream.usage

    @property
    def whole(self) -> bool:
        """Whether the provider sent the reply to its end."""
        return self._stream.whole

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tools called; empty before the end."""
        return self._stream.calls

    def close(self) -> None:
        """Give nothing more, and close the connection."""
        self._closed.set()
        self._came.put(None)
        self._stream.close()

    def _next(self) -> str | BaseException | None:
        """What comes next; None at the end, and when the time is over."""
        left = self._seconds_left()
        if left is None or left > 0:
            try:
                return self._came.get(timeout=left)
            except Empty:
                pass
        self.late = not self._closed.is_set()
        self.close()
        return None

    def _read(self) -> None:
        """Put the pieces into the queue, and at the end None or what went wrong."""
        try:
            for piece in self._stream:
                if self._closed.is_set():
                    return
                self._came.put(piece)
        except BaseException as error:  # noqa: BLE001 - it is raised where the pieces are read
            self._came.put(error)
        else:
            self._came.put(None)
