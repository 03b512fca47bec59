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
    """One thing that a look through the memories found. Its words are for the person alone."""

    kind: FindingKind
    memory_ids: tuple[int, ...]
    """The memories it is about; where one of them stays, that one first."""
    what: str
    fix: str | None
    """What mending it would do; None where only a person can tell."""


@dataclass(frozen=True, slots=True)
class Audit:
    """A look through the memories of an app."""

    at: datetime
    active: int
    inactive: int
    findings: tuple[Finding, ...] = ()
