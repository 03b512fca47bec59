"""Records of memories, proposals and programs, what was taught, what mentions it, and of looking
after a store: audits, backups, imports and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict

from memchat.types.conversations import ChatMessage, Job, Message, Role, Usage, counted, to_json
from memchat.types.labels import Metadata

MemoryStatus = Literal[
    "active", "inactive", "expired", "expiring", "all", "pending", "completed", "failed"
]
"""Which memories a list shows; the last three by the state of their vector."""
CreatedBy = Literal["manual", "auto", "import", "mcp"]
LEARNED: tuple[CreatedBy, ...] = ("auto", "import", "mcp")
"""What is no word of the person's own hand: a model read it out of a conversation held here or
imported, or a program wrote it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One typed fact about a user. The first ten fields are the founding table's columns."""

    id: int
    created_at: datetime
    memory_type: str
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
    sentence: str | None = None
    """The same in one plain sentence, in the person's language; None where there is none, or none
    that is true to it. A person reads it; no model does, and no search."""
    metadata: dict[str, Any] | None = field(default=None, hash=False)
    """What a program noted beside it. No model sees it."""

    @property
    def told(self) -> str:
        """What a person reads of it: its sentence, else ``Name: value``."""
        return self.sentence or named_value(self.key, self.value)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object: ISO 8601 times, ``active`` as a boolean."""
        return to_json(self)


@dataclass(frozen=True, slots=True)
class Draft:
    """What would be remembered of a statement; nothing of it is stored."""

    memory_type: str
    key: str
    value: str
    starts_at: date | None = None
    expires_at: date | None = None
    sentence: str | None = None
    """As of a memory."""
    sensitive: bool = False
    read: bool = True
    """Whether a model or a pattern read it; else it is the statement as it was said."""

    @property
    def told(self) -> str:
        """As of a memory."""
        return self.sentence or named_value(self.key, self.value)


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
    metadata: Metadata | None
    """All that is noted beside it from now on."""
    sentence: str | None
    """A new sentence, which is kept where it is true to the value."""
    keep_secret: bool
    """Whether a value that looks like a secret is kept all the same."""


@dataclass(frozen=True, slots=True)
class MemoryOrigin:
    """The conversation that proves a memory, and the app that it was kept in before."""

    session_id: int | None = None
    """The last conversation of this app in which the person said it; None where there is none."""
    promoted_from: str | None = None
    """Of a memory that is kept for every app: the app that it was kept in before."""


class Filters(TypedDict, total=False):
    """Which memories, and where it fits which turns, a verb may give; what is left out, or None,
    narrows nothing."""

    tags: Iterable[str]
    """Only memories that have each of these."""
    metadata: Metadata | None
    """Only what has each of these noted beside it, or beside a conversation that proves it."""
    key: str | None
    """Only memories with this key."""
    type: str | None
    """Only memories of this type."""
    since: date | None
    """Only what was said then or later: a day of the person's, or an aware time."""
    until: date | None
    """Only what was said then or before; all of a day counts."""
    said_by: str | None
    """Only what the person said, or wrote, or confirmed (``person``), or a ``program``."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter and an order for a list of memories."""

    search: str = ""
    """Each of these words must be in the key, the value or the sentence, whatever its case and
    accents."""
    memory_types: tuple[str, ...] = ()
    created_by: tuple[CreatedBy, ...] = ()
    tags: tuple[str, ...] = ()
    """Only those that have each of these tags."""
    key: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    """Only those beside which each of these is noted, the values as JSON."""
    since: datetime | None = None
    until: datetime | None = None
    """Only those that were said in this time; both ends count."""
    status: str = "active"
    """active, pinned, inactive, expiring, never used, not embedded, all, or forgotten: those whose
    deletion can still be undone."""
    sort: str = "newest"
    """newest, oldest, key, most used, least used, or ending first."""
    group: str = ""
    """Only those of this group: about you, people, health, work, preferences, plans or more."""


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


def named_value(key: str, value: str) -> str:
    """``Sister city: Ghent``."""
    name = key.replace("_", " ")
    return f"{name[:1].upper()}{name[1:]}: {value}"


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
    unread: bool = False
    """Whether it is a message from which no memories were extracted yet: older ones may be out of
    date."""


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
    memory_type: str | None = None
    key: str | None = None
    value: str | None = None
    quote: str | None = None
    """The words, while it waits."""
    around: str | None = None
    """The person's sentence that contains ``quote``."""
    sentence: str | None = None
    """What is proposed, in one plain sentence, as ``Memory.sentence``."""
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
    run_id: int | None = None
    """The run of a workflow that goes on with a yes: it calls the tool that ``value`` names."""
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

    @property
    def told(self) -> str:
        """What a person reads of the fact that it is about, as ``Memory.told``; empty if only the
        reason was kept."""
        if self.key is None:
            return ""
        return self.sentence or named_value(self.key, self.value or "")


