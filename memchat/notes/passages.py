"""Passages of notes: found chunks made readable, numbered by note, and as a model is given them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memchat.language.masking import mask_part
from memchat.memory.recall import render
from memchat.notes.chunking import chunks as cut
from memchat.notes.profile import SMALLEST, Profile
from memchat.tokens import estimate_tokens
from memchat.types import Note, NoteHit, NotePassage, NoteSource

WHOLE = 2_000
"""Characters of a note up to which all of it is given: a passage alone often lacks what it is
about."""
_GAP = 4
"""The most characters between two chunks that are neighbours: white space."""


def sources(
    hits: Sequence[NoteHit], notes: Mapping[int, Note], *, first: int = 1
) -> list[NoteSource]:
    """The notes of these hits, in the order of the best hit of each, numbered from ``first`` on.
    Hits whose note is not among ``notes`` are left out: it was deleted meanwhile."""
    by_note: dict[int, list[NoteHit]] = {}
    for hit in hits:
        if hit.note_id in notes:
            by_note.setdefault(hit.note_id, []).append(hit)
    return [
        _source(number, notes[note_id], found)
        for number, (note_id, found) in enumerate(by_note.items(), first)
    ]


def _source(number: int, note: Note, hits: Sequence[NoteHit]) -> NoteSource:
    spans = _joined((hit.offset, hit.offset + hit.size) for hit in hits)
    if len(note.text) <= WHOLE:
        spans = [(0, len(note.text))]
    passages = tuple(NotePassage(a, b - a, note.text[a:b]) for a, b in spans)
    ids = tuple(hit.chunk_id for hit in hits)
    return NoteSource(number, note.id, note.title, note.created_at, passages, ids)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that overlap or are neighbours as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start - joined[-1][1] <= _GAP:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Passages:
    """Passages of notes as a model is given them: escaped, without secrets, each note under a line
    with its number, title and day."""

    def __init__(self, notes: Mapping[int, Note], zone: ZoneInfo) -> None:
        self._notes = notes
        self.zone = zone

    def head(self, source: NoteSource) -> str:
        """The line that begins a note: "[2] Budget, 2026-11-11 (Wednesday)"."""
        day = source.created_at.astimezone(self.zone)
        title = " ".join((source.title or "Untitled").split())
        return render.escaped(f"[{source.number}] {mask_part(title, 0, len(title))}, {day:%F (%A)}")

    def block(self, source: NoteSource) -> str:
        """A note with its passages."""
        text = self._notes[source.note_id].text
        said = (mask_part(text, p.offset, p.offset + p.size).strip() for p in source.passages)
        lines = "\n[…]\n".join(said).splitlines()
        # Indented: no line of a note passes for the head of another.
        return "\n".join([self.head(source), *(f"  {render.escaped(line)}" for line in lines)])

    def listing(self, sources: Iterable[NoteSource]) -> str:
        """Notes one after the other."""
        return "\n\n".join(map(self.block, sources))

    def parts(self, sources: Sequence[NoteSource], room: int) -> list[list[NoteSource]]:
        """The notes in runs of at most ``room`` tokens each. One that is too long is divided; its
        pieces keep its number."""
        parts: list[list[NoteSource]] = []
        held = room
        for piece in (piece for source in sources for piece in self._pieces(source, room)):
            size = estimate_tokens(self.block(piece)) + 2
            if held + size > room or not parts:
                parts.append([])
                held = 0
            parts[-1].append(piece)
            held += size
        return parts

    def _pieces(self, source: NoteSource, room: int) -> list[NoteSource]:
        if estimate_tokens(self.block(source)) <= room:
            return [source]
        # Half of the room: the text that is sent has a head, indents and names of secrets as well.
        size = Profile(max(room // 2, SMALLEST), 0)
        return [
            replace(source, passages=(NotePassage(p.offset + c.start, c.end - c.start, ""),))
            for p in source.passages
            for c in cut(p.text, size, estimate_tokens)
        ]
