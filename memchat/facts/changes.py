"""Changes of memories: each writes its event, the history that people read and undoing replays.

An event is of the scope row that the memory is in, and the passage is written in the same
transaction. Evidence says which words of which message prove a memory. A deleted memory is hidden
from everybody until it is purged, so that the deletion can be undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from memchat.db import Tx, details, records
from memchat.db import schema as t
from memchat.db.records import among, from_row, upsert
from memchat.facts import memories
from memchat.facts.memories import FORGOTTEN, NewMemory, app_id_of, scoped
from memchat.search import passages
from memchat.types import TAGS_MOST, Event, Evidence, Memory, clean_tags

_e, _m, _s = t.memory_events.c, t.memories.c, t.memory_sources.c
_BY = {
    name: sa.select(t.memory_events).where(among(_e[name], "ids")).order_by(_e.id)
    for name in ("memory_id", "session_id", "message_id")
}
_old, _new = (sa.func.json_extract(one, "$.value") for one in (_e.old, _e.new))
_EDITS = (
    sa.select(_e.memory_id, sa.func.max(_e.at))
    .where(among(_e.memory_id, "ids"), _e.kind == "edit", _e.actor == "user")
    .where(_old.is_distinct_from(_new))
    .group_by(_e.memory_id)
)
_LATEST = sa.select(sa.func.max(_e.id))
_SINCE = sa.select(_e.memory_id).where(_e.id > sa.bindparam("event")).distinct()
UPKEEP = ("reindex",)
"""Kinds of events that the index writes; they tell nothing of the memory itself."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Who makes a change and why; stored with each event."""

    actor: str
    """user for what they entered or accepted, model for what the gate judged, system, or client: a
    program over MCP."""
    cause: str = ""
    session_id: int | None = None
    message_id: int | None = None
    detail: dict[str, Any] | None = None
    """The second look's ``verdict``, ``reason`` and ``model``, where there was one."""


def record(
    tx: Tx,
    memory_id: int,
    app_id: int,
    kind: str,
    cause: Cause,
    *,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    related_id: int | None = None,
) -> None:
    """Write one event, in the transaction of the change itself, with the fields that it changed,
    before and after."""
    tx.insert(
        t.memory_events,
        memory_id=memory_id,
        app_id=app_id,
        kind=kind,
        at=tx.now,
        actor=cause.actor,
        cause=cause.cause,
        session_id=cause.session_id,
        message_id=cause.message_id,
        related_id=related_id,
        old=_dump(old),
        new=_dump(new),
        detail=_dump(cause.detail),
    )


def events_of_memory(tx: Tx, memory_id: int) -> list[Event]:
    """The memory's events, oldest first."""
    return events_of_memories(tx, [memory_id]).get(memory_id, [])


def events_of_memories(tx: Tx, memory_ids: Iterable[int]) -> dict[int, list[Event]]:
    """The events of each of these memories, the oldest first."""
    found: dict[int, list[Event]] = {}
    for event in events_by(tx, "memory_id", memory_ids):
        found.setdefault(event.memory_id, []).append(event)
    return found


def events_by(tx: Tx, column: str, ids: Iterable[int]) -> list[Event]:
    """The events of memories, conversations or messages, by their column, in order."""
    return [from_row(Event, row) for row in tx.rows(_BY[column], ids=ids)]


def value_edits(tx: Tx, memory_ids: Sequence[int]) -> dict[int, datetime]:
    """When the user last edited the value of each of these memories; others are left out."""
    return dict(tx.rows(_EDITS, ids=memory_ids))


def former_wordings(tx: Tx, app_id: int) -> list[tuple[int, dict[str, Any]]]:
    """What the memories of a scope said before the user edited them: their ids, and the values as
    the events have them."""
    query = sa.select(_e.memory_id, _e.old).join(t.memories, _m.id == _e.memory_id)
    edits = query.where(_e.app_id == app_id, _e.kind == "edit", _old.is_not(None))
    return [(row[0], json.loads(row[1])) for row in tx.execute(edits)]


