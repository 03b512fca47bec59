"""Backups of a store, and what restoring one would change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the store: made on request, before an upgrade, or before a restore."""

    file: Path
    made_at: datetime
    size: int
    """Bytes."""
    schema: str | None
    """The revision of its tables; None where it cannot be read."""
    problem: str | None
    """Why it cannot be restored, or None."""
    holds_forgotten: bool | None
    """Whether it holds words that were forgotten or deleted in the store since; None where that
    cannot be told."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What restoring a backup would do. The counts are of rows that only the present store has."""

    backup: Backup
    memories: int = 0
    sessions: int = 0
    messages: int = 0
    inbox_items: int = 0
    notes: int = 0
    store_problem: str | None = None
    """Why the present store cannot be compared with the backup; the counts are 0 then."""
