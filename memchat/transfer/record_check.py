"""Whether a record of an export can be stored: its fields, their types and their values.

A file may come from anywhere, so nothing in it is trusted. What a person could not enter today is
refused here too.

The ids of imported records: in the file, and in this store.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection

from memchat.db import record_kinds
from memchat.db.record_kinds import EXTERNAL_IDS, RecordKind
from memchat.errors import InputError
from memchat.facts import manual
from memchat.facts.inbox import FORGET, PROMOTE
from memchat.types import (
    CLIENT_MODES,
    CLIENT_NAME_LIMIT,
    EVERY_APP,
    MEMORY_TYPES,
    clean_text,
    one_line,
)
from memchat.types.note import ID_LIMIT, PROFILES, TITLE_LIMIT, TYPE_LIMIT

Values = dict[str, Any]
"""The checked fields of a record, as the store takes them."""
LARGEST_ID = 2**53
"""Ids up to this are exact in every reader of JSON."""
_YEARS = range(1000, 9000)
_RELATIONS = ("new", "updates", "ends", "same", "beside")
_SAID = ("memory_type", "key", "value")
"""The fields of a memory's former state that say what it said."""
_EVENTS = (
    "add", "repeat", "edit", "supersede", "merge", "expire", "end", "restore", "pin", "unpin",
    "move", "hide", "show", "tag",
)  # fmt: skip
_CHOICES: Mapping[tuple[str, str], tuple[str | None, ...]] = {
    ("message", "role"): ("user", "assistant"),
    ("message", "status"): ("complete", "partial", "failed"),
    ("memory", "created_by"): ("manual", "auto", "import", "mcp"),
    ("memory", "inactive_reason"): (None, "superseded", "merged", "expired", "ended"),
    ("event", "kind"): _EVENTS,
    ("event", "actor"): ("user", "model", "system", "client"),
    ("inbox_item", "status"): ("pending", "rejected"),
    ("inbox_item", "memory_type"): (None, *MEMORY_TYPES),
    ("inbox_item", "relation"): (*_RELATIONS, FORGET, PROMOTE),
    ("refusal", "memory_type"): (None, *MEMORY_TYPES),
    ("refusal", "relation"): _RELATIONS,
    ("receipt", "kind"): ("memory", "message", "note"),
    ("note", "profile"): PROFILES,
    ("client", "mode"): CLIENT_MODES,
    ("client_write", "kind"): ("memory", "inbox", "note", "forget"),
}


def checked(record: Mapping[str, Any]) -> tuple[RecordKind, Values]:
    """The kind of a record and its values.

    Raises InputError that says which field cannot be stored, and why. The message holds no value
    of the record.
    """
    kind = record_kinds.BY_NAME[record["record"]]
    values = {name: _value(kind, name, record.get(name)) for name in kind.fields}
    for name in kind.fields:
        choices = _CHOICES.get((kind.name, name))
        if choices is not None and values[name] not in choices:
            named = ", ".join(choice or "null" for choice in choices)
            raise InputError(f"its {name} must be one of {named}")
    if kind is record_kinds.MEMORY:
        _check_memory(values)
    elif kind is record_kinds.INBOX_ITEM:
        values["tags"] = _tags(values["tags"])
    elif kind is record_kinds.NOTE:
        _check_note(values)
    elif kind is record_kinds.CLIENT:
        values["name"] = one_line(values["name"], "name of the client", CLIENT_NAME_LIMIT)
    return kind, values


def _check_memory(values: Values) -> None:
    fact = manual.checked_fact(values["memory_type"], values["key"], values["value"])
    values["memory_type"], values["key"], values["value"] = fact
    # It was kept where it comes from, perhaps by another version's rules: refusing would lose it.
    values["sensitive"] |= manual.is_secret(values["key"], values["value"], keep=True)
    values["tags"] = _tags(values["tags"])
    if values["active"] != (values["inactive_reason"] is None):
        raise InputError("it must have an inactive_reason exactly if it is not active")


def _tags(tags: str | None) -> str:
    return " ".join(manual.checked_tags((tags or "").split()))


def _check_note(values: Values) -> None:
    values["content"] = clean_text(values["content"])
    if not 0 < len(str(values["external_id"])) <= ID_LIMIT:
        raise InputError(f"its external_id does not have 1 to {ID_LIMIT} characters")
    values["type"] = one_line(values["type"], "type", TYPE_LIMIT)
    if values["title"] is not None:
        values["title"] = one_line(values["title"], "title", TITLE_LIMIT)
    if values["app"] == EVERY_APP:
        raise InputError("a note belongs to one app, and it names none")