def latest_event(tx: Tx) -> int:
    """The id of the newest event; 0 if there is none."""
    return tx.value(_LATEST) or 0


def changed_since(tx: Tx, event_id: int) -> list[int]:
    """The ids of the memories that have an event newer than ``event_id``."""
    return tx.column(_SINCE, event=event_id)


def app_ids_of(tx: Tx, memory_ids: Sequence[int]) -> set[int]:
    """The scope rows to which these memories belong or once belonged."""
    query = sa.select(_e.app_id).where(_e.memory_id.in_(memory_ids)).distinct()
    return set(tx.execute(query).scalars())


def record_move(tx: Tx, memory_id: int, before: int, after: int, cause: Cause) -> None:
    """Move a memory's history to another scope; the old scope gets a ``move`` event."""
    mine = sa.update(t.memory_events).where(_e.memory_id == memory_id, _e.kind != "move")
    tx.execute(mine.values(app_id=after))
    record(tx, memory_id, before, "move", cause)


def set_columns_of_event(tx: Tx, event_id: int, **columns: Any) -> None:
    """Change what a past event tells: its cause where it no longer counts, or the other memory."""
    tx.execute(sa.update(t.memory_events).where(_e.id == event_id).values(**columns))


_BLANK = sa.update(t.memory_events).where(among(_e.memory_id, "ids"))
_BLANK = _BLANK.values(old=None, new=None, cause="", detail=None)


def blank_events(tx: Tx, memory_ids: Iterable[int]) -> None:
    """Remove values, causes and details from these memories' events; the events stay."""
    tx.rows(_BLANK, ids=memory_ids)


