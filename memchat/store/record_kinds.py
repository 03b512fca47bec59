"""The kinds of records in an export of a person: of which table, and which columns, each is.

Not exported is what is made anew (vectors, keyword rows, search texts, chunks of notes), what
belongs to this store alone (queued work, leases, keyed hashes), and memories that were deleted and
are not purged yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Date, Float, Integer, Table, case, func, select

from memchat.store import schema
from memchat.store.memories import visible
from memchat.store.memory_rows import tags_of_row
from memchat.store.schema import UtcTime

SWITCHES = frozenset(
    ["active", "many", "masked", "memory", "missing", "pinned", "sensitive", "unchecked"]
)
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
    f"id app message_id status reason {_PROPOSED} quote start sentence masked unchecked"
    " memory_id related_id created_at tags",
    "message_id:message memory_id:memory related_id:memory target_id:memory",
    schema.inbox.c.memory_id.is_(None) | schema.inbox.c.memory_id.in_(_visible_ids),
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
