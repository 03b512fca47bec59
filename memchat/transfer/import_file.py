"""Reading the records of an export file; nothing here writes into a store.

Importing records into the store: all of them in one transaction, or none.

Cutting the notes of an export into chunks, before the store is locked for the import.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from sqlalchemy import Connection

from memchat.api.results import FORMAT, VERSION
from memchat.assembly import Assembly
from memchat.db import apps, record_kinds
from memchat.db.apps import WHOLE_STORE, Context
from memchat.db.record_kinds import BY_NAME, Record
from memchat.errors import InputError, MemChatError
from memchat.forget import purge
from memchat.notes import rows
from memchat.notes.index import Cutter
from memchat.search import turns, unembedded
from memchat.transfer import record_check
from memchat.transfer.import_run import ImportRun
from memchat.transfer.imported import Cut, CutText
from memchat.transfer.record_check import Values
from memchat.types import Imported, OnProgress, Progress, Scope

LONGEST_LINE = 100_000_000
"""Bytes. A note may be as long as several books."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """An open export file, after its first line."""

    file: Path
    lines: Iterator[tuple[int, Record]]
    """Each record with its line. Raises InputError for a line that is no record, and at the end
    where the file was cut off."""
    contains: Mapping[str, int]
    """How many records of each kind the first line speaks of."""


@contextmanager
def opened(file: Path) -> Iterator[ImportFile]:
    """Open an export file. Raises InputError for a file that cannot be read, is no export, or is of
    a newer format."""
    try:
        with open(file, "rb") as stream:
            lines = _lines(file, stream)
            first = _header(file, lines)
            told = first.get("contains")
            counts = told if isinstance(told, dict) else {}
            contains = {kind: count for kind, count in counts.items() if type(count) is int}
            yield ImportFile(file, _records(file, lines), contains)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror})") from error


def _header(file: Path, lines: Iterator[tuple[int, bytes]]) -> Record:
    none = f"{file} is no export of memchat; memchat export makes one"
    try:
        first = _parsed(next(lines)[1])
    except (StopIteration, InputError):
        raise InputError(none) from None
    if first.get("record") != "header" or first.get("format") != FORMAT:
        raise InputError(none)
    version = first.get("version")
    if type(version) is not int or version < 1:
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
            if not isinstance(name, str) or name not in BY_NAME:
                raise InputError("it is no record that memchat knows")
        except InputError as error:
            raise InputError(f"line {number} of {file}: {error}; nothing was imported") from None
        yield number, record
    raise InputError(
        f"{file} was cut off after line {number}: its last line is missing; nothing was imported. "
        "Copy the file again, or export again"
    )


def _lines(file: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"line {number} of {file} is longer than {LONGEST_LINE // 1_000_000} MB, as no "
                "record is; nothing was imported"
            )
        if line.strip():
            yield number, line


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


_NOTES_EVERY = 100
"""Notes between two reports of the progress."""


@dataclass(slots=True)
class NoteCuts:
    """The chunks of the notes of a file."""

    assembly: Assembly
    scope: Scope
    _cutter: Cutter | None = None
    """Made before the first note is cut, and outside of transactions: it may ask a provider."""
    _cuts: dict[tuple[str, str], CutText] = field(default_factory=dict)
    """By the hash of the text, and the profile."""

    def prepare(
        self,
        records: Iterable[tuple[int, Mapping[str, Any]]],
        *,
        expected: int,
        progress: OnProgress | None,
    ) -> None:
        """Cut the notes among these records that the store does not have with this text. Others
        may write meanwhile, since it takes long. ``expected`` is how many notes there are."""
        began = monotonic()
        for _, record in records:
            if record["record"] != record_kinds.NOTE.name or not self._take(record):
                continue
            done = len(self._cuts)
            if progress is not None and done % _NOTES_EVERY == 0:
                spent = monotonic() - began
                progress(Progress(done, max(expected, done), spent, unit="notes"))

    def cut(self, text: str, profile: str) -> CutText:
        """The chunks of a text; it is cut now if it was not prepared, for no certain model if none
        was prepared."""
        key = (hashlib.sha256(text.encode()).hexdigest(), profile)
        if key not in self._cuts:
            cutter = self._cutter or Cutter(None)
            self._cuts[key] = CutText(cutter.parts(text, profile), cutter.model)
        return self._cuts[key]

    def _take(self, record: Mapping[str, Any]) -> bool:
        """Cut a note that is new here; whether it was."""
        try:
            _, values = record_check.checked(record)
            with self.assembly.database.read() as tx:
                new = self._is_new(tx, values)
        except MemChatError:
            return False  # the import will refuse it, and say why
        if new:
            self._cutter = self._cutter or Cutter(self.assembly.usable_embedder())
            self.cut(values["content"], values["profile"])
        return new

    def _is_new(self, tx: Connection, values: Values) -> bool:
        app_id = apps.find(tx, Scope(self.scope.user, values["app"])).own
        if app_id is None:
            return True
        known = rows.by_external_id(tx, app_id, values["type"], values["external_id"])
        return known is None or known.text != values["content"]


_EVERY = 500
"""Records between two reports of the progress."""


class _DryRun(Exception):
    """Ends the transaction without its changes."""


def import_file(
    assembly: Assembly, scope: Scope, file: Path, *, dry_run: bool, progress: OnProgress | None
) -> Imported:
    """Import an export file as this person's. Its notes are cut in a first reading of the file."""
    cuts = NoteCuts(assembly, scope)
    with opened(file) as source:
        noted = source.contains.get("note", 0)
        if noted:
            cuts.prepare(source.lines, expected=noted, progress=progress)
    with opened(file) as source:
        return import_records(
            assembly,
            scope,
            source.lines,
            cut=cuts.cut,
            expected=sum(source.contains.values()),
            dry_run=dry_run,
            progress=progress,
        )


def import_records(
    assembly: Assembly,
    scope: Scope,
    records: Iterable[tuple[int, Mapping[str, Any]]],
    *,
    cut: Cut,
    expected: int,
    dry_run: bool,
    progress: OnProgress | None,
) -> Imported:
    """Write records of the kinds of an export, each with its line, as those of this person.

    ``cut`` cuts the texts of notes. Others who write wait for that transaction. Where ``records``
    raises, nothing is stored.
    """
    done: Imported | None = None
    began = monotonic()
    embeds = assembly.embeds()
    try:
        with assembly.database.write() as tx:
            ctx = Context(tx, WHOLE_STORE, assembly.clock(), assembly.settings.zone)
            run = ImportRun(ctx, scope.user, cut)
            for count, (line, record) in enumerate(records, 1):
                run.take(line, record)
                if progress is not None and count % _EVERY == 0:
                    total = max(expected, count)
                    progress(Progress(count, total, monotonic() - began, unit="records"))
            done, stale = run.finish(embeds=embeds)
            if dry_run:
                raise _DryRun
            assembly.drop_vectors(tx, stale)
    except _DryRun:
        assert done is not None
        return replace(done, dry_run=True)
    purge.scrub(assembly.database)
    if not embeds:
        _write_search_texts(assembly)
    return done


def _write_search_texts(assembly: Assembly) -> None:
    """Write the texts of conversations that have none yet, as no job does where there is no
    embedding model. Others may write in between, since it takes long."""
    with assembly.database.read() as tx:
        found = unembedded.sessions_to_index(tx)
    for session_id in found:
        with assembly.database.write() as tx:
            ctx = Context(tx, WHOLE_STORE, assembly.clock(), assembly.settings.zone)
            turns.write(ctx, session_id, None, {})
