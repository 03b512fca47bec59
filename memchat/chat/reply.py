"""A reply as it arrives."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from queue import Empty, SimpleQueue
from threading import Thread

from memchat.memory.commands.replies import CodeReply
from memchat.providers import ChatStream
from memchat.types import Change, Recalled, checked_timeout

_Arrived = SimpleQueue[str | BaseException | None]


class Reply:
    """A reply as it arrives: iterate for its pieces, or ``read`` all of it.

    ``shown`` are the memories that were injected, ``message_id`` its row once it is stored,
    ``done`` what the turn itself saved, held back or forgot, whatever the model says about it.
    """

    def __init__(self, pieces: Generator[str, None, None], timeout: float | None = None) -> None:
        """``pieces`` first gives an empty one, which is taken here: so it has begun, and closing it
        always runs its end. ``timeout`` is how many seconds it may take from when it is waited
        for, None for as long as it takes."""
        self.shown = Recalled()
        self.by_code = CodeReply()
        """What code says in it, and did."""
        self.message_id: int | None = None
        self.dropped_turns = 0
        """Turns of the conversation that did not fit the model's window."""
        self.stream: ChatStream | None = None
        """The model's answer; None where no model was asked."""
        self.cut: str | None = None
        """Why the model's words ended early, in one line; None where they did not."""
        self.stopped = False
        self._received: list[str] = []
        self._pieces = pieces
        self._timeout = timeout
        self._arrived: _Arrived | None = None
        """The pieces and the end of it, where a thread takes them."""
        next(pieces)

    def __iter__(self) -> Iterator[str]:
        return self._pieces_within(self._timeout)

    @property
    def received(self) -> str:
        """What came so far; nothing where a reply failed that was to replace another."""
        return "".join(self._received)

    @property
    def done(self) -> tuple[Change, ...]:
        """What was done to the memory: as in ``Learned``, and ``forgotten`` without its words."""
        return self.by_code.changes

    def read(self, timeout: float | None = None) -> str:
        """Wait for what is still to come, and return the whole reply.

        With ``timeout`` it is stopped after so many seconds, as by ``stop``: what came by then is
        returned and kept, and ``cut`` says so. Raises ProviderError where the provider fails,
        InputError for a ``timeout`` that is no number of seconds.
        """
        seconds = self._timeout if timeout is None else checked_timeout(timeout)
        for _ in self._pieces_within(seconds):
            pass
        return self.received

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._received.append(piece)

    def discard(self) -> None:
        """Drop what came."""
        self._received.clear()

    def stop(self) -> None:
        """Cut the reply; what came of it is stored as a partial one. Any thread may call it."""
        self.stopped = True
        try:
            self._pieces.close()
        except ValueError:
            # Another thread waits for the next piece: closing the connection ends that.
            if self.stream is not None:
                self.stream.close()

    def _pieces_within(self, seconds: float | None) -> Iterator[str]:
        """The pieces that come in so many seconds; then the reply is stopped."""
        if self._arrived is None:
            if seconds is None:
                return self._pieces
            # A provider that does not answer blocks the thread that reads from it.
            self._arrived = SimpleQueue()
            Thread(target=self._take, args=(self._arrived,), daemon=True).start()
        return self._until(self._arrived, seconds)

    def _until(self, arrived: _Arrived, seconds: float | None) -> Iterator[str]:
        begun = time.monotonic()
        while True:
            left = None if seconds is None else max(begun + seconds - time.monotonic(), 0)
            try:
                piece = arrived.get(timeout=left)
            except Empty:
                self.cut = f"The reply was ended after {seconds:g} s, the time it was given."
                self.stop()
                return
            if isinstance(piece, str):
                yield piece
                continue
            arrived.put(None)  # for who reads it once more
            if piece is not None:
                raise piece
            return

    def _take(self, arrived: _Arrived) -> None:
        """Put the pieces into a queue, and at the end None or what went wrong."""
        try:
            for piece in self._pieces:
                arrived.put(piece)
            arrived.put(None)
        except BaseException as error:  # noqa: BLE001
            arrived.put(error)  # raised in the thread that reads the reply
