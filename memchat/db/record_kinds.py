"""The kinds of records in an export of a person: of which table, and which columns, each is.

Not exported is what is made anew (vectors, keyword rows, search texts, chunks of notes), what
belongs to this store alone (queued work, leases, keyed hashes), and memories that were deleted and
are not purged yet.

Rows from the records of an export.

Everything that is kept of a person as plain records, read from one snapshot of the store.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Date, Float, Integer, Select, Table, case, func, select

from memchat.db import database, schema
from memchat.db.schema import UtcTime, apps, clients, memories, messages, sessions, utc_text
from memchat.facts.memories import FORGOTTEN, tags_of_row, visible
from memchat.types import Scope

SWITCHES = frozenset(["active", "many", "masked", "memory", "missing", "pinned", "sensitive"])
"""Columns of 0 and 1, which are true or false in a record."""
OBJECTS = frozenset(("old", "new", "detail", "counts"))
"""Columns of JSON, which are an object in a record."""
EXTERNAL_IDS = frozenset(["external_id"])
"""Columns of JSON, which are a text or a whole number in a record."""
ASKING = ("inbox", "forget")
"""What a program wrote that is a question to the person."""
UPKEEP = ("embed", "reindex")
"""Kinds of events that the index writes; they tell nothing of the memory itself."""
_TYPES: tuple[tuple[type[Any], type], ...] = (
    (UtcTime, datetime),
    (Date, date),
    (Integer, int),
    (Float, float),
)
_HOMES = {"app": "app_id"}
"""Fields that have another name than their column: a record has the name of its app."""


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of records."""

    name: str
    table: Table
    fields: tuple[str, ...]
    """In the order in which they are written. Without ``app``, these are the columns."""
    refers: Mapping[str, str] = field(default_factory=dict)
    """The fields that hold the id of another record, with the kind of that."""
    where: Any = None
    """A condition for the rows that are exported, beside their scope."""
    derived: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are read from other tables, by queries; they are no columns of this one."""

    def column(self, name: str) -> Any:
        """The column, or the query, that a field is read from."""
        if name in self.derived:
            return self.derived[name]
        return self.table.c[_HOMES.get(name, name)]

    def kind_of(self, name: str) -> type:
        """What the column of a field holds: datetime, date, bool, int, float, dict or str; object
        for an external id."""
        if name in SWITCHES:
            return bool
        if name in OBJECTS:
            return dict
        if name in EXTERNAL_IDS:
            return object
        if name == "app":
            return str
        type_ = self.column(name).type
        return next((kind for column, kind in _TYPES if isinstance(type_, column)), str)

    def optional(self, name: str) -> bool:
        """Whether a field may be null."""
        if name in self.derived or name == "extracted_to":
            return True
        return bool(self.column(name).nullable)


def _kind(
    name: str,
    table: Table,
    fields: str,
    refers: str = "",
    where: Any = None,
    derived: Mapping[str, Any] | None = None,
) -> RecordKind:
    pairs = (pair.split(":") for pair in refers.split())
    return RecordKind(name, table, tuple(fields.split()), dict(pairs), where, derived or {})


def _of_chunks(what: Any, *where: Any) -> Any:
    """A value that is read from the chunks of a note."""
    of_note = schema.chunks.c.source_id == schema.sources.c.id
    return select(what).where(of_note, *where).limit(1).scalar_subquery()


def _written(*kinds: str) -> Any:
    """The target of what a program wrote, where it is of one of these kinds."""
    write = schema.client_writes.c
    return case((write.kind.in_(kinds), write.target_id))


def _asked_item() -> Any:
    """The inbox item that a program asked for, where it was not answered."""
    write, item = schema.client_writes.c, schema.inbox.c
    asked = select(item.id).where(item.id == write.target_id, write.kind.in_(ASKING))
    return asked.scalar_subquery()


_visible_ids = select(schema.memories.c.id).where(visible).scalar_subquery()
_PROPOSED = "memory_type key value expires_at starts_at many cues sensitive relation target_id"

APP = _kind("app", schema.apps, "name memory created_at")
CLIENT = _kind("client", schema.clients, "id app name mode calls first_call_at last_call_at")
SESSION = _kind(
    "session",
    schema.sessions,
    "id app title summary started_at last_activity_at ended_at extracted_to copied_from client_id",
    "copied_from:session client_id:client",
    derived={
        "client_id": select(schema.clients.c.id)
        .where(schema.clients.c.session_id == schema.sessions.c.id)
        .limit(1)
        .scalar_subquery()
    },
)
"""``client_id`` is the program whose words a conversation holds."""
MESSAGE = _kind(
    "message",
    schema.messages,
    "id session_id role content status memory created_at copied_from",
    "session_id:session copied_from:message",
)
MEMORY = _kind(
    "memory",
    schema.memories,
    "id app memory_type key value many active inactive_reason replaced_by expires_at starts_at"
    " cues sensitive pinned created_by created_at updated_at said_at last_seen_at seen_count"
    " match_count read_count tags",
    where=visible,
    derived={"tags": tags_of_row},
)
EVIDENCE = _kind(
    "evidence",
    schema.memory_sources,
    "memory_id message_id start quote",
    "memory_id:memory message_id:message",
    schema.memory_sources.c.memory_id.in_(_visible_ids),
)
EVENT = _kind(
    "event",
    schema.memory_events,
    "id memory_id app kind at actor cause session_id message_id related_id old new detail",
    "memory_id:memory session_id:session message_id:message related_id:memory",
    schema.memory_events.c.memory_id.in_(_visible_ids) & schema.memory_events.c.kind.not_in(UPKEEP),
)
INBOX_ITEM = _kind(
    "inbox_item",
    schema.inbox,
    f"id app message_id status reason {_PROPOSED} quote start sentence masked"
    " memory_id related_id created_at tags",
    "message_id:message memory_id:memory related_id:memory target_id:memory",
    (schema.inbox.c.unchecked == 0)
    & (schema.inbox.c.memory_id.is_(None) | schema.inbox.c.memory_id.in_(_visible_ids)),
)
CLIENT_WRITE = _kind(
    "client_write",
    schema.client_writes,
    "client_id at kind memory_id note_id inbox_item_id",
    "client_id:client memory_id:memory note_id:note inbox_item_id:inbox_item",
    derived={
        "memory_id": _written("memory"),
        "note_id": _written("note"),
        "inbox_item_id": _asked_item(),
    },
)
"""All three are null where a program asked to forget what is gone, or is hidden, by now."""
REFUSAL = _kind(
    "refusal",
    schema.refusals,
    f"id app session_id message_id reason start end {_PROPOSED} created_at",
    "session_id:session message_id:message target_id:memory",
)
RECEIPT = _kind(
    "receipt",
    schema.receipts,
    "message_id position kind item_id text score cosine bm25 prior dated channel tokens",
    "message_id:message",
)
MUTED = _kind(
    "muted",
    schema.muted,
    "session_id memory_id created_at",
    "session_id:session memory_id:memory",
    schema.muted.c.memory_id.in_(_visible_ids),
)
USAGE = _kind(
    "usage",
    schema.usage,
    "id app session_id message_id at purpose model prompt_tokens completion_tokens cost_usd"
    " seconds",
    "session_id:session message_id:message",
)
_chunk = schema.chunks.c
NOTE = _kind(
    "note",
    schema.sources,
    "id app type external_id title content profile created_at updated_at missing pair_id parent_id"
    " counts",
    derived={
        "pair_id": _of_chunks(_chunk.pair_id),
        "parent_id": _of_chunks(_chunk.parent_id),
        "counts": _of_chunks(
            func.json_group_object(
                _chunk.hash, func.json_array(_chunk.match_count, _chunk.read_count)
            ),
            (_chunk.match_count > 0) | (_chunk.read_count > 0),
        ),
    },
)
"""``counts`` has how often chunks were found and read, by the hash of their text."""
EVERY = (
    APP, CLIENT, SESSION, MESSAGE, MEMORY, EVIDENCE, EVENT, NOTE, INBOX_ITEM, CLIENT_WRITE, REFUSAL,
    RECEIPT, MUTED, USAGE,
)  # fmt: skip
"""In the order of an export: what a record refers to comes before it, and the messages of each
session directly after it. Only ``replaced_by`` may refer to a memory that comes later, and
``extracted_to`` is the id of the session's last message that was read."""
BY_NAME = {kind.name: kind for kind in EVERY}


