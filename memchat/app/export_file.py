"""Writing an export into a file that only this account may read, or to a stream."""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal, TextIO, get_args

from memchat import disk
from memchat.app import export
from memchat.app.export_markdown import MarkdownPage
from memchat.app.results import Exported
from memchat.assembly import Assembly
from memchat.errors import InputError, NotFound, StoreError
from memchat.store import record_kinds
from memchat.store.person_records import PersonRecords, Record
from memchat.types import OnProgress, Progress, Scope

Format = Literal["jsonl", "markdown"]
FORMATS: tuple[str, ...] = get_args(Format)
_EVERY = 500
"""Records between two reports of the progress."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One export into a new file, or to a stream that is open already."""

    assembly: Assembly
    scope: Scope
    file: Path | TextIO
    all_apps: bool
    progress: OnProgress | None = None

    def write(self, form: str) -> Exported:
        """Write all records of one moment. The file is complete or not there at all.

        Raises InputError for an unknown form or a file that exists, NotFound where nothing is kept
        of the person, StoreError where the file cannot be written.
        """
        if form not in FORMATS:
            raise InputError(f"{form!r} is no format; use {' or '.join(FORMATS)}")
        file = self.file if isinstance(self.file, Path) else None
        if file is not None and (file.exists() or file.is_symlink()):
            raise InputError(f"{file} is there already; name another file")
        with self.assembly.database.read() as tx:
            records = export.records_of(tx, self.scope, all_apps=self.all_apps)
            if not records.app_ids:
                where = "" if self.all_apps else f" in the app {self.scope.app!r}"
                raise NotFound(f"nothing is kept of {self.scope.user!r}{where}; see --user")
            written: Counter[str] = Counter()
            with _opened(self.file) as out:
                if form == "markdown":
                    self._write_page(out, records, written)
                else:
                    self._write_lines(out, records, written)
        return Exported(file or Path("-"), dict(written))

    def _write_page(self, out: TextIO, records: PersonRecords, written: Counter[str]) -> None:
        zone, now = self.assembly.settings.zone, self.assembly.clock()
        page = MarkdownPage(out, zone)
        page.begin(self.scope.user, now)
        page.write_memories(self._counted(records.of(record_kinds.MEMORY), written))
        page.write_questions(self._counted(records.of(record_kinds.INBOX_ITEM), written))
        page.write_notes(self._counted(records.of(record_kinds.NOTE), written))
        page.write_conversations(self._counted(records.conversations(), written))

    def _write_lines(self, out: TextIO, records: PersonRecords, written: Counter[str]) -> None:
        now, contains = self.assembly.clock(), records.counts()
        out.write(_line(export.header(self.scope, contains, now, all_apps=self.all_apps)))
        for record in self._counted(records.every(), written, sum(contains.values())):
            out.write(_line(record))
        out.write(_line(export.footer(written.total())))

    def _counted(
        self, records: Iterator[Record], written: Counter[str], total: int = 0
    ) -> Iterator[Record]:
        """The records, counted and reported while they are written."""
        began = monotonic()
        for record in records:
            yield record
            written[record["record"]] += 1
            done = written.total()
            if self.progress is not None and done % _EVERY == 0:
                self.progress(Progress(done, max(total, done), monotonic() - began, unit="records"))


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


@contextmanager
def _opened(file: Path | TextIO) -> Iterator[TextIO]:
    """The stream, or a file that comes to this name, which is free, once it is complete."""
    if not isinstance(file, Path):
        yield file
        return
    beside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with open(disk.new_file(beside), "w", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, file)
    except OSError as error:
        otherwise = StoreError(f"{file} cannot be written ({error.strerror})")
        raise disk.failure(error, str(file.parent), otherwise) from error
    finally:
        beside.unlink(missing_ok=True)