def _value(kind: RecordKind, name: str, value: Any) -> Any:
    wanted = kind.kind_of(name)
    if value is None:
        if kind.optional(name):
            return None
        raise InputError(f"it has no {name}")
    if wanted is datetime or wanted is date:
        return _day_or_time(name, value, wanted)
    if wanted is object:
        if type(value) not in (int, str):
            raise InputError(f"its {name} is neither a text nor a whole number")
        wanted = type(value)
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise InputError(f"its {name} is not {_NAMES[wanted]}")
    if isinstance(value, str):
        _check_text(name, value)
    elif isinstance(value, dict):
        _check_object(name, value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"its {name} is not a number")
    elif isinstance(value, int) and name not in EXTERNAL_IDS:
        _check_number(kind, name, value)
    return value


def _check_number(kind: RecordKind, name: str, value: int) -> None:
    least, most = (1 if name == "id" or name in kind.refers else 0), LARGEST_ID
    if name in kind.derived:  # ids of another program
        least, most = -LARGEST_ID, LARGEST_ID
    if not least <= value <= most:
        raise InputError(f"its {name} is not between {least} and {most}")


def _check_object(name: str, value: dict[str, Any]) -> None:
    try:
        words = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InputError(f"its {name} holds a number or a depth that cannot be stored") from None
    _check_text(name, words)
    if name == "detail":
        return
    if name == "counts":
        _check_counts(value)
        return
    # What a memory said before is read again whenever it is forgotten or imported.
    said = [field for field in _SAID if "value" in value or field in value]
    if not all(isinstance(value[field], str) for field in said if field in value):
        raise InputError(f"its {name} has a {' or '.join(_SAID)} that is not a text")
    if not all(field in value for field in said):
        raise InputError(f"its {name} has a value without {' or '.join(_SAID[:2])}")
    if type(value.get("replaced_by")) not in (int, type(None)):
        raise InputError(f"its {name} has a replaced_by that is not a whole number")
    tags = value.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"its {name} has tags that are not a list of texts")
    for day in ("expires_at", "starts_at"):
        if value.get(day) is not None:
            _day_or_time(name, value[day], date)


def _check_counts(value: dict[str, Any]) -> None:
    for pair in value.values():
        numbers = pair if isinstance(pair, list) else []
        if len(numbers) != 2 or any(
            type(n) is not int or not 0 <= n <= LARGEST_ID for n in numbers
        ):
            raise InputError(f"its counts are not pairs of numbers between 0 and {LARGEST_ID}")


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


_NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number",
          dict: "an object"}  # fmt: skip


class RecordIds:
    """Which id each record of the file has here.

    A table that never had a row takes the ids of the file. Otherwise new ids are given, since an id
    that was used once, also by a deleted row, never comes to mean something else.
    """

    def __init__(self, tx: Connection) -> None:
        self._kept = {kind.name: record_kinds.is_unused(tx, kind) for kind in record_kinds.EVERY}
        self._here: defaultdict[str, dict[int, int | None]] = defaultdict(dict)

    def kept(self, kind: RecordKind, in_file: int) -> int | None:
        """The id that a new row is to have; None to let the store give the next."""
        return in_file if self._kept[kind.name] else None

    def check_new(self, kind: RecordKind, in_file: int) -> None:
        """Raise InputError for an id that an earlier record of the kind has."""
        if in_file in self._here[kind.name]:
            raise InputError(f"an earlier {kind.name} has the same id")

    def put(self, kind: RecordKind, in_file: int, here: int | None) -> None:
        """Note the id of a record in this store, or None for one that is left out."""
        self._here[kind.name][in_file] = here

    def leave_out(self, record: Mapping[str, Any]) -> None:
        """Note that a refused record is left out, with all that belongs to it."""
        in_file = record.get("id")
        if type(in_file) is int:
            self._here[record["record"]].setdefault(in_file, None)

    def here(self, kind: str, in_file: int | None) -> int | None:
        """The id in this store; None for a record that is not there."""
        return None if in_file is None else self._here[kind].get(in_file)

    def is_left_out(self, kind: str, in_file: int | None) -> bool:
        """Whether the file has such a record and it was left out on purpose."""
        return in_file is not None and self._here[kind].get(in_file, 0) is None
