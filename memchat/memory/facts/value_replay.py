"""What a key that holds one value holds, had only some of what was said about it been said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.facts.in_force import drop_question, said
from memchat.store import events, memory_changes, messages, values_in_force
from memchat.store.events import Cause
from memchat.types import Event, Memory


@dataclass(frozen=True, slots=True)
class Saying:
    """That a value was said: when, from which day it was to hold, and on which day it was read."""

    memory_id: int
    said_at: datetime
    read_on: date
    starts_at: date | None


def starts(sayings: Iterable[Saying], until: dict[int, date | None]) -> dict[int, date | None]:
    """From when each value holds after all of this was said; ``until`` are the last days.

    What holds already goes on holding, whatever later day it is said to begin on once more.
    """
    values: dict[int, tuple[datetime, date | None]] = {}
    for saying in sayings:
        i, start = saying.memory_id, saying.starts_at
        if start is not None and start <= saying.read_on:
            start = None
        said_at, before = values.get(i, (saying.said_at, start))
        if saying.said_at >= said_at:
            said_at = saying.said_at
            holds = _in_force(values, until, saying.read_on) == i
            before = before if start is not None and holds else start
        values[i] = said_at, before
    return {i: start for i, (_, start) in values.items()}


def _in_force(
    values: dict[int, tuple[datetime, date | None]], until: dict[int, date | None], day: date
) -> int | None:
    holding = [
        (said_at, start or date.min, i)
        for i, (said_at, start) in values.items()
        if (start is None or start <= day) and (until.get(i) or day) >= day
    ]
    return max(holding)[-1] if holding else None


@dataclass(frozen=True, slots=True)
class ValueReplay:
    """The values of a key that holds one, in a scope row, while something that was said goes."""

    tx: Connection
    app_id: int
    key: str
    without: Collection[int]
    """The messages that go."""
    gone: Collection[int]
    """The memories that go."""
    zone: ZoneInfo
    cause: Cause

    def settle(self, theirs: Collection[int]) -> list[Memory]:
        """Put in force what holds by all that is still said; what came back.

        The days of ``theirs``, which a person has in their own hands, stay as they are.
        """
        self._date(theirs)
        rows = self._rows()
        today = self._today
        coming = [m for m in rows if m.starts_at is not None and m.starts_at > today]
        back = [m for m in coming if m.inactive_reason == "superseded" and not self._dropped(m)]
        begun = [m for m in rows if m not in coming]
        chain = sorted((m for m in begun if _in_turn(m)), key=said)
        holding = [m for m in chain if values_in_force.holds_on(m, today)]
        ended = [m for m in begun if m.inactive_reason == "ended"]
        if holding and all(said(m) < said(holding[-1]) for m in ended):
            back += [m for m in holding[-1:] if not m.active]
            self._retire(chain[: chain.index(holding[-1]) + 1])
        for memory in back:
            memory_changes.reactivate(self.tx, memory, self.app_id, self.cause)
            drop_question(self.tx, self.app_id, memory)
        return back

    def _retire(self, chain: Sequence[Memory]) -> None:
        """Each value gives its place to the one that was said next; the last holds."""
        place = {m.id: n for n, m in enumerate(chain)}
        for n, memory in enumerate(chain[:-1]):
            heir = chain[n + 1]
            if memory.active:
                memory_changes.deactivate(
                    self.tx, memory, self.app_id, "superseded", self.cause, replaced_by=heir.id
                )
            elif place.get(memory.replaced_by or 0, -1) <= n:
                memory_changes.set_columns(self.tx, memory.id, replaced_by=heir.id)

    def _date(self, theirs: Collection[int]) -> None:
        """Give each value the first day that what is still said gives it."""
        rows = {m.id: m for m in self._rows() if m.id not in theirs}
        until = {i: m.expires_at for i, m in rows.items()}
        for i, start in starts(self._sayings(rows), until).items():
            if start != rows[i].starts_at:
                memory_changes.set_start(self.tx, rows[i], self.app_id, start, self.cause)

    def _sayings(self, ids: Iterable[int]) -> list[Saying]:
        """What was said of these memories and is not about to go, in the order it was read."""
        past = [
            e
            for i in ids
            for e in events.of_memory(self.tx, i)
            if e.kind in ("add", "repeat") and e.message_id and e.message_id not in self.without
        ]
        turns = messages.by_ids(self.tx, sorted({e.message_id for e in past if e.message_id}))
        found = sorted((e for e in past if e.message_id in turns), key=lambda e: e.id)
        return [
            Saying(e.memory_id, turns[e.message_id].created_at, self._day(e.at), _start(e))
            for e in found
            if e.message_id is not None
        ]

    def _rows(self) -> list[Memory]:
        found = values_in_force.of_key(self.tx, [self.app_id], self.key)
        out = ("merged", "forgotten", "expired")
        return [m for m in found if m.id not in self.gone and m.inactive_reason not in out]

    def _dropped(self, memory: Memory) -> bool:
        """Whether a value was replaced while it was still to come, by words that stay."""
        past = [e for e in events.of_memory(self.tx, memory.id) if e.kind == "supersede"]
        if not past or past[-1].related_id in self.gone:
            return False
        first = _start_of(past[-1].old)
        stays = past[-1].message_id is not None and past[-1].message_id not in self.without
        return stays and first is not None and first > self._day(past[-1].at)

    @property
    def _today(self) -> date:
        return self._day(self.cause.at)

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.zone).date()


def _in_turn(memory: Memory) -> bool:
    return memory.active or memory.inactive_reason == "superseded"


def _start(event: Event) -> date | None:
    return _start_of(event.new)


def _start_of(state: dict[str, object] | None) -> date | None:
    day = (state or {}).get("starts_at")
    return date.fromisoformat(day) if isinstance(day, str) else None
