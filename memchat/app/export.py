"""Everything that is kept of a person, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection

from memchat.assembly import Assembly
from memchat.store import person_records
from memchat.store.person_records import PersonRecords, Record
from memchat.types import Scope

FORMAT = "memchat export"
VERSION = 3
"""Of the format; a higher one is only read by a newer memchat. 2 has notes, 3 has programs."""


def export(assembly: Assembly, scope: Scope, *, all_apps: bool) -> Iterator[Record]:
    """The records of a person, all of one moment; each is read when it is asked for."""
    with assembly.database.read() as tx:
        yield from records_of(tx, scope, all_apps=all_apps).every()


def records_of(tx: Connection, scope: Scope, *, all_apps: bool) -> PersonRecords:
    """What there is to export in this transaction."""
    return PersonRecords(tx, person_records.app_ids(tx, scope, all_apps=all_apps))


def header(scope: Scope, contains: dict[str, int], now: datetime, *, all_apps: bool) -> Record:
    """The first record of a file: what it is, of when, and what is in it."""
    return {
        "record": "header",
        "format": FORMAT,
        "version": VERSION,
        "exported_at": now.isoformat().replace("+00:00", "Z"),
        "user": scope.user,
        "app": None if all_apps else scope.app,
        "contains": contains,
    }


def footer(written: int) -> Record:
    """The last record of a file, by which a file that was cut off is known."""
    return {"record": "end", "records": written}
