"""The format of an export: the kinds of records and their fields, each declared once, and how a
file of them is read.

A declaration says what is read from the store, what a record of a file must be like, and what an
import writes. Left out is what a store makes anew (vectors, keyword rows, search texts, chunks of
notes), what it knows of its own work (queued jobs, leases, tombstones, receipts, refusals, usage),
and what was deleted and waits for its purge. A backup has all of that.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import sqlalchemy as sa

from memchat import types
from memchat.db import Tx, details, schema
from memchat.db.records import UtcTime
from memchat.errors import InputError
from memchat.facts import manual
from memchat.facts.changes import UPKEEP
from memchat.facts.memories import visible
from memchat.facts.proposals import FORGET, PROMOTE
from memchat.learn.values import true_sentence
from memchat.transfer.archive import BROKEN_ZIP, check_size
from memchat.types.conversations import ID_LIMIT, PROFILES, TITLE_LIMIT, TYPE_LIMIT

FORMAT = "memchat export"
VERSION = 4
"""Of the format; a higher one is only read by a newer memchat. 4 has what an import brings back."""
LEFT_TO_BACKUPS = ("client_write", "refusal", "receipt", "muted", "usage")
"""Kinds of records that exports had up to version 3; an import leaves them out."""
Record = dict[str, Any]
"""A JSON-ready record; ``record`` names its kind."""
Values = dict[str, Any]
"""The checked fields of a record, as the store takes them."""
LARGEST_ID = 2**53
"""Ids up to this are exact in every reader of JSON."""
_YEARS = range(1000, 9000)
_ROWS = 1_000
_TYPES: Mapping[str, type] = {
    "app": str,  # a record has its name
    "external_id": object,  # a text or a whole number
    **dict.fromkeys(("active", "many", "masked", "memory", "missing", "pinned", "sensitive"), bool),
    **dict.fromkeys(("old", "new", "detail", "counts", "metadata"), dict),
    "attachments": list,
}
"""Of fields whose column does not tell their type."""
_OF_COLUMNS = ((UtcTime, datetime), (sa.Date, date), (sa.Integer, int))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    type: type
    """``object`` is a text or a whole number."""
    optional: bool = False
    refers: str | None = None
    """The kind of the record whose id it holds."""
    choices: tuple[str, ...] = ()
    source: Any = None
    """The column, or the query, that it is read from."""
    derived: bool = False
    """Whether it is no column of its table."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of records."""

    name: str
    table: sa.Table
    where: Any
    """The condition for the rows that are exported, for scope rows ``app_ids``."""
    fields: tuple[Field, ...]
    """In the order in which they are written."""


def _kind(
    name: str,
    table: sa.Table,
    where: Any,
    fields: str,
    derived: Mapping[str, Any] = MappingProxyType({}),
    **choices: tuple[str, ...],
) -> Kind:
    """``fields`` are names; ``name:kind`` holds the id of a record of that kind."""
    found = []
    for declared in fields.split():
        field, _, refers = declared.partition(":")
        source = derived.get(field, table.c.get("app_id" if field == "app" else field))
        by_column = (kind for column, kind in _OF_COLUMNS if isinstance(source.type, column))
        held = _TYPES.get(field) or next(by_column, str)
        is_derived, chosen = field in derived, choices.get(field, ())
        optional = is_derived or bool(source.nullable)
        found.append(Field(field, held, optional, refers or None, chosen, source, is_derived))
    return Kind(name, table, where, tuple(found))


_here: Any = sa.bindparam("app_ids", expanding=True)
_s, _m, _f, _e = (schema.sessions.c, schema.messages.c, schema.memories.c, schema.memory_events.c)
_i, _n, _chunk = schema.proposals.c, schema.sources.c, schema.chunks.c
_sessions = sa.select(_s.id).where(_s.app_id.in_(_here))
_shown = _m.session_id.in_(_sessions) & _m.aside_with.is_(None)
_messages = sa.select(_m.id).where(_shown)
_facts = sa.select(_f.id).where(_f.app_id.in_(_here), visible)
_proofs = schema.memory_sources.c


