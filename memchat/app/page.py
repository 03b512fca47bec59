"""Pages of results, and the cursors between them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TypeVar

from memchat.errors import InputError
from memchat.store.memory_lists import Position
from memchat.types import Memory

T = TypeVar("T")


class Page(list[T]):
    """One page of results: a list, with the cursor of the next page."""

    def __init__(self, items: Iterable[T] = (), cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor
        """Give it to the same verb for the next page; None on the last page."""


def cursor_of(memory: Memory) -> str:
    """The place of a memory in a list, as text."""
    until = memory.expires_at.isoformat() if memory.expires_at else ""
    return f"{memory.said_at.isoformat()}_{memory.id}_{until}"


def position(cursor: str | None) -> Position | None:
    """The place that a cursor names. Raises InputError for a text that is none."""
    if cursor is None:
        return None
    try:
        said_at, memory_id, until = cursor.split("_")
        return Position(
            datetime.fromisoformat(said_at),
            int(memory_id),
            date.fromisoformat(until) if until else None,
        )
    except ValueError:
        raise InputError(f"{cursor!r} is no cursor; give one that a page had") from None
