"""The results of the public interface that are not records of ``memchat.types``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from memchat.facts.answers import RowImages
from memchat.types import InboxItem, Note, Recalled


@dataclass(frozen=True, slots=True)
class Changed:
    """How many things a verb changed; which things, the verb says."""

    count: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """How much was deleted."""

    memories: int
    sessions: int = 0
    apps: int = 0
    notes: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """Inbox items that were answered at once, which ``Inbox.take_back`` undoes.

    What it needs for that is kept in this object alone, and not in the store.
    """

    items: tuple[InboxItem, ...]
    failed: Mapping[int, str]
    """Why others could not be answered, by their ids: they wait as before."""
    at: datetime
    before: RowImages = field(repr=False)
    """The rows as they were before, for ``take_back`` alone."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer outside any session, and the memories it was given."""

    text: str
    shown: Recalled


@dataclass(frozen=True, slots=True)
class PromptContext:
    """Memories and passages of notes for a system prompt."""

    text: str
    """Both, escaped and each fenced; empty where nothing is known, or memory is off."""
    tokens: int
    """Its size, estimated."""
    shown: Recalled
    """What is in it: each hit with its score and, in ``channel``, why it was chosen. Where all
    facts fit, they are in ``listed``, and ``hits`` are those that fit the message. ``notes`` are
    the passages."""
    memory_off: str | None = None
    """Why memory took no part, or None where it did."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written into a file."""

    file: Path
    """``-`` where it was written to a stream."""
    records: Mapping[str, int]
    """How many records, by kind: app, session, message, memory, inbox_item …"""


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file or folder that could not be read, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """What became of files that were to be notes."""

    added: tuple[Note, ...]
    """The notes that are new or follow a file that was changed, without their texts."""
    unchanged: int
    """How many files were as their notes are."""
    failed: tuple[FileFailure, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What became of a file in a folder that is watched."""

    path: Path
    what: Literal["added", "changed", "moved", "missing", "failed"]
    note: Note | None = None
    """Its note without the text, None where it could not be read."""
    reason: str | None = None
    """Why it could not be read."""


class FetchedModel(NamedTuple):
    """The files of a model on this machine."""

    folder: Path
    size: int
    """How many bytes were downloaded; 0 where the files were there."""


class UseCounts(NamedTuple):
    """How often a memory was of use."""

    found: int
    """How often search found it for a message."""
    given: int
    """How often a chat model was given it."""
