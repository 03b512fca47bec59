"""The ids of imported records: in the file, and in this store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from memchat.errors import InputError
from memchat.store import record_kinds, record_rows
from memchat.store.record_kinds import RecordKind


class RecordIds:
    """Which id each record of the file has here.

    A table that never had a row takes the ids of the file. Otherwise new ids are given, since an id
    that was used once, also by a deleted row, never comes to mean something else.
    """

    def __init__(self, tx: Connection) -> None:
        self._kept = {kind.name: record_rows.is_unused(tx, kind) for kind in record_kinds.EVERY}
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
