"""Records of scopes, messages, conversations, notes and embedding services, and the checks of
their texts."""

from __future__ import annotations

import dataclasses
import inspect
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from memchat.errors import InputError, ScopeError, ServiceError

NAME_LIMIT = 200
_HIDDEN = ("Cf", "Cn", "Co", "Zl", "Zp")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and signs that are drawn as blanks."""
_JOINERS = "\u200c\u200d"
EVERY_APP = ""
"""The app name of the memories that a user has in every app."""


_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Text as it may be stored: NUL and lone surrogates become U+FFFD, and nothing else changes.

    Two surrogates that form a pair become one character.
    """
    text = text.replace("\0", "\ufffd")
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def first_words(text: str, most: int) -> str:
    """A text on one line, cut to so many characters."""
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def one_line(text: str, what: str, limit: int, instead: str = "") -> str:
    """A short field on one line with single spaces. Raises InputError if it is empty or too
    long; ``instead`` says what can be done then."""
    folded = " ".join(clean_text(text).split())
    if not folded:
        raise InputError(f"the {what} is empty")
    if len(folded) > limit:
        told = f"the {what} is {len(folded)} characters long; at most {limit} are kept{instead}"
        raise InputError(told)
    return folded


def clean_name(name: str, what: str) -> str:
    """A user or app name in NFC, without white space around it. Raises ScopeError for one that
    cannot be used, or holds what cannot be seen: two names could look alike and yet be two."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ScopeError(f"the {what} name holds half a character; type it again") from None
    name = unicodedata.normalize("NFC", name).strip()
    if not name:
        raise ScopeError(f"the {what} name is empty; give one")
    if len(name) > NAME_LIMIT:
        raise ScopeError(f"the {what} name is longer than {NAME_LIMIT} characters")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ScopeError(f"the {what} name holds a control character; use plain text")
    for place, char in enumerate("" if name.isascii() else name):
        if _is_hidden(char) and not _is_needed(name, place):
            raise ScopeError(
                f"the {what} name holds a character that cannot be seen (U+{ord(char):04X}); "
                "type it again without it"
            )
    return name


def _is_hidden(char: str) -> bool:
    """Whether a character is invisible, or changes the direction of the line or the form of the
    character before it."""
    hidden = unicodedata.category(char) in _HIDDEN or char in _BLANK
    return hidden or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_needed(name: str, place: int) -> bool:
    """Whether an invisible character changes what is seen: in an emoji, or in a script that needs
    joiners."""
    before, after = name[place - 1 : place], name[place + 1 : place + 2]
    if name[place] == "\ufe0f":
        return _is_symbol(before)
    if name[place] not in _JOINERS or not before or not after:
        return False
    if _is_symbol(after) and (_is_symbol(before) or before == "\ufe0f"):
        return True
    return unicodedata.combining(before) == 9 or (
        unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"
    )


def _is_symbol(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("So", "Sk")


@dataclass(frozen=True, slots=True)
class Scope:
    """A user and one of their apps. The names are checked and normalised."""

    user: str
    app: str = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "user", clean_name(self.user, "user"))
        object.__setattr__(self, "app", clean_name(self.app, "app"))


@dataclass(frozen=True, slots=True)
class AppInfo:
    """One app of a user, whether its memory is on, and how much it holds."""

    name: str
    memory: bool
    memories: int
    sessions: int
    notes: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UserInfo:
    """One person of a store: how much is kept of them in all, and when they last talked or were
    last given a memory or a note."""

    name: str
    apps: int
    memories: int
    sessions: int
    notes: int
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Whether memory is on for a conversation, and the reason if not."""

    on: bool
    reason: str


REPLY_LIMIT = 200_000
"""The most characters of a model's answer. A longer one is cut off."""