def _of_chunks(what: Any, *where: Any) -> Any:
    """A value that is read from the chunks of a note."""
    return sa.select(what).where(_chunk.source_id == _n.id, *where).limit(1).scalar_subquery()


def _read_to() -> Any:
    """The last message that was read; it may be deleted since, then the one before it."""
    said = schema.messages.alias()
    read = (said.c.session_id == _s.id) & (said.c.id <= _s.extracted_to)
    return sa.select(sa.func.max(said.c.id)).where(read).scalar_subquery()


APP = _kind("app", schema.apps, schema.apps.c.id.in_(_here), "name memory created_at instructions")
CLIENT = _kind(
    "client",
    schema.clients,
    schema.clients.c.app_id.in_(_here),
    "id app name mode calls first_call_at last_call_at",
    mode=types.CLIENT_MODES,
)
SESSION = _kind(
    "session",
    schema.sessions,
    _s.app_id.in_(_here),
    "id app title summary started_at last_activity_at ended_at extracted_to copied_from:session"
    " memory client_id:client shelf through metadata",
    {
        "metadata": details.of_row(schema.sessions),
        "extracted_to": _read_to(),
        "client_id": sa.select(schema.clients.c.id)
        .where(schema.clients.c.session_id == _s.id)
        .limit(1)
        .scalar_subquery(),
    },
    shelf=("pinned", "archived"),
)
"""``client_id`` is the program whose words a conversation holds."""
MESSAGE = _kind(
    "message",
    schema.messages,
    _shown,
    "id session_id:session role content status memory created_at copied_from:message attachments",
    role=("user", "assistant"),
    status=("complete", "partial", "failed"),
)
MEMORY = _kind(
    "memory",
    schema.memories,
    _f.app_id.in_(_here) & visible,
    "id app memory_type key value many active inactive_reason replaced_by:memory expires_at"
    " starts_at cues sensitive pinned created_by created_at updated_at said_at last_seen_at"
    " seen_count match_count read_count sentence tags metadata",
    {"tags": details.tags_of_row(schema.memories), "metadata": details.of_row(schema.memories)},
    created_by=("manual", "auto", "import", "mcp"),
    inactive_reason=("superseded", "merged", "expired", "ended"),
)
EVIDENCE = _kind(
    "evidence",
    schema.memory_sources,
    _proofs.memory_id.in_(_facts) & _proofs.message_id.in_(_messages),
    "memory_id:memory message_id:message start quote",
)
EVENT = _kind(
    "event",
    schema.memory_events,
    _e.app_id.in_(_here) & _e.memory_id.in_(_facts) & _e.kind.not_in(UPKEEP),
    "id memory_id:memory app kind at actor cause session_id:session message_id:message"
    " related_id:memory old new detail",
    kind=(
        "add", "repeat", "edit", "supersede", "merge", "expire", "end", "restore", "pin", "unpin",
        "move", "hide", "show", "tag",
    ),
    actor=("user", "model", "system", "client"),
)  # fmt: skip
_counted = sa.func.json(sa.func.json_array(_chunk.match_count, _chunk.read_count))
NOTE = _kind(
    "note",
    schema.sources,
    _n.app_id.in_(_here),
    "id app type external_id title content profile created_at updated_at missing pair_id parent_id"
    " counts tags metadata",
    {
        "tags": details.tags_of_row(schema.sources),
        "metadata": details.of_row(schema.sources),
        "pair_id": _of_chunks(_chunk.pair_id),
        "parent_id": _of_chunks(_chunk.parent_id),
        "counts": _of_chunks(
            sa.func.coalesce(sa.func.json_group_object(_chunk.hash, _counted), "{}"),
            (_chunk.match_count > 0) | (_chunk.read_count > 0),
        ),
    },
    profile=(*PROFILES,),
)
"""``counts`` has how often chunks were found and read, by the hash of their text."""
INBOX_ITEM = _kind(
    "inbox_item",
    schema.proposals,
    _i.app_id.in_(_here)
    & (_i.status == "pending")
    & _i.run_id.is_(None)
    & (_i.memory_id.is_(None) | _i.memory_id.in_(_facts)),
    "id app message_id:message reason memory_type key value expires_at starts_at many cues"
    " sensitive relation target_id:memory quote start around sentence masked memory_id:memory"
    " related_id:memory created_at tags by",
    relation=("new", "updates", "ends", "same", "beside", FORGET, PROMOTE),
)
"""What waits for the person; what was answered, or waits for its second look, does not travel."""
KINDS = {
    kind.name: kind
    for kind in (APP, CLIENT, SESSION, MESSAGE, MEMORY, EVIDENCE, EVENT, NOTE, INBOX_ITEM)
}
"""In the order of an export: what a record refers to comes before it, and the messages of each
session directly after it. Only ``replaced_by`` may refer to a memory that comes later, and
``extracted_to`` is the id of the session's last message that was read."""


