"""Everything that is kept of a person as plain records, read from one snapshot of the store."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from memchat.store import record_kinds
from memchat.store.memories import FORGOTTEN
from memchat.store.record_kinds import EXTERNAL_IDS, OBJECTS, SWITCHES, RecordKind
from memchat.store.schema import apps, clients, memories, messages, sessions
from memchat.types import Scope

Record = dict[str, Any]
"""A JSON-ready record; ``record`` names its kind."""
_ROWS = 1_000
_PARENTS: dict[str, Any] = {
    "session_id": select(sessions.c.id, sessions.c.app_id).subquery(),
    "memory_id": select(memories.c.id, memories.c.app_id).subquery(),
    "message_id": select(messages.c.id, sessions.c.app_id)
    .join(sessions, sessions.c.id == messages.c.session_id)
    .subquery(),
    "client_id": select(clients.c.id, clients.c.app_id).subquery(),
}
"""What a table without a scope of its own belongs to, by the column that says so."""


@dataclass(slots=True)
class PersonRecords:
    """The records of a person, in the order of ``record_kinds.EVERY``. References to what is not
    exported are null."""

    tx: Connection
    app_ids: Collection[int]
    """The scope rows that are exported."""
    _names: dict[int, str] = field(init=False)
    _seen: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The ids that were exported, by kind."""

    def __post_init__(self) -> None:
        rows = select(apps.c.id, apps.c.name).where(apps.c.id.in_(self.app_ids))
        self._names = {row.id: row.name for row in self.tx.execute(rows)}

    def every(self) -> Iterator[Record]:
        """All records, one after the other."""
        for kind in record_kinds.EVERY:
            if kind is record_kinds.SESSION:
                yield from self.conversations()
            elif kind is not record_kinds.MESSAGE:
                yield from self.of(kind)

    def conversations(self) -> Iterator[Record]:
        """Each session, and behind it its messages."""
        for session in self.of(record_kinds.SESSION):
            yield session
            kind = record_kinds.MESSAGE
            query = _columns(kind).where(messages.c.session_id == session["id"])
            yield from self._read(kind, query.order_by(messages.c.id))

    def of(self, kind: RecordKind) -> Iterator[Record]:
        """The records of one kind."""
        yield from self._read(kind, self._query(kind))

    def counts(self) -> dict[str, int]:
        """How many records there are of each kind."""
        counted: Counter[str] = Counter()
        for kind in record_kinds.EVERY:
            found = self._query(kind).order_by(None).subquery()
            counted[kind.name] = self.tx.execute(
                select(func.count()).select_from(found)
            ).scalar_one()
        return dict(counted)

    def _query(self, kind: RecordKind) -> Select[Any]:
        table = kind.table
        query = _columns(kind, self.app_ids)
        if kind is record_kinds.APP:
            query = query.where(table.c.id.in_(self.app_ids))
        elif "app_id" in table.c:
            query = query.where(table.c.app_id.in_(self.app_ids))
        else:
            column = next(name for name in _PARENTS if name in table.c)
            parent = _PARENTS[column]
            query = query.join(parent, parent.c.id == table.c[column])
            query = query.where(parent.c.app_id.in_(self.app_ids))
        if kind.where is not None:
            query = query.where(kind.where)
        return query.order_by(*table.primary_key.columns)

    def _read(self, kind: RecordKind, query: Select[Any]) -> Iterator[Record]:
        rows = self.tx.execute(query.execution_options(yield_per=_ROWS))
        for row in rows.mappings():
            record: Record = {"record": kind.name}
            for name in kind.fields:
                record[name] = self._value(kind, name, row[name])
            if not self._is_whole(kind, record):
                continue
            if "id" in record:
                self._seen[kind.name].add(record["id"])
            yield record

    def _is_whole(self, kind: RecordKind, record: Record) -> bool:
        """Whether what a record belongs to is exported too."""
        if kind is record_kinds.RECEIPT and not self._known(record["kind"], record["item_id"]):
            return False
        if kind is record_kinds.CLIENT_WRITE and record["kind"] != "forget":
            return any(record[name] is not None for name in kind.derived)
        return all(record[name] is not None or kind.optional(name) for name in kind.refers)

    def _value(self, kind: RecordKind, name: str, value: Any) -> Any:
        if name == "app":
            return self._names[value]
        if value is None:
            return None
        if name in kind.refers:
            return value if self._known(kind.refers[name], value) else None
        if name in SWITCHES:
            return bool(value)
        if name in OBJECTS or name in EXTERNAL_IDS:
            return json.loads(value)
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        return value.isoformat() if isinstance(value, date) else value

    def _known(self, kind: str, row_id: int) -> bool:
        return row_id in self._seen[kind]


def app_ids(tx: Connection, scope: Scope, *, all_apps: bool) -> list[int]:
    """The scope rows of an export: all of the person, or the one of this app alone."""
    query = select(apps.c.id).where(apps.c.user == scope.user).order_by(apps.c.id)
    if not all_apps:
        query = query.where(apps.c.name == scope.app)
    return list(tx.execute(query).scalars())


def _columns(kind: RecordKind, app_ids: Collection[int] = ()) -> Select[Any]:
    named = (_column(kind, name, app_ids).label(name) for name in kind.fields)
    return select(*named).select_from(kind.table)


def _column(kind: RecordKind, name: str, app_ids: Collection[int]) -> Any:
    if kind is record_kinds.SESSION and name == "extracted_to":
        # The message itself may be deleted since; the one before it says as much.
        said = messages.alias()
        read = (said.c.session_id == sessions.c.id) & (said.c.id <= sessions.c.extracted_to)
        return select(func.max(said.c.id)).where(read).scalar_subquery()
    if kind is record_kinds.MEMORY and name == "replaced_by":
        other = memories.alias()
        shown = other.c.inactive_reason.is_distinct_from(FORGOTTEN)
        shown &= other.c.app_id.in_(app_ids)
        query = select(other.c.id).where(other.c.id == memories.c.replaced_by, shown)
        return query.scalar_subquery()
    return kind.column(name)
