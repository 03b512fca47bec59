"""Passages quoted as they are, where no model is set up that could answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memchat.notes.passages import Passages
from memchat.notes.relevant import Relevant, speaks
from memchat.types import Note, NoteHit, NotePassage, NoteSource

QUOTED = "No model is set up. These passages fit the question best:"
MOST = 8
"""Notes that are quoted."""
_OF_THE_DAYS = 3
"""Notes of the days asked for that are quoted where nothing else fits the question."""
_LONGEST = 600
"""Characters of a quote."""


def choice(relevant: Relevant) -> list[NoteHit]:
    """The best chunk of each note to quote, those that surely have to do with the question: from
    the days that it names, else from others."""
    hits = list(filter(speaks, relevant.hits)) or list(filter(speaks, relevant.others))
    best: dict[int, NoteHit] = {}
    for hit in hits or relevant.hits[:_OF_THE_DAYS]:
        best.setdefault(hit.note_id, hit)
    return list(best.values())[:MOST]


def sources(hits: Sequence[NoteHit], notes: Mapping[int, Note]) -> list[NoteSource]:
    """Each hit as a source of its own, with its chunk as the only passage."""
    found = [(hit, notes[hit.note_id]) for hit in hits if hit.note_id in notes]
    return [
        NoteSource(
            number, note.id, note.title, note.created_at, (_passage(hit, note),), (hit.chunk_id,)
        )
        for number, (hit, note) in enumerate(found, 1)
    ]


def _passage(hit: NoteHit, note: Note) -> NotePassage:
    return NotePassage(hit.offset, hit.size, note.text[hit.offset : hit.offset + hit.size])


def text(found: Sequence[NoteSource], passages: Passages) -> str:
    """The quotes, each under the number, title and day of its note."""
    quoted = (f"{passages.head(source)}\n“{_shortened(source.text)}”" for source in found)
    return "\n\n".join([QUOTED, *quoted])


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    if len(words) <= _LONGEST:
        return words
    cut = words[:_LONGEST]
    # Scripts without spaces are cut where they are.
    return f"{cut[: cut.rfind(' ', _LONGEST // 2)] if ' ' in cut[_LONGEST // 2 :] else cut}…"
