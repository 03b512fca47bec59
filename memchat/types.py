"""The nouns every room shares: plain frozen records, no behaviour that needs a database or a model.

Times are aware UTC ``datetime``; ``expires_at`` is a calendar ``date`` in the user's own zone and
the memory holds through that day.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

from memchat.errors import InputError, ScopeError, ServiceError

MemoryType = Literal["preference", "profile", "fact", "other"]
MEMORY_TYPES: tuple[MemoryType, ...] = ("preference", "profile", "fact", "other")
Role = Literal["user", "assistant"]
CreatedBy = Literal["manual", "auto", "import", "mcp"]

NAME_LIMIT = 200
REPLY_LIMIT = 200_000
"""Characters of a model's answer; it is ended there."""
CHUNK_TOKENS = 2_000
ONLY_REPEATS = "it only repeats"
"""How the reason begins of a refusal that would have taught nothing."""
EVERY_APP = ""
"""The app name under which the memories are kept that a user has in every app."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_name(name: str, what: str) -> str:
    """A user or app name in NFC, trimmed. Raises ScopeError for one that cannot be used."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ScopeError(f"the {what} name holds half a character; type it again") from None
    name = unicodedata.normalize("NFC", name).strip()
    if not name:
        raise ScopeError(f"the {what} name is empty; give one with --{what}")
    if len(name) > NAME_LIMIT:
        raise ScopeError(f"the {what} name is longer than {NAME_LIMIT} characters")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ScopeError(f"the {what} name holds a control character; use plain text")
    return name


