"""What the parts of the public interface share: a base with their checks, pages, and the results
that are not records of ``memchat.types``.

A cursor names the place of the last row of a page, and not a number of rows: what is added or
deleted meanwhile makes no row appear twice or go missing.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)
from zoneinfo import ZoneInfo

from memchat.assembly import Assembly
from memchat.db import Tx, messages, sessions
from memchat.errors import InputError, NotFound, StoreError
from memchat.facts import memories
from memchat.facts.keys import canonical, normalise_key
from memchat.facts.manual import RowImages
from memchat.notes import rows
from memchat.types import (
    CreatedBy,
    Filters,
    InboxItem,
    Memory,
    MemoryStatus,
    Message,
    Note,
    OwnTypes,
    Recalled,
    Scope,
    Session,
    Wanted,
    check_type,
    clean_metadata,
    clean_tags,
)

_KINDS: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "true or false"),
    date: (date, "a day"),
    datetime: (datetime, "a time"),
    Path: (os.PathLike, "a path"),
    Iterable: (Iterable, "a list"),
    Sequence: (Sequence, "a list"),
    Mapping: (Mapping, "a mapping"),
}
"""What is checked of an argument that is declared so, and the words for it."""


Face = TypeVar("Face", bound=type)


def checked_arguments(face: Face) -> Face:
    """Have the public verbs of a class raise InputError for arguments of another type than they
    declare, as far as ``_KINDS`` tells it."""
    for name, verb in list(vars(face).items()):
        if inspect.isfunction(verb) and name[0] != "_" and not hasattr(verb, "__wrapped__"):
            setattr(face, name, _checking(verb))
    return face


def _checking(verb: Callable[..., Any]) -> Callable[..., Any]:
    names = verb.__code__.co_varnames[: verb.__code__.co_argcount]

    @cache
    def declared() -> dict[str, Any]:
        hints: dict[str, Any] = {}
        for written in verb.__annotations__.items():
            with suppress(NameError):  # of a type that only type checkers import
                one = SimpleNamespace(__annotations__=dict([written]))
                hints |= get_type_hints(one, verb.__globals__)
        for name in [name for name, hint in hints.items() if get_origin(hint) is Unpack]:
            hints |= get_type_hints(get_args(hints.pop(name))[0])
        return hints

    @wraps(verb)
    def run(*given: Any, **named: Any) -> Any:
        hints = declared()
        for name, value in (*zip(names, given, strict=False), *named.items()):
            if name in hints and not _fits(value, hints[name]):
                wanted = " or ".join(dict.fromkeys(_told(hints[name])))
                raise InputError(f"give {name} as {wanted}, not as {type(value).__name__}")
        return verb(*given, **named)

    return run


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind not in _KINDS:
        return value is None if kind is NoneType else True
    if not isinstance(value, _KINDS[kind][0]) or (parts and isinstance(value, str)):
        return False
    inner = isinstance(value, list | tuple | set | frozenset) and parts
    return not inner or all(_fits(one, parts[0]) for one in value)


def _told(hint: Any) -> Iterator[str]:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        for part in get_args(hint):
            yield from _told(part)
    elif kind in _KINDS:
        inner = _KINDS.get((*get_args(hint), None)[0])
        yield f"{_KINDS[kind][1]} of {inner[1][2:]}s" if inner else _KINDS[kind][1]


class Resource:
    """Verbs on one kind of thing, within one scope; what belongs to another scope is not found."""

    def __init_subclass__(cls) -> None:
        checked_arguments(cls)

    def __init__(self, assembly: Assembly, scope: Scope) -> None:
        self._assembly = assembly
        self._scope = scope
        self._database = assembly.database
        self._settings = assembly.settings

    def _found_memory(self, tx: Tx, memory_id: int) -> Memory:
        memory = memories.get(tx, tx.ids, memory_id)
        if memory is None:
            raise no_memory(memory_id)
        return memory

    def _found_session(self, tx: Tx, session_id: int) -> Session:
        session = sessions.get(tx, [tx.own], session_id)
        if session is None:
            raise NotFound(f"there is no session {session_id} here", see="sessions list")
        return session

    def _found_message(self, tx: Tx, message_id: int) -> Message:
        message = messages.by_ids(tx, [message_id]).get(message_id)
        if message is None:
            raise NotFound(f"there is no message {message_id} here", see="sessions show")
        self._found_session(tx, message.session_id)
        return message

    def _found_note(self, tx: Tx, note_id: int) -> Note:
        note = rows.get(tx, [tx.own], note_id)
        if note is None:
            raise NotFound(f"there is no note {note_id} here", see="notes list")
        return note

    def _run_purge(self, memory_id: int) -> None:
        """Do what is queued for a deleted memory. Raises StoreError where that did not succeed."""
        worker = self._assembly.parts().worker
        if worker.run(kinds=("forget",), target_id=memory_id).failed:
            raise StoreError(
                f"what speaks of memory {memory_id} is out of sight, but its words could not be "
                "removed yet; that is tried again, and memchat doctor tells how it stands"
            )


def wanted(
    only: Filters, zone: ZoneInfo, own: OwnTypes, query: str = "", status: str = "active"
) -> Wanted:
    """What a filter and a query ask for, in a store with these own types. Raises InputError for
    what cannot be."""
    if unknown := only.keys() - Filters.__annotations__:
        raise TypeError(f"there is no filter {', '.join(sorted(unknown))}")
    check_choice(status, get_args(MemoryStatus), "status")
    kind, by, key = only.get("type"), only.get("said_by"), only.get("key")
    if kind:
        check_type(kind, own)
    check_choice(by or "person", [*SAID_BY], "said_by")
    return Wanted(
        query,
        (kind,) if kind else (),
        SAID_BY[by] if by else (),
        tags=clean_tags(only.get("tags") or ()),
        key=canonical(normalise_key(key)) if key else "",
        metadata=tuple(clean_metadata(only.get("metadata") or {}).items()),
        since=_moment("since", only.get("since"), zone, time.min),
        until=_moment("until", only.get("until"), zone, time.max),
        status=status,
        sort="ending first" if status == "expiring" else "newest",
    )


def _moment(name: str, given: object, zone: ZoneInfo, of_day: time) -> datetime | None:
    if isinstance(given, datetime) and given.tzinfo is not None:
        return given
    if isinstance(given, date) and not isinstance(given, datetime):
        return datetime.combine(given, of_day, zone)
    if given is None:
        return None
    raise InputError(f"{name} is neither a day nor a time with its zone")


def no_memory(memory_id: int) -> NotFound:
    """The error for a memory that is not there."""
    return NotFound(f"there is no memory {memory_id} here", see="memories list")


SAID_BY: dict[str, tuple[CreatedBy, ...]] = {
    "person": ("manual", "auto", "import"),
    "program": ("mcp",),
}
MOST = 2**31 - 1


def check_count(number: object, name: str = "limit") -> None:
    """Raise InputError for a limit or an offset that is negative or too large."""
    if not isinstance(number, int) or not 0 <= number <= MOST:
        raise InputError(f"the {name} {number!r} cannot be; give a number from 0 to {MOST}")


def check_choice(given: object, choices: Sequence[str], name: str) -> None:
    """Raise InputError for a word that is not one of a few."""
    if given not in choices:
        raise InputError(f"{given!r} is no {name}; use {', '.join(choices)}")


T = TypeVar("T")


class Page(list[T]):
    """One page of results: a list, with the cursor of the next page."""

    def __init__(self, items: Iterable[T] = (), cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor
        """Give it to the same verb for the next page; None on the last page."""


def page_of(found: Sequence[T], limit: int, place: Callable[[T], tuple[Any, ...]]) -> Page[T]:
    """The first ``limit`` of what was found, and the cursor of those behind them: the ``place`` of
    the last one in its list, which is its time, its id, and in some lists its last day."""
    if not len(found) > limit > 0:
        return Page(found[:limit])
    at, number, *days = place(found[limit - 1])
    ends = ("" if day is None else day.isoformat() for day in days)
    return Page(found[:limit], "_".join((at.isoformat(), str(number), *ends)))


def place_of(cursor: str, parts: int = 2) -> tuple[datetime, int, date | None]:
    """The place that a cursor of so many parts names. Raises InputError for a text that is none."""
    try:
        time, number, *days = cursor.split("_")
        at, row_id = datetime.fromisoformat(time), int(number)
        if at.tzinfo is None or not 0 < row_id < 2**63 or len(days) != parts - 2:
            raise ValueError
        return at, row_id, date.fromisoformat(days[0]) if any(days) else None
    except (AttributeError, ValueError):
        raise InputError(f"{cursor!r} is no cursor; give one that a page had") from None


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
class Mended:
    """What ``User.mend`` did, which ``User.unmend`` undoes, but for secrets, which are forgotten
    for good, and an index that was written anew."""

    count: int
    """How many findings were mended."""
    at: datetime
    before: RowImages = field(repr=False)
    """The rows as they were before, for ``unmend`` alone."""


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
