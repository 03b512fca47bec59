"""Notes: memos and documents, and what a search finds in them.

A note that an answer is taken from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

PROFILES = ("memo", "document")
"""How a note may be cut into chunks."""
TITLE_LIMIT = 200
"""Characters."""
TYPE_LIMIT = 40
"""Characters."""
ID_LIMIT = 4_096
"""Characters of an external id: as long as a path can be."""
EARLIEST, LATEST = datetime(1000, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, tzinfo=UTC)
"""A note's time is one of these or between, as in exports: every zone has a day for it."""
ExternalId = int | str
"""The id of a note in the program that it comes from."""


@dataclass(frozen=True, slots=True)
class NewNote:
    """A memo or document to be kept."""

    text: str
    title: str | None = None
    type: str = "memo"
    """What kind of thing it is, in the caller's words: memo, document, file …"""
    external_id: ExternalId | None = None
    """A note of the same type and external id is replaced; None for a note of its own."""
    created_at: datetime | None = None
    """When it was said or written, an aware time; None for now, and for a note that is replaced,
    for the time that it had."""
    profile: str = "memo"
    """How it is cut into chunks: memo or document."""
    pair_id: int | None = None
    parent_id: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A memo or document, whole."""

    id: int
    app: str
    type: str
    """What kind of thing it is, in the caller's words: memo, document, file …"""
    external_id: ExternalId
    title: str | None
    created_at: datetime
    """When it was said or written."""
    updated_at: datetime | None
    """When its text or title was last changed here; None if it never was."""
    profile: str
    """How it is cut into chunks: memo or document."""
    text: str
    missing: bool = False
    """Whether it comes from a file that is gone."""
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class NoteHit:
    """A chunk of a note that a search found, with the parts of its score.

    ``cosine`` and ``bm25`` are None if that search gave no score. ``offset`` and ``size`` are in
    characters of the note's text. ``text`` is None unless it was asked for.
    """

    chunk_id: int
    note_id: int
    hash: str
    source_type: str
    source_id: ExternalId
    pair_id: int | None
    parent_id: int | None
    offset: int
    size: int
    match_count: int
    read_count: int
    score: float
    cosine: float | None
    bm25: float | None
    confident: bool
    title: str | None
    created_at: datetime
    text: str | None = None


@dataclass(frozen=True, slots=True)
class NotesFound:
    """The results of a search in notes. ``degraded`` is why no vectors were searched, or None."""

    hits: tuple[NoteHit, ...] = ()
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class NotesAdded:
    """What became of many notes. ``ids`` are those of the notes that are kept."""

    ids: tuple[int, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    """Why others were not kept, by their place among those given, from 0."""


@dataclass(frozen=True, slots=True)
class NoteUse:
    """How often the chunks of a note were found by searches, and how often they were read."""

    note_id: int
    type: str
    title: str | None
    matches: int
    reads: int


@dataclass(frozen=True, slots=True)
class NoteCounts:
    """The size and the use of some notes."""

    notes: int = 0
    chunks: int = 0
    matches: int = 0
    reads: int = 0


@dataclass(frozen=True, slots=True)
class NotesReport:
    """Figures about the notes of an app."""

    types: Mapping[str, NoteCounts]
    """By the type of note."""
    unread: tuple[NoteUse, ...]
    """Notes that searches found and nobody read, those with the most matches first."""
    chunks_without_vector: int
    waiting: int
    """Notes whose vectors are to be made."""
    failed: int
    """Notes whose vectors could not be made; ``memchat jobs run`` tries them again."""
    embeds: bool = True
    """Whether there is an embedding model to make them."""


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