class PersonRecords:
    """The records of a person in the order of ``KINDS``. References to what is not exported are
    null."""

    def __init__(self, tx: Tx, scope: types.Scope, *, all_apps: bool) -> None:
        a = schema.apps.c
        apps = sa.select(a.id, a.name).where(a.user == scope.user)
        self.tx = tx
        self.apps: dict[int, str] = {
            row.id: row.name for row in tx.execute(apps) if all_apps or row.name == scope.app
        }
        """The names of the exported scope rows."""
        self.read: Counter[str] = Counter()
        """How many records were read of each kind."""
        self._ids: dict[str, frozenset[int]] = {}

    def every(self) -> Iterator[Record]:
        """All records, one after the other."""
        for kind in KINDS.values():
            if kind is SESSION:
                yield from self.conversations()
            elif kind is not MESSAGE:
                yield from self.of(kind)

    def conversations(self) -> Iterator[Record]:
        """Each session, and behind it its messages."""
        for session in self.of(SESSION):
            yield session
            yield from self.of(MESSAGE, _m.session_id == session["id"])

    def of(self, kind: Kind, *where: Any) -> Iterator[Record]:
        """The records of one kind."""
        query = sa.select(*(field.source.label(field.name) for field in kind.fields))
        query = query.select_from(kind.table).where(kind.where, *where)
        ordered = query.order_by(*kind.table.primary_key.columns)
        for row in self._rows(ordered.execution_options(yield_per=_ROWS)):
            pairs = zip(kind.fields, row, strict=True)
            self.read[kind.name] += 1
            yield {"record": kind.name} | {f.name: self._value(f, value) for f, value in pairs}

    def counts(self) -> dict[str, int]:
        """How many records there are of each kind."""
        return {
            name: self._rows(
                sa.select(sa.func.count()).select_from(kind.table).where(kind.where)
            ).scalar()
            for name, kind in KINDS.items()
        }

    def _rows(self, query: sa.Select[Any]) -> Any:
        return self.tx.execute(query, {"app_ids": list(self.apps)})

    def _value(self, field: Field, value: Any) -> Any:
        if value is None:
            return None
        if field.name == "app":
            return self.apps[value]
        if field.refers is not None:
            return value if value in self._exported(field.refers) else None
        if field.type is bool:
            return bool(value)
        if field.type in (dict, list, object):
            return json.loads(value)
        if field.type is datetime:
            return json_time(value)
        return value.isoformat() if field.type is date else value

    def _exported(self, name: str) -> frozenset[int]:
        """The ids of the exported records of a kind."""
        if name not in self._ids:
            kind = KINDS[name]
            rows = self._rows(sa.select(kind.table.c.id).where(kind.where))
            self._ids[name] = frozenset(rows.scalars())
        return self._ids[name]


def json_time(at: datetime) -> str:
    """A time as records have it."""
    return at.isoformat().replace("+00:00", "Z")


def checked(record: Mapping[str, Any]) -> tuple[Kind, Values]:
    """The kind of a record of a file, which may come from anywhere, and its values. What a person
    could not enter today is refused.

    Raises InputError that says which field cannot be stored, and why. The message holds no value
    of the record.
    """
    kind = KINDS[record["record"]]
    if kind is SESSION:
        record = {"memory": True} | {**record}  # files from before it had a switch of its own
    values = {field.name: _checked(field, record.get(field.name)) for field in kind.fields}
    if kind is MEMORY:
        _check_memory(values)
    elif kind is INBOX_ITEM:
        if values["memory_type"] is not None:
            values["memory_type"] = _check_type(values["memory_type"])
        values["tags"] = _tags(values["tags"])
    elif kind is NOTE:
        _check_note(values)
    elif kind is CLIENT:
        values["name"] = types.one_line(
            values["name"], "name of the client", types.CLIENT_NAME_LIMIT
        )
    if "metadata" in values:
        values["metadata"] = details.checked(values["metadata"] or {})
    if values.get("app") == types.EVERY_APP and kind in (CLIENT, NOTE):
        raise InputError("it belongs to one app, and it names none")
    return kind, values


