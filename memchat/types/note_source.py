"""A note that an answer is taken from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class NotePassage:
    """A part of a note's text: ``size`` characters from ``offset`` on, as it was written."""

    offset: int
    size: int
    text: str


@dataclass(frozen=True, slots=True)
class NoteSource:
    """A note under the number by which an answer cites it, with its passages that were read, in
    the order in which they stand in the note."""

    number: int
    note_id: int
    title: str | None
    created_at: datetime
    """When the note was said or written."""
    passages: tuple[NotePassage, ...]
    chunk_ids: tuple[int, ...] = ()
    """The chunks that were found in it, the best one first."""

    @property
    def text(self) -> str:
        """Its passages; "[…]" stands where something between them is left out."""
        return "\n[…]\n".join(passage.text for passage in self.passages)