def add(tx: Connection, kind: RecordKind, columns: Mapping[str, Any]) -> int | None:
    """Insert a row of this kind; returns its rowid, or None where the table does not take it,
    because one with the same key is there."""
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join("?" * len(columns))
    sql = (
        f"INSERT INTO {kind.table.name} ({names}) VALUES ({places})"
        " ON CONFLICT DO NOTHING RETURNING rowid"
    )
    found = database.rows(tx, sql, *(_stored(name, value) for name, value in columns.items()))
    return found[0][0] if found else None


def is_unused(tx: Connection, kind: RecordKind) -> bool:
    """Whether the table of this kind never had a row: then the ids of a file can be kept."""
    name = kind.table.name
    if database.rows(tx, f"SELECT 1 FROM {name} LIMIT 1"):
        return False
    return not database.rows(tx, "SELECT seq FROM sqlite_sequence WHERE name = ?", name)


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if name in OBJECTS and value is not None:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return json.dumps(value) if name in EXTERNAL_IDS else value


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
        for kind in EVERY:
            if kind is SESSION:
                yield from self.conversations()
            elif kind is not MESSAGE:
                yield from self.of(kind)

    def conversations(self) -> Iterator[Record]:
        """Each session, and behind it its messages."""
        for session in self.of(SESSION):
            yield session
            kind = MESSAGE
            query = _columns(kind).where(messages.c.session_id == session["id"])
            yield from self._read(kind, query.order_by(messages.c.id))

    def of(self, kind: RecordKind) -> Iterator[Record]:
        """The records of one kind."""
        yield from self._read(kind, self._query(kind))

    def counts(self) -> dict[str, int]:
        """How many records there are of each kind."""
        counted: Counter[str] = Counter()
        for kind in EVERY:
            found = self._query(kind).order_by(None).subquery()
            counted[kind.name] = self.tx.execute(
                select(func.count()).select_from(found)
            ).scalar_one()
        return dict(counted)

    def _query(self, kind: RecordKind) -> Select[Any]:
        table = kind.table
        query = _columns(kind, self.app_ids)
        if kind is APP:
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
        if kind is RECEIPT and not self._known(record["kind"], record["item_id"]):
            return False
        if kind is CLIENT_WRITE and record["kind"] != "forget":
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
    if kind is SESSION and name == "extracted_to":
        # The message itself may be deleted since; the one before it says as much.
        said = messages.alias()
        read = (said.c.session_id == sessions.c.id) & (said.c.id <= sessions.c.extracted_to)
        return select(func.max(said.c.id)).where(read).scalar_subquery()
    if kind is MEMORY and name == "replaced_by":
        other = memories.alias()
        shown = other.c.inactive_reason.is_distinct_from(FORGOTTEN)
        shown &= other.c.app_id.in_(app_ids)
        query = select(other.c.id).where(other.c.id == memories.c.replaced_by, shown)
        return query.scalar_subquery()
    return kind.column(name)