def _check_type(given: str) -> str:
    kind = given.strip().casefold()
    if types.TYPE_NAME.fullmatch(kind) is None:  # it may be declared where it comes from alone
        raise InputError(f"{kind!r} is no type; use {', '.join(types.MEMORY_TYPES)}")
    return kind


def _check_memory(values: Values) -> None:
    kind = _check_type(values["memory_type"])
    held = kind, values["value"]
    fact = manual.checked_fact(types.NO_TYPES, kind, values["key"], values["value"], held)
    values["memory_type"], values["key"], values["value"] = fact
    # It was kept where it comes from, perhaps by another version's rules: refusing would lose it.
    values["sensitive"] |= manual.is_secret(values["key"], values["value"], keep=True)
    values["tags"] = _tags(values["tags"])
    told = values["sentence"]  # its proof may be elsewhere, so its own words stand for that
    values["sentence"] = true_sentence(told, values["key"], values["value"], told or "")
    if values["active"] != (values["inactive_reason"] is None):
        raise InputError("it must have an inactive_reason exactly if it is not active")


def _tags(tags: str | None) -> str:
    return " ".join(manual.checked_tags((tags or "").split()))


def _check_note(values: Values) -> None:
    values["content"] = types.clean_text(values["content"])
    if not 0 < len(str(values["external_id"])) <= ID_LIMIT:
        raise InputError(f"its external_id does not have 1 to {ID_LIMIT} characters")
    values["type"] = types.one_line(values["type"], "type", TYPE_LIMIT)
    if values["title"] is not None:
        values["title"] = types.one_line(values["title"], "title", TITLE_LIMIT)
    values["tags"] = _tags(values["tags"])


_WORDS = {str: "a text", bool: "true or false", int: "a whole number", dict: "an object"}
_WORDS[list] = "a list"


def _checked(field: Field, value: Any, within: str = "") -> Any:
    """The value of a field as the store takes it; ``within`` names the field around it."""
    name, wanted = f"{within}{field.name}", field.type
    if value is None:
        if field.optional:
            return None
        raise InputError(f"it has no {name}")
    if wanted is datetime or wanted is date:
        return _day_or_time(name, value, wanted)
    if wanted is object and type(value) not in (int, str):
        raise InputError(f"its {name} is neither a text nor a whole number")
    if wanted is not object and type(value) is not wanted:
        raise InputError(f"its {name} is not {_WORDS[wanted]}")
    if field.choices and value not in field.choices:
        raise InputError(f"its {name} must be one of {', '.join(field.choices)}")
    if wanted is int:
        least = 1 if name == "id" or field.refers else 0
        if field.derived and not field.refers:
            least = -LARGEST_ID  # ids of another program
        if not least <= value <= LARGEST_ID:
            raise InputError(f"its {name} is not between {least} and {LARGEST_ID}")
    elif wanted is dict:
        _check_object(name, value)
    elif wanted is list:
        _check_attachments(name, value)
    elif wanted is not bool:
        _check_text(name, str(value))
    return value


def _check_attachments(name: str, value: list[Any]) -> None:
    for one in value:
        texts = one if isinstance(one, dict) else {}
        if texts.keys() != {"name", "type", "text", "data"}:
            raise InputError(f"its {name} are not files with a name, type, text and data")
        for each in texts.values():
            if type(each) is not str:
                raise InputError(f"its {name} hold what is no text")
            _check_text(name, each)


_STATE = (
    *(Field(name, str) for name in ("memory_type", "key", "value")),
    *(Field(name, date, optional=True) for name in ("expires_at", "starts_at")),
    Field("replaced_by", int, optional=True),
    Field("sentence", str, optional=True),
)
"""Of the fields that an event has of a memory before and after it, those that are read again
whenever the memory is forgotten or imported."""