def counted(number: int, noun: str) -> str:
    """``1 text``, ``1,200 texts``, ``2 memories``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def documented(work: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """The docstring of a function without the lines ``:param NAME: …`` at its end, and what each of
    these says."""
    text, *said = re.split(r"^:param (\w+):", inspect.getdoc(work) or "", flags=re.M)
    helps = (" ".join(one.split()) for one in said[1::2])
    return text.strip(), dict(zip(said[::2], helps, strict=True))


Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes to the model with a message; never evidence of a memory.

    ``type`` is its media type. ``text`` is what a document says, ``data`` a picture in base64 and
    without what the camera told of it; the other one is empty.
    """

    name: str
    type: str
    text: str = ""
    data: str = ""

    @property
    def size(self) -> str:
        """How large it is, in characters or kilobytes."""
        if self.data:
            return f"{max(len(self.data) * 3 // 4 // 1000, 1):,} kB"
        return f"{len(self.text):,} characters"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stored conversation. ``status`` is complete, partial (stopped) or failed.

    ``copied_from`` is the id of the message that this one is a copy of, while that is there.
    """

    id: int
    session_id: int
    role: Role
    content: str
    created_at: datetime
    status: str = "complete"
    copied_from: int | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message as it is sent to a chat model; ``images`` are pictures as data URLs."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[str, ...] = ()


def effort(calls: int, tokens: int, cost_usd: float | None) -> str:
    """Calls and their price: "62 calls, about $0.12". Where the price is not known (None) their
    tokens stand in its place."""
    price = f"about ${cost_usd:.2f}" if cost_usd else "free"
    if cost_usd is None:
        price = f"about {tokens:,} tokens"
    elif 0 < cost_usd < 0.01:
        price = "less than $0.01"
    return f"{calls:,} {'call' if calls == 1 else 'calls'}, {price}"


JobStatus = Literal["pending", "running", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """One queued job and its state."""

    id: int
    kind: str
    user: str
    app: str
    target_id: int
    status: JobStatus
    attempts: int
    run_at: datetime
    error_message: str | None
    created_at: datetime
    processed_at: datetime | None


CHUNK_TOKENS = 2_000
MOST_BATCH = 2048
"""Texts that any provider takes in one request."""


@dataclass(frozen=True, slots=True)
class Service:
    """An embedding service. Every vector belongs to one, and vectors of two are never compared.

    ``floor`` is the cosine below which a memory does not count as similar for this model,
    ``message_floor`` the same for messages. ``cosine_weight`` is the part of the cosine in a score;
    keywords have the rest. ``local`` means that a call needs no network. ``chunking_max_tokens`` is
    the size of the chunks of a long text, at most what the model reads (``max_tokens``).

    Raises ServiceError for impossible sizes.
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
    """0 for 2,000, or for what the model reads if that is less."""

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
        """``provider/model``, as in settings and messages."""
        return f"{self.provider}/{self.model}"

    def same_space(self, other: Service | None) -> bool:
        """Whether vectors of the two services may be compared; never if ``other`` is None."""
        if other is None:
            return False
        mine = (self.provider, self.model, self.version, self.dimensions)
        return mine == (other.provider, other.model, other.version, other.dimensions)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service that a store knows, and how many of its vectors there are."""

    id: int
    name: str
    provider: str
    model: str
    version: str
    dimensions: int
    max_tokens: int
    state: str
    """in use, coming (its vectors are being made), or kept."""
    vectors: int
    lacking: int
    """How many texts have no vector of it yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An embedding provider of another package."""

    name: str
    package: str
    version: str


EmbeddingStatus = Literal["pending", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The state of the vector of one memory."""

    memory_id: int
    status: EmbeddingStatus | None
    """None if no vector is wanted, for example without an embedding service."""
    code: int | None
    """The status as a number: -1 pending, 0 completed, and if it failed the HTTP status of the
    error or 1."""
    model: str | None
    """The service that made it."""
    error: str | None
    """Why the last try failed; None once a try succeeds."""
    attempts: int
    processed_at: datetime | None
    """When it was made or finally failed."""


