"""A reply as it arrives."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from memchat.memory.commands.replies import CodeReply
from memchat.providers import ChatStream
from memchat.types import Change, Recalled


class Reply:
    """A reply as it arrives: iterate for its pieces, or read ``text`` for all of it.

    ``shown`` are the memories that were injected, ``message_id`` its row once it is stored,
    ``done`` what the turn itself saved, held back or forgot, whatever the model says about it.
    """

    def __init__(self, pieces: Generator[str, None, None]) -> None:
        """``pieces`` first gives an empty one, which is taken here: so it has begun, and closing it
        always runs its end."""
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
        next(pieces)

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    @property
    def received(self) -> str:
        """What came so far; nothing where a reply failed that was to replace another."""
        return "".join(self._received)

    @property
    def text(self) -> str:
        """The whole reply; waits for what is still to come."""
        for _ in self._pieces:
            pass
        return self.received

    @property
    def done(self) -> tuple[Change, ...]:
        """What was done to the memory: as in ``Learned``, and ``forgotten`` without its words."""
        return self.by_code.changes

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