def _check_object(name: str, value: dict[str, Any]) -> None:
    try:
        _check_text(name, json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):
        raise InputError(f"its {name} holds a number or a depth that cannot be stored") from None
    if name == "counts":
        for pair in value.values():
            numbers = pair if isinstance(pair, list) and len(pair) == 2 else [None]
            if not all(type(n) is int and 0 <= n <= LARGEST_ID for n in numbers):
                raise InputError(f"its counts are not pairs of numbers between 0 and {LARGEST_ID}")
    elif name not in ("detail", "metadata"):
        for field in _STATE:
            if field.name in value:
                _checked(field, value[field.name], f"{name}.")
        if "value" in value and not {"memory_type", "key"} <= value.keys():
            raise InputError(f"its {name} has a value without memory_type or key")
        tags = value.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise InputError(f"its {name} has tags that are not a list of texts")


def _day_or_time(name: str, value: Any, wanted: type) -> date:
    try:
        if wanted is date:
            return date.fromisoformat(value)
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.year not in _YEARS:
            raise ValueError
        return time.astimezone(UTC)
    except (TypeError, ValueError):
        form = "2026-11-21" if wanted is date else "2026-11-21T09:30:00Z"
        raise InputError(f"its {name} is not of the form {form}") from None


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"its {name} holds half a character") from None


@contextmanager
def opened(file: Path) -> Iterator[tuple[Mapping[str, int], Iterator[tuple[int, Record]]]]:
    """Open an export file: how many records of each kind its first line speaks of, and the records,
    each with its line.

    Raises InputError for a file that cannot be read, is no export, or is of a newer format; the
    records raise it for a line that is none, and at the end where the file was cut off.
    """
    try:
        with open(file, "rb") as given, packed(given) or nullcontext(given) as stream:
            # An empty line may stand anywhere.
            lines = ((n, line) for n, line in enumerate(stream, 1) if line.strip())
            counts = _header(file, lines).get("contains")
            found = counts.items() if isinstance(counts, dict) else ()
            contains = {kind: count for kind, count in found if type(count) is int}
            yield contains, _records(file, lines)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror})") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{file} is damaged ({error}); nothing was imported") from error


def packed(file: IO[bytes]) -> IO[bytes] | None:
    """The records in a zip file that an export made; None where the file is no such one. Raises
    InputError where it would unpack to far more than an export does."""
    try:
        found = zipfile.ZipFile(file)
        check_size(found.getinfo(PACKED))
        return found.open(PACKED)
    except (KeyError, *BROKEN_ZIP):
        file.seek(0)
        return None


PACKED = "memchat.jsonl"
"""What the records are called in a zip file."""


def _header(file: Path, lines: Iterator[tuple[int, bytes]]) -> Record:
    none = f"{file} is no export of memchat; memchat export makes one"
    try:
        first = _parsed(next(lines)[1])
    except (StopIteration, InputError):
        raise InputError(none) from None
    version = first.get("version")
    is_ours = (first.get("record"), first.get("format")) == ("header", FORMAT)
    if not is_ours or type(version) is not int or version < 1:
        raise InputError(none)
    if version > VERSION:
        raise InputError(
            f"{file} is of version {version} of the format, and this memchat reads up to "
            f"{VERSION}; upgrade memchat, then import it"
        )
    return first


def _records(file: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Record]]:
    number = 1
    for number, line in lines:
        try:
            record = _parsed(line)
            name = record.get("record")
            if name == "end":
                return
            if not isinstance(name, str) or name not in (*KINDS, *LEFT_TO_BACKUPS):
                raise InputError("it is no record that memchat knows")
        except InputError as error:
            raise InputError(f"line {number} of {file}: {error}; nothing was imported") from None
        yield number, record
    raise InputError(
        f"{file} was cut off after line {number}: its last line is missing; nothing was imported. "
        "Copy the file again, or export again"
    )


def _parsed(line: bytes) -> Record:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise InputError("it is not JSON") from None
    if not isinstance(record, dict):
        raise InputError("it is no JSON object")
    return record
