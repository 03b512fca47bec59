"""Reading the records of an export file; nothing here writes into a store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memchat.app.export import FORMAT, VERSION
from memchat.errors import InputError
from memchat.store.person_records import Record
from memchat.store.record_kinds import BY_NAME

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
