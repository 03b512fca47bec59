"""What an import did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that cannot be stored, and why. The reason holds no words of the record."""

    line: int
    """The line of the file, the first is 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do."""

    added: Mapping[str, int]
    """How many records are new here, by kind: app, session, message, memory, inbox_item …"""
    known: Mapping[str, int]
    """How many were here already, by kind. They stay as they are here."""
    forgotten: int
    """How many memories stay away since they were forgotten here."""
    refused: tuple[RefusedRecord, ...]
    unread: int = 0
    """How many of the new conversations wait to be read, as they did where they come from."""
    unembedded: int = 0
    """How many of the new memories, conversations and notes wait for their vectors."""
    changed_notes: int = 0
    """How many notes were changed later where they come from, and are now as they were there."""
    deleted_notes: int = 0
    """How many notes stay away since they were deleted here."""
    dry_run: bool = False
    """Whether nothing was stored."""
