"""Other places that mention what is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

PlaceKind = Literal["message", "reply", "title", "summary", "memory", "inbox", "refusal", "note"]
_PLACE_KINDS: dict[PlaceKind, tuple[str, str]] = {
    "message": ("message", "messages"),
    "reply": ("reply", "replies"),
    "title": ("title", "titles"),
    "summary": ("summary", "summaries"),
    "memory": ("other memory", "other memories"),
    "inbox": ("inbox item", "inbox items"),
    "refusal": ("proposal that was not kept", "proposals that were not kept"),
    "note": ("note", "notes"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Another place that mentions what is forgotten."""

    kind: PlaceKind
    id: int
    """The id of the message, of the conversation with this title or summary, of the memory, of the
    item, or of the note."""
    session_id: int | None
    at: datetime
    text: str
    """The words around it, as they will read after blanking; of a note with its title."""
    has_file: bool = False
    """Whether it is a note whose file is there: the file keeps the words."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The places that mention a memory, besides the memory and what is forgotten with it."""

    memory_id: int
    words: tuple[tuple[str, ...], ...]
    """The words that reveal it: a place mentions it if it has all words of one group."""
    places: tuple[Place, ...]
    """The latest first."""

    @property
    def notes(self) -> tuple[Place, ...]:
        """The notes among them. They stay as they are unless a person chooses one."""
        return tuple(place for place in self.places if place.kind == "note")

    @property
    def without_notes(self) -> Elsewhere:
        """The same without the notes."""
        return replace(self, places=tuple(p for p in self.places if p.kind != "note"))

    @property
    def counted(self) -> str:
        """The number of places of each kind, in words."""
        kinds = [place.kind for place in self.places]
        parts = [
            f"{count} {one if count == 1 else many}"
            for kind, (one, many) in _PLACE_KINDS.items()
            if (count := kinds.count(kind))
        ]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