def _dump(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


_said, _in = t.messages.c, t.sessions.c
_program = sa.select(t.clients.c.name).where(t.clients.c.session_id == _said.session_id)
_OF_MEMORIES = (
    sa.select(
        *(_s.memory_id, _said.session_id, _s.message_id, _said.role, _s.quote, _s.start),
        *(_said.created_at.label("said_at"), _in.title.label("session_title")),
        _program.limit(1).scalar_subquery().label("client"),
    )
    .select_from(t.memory_sources.join(t.messages).join(t.sessions))
    .where(among(_s.memory_id, "ids"))
    .order_by(_s.message_id, _s.start)
)
_ADD_EVIDENCE = upsert(t.memory_sources)
_PROVED = sa.select(_s.memory_id).where(among(_s.message_id, "ids")).distinct()
_PROVED = _PROVED.order_by(_s.memory_id)
_QUOTED = sa.select(_s.message_id, _s.quote, _s.memory_id).where(among(_s.message_id, "ids"))
_QUOTED = _QUOTED.order_by(_s.memory_id, _s.id)


def add_evidence(tx: Tx, memory_id: int, proofs: Iterable[tuple[int, int, str]]) -> None:
    """Store (message id, start, quote) as evidence of a memory. What is stored already stays."""
    names = ("memory_id", "message_id", "start", "quote")
    rows = (dict(zip(names, (memory_id, *proof), strict=True)) for proof in proofs)
    tx.run_many(_ADD_EVIDENCE, rows)


def evidence_of_memory(tx: Tx, memory_id: int) -> list[Evidence]:
    """The evidence of a memory, the oldest first."""
    return evidence_of_memories(tx, [memory_id]).get(memory_id, [])


def evidence_of_memories(tx: Tx, memory_ids: Iterable[int]) -> dict[int, list[Evidence]]:
    """The evidence of each of these memories, the oldest first."""
    found: dict[int, list[Evidence]] = {}
    for row in tx.rows(_OF_MEMORIES, ids=memory_ids):
        one = from_row(Evidence, row)
        found.setdefault(one.memory_id, []).append(one)
    return found


def messages_of(tx: Tx, memory_id: int) -> set[int]:
    """The ids of the messages that prove a memory."""
    return set(tx.execute(sa.select(_s.message_id).where(_s.memory_id == memory_id)).scalars())


def proved_memories(tx: Tx, message_ids: Iterable[int]) -> list[int]:
    """The ids of the memories that these messages prove, in order."""
    return tx.column(_PROVED, ids=message_ids)


def drop_evidence(tx: Tx, message_ids: Iterable[int]) -> None:
    """Let messages prove nothing any more."""
    tx.execute(sa.delete(t.memory_sources).where(_s.message_id.in_([*message_ids])))


def update_quotes(
    tx: Tx, message_id: int, content: str, spared: Iterable[tuple[int, int]] = ()
) -> None:
    """Update the quotes from a message after some of its words were blanked in place. Of a quote
    with clauses that were spared, the first is the quote from now on."""
    quoted = sa.select(_s.id, _s.start, _s.quote).where(_s.message_id == message_id)
    had = t.memory_sources.alias().c
    for i, start, quote in tx.execute(quoted).all():
        end = start + len(quote)
        inside = [place for place in sorted(spared) if start <= place[0] and place[1] <= end]
        now = content[start:end]
        if inside and now != quote:
            clause = content[slice(*inside[0])]
            now = clause.strip()
            start = inside[0][0] + clause.index(now)
        here = (had.id == i, had.memory_id == _s.memory_id, had.message_id == _s.message_id)
        twin = sa.delete(t.memory_sources).where(_s.id != i, sa.exists().where(*here))
        tx.execute(twin.where(_s.start == start, _s.quote == now))
        same = sa.update(t.memory_sources).where(_s.id == i)
        tx.execute(same.values(quote=now, start=start))


class Taught(NamedTuple):
    """A memory that a message taught, and the words that prove it."""

    message_id: int
    quote: str
    memory: Memory

    def as_told(self) -> tuple[int, str, str]:
        """What a line about the message tells of it: its id, key and value."""
        return self.memory.id, self.memory.key, self.memory.value


def taught_by(tx: Tx, message_ids: Iterable[int]) -> list[Taught]:
    """The memories that these messages taught, the oldest first, hidden ones too."""
    found = tx.rows(_QUOTED, ids=message_ids)
    rows = memories.read(tx, memories.OF_IDS, ids={row.memory_id for row in found})
    there = {memory.id: memory for memory in rows}
    return [Taught(message_id, quote, there[i]) for message_id, quote, i in found]


def add(tx: Tx, app_id: int, new: NewMemory, cause: Cause, *, instead_of: int | None = None) -> int:
    """Store an active memory with its passage and ``add`` event; returns its id.

    ``instead_of`` is the memory that it is to replace on its first day.
    """
    memory_id = tx.insert(
        t.memories,
        app_id=app_id,
        created_at=tx.now,
        updated_at=tx.now,
        last_seen_at=new.said_at,
        created_by=new.created_by,
        **_columns(new),
    )
    passages.put_text(tx, "fact", memory_id, app_id, new.search_text)
    record(tx, memory_id, app_id, "add", cause, new=_state(new), related_id=instead_of)
    return memory_id


def deactivate(
    tx: Tx,
    memory: Memory,
    reason: str,
    cause: Cause,
    *,
    replaced_by: int | None = None,
    said_at: datetime | None = None,
) -> None:
    """Make a memory inactive for a reason: superseded, merged, expired or ended.

    A superseded value can still be found by search. ``said_at`` is when the change was said, if it
    was.
    """
    if reason != "superseded":
        passages.hide(tx, memory.id)
    app_id = set_columns(
        tx,
        memory.id,
        active=0,
        inactive_reason=reason,
        replaced_by=replaced_by,
        updated_at=tx.now,
        last_seen_at=max(said_at or memory.last_seen_at, memory.last_seen_at),
    ).app_id
    if memory.pinned and replaced_by is not None:
        pin(tx, replaced_by, Cause("system"))
    if memory.sensitive and replaced_by is not None:
        set_columns(tx, replaced_by, sensitive=1)  # the new value is as sensitive
    if memory.tags and replaced_by is not None:
        inherit_tags(tx, replaced_by, memory.tags, cause)
    kinds = {"superseded": "supersede", "merged": "merge", "expired": "expire", "ended": "end"}
    record(tx, memory.id, app_id, kinds[reason], cause, old=_state(memory), related_id=replaced_by)


def reactivate(
    tx: Tx,
    memory: Memory,
    cause: Cause,
    *,
    said_at: datetime | None = None,
    instead_of: int | None = None,
) -> None:
    """Make an inactive memory active again; ``said_at`` is when it was said again, if it was.

    ``instead_of`` is the memory that it is to replace on its first day.
    """
    row = set_columns(
        tx,
        memory.id,
        active=1,
        inactive_reason=None,
        replaced_by=None,
        updated_at=tx.now,
        said_at=said_at or memory.said_at,
    )
    passages.show(tx, memory.id, row.app_id)
    # Its first and last day may have been changed just before.
    now = replace(memory, expires_at=row.expires_at, starts_at=row.starts_at)
    new = _state(now)
    record(tx, memory.id, row.app_id, "restore", cause, new=new, related_id=instead_of)


def count_repeat(
    tx: Tx, memory: Memory, said_at: datetime, cause: Cause, *, starts_at: date | None = None
) -> None:
    """Count that the fact was said once more. ``starts_at`` is the first day that was named this
    time; it is only stored in the event."""
    since = {"last_seen_at": max(said_at, memory.last_seen_at)}
    since["said_at"] = max(said_at, memory.said_at)
    app_id = tx.rows(_COUNT, memory=memory.id, **since)[0].app_id
    new = {"starts_at": starts_at.isoformat()} if starts_at else None
    record(tx, memory.id, app_id, "repeat", cause, new=new)


_SET = sa.update(t.memories).where(_m.id == sa.bindparam("memory"))
_SET = _SET.returning(_m.app_id, _m.expires_at, _m.starts_at)
_COUNT = _SET.values(seen_count=_m.seen_count + 1)


def set_columns(tx: Tx, memory_id: int, **columns: Any) -> Any:
    """Set columns without an event, for changes that are no change of the fact itself; its scope
    row and its days."""
    return tx.rows(_SET, memory=memory_id, **columns)[0]


def set_day(tx: Tx, memory: Memory, name: str, day: date | None, cause: Cause) -> None:
    """Change the first or the last day of a fact: ``starts_at`` or ``expires_at``."""
    app_id = set_columns(tx, memory.id, updated_at=tx.now, **{name: day}).app_id
    old = {name: _iso(getattr(memory, name))}
    record(tx, memory.id, app_id, "edit", cause, old=old, new={name: _iso(day)})


def pin(tx: Tx, memory_id: int, cause: Cause, *, on: bool = True) -> None:
    """Pin or unpin a memory; nothing happens if it is in that state already."""
    other = sa.update(t.memories).where(_m.id == memory_id, _m.pinned != int(on))
    changed = other.values(pinned=int(on), updated_at=tx.now).returning(_m.app_id)
    for (app_id,) in tx.execute(changed).all():
        record(tx, memory_id, app_id, "pin" if on else "unpin", cause)


def rewrite(tx: Tx, memory: Memory, app_id: int, new: NewMemory, cause: Cause) -> None:
    """Store a person's edit in the same row, which may move to another scope."""
    before = app_id_of(tx, memory.id)
    if before != app_id:
        record_move(tx, memory.id, before, app_id, cause)
    values = {"app_id": app_id, "updated_at": tx.now, **_columns(new)}
    tx.execute(sa.update(t.memories).where(_m.id == memory.id).values(**values))
    found = memory.active or memory.inactive_reason == "superseded"
    passages.put_text(tx, "fact", memory.id, app_id, new.search_text, searched=found)
    record(tx, memory.id, app_id, "edit", cause, old=_state(memory), new=_state(new))


def reindex(tx: Tx, memory: Memory, app_id: int, search_text: str, cause: Cause) -> None:
    """Replace the search text of an unchanged fact, for example after a quote was blanked."""
    found = memory.active or memory.inactive_reason == "superseded"
    passages.put_text(tx, "fact", memory.id, app_id, search_text, searched=found)
    record(tx, memory.id, app_id, "reindex", cause)


def remove(tx: Tx, memory_ids: Sequence[int]) -> None:
    """Delete memories with their passages and evidence. Forgetting has to delete the rest."""
    passages.drop(tx, "fact", memory_ids)
    tx.execute(sa.delete(t.memories).where(_m.id.in_(memory_ids)))


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _columns(new: NewMemory) -> dict[str, Any]:
    """The columns that a new or edited fact sets. ``created_by`` is not among them, as an edit
    keeps it."""
    columns = records.columns(new, NewMemory) | {"sha1": new.sha1}
    del columns["created_by"], columns["search_text"]
    return columns


def _state(fact: NewMemory | Memory) -> dict[str, Any]:
    return {
        "memory_type": fact.memory_type,
        "key": fact.key,
        "value": fact.value,
        "expires_at": _iso(fact.expires_at),
        "many": fact.many,
        **({"starts_at": fact.starts_at.isoformat()} if fact.starts_at else {}),
        **({"sensitive": True} if fact.sensitive else {}),
        **({"sentence": fact.sentence} if fact.sentence else {}),
    }


def hide(tx: Tx, memory: Memory, app_id: int, cause: Cause) -> None:
    """Hide a memory until it is purged or shown again."""
    passages.hide(tx, memory.id)
    before = {"inactive_reason": memory.inactive_reason, "replaced_by": memory.replaced_by}
    set_columns(tx, memory.id, active=0, inactive_reason=FORGOTTEN, updated_at=tx.now)
    record(tx, memory.id, app_id, "hide", cause, old=before)


def unhide(tx: Tx, memory_id: int, app_id: int, cause: Cause) -> None:
    """Restore a hidden memory to the state it had before."""
    past = events_of_memory(tx, memory_id)
    before = next(event.old for event in reversed(past) if event.kind == "hide") or {}
    active = before.get("inactive_reason") is None
    set_columns(tx, memory_id, active=int(active), updated_at=tx.now, **before)
    if active or before.get("inactive_reason") == "superseded":
        passages.show(tx, memory_id, app_id)
    record(tx, memory_id, app_id, "show", cause, new={"active": active})


_STALE = sa.select(_m.id).where(among(_m.id, "ids"), _m.inactive_reason == "superseded")
_STALE = _STALE.with_hint(t.memories, "INDEXED BY ix_memories_superseded", "sqlite")
_REPLACED_BY = memories.SELECT.where(among(_m.replaced_by, "ids"))
_REPLACED_ANY = sa.select(_m.id).where(among(_m.replaced_by, "ids")).limit(1)
_chosen = sa.select(_m.id, _m.id.label("head")).where(among(_m.id, "ids"))
_stands = _chosen.cte("stands", recursive=True)
_before = sa.select(_m.id, _stands.c.head).where(_m.replaced_by == _stands.c.id)
_stands = _stands.union(_before.where(_m.inactive_reason == "superseded", scoped))
_newer = t.memories.alias()
_REPLACED = (
    sa.select(
        *(_m.id, _m.value, _m.updated_at, _newer.c.said_at, _newer.c.starts_at, _stands.c.head)
    )
    .join_from(_stands, t.memories, _m.id == _stands.c.id)
    .join(_newer, _newer.c.id == _m.replaced_by)
    .where(~among(_m.id, "ids"))
    .order_by(_m.said_at.desc(), _m.id.desc())
)
_SUCCESSOR = sa.select(_m.replaced_by).where(_m.id == sa.bindparam("memory"))


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """A replaced value, and until when it held: when its replacement was said, or the day from
    which the replacement was to hold."""

    id: int
    value: str
    until: datetime | date


def successors(tx: Tx, memory: Memory) -> list[int]:
    """The ids of the memories that replaced this one, one after another."""
    found: list[int] = []
    next_id = memory.replaced_by
    while next_id is not None and next_id not in found:
        found.append(next_id)
        next_id = tx.value(_SUCCESSOR, memory=next_id)
    return found


def replaced_memories(tx: Tx, *memory_ids: int) -> list[Memory]:
    """The inactive memories that these replaced."""
    return memories.read(tx, _REPLACED_BY, ids=memory_ids)


def replaced_values(
    tx: Tx, app_ids: Sequence[int], ids: Sequence[int]
) -> dict[int, list[ReplacedValue]]:
    """For each of these memories the values that it and its predecessors replaced, the newest
    first."""
    found: dict[int, list[ReplacedValue]] = {}
    if not tx.rows(_REPLACED_ANY, ids=ids):
        return found  # true for most memories, and ten times cheaper than the whole query
    rows = tx.rows(_REPLACED, ids=ids, app_ids=app_ids)
    for row_id, value, retired_at, said_at, starts_at, head in rows:
        # The replacement may have been said again later; the value ended when it was said first.
        until = starts_at or min(said_at, retired_at)
        found.setdefault(head, []).append(ReplacedValue(row_id, value, until))
    return found


def whole_chains(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> set[int]:
    """The ids of all replaced values in the chains of these replaced values. Memories in use are
    left out."""
    stale = tx.column(_STALE, ids=ids)
    if not stale:
        return set()
    heads = {memory.id for memory in current(tx, app_ids, stale).values()}
    told = replaced_values(tx, app_ids, sorted(heads)).values()
    return {*stale, *(past.id for pasts in told for past in pasts)}


def current(tx: Tx, app_ids: Sequence[int], ids: Sequence[int]) -> dict[int, Memory]:
    """For each of these memories the active one: itself, or the one that has replaced it by now."""
    found: dict[int, Memory] = {}
    rows: dict[int, Memory] = {}
    trails = {i: [i] for i in ids}
    while trails:
        ends = sorted({trail[-1] for trail in trails.values()} - rows.keys())
        rows |= memories.by_ids(tx, app_ids, ends)
        going: dict[int, list[int]] = {}
        for i, trail in trails.items():
            memory = rows.get(trail[-1])
            if memory is not None and memory.active:
                found[i] = memory
            elif memory is not None and memory.replaced_by and memory.replaced_by not in trail:
                going[i] = [*trail, memory.replaced_by]
        trails = going
    return found


def put_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags and no others, with an event; nothing happens where it has them
    already. Raises InputError for more than it may have."""
    before, after = memories.tags_of(tx, memory_id), clean_tags(tags)
    if after == before:
        return
    details.put_tags(tx, t.memories, memory_id, after)
    app_id = set_columns(tx, memory_id, updated_at=tx.now).app_id
    record(tx, memory_id, app_id, "tag", cause, old={"tags": before}, new={"tags": after})


def add_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags beside its own, as ``put_tags``."""
    put_tags(tx, memory_id, (*memories.tags_of(tx, memory_id), *tags), cause)


def inherit_tags(tx: Tx, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory the tags of one that it replaces beside its own, as far as it may have them."""
    own = memories.tags_of(tx, memory_id)
    more = [tag for tag in tags if tag not in own]
    put_tags(tx, memory_id, (*own, *more)[:TAGS_MOST], cause)