def to_json(record: Any) -> dict[str, Any]:
    """A record of this package as a JSON-ready dict, with nested records, dates, times and
    paths."""
    return {f.name: _plain(getattr(record, f.name)) for f in dataclasses.fields(record)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def checked_timeout(seconds: object) -> float | None:
    """How long to wait, None for as long as it takes. Raises InputError for what is no time."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= threading.TIMEOUT_MAX:
        most = f"{threading.TIMEOUT_MAX:.0f}"
        raise InputError(f"{seconds!r} is no timeout; give seconds, more than 0 and up to {most}")
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens, cost and time of one call to a provider. ``cost_usd`` is None if the price is not
    known."""

    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The sum over calls with the same purpose and model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None if no call's price is known."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long task has come."""

    done: int
    total: int
    seconds: float
    """Seconds since it began."""
    begun_at: int = 0
    """How much an earlier run had done already."""
    failed: int = 0
    pause: float | None = None
    """Seconds of the current wait, as a service asked for."""
    unit: str = ""
    """What is counted, if it is not texts: MB."""
    name: str = ""
    """What is being done now, where it has a name: a file."""

    @property
    def past(self) -> int:
        """How much is finished: done or failed."""
        return self.done + self.failed

    @property
    def rate(self) -> float:
        """How much is finished each second; 0 before the first."""
        return (self.past - self.begun_at) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate, or None if that cannot be told yet."""
        return (self.total - self.past) / self.rate if self.rate > 0 else None


OnProgress = Callable[[Progress], None]
"""Told now and then how far a task has come."""


def timed(tell: OnProgress | None, unit: str = "") -> Callable[..., None]:
    """Reports how far a task has come that begins now: ``report(done, total, name="")``."""
    began = monotonic()

    def report(done: int, total: int, **more: Any) -> None:
        if tell is not None:
            tell(Progress(done, total, monotonic() - began, unit=unit, **more))

    return report


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. ``extracted_to`` is the id of the last message that an extraction read."""

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
    """open, pending (ended, waits for its extraction), extracted, failed, or off (nothing to
    learn)."""
    copied_from: int | None = None
    """The conversation whose beginning this one was made with, while that is there."""
    shelf: str | None = None
    """``pinned`` or ``archived``, where the person put it; None: it is in the list."""
    memory: bool = True
    """Its own switch: whether memory takes part in it, where it is on for the person and the
    app."""
    metadata: dict[str, Any] | None = field(default=None, hash=False)
    """What a program noted beside it. No model sees it."""
    topic_id: int | None = None
    """The topic that it belongs to, if it belongs to one."""


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """A reply that lists memories, asks a question, or does neither: then all is in ``before``."""

    before: str
    """What stands before the list, with the line that says how many there are."""
    listed: tuple[int, ...] = ()
    """The ids of the memories that were listed."""
    after: str = ""
    """What stands after the list."""
    question: str = ""
    """The question at its end."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the person is asked to agree to before it is done. A yes, a no, or the number of one of
    several is an answer."""

    about: Literal["forget", "blank"]
    """Forgetting what was found, or blanking what else mentions what was forgotten."""
    count: int
    """How many things can be chosen from; those of ``blank`` are one."""


PASTE_LENGTH = 2_000
"""Characters from which a message is offered to be kept as a note."""


@dataclass(frozen=True, slots=True)
class LongMessage:
    """A very long message, and what it takes to read all of it. Calls, tokens and cost are those of
    the extraction model, and rough."""

    message_id: int
    characters: int
    read_all: bool
    """Whether all of it is read, as was asked for; else its beginning and its end."""
    calls: int
    """Calls that read its beginning and its end."""
    calls_for_all: int
    tokens_for_all: int
    cost_for_all: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What reading all of it takes, in words: "62 calls, about $0.12"."""
        return effort(self.calls_for_all, self.tokens_for_all, self.cost_for_all)


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The calls of a model that an answer takes, with their tokens and cost; all are rough."""

    calls: int
    """0 where no model is asked."""
    tokens: int
    cost_usd: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What it takes, in words: "12 calls, about $0.08"."""
        return effort(self.calls, self.tokens, self.cost_usd)


PROFILES = ("memo", "document")
"""How a note may be cut into chunks."""
TITLE_LIMIT = 200
"""Characters."""
TYPE_LIMIT = 40
"""Characters."""
ID_LIMIT = 4_096
"""Characters of an external id: as long as a path can be."""
MOST_AT_ONCE = 64
"""Conversations that one process reads at once."""
EARLIEST, LATEST = datetime(1000, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, tzinfo=UTC)
"""A note's time is one of these or between, as in exports: every zone has a day for it."""
ExternalId = int | str
"""The id of a note in the program that it comes from."""


@dataclass(frozen=True, slots=True)
class NewNote:
    """A memo or document to be kept."""

    text: str
    title: str | None = None
    type: str = "memo"
    """What kind of thing it is, in the caller's words: memo, document, file …"""
    external_id: ExternalId | None = None
    """A note of the same type and external id is replaced; None for a note of its own."""
    created_at: datetime | None = None
    """When it was said or written, an aware time; None for now, and for a note that is replaced,
    for the time that it had."""
    profile: str = "memo"
    """How it is cut into chunks: memo or document."""
    pair_id: int | None = None
    parent_id: int | None = None
    metadata: Mapping[str, Any] | None = None
    """Values of the caller's, to filter by; None leaves those of a note that is replaced."""
    tags: Iterable[str] | None = None
    """Words to group it by, as those of memories; None leaves those of a note that is replaced."""


@dataclass(frozen=True, slots=True)
class Note:
    """A memo or document, whole."""

    id: int
    app: str
    type: str
    """What kind of thing it is, in the caller's words: memo, document, file …"""
    external_id: ExternalId
    title: str | None
    created_at: datetime
    """When it was said or written."""
    updated_at: datetime | None
    """When its text or title was last changed here; None if it never was."""
    profile: str
    """How it is cut into chunks: memo or document."""
    text: str
    missing: bool = False
    """Whether it comes from a file that is gone."""
    chunks: int = 0
    metadata: dict[str, Any] | None = field(default=None, hash=False)
    """What a program noted beside it. No model sees it."""
    tags: tuple[str, ...] = ()
    topic_id: int | None = None
    """The topic that it belongs to, if it belongs to one."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Notes and conversations that speak of the same."""

    id: int
    """It stays from day to day, as long as most of them stay together."""
    name: str | None
    """What a model called it; None where none was asked, or something was forgotten since."""
    words: tuple[str, ...]
    """The words that set it apart, the most telling first."""
    notes: int
    sessions: int
    first: datetime
    """When the first of them was said or written."""
    last: datetime
    months: Mapping[str, int]
    """How many of them are of each month, such as 2026-11."""

    @property
    def title(self) -> str:
        """Its name, or its first words."""
        return self.name or ", ".join(self.words[:3]) or f"Topic {self.id}"


@dataclass(frozen=True, slots=True)
class NoteHit:
    """A chunk of a note that a search found, with the parts of its score.

    ``cosine`` and ``bm25`` are None if that search gave no score. ``offset`` and ``size`` are in
    characters of the note's text. ``text`` is None unless it was asked for.
    """

    chunk_id: int
    note_id: int
    hash: str
    source_type: str
    source_id: ExternalId
    pair_id: int | None
    parent_id: int | None
    offset: int
    size: int
    match_count: int
    read_count: int
    score: float
    cosine: float | None
    bm25: float | None
    confident: bool
    title: str | None
    created_at: datetime
    text: str | None = None


@dataclass(frozen=True, slots=True)
class NotesFound:
    """The results of a search in notes. ``degraded`` is why no vectors were searched, or None."""

    hits: tuple[NoteHit, ...] = ()
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class NotesAdded:
    """What became of many notes. ``ids`` are those of the notes that are kept."""

    ids: tuple[int, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    """Why others were not kept, by their place among those given, from 0."""


@dataclass(frozen=True, slots=True)
class NoteUse:
    """How often the chunks of a note were found by searches, and how often they were read."""

    note_id: int
    type: str
    title: str | None
    matches: int
    reads: int


@dataclass(frozen=True, slots=True)
class NoteCounts:
    """The size and the use of some notes."""

    notes: int = 0
    chunks: int = 0
    matches: int = 0
    reads: int = 0


@dataclass(frozen=True, slots=True)
class NotesReport:
    """Figures about the notes of an app."""

    types: Mapping[str, NoteCounts]
    """By the type of note."""
    unread: tuple[NoteUse, ...]
    """Notes that searches found and nobody read, those with the most matches first."""
    chunks_without_vector: int
    waiting: int
    """Notes whose vectors are to be made."""
    failed: int
    """Notes whose vectors could not be made; ``memchat jobs run`` tries them again."""
    embeds: bool = True
    """Whether there is an embedding model to make them."""


@dataclass(frozen=True, slots=True)
class NotePassage:
    """A part of a note's text: ``size`` characters from ``offset`` on, as it was written."""

    offset: int
    size: int
    text: str


@dataclass(frozen=True, slots=True)
class NoteSource:
    """A note under the number by which an answer cites it, with its passages that were read, in
    the order in which they stand in the note."""

    number: int
    note_id: int
    title: str | None
    created_at: datetime
    """When the note was said or written."""
    passages: tuple[NotePassage, ...]
    chunk_ids: tuple[int, ...] = ()
    """The chunks that were found in it, the best one first."""

    @property
    def text(self) -> str:
        """Its passages; "[…]" stands where something between them is left out."""
        return "\n[…]\n".join(passage.text for passage in self.passages)
