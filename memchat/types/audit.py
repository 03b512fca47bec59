"""The findings of an audit of the memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

FindingKind = Literal[
    "secret",
    "contradiction",
    "duplicate",
    "stale",
    "missing evidence",
    "suspected junk",
    "expiring",
    "never recalled",
    "index drift",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of an audit. Its words are meant for the user alone."""

    kind: FindingKind
    memory_ids: tuple[int, ...]
    """The memories that it is about. If one of them is to stay, it comes first."""
    what: str
    fix: str | None
    """What fixing it would do; None if only a person can decide."""


@dataclass(frozen=True, slots=True)
class Audit:
    """An audit of an app's memories."""

    at: datetime
    active: int
    inactive: int
    findings: tuple[Finding, ...] = ()