InboxItem = Proposal
Refusal = Proposal


ClientMode = Literal["ask", "trust"]
CLIENT_MODES: tuple[ClientMode, ...] = ("ask", "trust")
CLIENT_NAME_LIMIT = 60
"""Characters of the name of a program."""
WriteKind = Literal["memory", "inbox", "note", "forget"]


@dataclass(frozen=True, slots=True)
class RequestDone:
    """What came of a request that a program sent before under the same key."""

    status: int | None
    """As HTTP has it; None while it is being done."""
    row_id: int | None
    """The id of what it made."""
    same: bool
    """Whether it was the same request."""


@dataclass(frozen=True, slots=True)
class ProgramConversation:
    """A conversation of a program, as it sent it."""

    session: str
    """Its name for ``add``."""
    anew: bool
    """Whether its last message was said in other words, or is to be answered once more."""


@dataclass(frozen=True, slots=True)
class ClientInfo:
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


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a session taught, or that was refused: which memory it changed, and its
    proof."""

    kind: str
    """added, repeated, merged, superseded, ended, revived, forgotten, review or refused."""
    memory: Memory | None
    quotes: tuple[str, ...] = ()
    before: str | None = None
    """The replaced value, if there is one."""
    reason: str | None = None
    """Why it went to the inbox or was refused."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What reading a conversation taught; of ``User.add`` also what was stored of it."""

    session_id: int | None
    """None where nothing was stored."""
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read (memory is off, nothing new), or None."""
    queued: str | None = None
    """Why it is not read yet but waits in the queue, or None."""
    stored: int = 0
    """How many turns ``User.add`` stored."""
    known: int = 0
    """How many turns it skipped, as they were added before."""
    ignored: int = 0
    """How many messages and parts it left out: of another role, or without text."""
    shortened: int = 0
    """How many very long messages were read only at their beginning and end; ``read_all`` has all
    of one read."""
    message_ids: tuple[int, ...] = ()
    """The ids of the turns that ``User.add`` stored."""

    def count(self, *kinds: str) -> int:
        """How many changes are of one of these kinds."""
        return sum(change.kind in kinds for change in self.changes)

    @property
    def headline(self) -> str:
        """``Saved N (merged/updated M)``."""
        saved = self.count("added", "revived", "superseded")
        changed = self.count("merged", "repeated", "superseded", "ended")
        return f"Saved {saved} (merged/updated {changed})"


@dataclass(frozen=True, slots=True)
class Undone:
    """What deleting a conversation or a message does to the memories."""

    gone: tuple[Memory, ...] = ()
    """They are deleted, since nothing else proves them."""
    back: tuple[Memory, ...] = ()
    """They had been replaced or ended by it, and are in use again."""
    kept: tuple[Memory, ...] = ()
    """They stay, since other messages prove them or the user entered or edited them."""

    def then(self, later: Undone) -> Undone:
        """What this and a later deletion do together."""
        gone = {memory.id for memory in later.gone}
        told = gone | {memory.id for memory in (*later.back, *later.kept)}
        return Undone(
            self.gone + later.gone,
            tuple(m for m in self.back if m.id not in gone) + later.back,
            tuple(m for m in self.kept if m.id not in told) + later.kept,
        )


@dataclass(frozen=True, slots=True)
class Given:
    """One line of a reply's prompt, and what became of it since."""

    hit: Hit
    """As it was sent; without its words while it is being forgotten."""
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation in which it was said; None if it was entered by hand, or for a note."""
    since: str | None = None
    """What happened to it after the reply, in words; None if nothing did."""
    muted: bool = False
    """Whether it is left out of the rest of the conversation."""
    client: str | None = None
    """The program that stored it over MCP."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a reply is as it is: what its model was sent, and the cost of the calls."""

    reply: Message
    question: str | None
    """The message it answers."""
    lines: tuple[Given, ...]
    """What was found for the message, or chosen because not all facts fit."""
    forgotten: int
    """How many lines were deleted since, with their words."""
    dropped: int
    """How many memories the token budget left out."""
    degraded: str | None
    by_model: bool
    """False if the reply was made by code alone."""
    tools: tuple[str, ...]
    """The tools that the model was offered."""
    prompt: tuple[ChatMessage, ...] | None
    """What the model was sent, without what was blanked or deleted since. None if it held something
    that was forgotten, or if the reply was made by code alone."""
    deleted: int
    """How many of the messages sent were deleted since."""
    calls: tuple[Usage, ...]
    """The calls made for the reply, each with its tokens and cost."""
    also: tuple[Given, ...] = ()
    """The other facts that were sent because all of them fit, in the order of their ids."""


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
    cannot be told. An encrypted one counts as holding what was forgotten since it was made."""
    encrypted: bool = False


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
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many were left out since no export has them any more, by kind."""
    dry_run: bool = False
    """Whether nothing was stored."""

    def told(self, *, session: str = "session") -> list[str]:
        """What was not simply added, a line for each; ``session`` is the word for one."""
        lost = f"{counted(sum(self.left_out.values()), 'record')} ({', '.join(self.left_out)})"
        known = counted_records(self.known, session=session)
        lines = {
            f"here already, and left as they are: {known}": known != "nothing",
            f"forgotten here, and left out: {counted(self.forgotten, 'memory')}": self.forgotten,
            f"deleted here, and left out: {counted(self.deleted_notes, 'note')}": (
                self.deleted_notes
            ),
            "changed elsewhere later than here, and taken from there: "
            + counted(self.changed_notes, "note"): self.changed_notes,
            f"no part of an export any more, and left out: {lost}": self.left_out,
        }
        return [line for line, some in lines.items() if some]


