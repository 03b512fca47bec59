"""Pages of results, and the cursors between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import TypeVar

from memchat.errors import InputError
from memchat.store import memory_lists, sessions
from memchat.types import Memory, Note, Session

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


def memory_place(cursor: str | None, *, with_end: bool) -> memory_lists.Position | None:
    """The place that a cursor names. Raises InputError for a text that is none, and where the
    list is sorted by last days (``with_end``) for a cursor that has none."""
    if cursor is None:
        return None
    with _refused(cursor):
        said_at, memory_id, until = cursor.split("_")
        ends = date.fromisoformat(until) if until else None
        if ends is None and with_end:
            raise InputError("this cursor is of a list of another status")
        return memory_lists.Position(_time(said_at), _id(memory_id), ends)


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
