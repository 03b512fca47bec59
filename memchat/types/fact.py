"""Records of memories: a memory, its tags, evidence and history, lists and search results."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, TypedDict, get_args

from memchat.errors import InputError
from memchat.types.scope import Job, Role, one_line, to_json

MemoryType = Literal["preference", "profile", "fact", "other"]
MEMORY_TYPES: tuple[MemoryType, ...] = get_args(MemoryType)
MemoryStatus = Literal[
    "active", "inactive", "expired", "expiring", "all", "pending", "completed", "failed"
]
"""Which memories a list shows; the last three by the state of their vector."""
CreatedBy = Literal["manual", "auto", "import", "mcp"]
LEARNED: tuple[CreatedBy, ...] = ("auto", "mcp")
"""What is no word of the person's own hand: a model read it out of a conversation, or a program
wrote it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One typed fact about a user. The first ten fields are the founding table's columns."""

    id: int
    created_at: datetime
    memory_type: MemoryType
    key: str
    value: str
    sha1: str
    expires_at: date | None
    seen_count: int
    last_seen_at: datetime
    active: bool
    user: str
    app: str
    """``""`` (EVERY_APP) if the user has the memory in every app."""
    many: bool
    """Whether the key holds several values at once. A new value replaces an old one only if not."""
    created_by: CreatedBy
    said_at: datetime
    """When it was said: the time of the newest message that proves it, or of the manual entry."""
    updated_at: datetime
    inactive_reason: str | None = None
    """superseded, merged, expired or ended if ``active`` is false; forgotten while its purge is
    delayed."""
    replaced_by: int | None = None
    pinned: bool = False
    """Whether the user wants it in every chat."""
    starts_at: date | None = None
    """The first day on which it holds, if that was said. Before that day it is shown as coming."""
    cues: tuple[str, ...] = ()
    """Words for the situations in which it is needed. They are only searched, and never shown as a
    fact."""
    sensitive: bool = False
    """Whether a chat model gets it only if it fits the message, as with health or debts."""
    tags: tuple[str, ...] = ()
    """The words that a person or a program groups it by, sorted. No model sees them."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object: ISO 8601 times, ``active`` as a boolean."""
        return to_json(self)


class MemoryChanges(TypedDict, total=False):
    """The new values of what is changed of a memory; what is left out, or None, stays as it is."""

    value: str | None
    key: str | None
    type: str | None
    expires_at: date | None
    """Its last day; None lets it hold for good."""
    all_apps: bool | None
    """Whether it is kept for every app of the person, or for this one."""
    sensitive: bool | None
    tags: Iterable[str] | None
    """All tags that it has from now on."""
    keep_secret: bool
    """Whether a value that looks like a secret is kept all the same."""


@dataclass(frozen=True, slots=True)
class MemoryOrigin:
    """The conversation that proves a memory, and the app that it was kept in before."""

    session_id: int | None = None
    """The last conversation of this app in which the person said it; None where there is none."""
    promoted_from: str | None = None
    """Of a memory that is kept for every app: the app that it was kept in before."""


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


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of a memory: a verbatim span of one stored message."""

    memory_id: int
    session_id: int
    message_id: int
    role: Role
    quote: str
    start: int
    """Where the quote begins in the message, in characters."""
    said_at: datetime
    session_title: str | None = None
    client: str | None = None
    """The program that sent these words over MCP; None for words of a conversation."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one memory. Events are ordered by ``id``."""

    id: int
    memory_id: int
    kind: str
    at: datetime
    actor: str
    cause: str
    session_id: int | None
    message_id: int | None
    related_id: int | None
    """The other memory of the change, for example the one that replaced this one."""
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    detail: dict[str, Any] | None = None
    """The second look's ``verdict``, ``reason`` and ``model``, where there was one."""


TAG_LIMIT = 40
"""The most characters of a tag."""
TAGS_MOST = 20
"""The most tags of a memory."""
_COMMAS = re.compile("[,،、，]")


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored and compared: lower case, NFC, each once and sorted, with hyphens for
    white space. A comma parts two tags. Raises InputError for one that is empty or too long, and
    for too many of them."""
    if isinstance(tags, str):
        raise InputError(f"give tags as a list, as [{tags!r}]")
    found = tuple(sorted({_clean(word) for tag in tags for word in _parted(tag)}))
    if len(found) > TAGS_MOST:
        raise InputError(f"these are {len(found)} tags; a memory has at most {TAGS_MOST}")
    return found


def _parted(tag: str) -> list[str]:
    return [part for part in _COMMAS.split(tag) if part.strip()] or [""]


def _clean(tag: str) -> str:
    line = one_line(tag, "tag", TAG_LIMIT)
    if not line.isprintable():
        raise InputError("a tag holds a character that cannot be seen; use plain text")
    word = unicodedata.normalize("NFC", line.lower()).replace(" ", "-")
    return one_line(word, "tag", TAG_LIMIT)  # lower case may be longer


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, with the parts of its score.

    ``cosine`` and ``bm25`` are None if that search gave no score (no vector, no common word).
    ``bm25`` is 1 if it holds all words of the query that any text holds; rarer words count more.
    ``prior`` is the part of the score that comes from the summary of a message's conversation.

    ``channel`` says how it was found: pinned, both, meaning, words, time, conversation, newest
    (nothing in the query matches it; in a prompt there was room for more) or listed (by a command).
    In a prompt it is also all (every fact fits).
    """

    kind: Literal["memory", "message", "note"]
    id: int
    text: str
    score: float
    cosine: float | None
    bm25: float | None
    channel: str
    tokens: int
    memory: Memory | None = None
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation of a message."""
    session_title: str | None = None
    since_changed: tuple[str, ...] = ()
    """For a message, the keys of facts learned from it that no longer hold as they were said."""
    prior: float | None = None
    dated: float | None = None
    """The part of the score for lying on the days that the query asks about."""
    tells: tuple[tuple[int, str, str], ...] = ()
    """Id, key and value of other memories whose words it shows: replaced values in the line of a
    memory, or facts learned from a message."""
    confident: bool = True
    """Whether it passes the floor: similar enough in meaning, or with enough common words. Others
    only fill up the list of a search."""
    chunk_id: int | None = None
    """For a passage of a note, the chunk that it is from."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The results of a search. ``degraded`` is why no vectors were searched, or None."""

    hits: tuple[Hit, ...] = ()
    degraded: str | None = None
    dropped: int = 0
    """How many hits above the floor the token budget left out."""
    tokens: int = 0
    matched: tuple[int, ...] = ()
    """For a prompt, the ids of the memories found for the message, pinned ones included."""
    listed: tuple[Hit, ...] = ()
    """For a prompt in which all facts fit, every fact in the order of their ids, whatever the
    message. ``hits`` then has only those found for the message."""
    notes: tuple[Hit, ...] = ()
    """For a prompt, the passages of notes that fit the message."""

    @property
    def lines(self) -> int:
        """How many different memories, messages and notes there are."""
        ids = {(hit.kind, hit.id) for hit in (*self.listed, *self.hits, *self.notes)}
        return len(ids)

    @property
    def confident(self) -> tuple[Hit, ...]:
        """The hits that pass the floor."""
        return tuple(hit for hit in self.hits if hit.confident)
