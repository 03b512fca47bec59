"""Records of what a person decides or looks through: proposals, programs, mentions.

Programs are those that use the store for a person over MCP. Mentions are the other places that hold
what is being forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Literal

from memchat.types.fact import Hit, Memory, MemoryType

ONLY_REPEATS = "it only repeats"
"""The beginning of the reason for refusals that would have taught nothing new."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was proposed and is no memory: it waits for a person's decision, or was not kept.

    It is about a fact (``memory_type``, ``key``, ``value``, and the words that prove it in
    ``message_id``), about two memories, where ``memory_id`` may replace ``related_id``, or about
    one memory, ``memory_id``. Only ``reason`` is set where the words may not be kept: for a secret,
    for what the user asked not to keep, and for what was forgotten.
    """

    reason: str
    message_id: int | None = None
    start: int | None = None
    """Where the words are in the message: from ``start`` up to ``end``, in characters."""
    end: int | None = None
    memory_type: MemoryType | None = None
    key: str | None = None
    value: str | None = None
    quote: str | None = None
    """The words, while it waits."""
    sentence: str | None = None
    """The sentence that contains ``quote``."""
    relation: str = "new"
    """What accepting it does: new, updates (it replaces ``target_id``), ends, same or beside; for
    one memory also forget (delete it for good) or promote (keep it for every app)."""
    target_id: int | None = None
    """The memory to which ``relation`` refers."""
    memory_id: int | None = None
    related_id: int | None = None
    expires_at: date | None = None
    starts_at: date | None = None
    many: bool = True
    masked: bool = False
    """Whether a secret is masked in value and quote. Only the message has the words."""
    sensitive: bool = False
    cues: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """The tags that the memory gets with a yes."""
    status: str = "pending"
    """pending (it waits), rejected (it got a no) or refused (it was not kept). An accepted one
    becomes a memory and is deleted."""
    by: str | None = None
    """The program that asked, with whose name ``reason`` begins."""
    session_id: int | None = None
    """The conversation that it comes from."""
    created_at: datetime = datetime(1, 1, 1, tzinfo=UTC)
    id: int = 0
    """Its number, once it is stored."""

    @property
    def repeats(self) -> bool:
        """Whether it would have taught nothing new, being known already or only recited."""
        return self.reason.startswith(ONLY_REPEATS)

    @property
    def proposes(self) -> str:
        """What is proposed, on one line; empty if only the reason was kept."""
        if self.key is None:
            return ""
        words = f"{self.key}: {self.value}" if self.value else self.key
        return f"end of {words}" if self.relation == "ends" else words


InboxItem = Proposal
Refusal = Proposal


ClientMode = Literal["ask", "trust"]
CLIENT_MODES: tuple[ClientMode, ...] = ("ask", "trust")
CLIENT_NAME_LIMIT = 60
"""Characters of the name of a program."""
WriteKind = Literal["memory", "inbox", "note", "forget"]


@dataclass(frozen=True, slots=True)
class Client:
    """A program by the name that the person gave it, and how much it wrote."""

    name: str
    mode: ClientMode
    """trust: what it remembers is stored; ask: it waits in the inbox."""
    calls: int
    first_call_at: datetime
    last_call_at: datetime
    session_id: int | None
    """The conversation that holds what it said; None where it said nothing."""
    memories: int = 0
    """How many memories it stored or changed."""
    waiting: int = 0
    """How many proposals of it wait in the inbox."""
    notes: int = 0
    forgotten: int = 0
    """How many memories it asked to forget."""


@dataclass(frozen=True, slots=True)
class ClientWrite:
    """One thing that a program wrote."""

    kind: WriteKind
    target_id: int
    """The id of the memory, inbox item or note."""
    at: datetime


def note_prefix(name: str) -> str:
    """What the external ids of a program's notes begin with, and those of no other program's."""
    return f"{name.replace('%', '%25').replace('/', '%2F')}/"


@dataclass(frozen=True, slots=True)
class SessionQuote:
    """Words of the person in one of their conversations that prove a fact."""

    session_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a request to remember, change or forget."""

    status: Literal["stored", "known", "waiting", "hidden", "refused"]
    """known: it was stored before; hidden: it is out of use until the person decides."""
    memory: Memory | None = None
    inbox_id: int | None = None
    reason: str = ""
    """Why it waits or was refused, in plain words."""
    replaced: str | None = None
    """The value that it replaced, where it replaced one."""
    last_day_gone: date | None = None
    """The last day that it had before, where it has none any more."""
    similar: tuple[Hit, ...] = ()
    """Other memories in use that may be about the same, the nearest first."""


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
