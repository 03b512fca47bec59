"""What every room of a user's scope is made of.

Checks of the values that a caller gives.

Pages of results, and the cursors between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import TypeVar

from sqlalchemy import Connection

from memchat.assembly import Assembly
from memchat.db import apps, messages, sessions
from memchat.db.apps import Context, ScopeIds
from memchat.errors import InputError, NotFound, StoreError
from memchat.facts import lists, memories
from memchat.types import Memory, Message, Note, Scope, Session


def no_memory(memory_id: int) -> NotFound:
    """What to raise for a memory that is not in the scope."""
    return NotFound(f"there is no memory {memory_id} here; see memchat memories list")


class Room:
    """Verbs on one kind of thing, within one scope; what belongs to another scope is not found."""

    def __init__(self, assembly: Assembly, scope: Scope) -> None:
        self._assembly = assembly
        self._scope = scope
        self._database = assembly.database
        self._settings = assembly.settings
        self._clock = assembly.clock

    def _ids(self, tx: Connection) -> ScopeIds:
        return apps.find(tx, self._scope)

    def _context(self, tx: Connection, *, ensure: bool = False) -> Context:
        """A transaction over this scope; with ``ensure`` its rows are made where they lack."""
        now = self._clock()
        ids = ScopeIds(*apps.ensure(tx, self._scope, now)) if ensure else self._ids(tx)
        return Context(tx, ids, now, self._settings.zone)

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()

    def _found_memory(self, tx: Connection, memory_id: int) -> Memory:
        memory = memories.get(tx, self._ids(tx).ids, memory_id)
        if memory is None:
            raise no_memory(memory_id)
        return memory

    def _found_session(self, tx: Connection, session_id: int) -> Session:
        own = self._ids(tx).own
        session = sessions.get(tx, [own], session_id) if own is not None else None
        if session is None:
            raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
        return session

    def _found_message(self, tx: Connection, message_id: int) -> Message:
        message = messages.by_ids(tx, [message_id]).get(message_id)
        if message is None:
            raise NotFound(f"there is no message {message_id} here; see memchat sessions show")
        self._found_session(tx, message.session_id)
        return message

    def _run_purge(self, memory_id: int) -> None:
        """Do what is queued for a deleted memory. Raises StoreError where that did not succeed."""
        worker = self._assembly.parts().worker
        if worker.run(kinds=("forget",), target_id=memory_id).failed:
            raise StoreError(
                f"what speaks of memory {memory_id} is out of sight, but its words could not be "
                "removed yet; that is tried again, and memchat doctor tells how it stands"
            )


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


def memory_cursor(memory: Memory) -> str:
    """The place of a memory in a list, as text."""
    until = memory.expires_at.isoformat() if memory.expires_at else ""
    return f"{memory.said_at.isoformat()}_{memory.id}_{until}"


def memory_place(cursor: str | None, *, with_end: bool) -> lists.Position | None:
    """The place that a cursor names. Raises InputError for a text that is none, and where the
    list is sorted by last days (``with_end``) for a cursor that has none."""
    if cursor is None:
        return None
    with _refused(cursor):
        said_at, memory_id, until = cursor.split("_")
        ends = date.fromisoformat(until) if until else None
        if ends is None and with_end:
            raise InputError("this cursor is of a list of another status")
        return lists.Position(_time(said_at), _id(memory_id), ends)


def session_cursor(session: Session) -> str:
    """The place of a session in a list, as text."""
    return f"{session.last_activity_at.isoformat()}_{session.id}"


def session_place(cursor: str | None) -> sessions.Position | None:
    """The place that a cursor names. Raises InputError for a text that is none."""
    if cursor is None:
        return None
    with _refused(cursor):
        last_activity_at, session_id = cursor.split("_")
        return sessions.Position(_time(last_activity_at), _id(session_id))


def note_cursor(note: Note) -> str:
    """The place of a note in a list, as text."""
    return f"{note.created_at.isoformat()}_{note.id}"


def note_place(cursor: str | None) -> tuple[datetime, int] | None:
    """The place that a cursor names. Raises InputError for a text that is none."""
    if cursor is None:
        return None
    with _refused(cursor):
        created_at, note_id = cursor.split("_")
        return _time(created_at), _id(note_id)


@contextmanager
def _refused(cursor: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, ValueError):
        raise InputError(f"{cursor!r} is no cursor; give one that a page had") from None


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time without a zone")
    return time


def _id(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**63:
        raise ValueError("no id of a row")
    return number
