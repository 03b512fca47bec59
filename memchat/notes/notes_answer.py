"""An answer from notes as it comes in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property

from memchat.notes import citations
from memchat.types import NoteSource, ReadingPlan


class NotesAnswer:
    """An answer from notes: iterate for its pieces, or ``read`` all of it. No model is asked before
    that.

    ``sources`` are the notes that it may cite, ``degraded`` says why only words were searched, or
    is None. ``text`` is what came so far, ``cut`` says in one line why the answer ended early, or
    is None.
    """

    def __init__(
        self,
        sources: Sequence[NoteSource],
        plan: Callable[[], ReadingPlan],
        degraded: str | None = None,
    ) -> None:
        self.sources = tuple(sources)
        self.degraded = degraded
        self.text = ""
        self.cut: str | None = None
        self.pieces: Generator[str, None, None] | None = None
        """What it is read from; None once it was read."""
        self._plan = plan

    def __iter__(self) -> Iterator[str]:
        pieces, self.pieces = self.pieces, None
        if pieces is None:
            return
        try:
            for piece in pieces:
                self.text += piece
                yield piece
        finally:
            pieces.close()

    def read(self) -> str:
        """The whole answer. Raises ProviderError where the provider fails."""
        for _ in self:
            pass
        return self.text

    @property
    def cited(self) -> tuple[NoteSource, ...]:
        """The notes that the answer cites so far, in the order of their first citation."""
        return citations.cited(self.text, self.sources)

    @cached_property
    def plan(self) -> ReadingPlan:
        """The calls that the answer takes, and about what they cost; known before it is read."""
        return self._plan()
