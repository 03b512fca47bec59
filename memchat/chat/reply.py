"""A reply as it arrives.

Reading a conversation for facts: at once when it ends, or in a thread after a reply.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from threading import RLock

from memchat.chat.command_replies import CodeReply
from memchat.chat.conversation import Conversation, Parts
from memchat.db import jobs
from memchat.providers import ChatStream
from memchat.types import Change, Learned, Recalled, checked_timeout

_STOP_SECONDS = 5.0
"""How long ``stop`` waits for another thread that reads the reply."""


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
        self._seconds: float | None = None
        self._ends_at: float | None = None
        """The time that whoever waits for the next piece gave it, and when that is over."""
        self._reading = RLock()
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
        """Cut the reply; what came of it is stored as a partial one when this returns, unless the
        thread that reads it is busy for long. Any thread may call it."""
        self.stopped = True
        if self.stream is not None:
            self.stream.close()  # another thread may be waiting for its next piece
        if self._reading.acquire(timeout=_STOP_SECONDS):
            try:
                with contextlib.suppress(ValueError):  # called from within the reply itself
                    self._pieces.close()
            finally:
                self._reading.release()

    def seconds_left(self) -> float | None:
        """How long its next piece may be waited for; None for as long as it takes."""
        return _seconds_until(self._ends_at)

    def end_late(self) -> None:
        """Note that its time was over before its end."""
        self.stopped = True
        self.cut = f"The reply was ended after {self._seconds:g} s, the time it was given."

    def _pieces_within(self, seconds: float | None) -> Iterator[str]:
        """The pieces that come in so many seconds; then the reply is stopped."""
        ends_at = None if seconds is None else time.monotonic() + seconds
        while (piece := self._next(seconds, ends_at)) is not None:
            yield piece

    def _next(self, seconds: float | None, ends_at: float | None) -> str | None:
        """The next piece; None at the end. One thread at a time takes one."""
        left = _seconds_until(ends_at)
        if not self._reading.acquire(timeout=-1 if left is None else left):
            self._seconds = seconds
            self.end_late()
            self.stop()
            return None
        try:
            self._seconds, self._ends_at = seconds, ends_at
            return next(self._pieces, None)
        finally:
            self._reading.release()


def _seconds_until(moment: float | None) -> float | None:
    return None if moment is None else max(moment - time.monotonic(), 0.0)


class Reader:
    """Runs the queued reading of one session."""

    def __init__(self, parts: Parts, conversation: Conversation) -> None:
        self.learned: Learned | None = None
        """What the last reading taught."""
        self.failure: str | None = None
        """Why the last reading did not succeed; it is queued and tried again."""
        self.must_embed = False
        """Whether a command saved facts that have no vector yet."""
        self._parts = parts
        self._conversation = conversation
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the conversation is being read in a thread."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Read in a thread, where none does so yet."""
        if not self.running:
            self._thread = threading.Thread(target=self.read, name="memchat-reader", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait for the thread, where there is one."""
        if self._thread is not None:
            self._thread.join()

    def read(self) -> Learned | None:
        """Read now; gives what the session taught."""
        session_id = self._conversation.session_id
        if self.must_embed:
            # First, so that the reading finds the facts that were saved in this conversation.
            self.must_embed = False
            self._parts.worker.run(user=self._conversation.scope.user, kinds=("embed",))
        done = self._parts.worker.run(kinds=("extract", "verify"), target_id=session_id)
        read = [one for one in done.learned if one.skipped is None]
        if read:
            changes = tuple(change for one in read for change in one.changes)
            self.learned = replace(read[0], changes=changes)
        self.failure = done.errors[-1] if done.errors else None
        if not done.learned and not done.failed and session_id is not None:
            with self._parts.database.read() as tx:
                if jobs.is_unfinished(tx, "extract", session_id):
                    self.failure = "it is being read by another process"
        return self.learned
