"""Passages of notes as a model is given them, and as an answer cites them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from memchat.language.secrets import mask
from memchat.memory.recall import render
from memchat.types import NoteHit

_CITED = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a note under the number by which an answer cites it."""

    number: int
    note_id: int
    chunk_id: int
    title: str | None
    created_at: datetime
    text: str

    def line(self, zone: ZoneInfo) -> str:
        """The passage for a model: its number, title and day, and its words without secrets."""
        title = mask(self.title or "Untitled")
        head = f"[{self.number}] {title}, {render.day(self.created_at, zone)}"
        # Indented: no line of a note passes for the head of another passage.
        said = (f"  {render.escaped(line)}" for line in mask(self.text).splitlines())
        return "\n".join([render.escaped(head), *said])


def numbered(hits: Iterable[NoteHit]) -> list[Passage]:
    """Search results as passages, numbered from 1 in their order."""
    return [
        Passage(n, hit.note_id, hit.chunk_id, hit.title, hit.created_at, (hit.text or "").strip())
        for n, hit in enumerate(hits, 1)
    ]


def listing(passages: Iterable[Passage], zone: ZoneInfo) -> str:
    """The passages for a model, one after the other."""
    return "\n\n".join(passage.line(zone) for passage in passages)


def cited(answer: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages whose numbers stand in an answer, in the order in which they are cited first."""
    there = {passage.number: passage for passage in passages}
    found = (int(n) for group in _CITED.findall(answer) for n in group.split(","))
    return tuple(there[n] for n in dict.fromkeys(found) if n in there)