def clean_text(text: str) -> str:
    """Text as it may be stored: NUL and lone surrogates become U+FFFD, nothing else changes.

    Two surrogates that belong together become the character they stand for.
    """
    text = text.replace("\0", "\ufffd")
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def counted(number: int, noun: str) -> str:
    """``1 text``, ``1,200 texts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, what: str, limit: int) -> str:
    """A short field on one line, white space folded. Raises InputError when empty or too long."""
    folded = " ".join(clean_text(text).split())
    if not folded:
        raise InputError(f"the {what} is empty")
    if len(folded) > limit:
        raise InputError(f"the {what} is {len(folded)} characters long; at most {limit} are kept")
    return folded


class Keep:
    """Stands for "leave it as it is" where None means something."""


KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory, and in which app. Names are checked and normalised on construction."""

    user: str
    app: str = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "user", clean_name(self.user, "user"))
        object.__setattr__(self, "app", clean_name(self.app, "app"))


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
    """``""`` (EVERY_APP) where the memory is the user's in every app."""
    many: bool
    """Whether the key holds several values side by side; only a key of one value supersedes."""
    created_by: CreatedBy
    said_at: datetime
    """When it was said: the time of the newest message that proves it, or of the manual entry."""
    updated_at: datetime
    inactive_reason: str | None = None
    """superseded, merged, expired or ended, where ``active`` is false; forgotten while its purge
    is held back."""
    replaced_by: int | None = None
    pinned: bool = False
    """Whether the person wants it at hand in every chat."""
    starts_at: date | None = None
    """The first day it holds, where it was said to come; before that day it is told as coming."""
    cues: tuple[str, ...] = ()
    """Plain words for the situations that need it. For search alone: never shown as a fact."""
    sensitive: bool = False
    """Whether a chat model is given it only where it fits the message, as with health or debts."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object: ISO 8601 times, ``active`` as a boolean."""
        return to_json(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words that prove a memory: a verbatim span of one stored message."""

    memory_id: int
    session_id: int
    message_id: int
    role: Role
    quote: str
    start: int
    """Offset of the quote in the message, in characters."""
    said_at: datetime
    session_title: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one memory, in the order of ``id``."""

    id: int
    memory_id: int
    kind: str
    at: datetime
    actor: str
    cause: str
    session_id: int | None
    message_id: int | None
    related_id: int | None
    """The other memory of the change, e.g. the one that superseded this."""
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    detail: dict[str, Any] | None = None
    """What a second look by the model said of it: ``verdict``, ``reason`` and ``model``."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a stored conversation. ``status`` is complete, partial (stopped) or failed."""

    id: int
    session_id: int
    role: Role
    content: str
    created_at: datetime
    status: str = "complete"


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. ``extracted_to`` is the last message that an extraction has read."""

    id: int
    user: str
    app: str
    title: str | None
    summary: str | None
    started_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    extracted_to: int
    message_count: int
    status: str
    """open, pending (ended, its extraction waits), extracted, failed, or off (nothing to learn)."""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something that waits for a person's yes.

    Either a proposal (``memory_type``, ``key``, ``value``, ``quote`` with its ``message_id``), or a
    pair of memories: ``memory_id`` may take the place of ``related_id``.
    """

    id: int
    status: str
    """pending or rejected; what is accepted becomes a memory and leaves."""
    reason: str
    created_at: datetime
    memory_type: MemoryType | None
    key: str | None
    value: str | None
    quote: str | None
    message_id: int | None
    start: int | None
    expires_at: date | None
    many: bool
    masked: bool
    """Whether a secret was hidden in value and quote; the words stand in the message alone."""
    memory_id: int | None
    related_id: int | None
    relation: str = "new"
    """What a yes does: new, updates (it takes the place of ``target_id``), ends, same or beside."""
    target_id: int | None = None
    """The memory that ``relation`` speaks of."""
    starts_at: date | None = None
    sentence: str | None = None
    """The sentence that ``quote`` stands in."""
    cues: tuple[str, ...] = ()
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a conversation's reading proposed and did not keep, and why.

    Only ``reason`` is there where the words may not be kept: a secret, what the person asked not
    to keep, and what was forgotten.
    """

    id: int
    session_id: int
    reason: str
    created_at: datetime
    message_id: int | None = None
    start: int | None = None
    """Where the words stand in the message, from ``start`` up to ``end``, in characters."""
    end: int | None = None
    memory_type: MemoryType | None = None
    key: str | None = None
    value: str | None = None
    relation: str = "new"
    target_id: int | None = None
    expires_at: date | None = None
    starts_at: date | None = None
    many: bool = True
    cues: tuple[str, ...] = ()
    sensitive: bool = False

    @property
    def repeats(self) -> bool:
        """Whether it would have taught nothing: it is known already, or was only recited."""
        return self.reason.startswith(ONLY_REPEATS)

    @property
    def proposes(self) -> str:
        """What it would have remembered, on one line; nothing where only the reason was noted."""
        if self.key is None:
            return ""
        words = f"{self.key}: {self.value}" if self.value else self.key
        return f"end of {words}" if self.relation == "ends" else words


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, with the parts its score was made of.

    ``cosine`` and ``bm25`` are None where that list could not score it (no vector, no word in
    common); ``bm25`` is 1 where it holds all words of the question that anything holds, the rarer
    counting for more; ``prior`` is the share that the summary of a message's conversation has in
    its score.
    ``channel`` is pinned, both, meaning, words, time, conversation, newest where nothing of the
    question speaks for it (in a prompt: where there was room for more than was found), or listed by
    a command; in a prompt also all (all facts fit).
    """

    kind: Literal["memory", "message"]
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
    """For a message, the conversation it was said in."""
    session_title: str | None = None
    since_changed: tuple[str, ...] = ()
    """For a message, the keys of facts drawn from it that hold no more as they were said."""
    prior: float | None = None
    dated: float | None = None
    """The share in its score for lying on the days that the question asks about."""
    tells: tuple[tuple[int, str, str], ...] = ()
    """Id, key and value of the memories whose words stand in it beside its own: those that a memory
    replaced and its line names, those that were learnt from a message."""
    confident: bool = True
    """Whether it passes the floor: near enough in meaning, or with enough of the words. Others only
    fill a search's list."""


@dataclass(frozen=True, slots=True)
class CuePlan:
    """What giving cues to the facts that have none is going to take, about."""

    facts: int
    asked: int
    """Those of them that the model is asked about; the others get the cues of their key."""
    tokens: int
    cost_usd: float | None
    """None where the model has no known price."""
    model: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found. ``degraded`` says in words why meaning did not take part, or is None."""

    hits: tuple[Hit, ...] = ()
    degraded: str | None = None
    dropped: int = 0
    """Hits above the floor that the token budget left out."""
    tokens: int = 0
    matched: tuple[int, ...] = ()
    """For a prompt, the memories that search found for the message, pinned ones among them."""
    listed: tuple[Hit, ...] = ()
    """For a prompt, every fact, where all of them fit: sent whatever the message, by their ids.
    Then ``hits`` are only what was found for it."""

    @property
    def lines(self) -> int:
        """How many memories and turns it is, each counted once."""
        ids = {(hit.kind, hit.id) for hit in (*self.listed, *self.hits)}
        return len(ids)

    @property
    def confident(self) -> tuple[Hit, ...]:
        """The hits that pass the floor."""
        return tuple(hit for hit in self.hits if hit.confident)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing a session taught, or refused: what happened to which memory, and its proof."""

    kind: str
    """added, repeated, merged, superseded, ended, revived, forgotten, review or refused."""
    memory: Memory | None
    quotes: tuple[str, ...] = ()
    before: str | None = None
    """The replaced value, where one was."""
    reason: str | None = None
    """Why it went to review or was refused."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What reading a conversation taught; of ``User.add`` also what was stored of it."""

    session_id: int | None
    """None where nothing was stored."""
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read at all (memory off, nothing new said), or None."""
    queued: str | None = None
    """Why it is not read yet but waits in the queue, or None."""
    stored: int = 0
    """How many turns ``User.add`` stored."""
    known: int = 0
    """How many turns it skipped, as they were added before."""
    ignored: int = 0
    """How many messages and parts it left out: of another role, or without text."""

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
class Usage:
    """What one call to a provider took. ``cost_usd`` is None where no price is known."""

    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Usage summed over calls with one purpose and model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None where no call's price is known."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Service:
    """An embedding service; every vector belongs to one, and vectors of two are never compared.

    ``floor`` is the cosine below which a memory says nothing for this model, ``message_floor`` the
    same for a message; ``cosine_weight`` is the part of the cosine in a score, the rest is that of
    the words; ``local`` tells that a call costs no network. ``chunking_max_tokens`` is the most
    that one chunk of a long text may have, never more than the model reads (``max_tokens``).
    Raises ServiceError for sizes that cannot be.
    """

    provider: str
    model: str
    dimensions: int
    max_tokens: int
    version: str = ""
    floor: float = 0.3
    message_floor: float = 0.3
    cosine_weight: float = 0.7
    local: bool = False
    chunking_max_tokens: int = 0
    """0 for 2,000, or as many as the model reads."""

    def __post_init__(self) -> None:
        if min(self.dimensions, self.max_tokens, self.chunking_max_tokens + 1) < 1:
            raise ServiceError(
                f"{self.name} cannot have {self.dimensions} dimensions, read {self.max_tokens} "
                f"tokens and chunks of {self.chunking_max_tokens}; give numbers above 0"
            )
        if self.chunking_max_tokens > self.max_tokens:
            raise ServiceError(
                f"chunking_max_tokens is {self.chunking_max_tokens}, but {self.name} reads "
                f"{self.max_tokens} tokens; give at most that"
            )
        if not self.chunking_max_tokens:
            object.__setattr__(self, "chunking_max_tokens", min(CHUNK_TOKENS, self.max_tokens))

    @property
    def name(self) -> str:
        """``provider/model``, as settings and messages give it."""
        return f"{self.provider}/{self.model}"

    def same_space(self, other: Service | None) -> bool:
        """Whether vectors of the two may be compared; with none, they may not."""
        if other is None:
            return False
        mine = (self.provider, self.model, self.version, self.dimensions)
        return mine == (other.provider, other.model, other.version, other.dimensions)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service that a store knows, and how much it has of its vectors."""

    id: int
    name: str
    provider: str
    model: str
    version: str
    dimensions: int
    max_tokens: int
    state: str
    """in use; coming, while its vectors are made beside those in use; or kept."""
    vectors: int
    lacking: int
    """Texts that search is to find and that have no vector of it yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An embedding provider that another package brings."""

    name: str
    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come."""

    done: int
    total: int
    seconds: float
    """Since it began."""
    begun_at: int = 0
    """What was done before, by an earlier run."""
    failed: int = 0
    pause: float | None = None
    """Seconds that are being waited, as a service asked."""
    unit: str = ""
    """What is counted, where that is no texts: MB."""

    @property
    def past(self) -> int:
        """What is behind: done or failed."""
        return self.done + self.failed

    @property
    def rate(self) -> float:
        """So many a second; 0 before the first is done."""
        return (self.past - self.begun_at) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate, or None where that cannot be told yet."""
        return (self.total - self.past) / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of queued work and how it stands."""

    id: int
    kind: str
    user: str
    app: str
    target_id: int
    status: str
    """pending, running, completed or failed."""
    attempts: int
    run_at: datetime
    error_message: str | None
    created_at: datetime
    processed_at: datetime | None


EmbeddingStatus = Literal["pending", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """How it stands with the vector of one memory."""

    memory_id: int
    status: EmbeddingStatus | None
    """None where none is asked for, as without an embedding service."""
    code: int | None
    """The same as a number: -1 pending, 0 completed, the error's HTTP status or 1 where failed."""
    model: str | None
    """The service that made it."""
    error: str | None
    """Why the last try failed; gone when one succeeds."""
    attempts: int
    processed_at: datetime | None
    """When it was made, or given up."""


@dataclass(frozen=True, slots=True)
class AppInfo:
    """One app of one user, its memory switch and how much it holds."""

    name: str
    memory: bool
    memories: int
    sessions: int
    created_at: datetime


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


@dataclass(frozen=True, slots=True)
class Undone:
    """What deleting a conversation, or a message, does to the memories."""

    gone: tuple[Memory, ...] = ()
    """Only its words proved them."""
    back: tuple[Memory, ...] = ()
    """It had retired them, and they are in use again."""
    kept: tuple[Memory, ...] = ()
    """Words said elsewhere prove them too, or they are the person's own entry or edit."""


PlaceKind = Literal["message", "reply", "title", "summary", "memory", "inbox", "refusal"]
_PLACE_KINDS: dict[PlaceKind, tuple[str, str]] = {
    "message": ("message", "messages"),
    "reply": ("reply", "replies"),
    "title": ("title", "titles"),
    "summary": ("summary", "summaries"),
    "memory": ("other memory", "other memories"),
    "inbox": ("inbox item", "inbox items"),
    "refusal": ("proposal that was not kept", "proposals that were not kept"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Something else that speaks of what is forgotten."""

    kind: PlaceKind
    id: int
    """Of the message, the conversation with this title or summary, the memory, or the item."""
    session_id: int | None
    at: datetime
    text: str
    """The words around it, as they read once it is blanked."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What speaks of a memory besides the memory and what forgetting it takes along."""

    memory_id: int
    words: tuple[tuple[str, ...], ...]
    """What tells of it: each of these groups, where all its words stand in one place."""
    places: tuple[Place, ...]
    """The latest first."""

    @property
    def counted(self) -> str:
        """How many places of each kind, in words."""
        kinds = [place.kind for place in self.places]
        parts = [
            f"{count} {one if count == 1 else many}"
            for kind, (one, many) in _PLACE_KINDS.items()
            if (count := kinds.count(kind))
        ]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


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


@dataclass(frozen=True, slots=True)
class Insights:
    """Figures about the memories of an app. Days are the user's own."""

    kept: dict[date, int]
    """How many memories were kept on each day."""
    said: dict[date, int]
    """How many messages the person wrote on each day."""
    types: dict[str, int]
    keys: dict[str, int]
    """The keys with the most memories."""
    states: dict[str, int]
    """How many are in use, and how many are not, by why."""
    most_used: tuple[tuple[Memory, int], ...]
    never_used: int
    queue: dict[str, int]


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Whether memory takes part in a conversation, and if not, why."""

    on: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message as a chat model is sent it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Given:
    """One line that a reply's model was given, and what became of it since."""

    hit: Hit
    """As it was injected; without its words where it is being forgotten."""
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation it was said in; None for what was entered by hand."""
    since: str | None = None
    """What happened to it after the reply, in words; None where it stands as it did."""
    muted: bool = False
    """Whether it is kept out of the rest of the conversation."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a reply is as it is: what its model was given and sent, and what that took."""

    reply: Message
    question: str | None
    """The message it answers."""
    lines: tuple[Given, ...]
    """What was found for the message, or chosen where not all facts fit."""
    forgotten: int
    """Lines that are gone since, with their words."""
    dropped: int
    """Memories that the token budget left out."""
    degraded: str | None
    by_model: bool
    """False where code answered alone."""
    tools: tuple[str, ...]
    """Those that the model was offered."""
    prompt: tuple[ChatMessage, ...] | None
    """What the model was sent, as far as it is neither blanked nor deleted; None where it held
    what was forgotten, and where code answered alone."""
    deleted: int
    """Turns that were sent and are gone since."""
    calls: tuple[Usage, ...]
    """The calls made for it, each with its tokens and cost."""
    also: tuple[Given, ...] = ()
    """The other facts that were sent, as all of them fit: in the order of their ids."""


def to_json(record: Any) -> dict[str, Any]:
    """Any record above as a JSON-ready dict; nested records, dates and times included."""
    return {f.name: _plain(getattr(record, f.name)) for f in dataclasses.fields(record)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
