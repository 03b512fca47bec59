"""Imports an export file: all of its records in one transaction, or none.

The file is read twice: first to cut its notes into chunks while others may write, then to write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import BinaryIO, TypeVar

from memchat.assembly import Assembly
from memchat.errors import InputError, MemChatError
from memchat.notes import rows
from memchat.notes.index import Cutter
from memchat.search import turns
from memchat.transfer import kinds
from memchat.transfer.import_run import CutText, ImportRun
from memchat.transfer.kinds import FORMAT, KINDS, LEFT_TO_BACKUPS, VERSION, Record, Values
from memchat.types import Imported, OnProgress, Progress, Scope

T = TypeVar("T")
LONGEST_LINE = 100_000_000
"""Bytes. A note may be as long as several books."""
_EVERY, _NOTES_EVERY = 500, 100
"""Records, and notes, between two reports of the progress."""


class _DryRun(Exception):
    """Ends the transaction without its changes."""


def import_file(
    assembly: Assembly, scope: Scope, file: Path, *, dry_run: bool, progress: OnProgress | None
) -> Imported:
    """Import an export file as this person's. Others who write wait for the second reading."""
    cuts = _NoteCuts(assembly, scope)
    with _opened(file) as (contains, records):
        if expected := contains.get("note", 0):
            new = cuts.new_notes(records)
            for values in _reported(new, progress, expected, "notes", _NOTES_EVERY):
                cuts.cut(values["content"], values["profile"])
    done: Imported | None = None
    try:
        with _opened(file) as (contains, records), assembly.database.write() as tx:
            run = ImportRun(tx, scope.user, cuts.cut)
            expected = sum(contains.values())
            for line, record in _reported(records, progress, expected, "records", _EVERY):
                run.take(line, record)
            done = run.finish()
            if dry_run:
                raise _DryRun
    except _DryRun:
        assert done is not None
        return replace(done, dry_run=True)
    _write_search_texts(assembly)
    return done


def _write_search_texts(assembly: Assembly) -> None:
    """Write the texts of conversations that have none yet. Others may write in between, since it
    takes long."""
    with assembly.database.read() as tx:
        found = turns.unwritten(tx)
    for session_id in found:
        with assembly.database.write() as tx:
            turns.write(tx, session_id)


class _NoteCuts:
    """The chunks of the notes of a file, by the hash of the text, and the profile."""

    def __init__(self, assembly: Assembly, scope: Scope) -> None:
        self._assembly, self._scope = assembly, scope
        self._cutter: Cutter | None = None
        self._cuts: dict[tuple[str, str], CutText] = {}

    def new_notes(self, records: Iterator[tuple[int, Record]]) -> Iterator[Values]:
        """The notes among these that the store does not have with this text. Their chunks fit the
        embedding model, which may be asked over the network, and so outside of transactions."""
        for _, record in records:
            if record["record"] == "note" and (values := self._new(record)) is not None:
                self._cutter = self._cutter or Cutter(self._assembly.usable_embedder())
                yield values

    def cut(self, text: str, profile: str) -> CutText:
        """The chunks of a text, cut now if they were not before, and for no model if none were."""
        key = (hashlib.sha256(text.encode()).hexdigest(), profile)
        if key not in self._cuts:
            cutter = self._cutter or Cutter(None)
            self._cuts[key] = CutText(cutter.parts(text, profile), cutter.model)
        return self._cuts[key]

    def _new(self, record: Record) -> Values | None:
        try:
            _, values = kinds.checked(record)
            with self._assembly.database.read(Scope(self._scope.user, values["app"])) as tx:
                known = rows.by_external_id(tx, tx.own, values["type"], values["external_id"])
        except MemChatError:
            return None  # the import will refuse it, and say why
        return values if known is None or known.text != values["content"] else None


def _reported(
    items: Iterable[T], progress: OnProgress | None, expected: int, unit: str, every: int
) -> Iterator[T]:
    """The items, with a report whenever so many of them were dealt with."""
    began = monotonic()
    for done, item in enumerate(items, 1):
        yield item
        if progress is not None and done % every == 0:
            progress(Progress(done, max(expected, done), monotonic() - began, unit=unit))


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Mapping[str, int], Iterator[tuple[int, Record]]]]:
    """Open an export file: how many records of each kind its first line speaks of, and the records,
    each with its line.

    Raises InputError for a file that cannot be read, is no export, or is of a newer format; the
    records raise it for a line that is none, and at the end where the file was cut off.
    """
    try:
        with open(file, "rb") as stream:
            lines = _lines(file, stream)
            counts = _header(file, lines).get("contains")
            found = counts.items() if isinstance(counts, dict) else ()
            contains = {kind: count for kind, count in found if type(count) is int}
            yield contains, _records(file, lines)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror})") from error


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
