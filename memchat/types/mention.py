"""Other places that mention what is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PlaceKind = Literal["message", "reply", "title", "summary", "memory", "inbox", "refusal"]
_PLACE_KINDS: dict[PlaceKind, tuple[str, str]] = {
    "message": ("message", "messages"),
    "reply": ("reply", "replies"),
    "title": ("title", "titles"),
    "summary": ("summary", "summaries"),
    "memory": ("other memory", "other memories"),
    "inbox": ("inbox item", "inbox items"),
    "refusal": ("proposal that was not kept", "proposals that were not kept"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Something else that speaks of what is forgotten."""

    kind: PlaceKind
    id: int
    """Of the message, the conversation with this title or summary, the memory, or the item."""
    session_id: int | None
    at: datetime
    text: str
    """The words around it, as they read once it is blanked."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What speaks of a memory besides the memory and what forgetting it takes along."""

    memory_id: int
    words: tuple[tuple[str, ...], ...]
    """What tells of it: each of these groups, where all its words stand in one place."""
    places: tuple[Place, ...]
    """The latest first."""

    @property
    def counted(self) -> str:
        """How many places of each kind, in words."""
        kinds = [place.kind for place in self.places]
        parts = [
            f"{count} {one if count == 1 else many}"
            for kind, (one, many) in _PLACE_KINDS.items()
            if (count := kinds.count(kind))
        ]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