@dataclass(frozen=True, slots=True)
class ImportedHistory:
    """What an import of another product's export did, or would do."""

    product: str
    """Where it comes from, such as ChatGPT; ``memchat`` for an export for ``import_file``."""
    conversations: int = 0
    """How many conversations were found; each is new, grown, known or deleted, or left out."""
    messages: int = 0
    saved: int = 0
    """How many facts were found that the product itself had saved."""
    first: datetime | None = None
    """When the earliest message was said, where that is known."""
    last: datetime | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How much was left out, by what it is and why."""
    added: Mapping[str, int] = field(default_factory=dict)
    """How much is new here: session, message, inbox_item."""
    grown: int = 0
    """How many conversations of an earlier import went on since."""
    known: int = 0
    """How many are here as they are there."""
    deleted: int = 0
    """How many were deleted here, and stay so."""
    to_read: int = 0
    """How many conversations are read for memories."""
    calls: int = 0
    """How many calls of the model that takes at most."""
    effort: str = ""
    """The calls and their price."""
    capped: int = 0
    """How many conversations more would be read if there were no cap in calls or in money."""
    waiting: int = 0
    """How many conversations still wait to be read, since that was stopped or failed."""
    id: str | None = None
    """What ``undo_import`` takes back the import by; None where nothing was stored."""
    dry_run: bool = False

    def told(self) -> list[str]:
        """What was found and what became of it, a line for each."""
        days = sorted({f"{at:%Y-%m-%d}" for at in (self.first, self.last) if at is not None})
        found = {"conversation": self.conversations, "message": self.messages}
        facts = counted(self.saved, "saved fact")
        lines = {
            f"{self.product}: {', '.join(counted(n, what) for what, n in found.items())}, {facts}"
            + (f", {' to '.join(days)}" if days else ""): True,
            f"here already: {counted(self.known, 'conversation')}": self.known,
            f"went on since: {counted(self.grown, 'conversation')}": self.grown,
            f"deleted here, and left out: {counted(self.deleted, 'conversation')}": self.deleted,
            **{f"left out: {what}: {count:,}": True for what, count in self.left_out.items()},
            f"to be read for memories: {counted(self.to_read, 'conversation')}, with at most "
            f"{self.effort}": self.to_read,
            f"not read, as the cap is reached: {counted(self.capped, 'conversation')}": self.capped,
        }
        return [line for line, some in lines.items() if some]


@dataclass(frozen=True, slots=True)
class PastImport:
    """An import of another product's export, which can be taken back."""

    id: str
    product: str
    """Where it came from."""
    at: datetime
    conversations: int
    """How many it began, or added to."""
    waiting: int
    """How many of them wait to be read for memories."""


@dataclass(frozen=True, slots=True)
class Insights:
    """Figures about the memories of an app. Days are in the user's time zone."""

    kept: dict[date, int]
    """How many memories were stored on each day."""
    said: dict[date, int]
    """How many messages the user sent on each day."""
    types: dict[str, int]
    keys: dict[str, int]
    """The keys with the most memories."""
    states: dict[str, int]
    """How many memories are in use, and how many are inactive for each reason."""
    most_used: tuple[tuple[Memory, int], ...]
    never_used: int
    queue: dict[str, int]


REFUSED_MOST = 20
"""Refused lines of a file that are listed, at most."""


def counted_records(records: Mapping[str, int], *, session: str = "session") -> str:
    """``3 memories, 1 session, 2 messages``, or ``nothing``. ``session`` is the word for one."""
    nouns = {"memory": "memory", "session": session, "inbox_item": "inbox item"}
    nouns |= {noun: noun for noun in ("message", "note", "file", "record")}
    told = [counted(records[kind], noun) for kind, noun in nouns.items() if records.get(kind)]
    return ", ".join(told) or "nothing"
