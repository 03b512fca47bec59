"""Which memories a person asks to see, and one page of them."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.job import Job
from memchat.types.memory import CreatedBy, Memory, MemoryType


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter and an order for a list of memories."""

    search: str = ""
    """Each of these words must be in the key or the value, whatever its case and accents."""
    memory_types: tuple[MemoryType, ...] = ()
    created_by: tuple[CreatedBy, ...] = ()
    tags: tuple[str, ...] = ()
    """Only those that have each of these tags."""
    status: str = "active"
    """active, pinned, inactive, expiring, never used, not embedded, all, or forgotten: those whose
    deletion can still be undone."""
    sort: str = "newest"
    """newest, oldest, key, most used, least used, or ending first."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """One page of a list of memories."""

    memories: tuple[Memory, ...]
    total: int
    unembedded: dict[int, Job]
    """The jobs of those without a vector, by memory id, with the reason if they failed."""
