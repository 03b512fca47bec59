"""Notes: memos and documents, and what a search finds in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

PROFILES = ("memo", "document")
"""How a note may be cut into chunks."""
TITLE_LIMIT = 200
"""Characters."""
TYPE_LIMIT = 40
"""Characters."""
ExternalId = int | str
"""The id of a note in the program that it comes from."""


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
    """When its text was last changed here; None if it never was."""
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
