"""Which memories a person asks to see, and one page of them."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.job import Job
from memchat.types.memory import CreatedBy, Memory, MemoryType


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories a person wants to look through, and in which order."""

    search: str = ""
    """Each of these words stands in key or value."""
    memory_types: tuple[MemoryType, ...] = ()
    created_by: tuple[CreatedBy, ...] = ()
    status: str = "active"
    """active, pinned, inactive, expiring, never used, not embedded, or all."""
    sort: str = "newest"
    """newest, oldest, key, most used, least used, or ending first."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """One page of what was wanted."""

    memories: tuple[Memory, ...]
    total: int
    unembedded: dict[int, Job]
    """Those without a vector yet, with the job that makes it and what went wrong."""
