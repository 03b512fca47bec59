"""The base of the public interface to one kind of thing in a scope, with checks and result pages.

A cursor names the place of the last row of a page, and not a number of rows: what is added or
deleted meanwhile makes no row appear twice or go missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from memchat.assembly import Assembly
from memchat.db import Tx, messages, sessions
from memchat.errors import InputError, NotFound, StoreError
from memchat.facts import memories
from memchat.types import Memory, Message, Scope, Session


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

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()

    def _found_memory(self, tx: Tx, memory_id: int) -> Memory:
        memory = memories.get(tx, tx.ids, memory_id)
        if memory is None:
            raise no_memory(memory_id)
        return memory

    def _found_session(self, tx: Tx, session_id: int) -> Session:
        session = sessions.get(tx, [tx.own], session_id)
        if session is None:
            raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
        return session

    def _found_message(self, tx: Tx, message_id: int) -> Message:
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
