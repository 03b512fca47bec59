"""Cleaning the pieces of a model's reply, up to the maximum length of a reply."""

from __future__ import annotations

from collections.abc import Iterator

from memchat.errors import ProviderError
from memchat.providers import ChatStream
from memchat.types import REPLY_LIMIT, clean_text

TOO_LONG = f"The reply was ended at {REPLY_LIMIT:,} characters."
BROKEN_OFF = "The reply was cut off: the provider ended it without saying that it was complete."


class ReplyText:
    """The pieces of a stream as clean text, none of them empty.

    A character that arrives in two halves is joined again. ``cut`` says in one line why the reply
    ended early, or is None; at the limit the stream is closed.
    """

    def __init__(self, stream: ChatStream) -> None:
        self.cut: str | None = None
        self._stream = stream
        self._room = REPLY_LIMIT
        self._half = ""

    def __iter__(self) -> Iterator[str]:
        try:
            for piece in self._stream:
                clean = self._clean(piece)
                if fits := clean[: self._room]:
                    yield fits
                self._room -= len(clean)
                if self._room < 0:
                    self.cut = TOO_LONG
                    self._stream.close()
                    return
        except ProviderError:
            yield from self._left()
            raise
        yield from self._left()
        if not self._stream.whole:
            self.cut = BROKEN_OFF

    def _clean(self, piece: str) -> str:
        """A piece with the half character that was left before it, without the one it ends in."""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean_text(piece)

    def _left(self) -> Iterator[str]:
        """The half character at the end, if its other half never came."""
        if self._half and self._room:
            yield clean_text(self._half)
