"""Writing an export into a file that only this account may read, or to a stream.

An export as a Markdown page for people to read. It cannot be imported.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from time import monotonic
from typing import Literal, TextIO, get_args
from zoneinfo import ZoneInfo

from memchat import disk
from memchat.api import results
from memchat.api.results import Exported
from memchat.assembly import Assembly
from memchat.db import record_kinds
from memchat.db.record_kinds import PersonRecords, Record
from memchat.errors import InputError, NotFound, StoreError
from memchat.types import EVERY_APP, MEMORY_TYPES, OnProgress, Progress, Scope

_HEADINGS = {
    "profile": "Profile",
    "preference": "Preferences",
    "fact": "Facts",
    "other": "Other",
}
_SPEAKERS = {"user": "You", "assistant": "Assistant"}


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page that is written part by part. Times are shown in ``zone``."""

    out: TextIO
    zone: ZoneInfo

    def begin(self, user: str, now: datetime) -> None:
        """Write the title."""
        self._line(f"# What memchat keeps of {_plain(user)}")
        self._line(f"Exported on {self._time(now.isoformat())}.")

    def write_memories(self, memories: Iterable[Record]) -> None:
        """Write the memories by app and type, and those that no longer hold after them. All are
        held in memory until then."""
        self._line("## Memories")
        groups: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        for memory in memories:
            group = memory["memory_type"] if memory["active"] else ""
            groups[memory["app"], group].append(memory)
        for app in dict.fromkeys(app for app, _ in groups):
            self._line(f"### App: {_app(app)}")
            for group in (*MEMORY_TYPES, ""):
                if (app, group) in groups:
                    self._line(f"#### {_HEADINGS.get(group, 'No longer in force')}")
                    self._list(map(self._memory, groups[app, group]))

    def write_questions(self, items: Iterable[Record]) -> None:
        """Write what waits in the inbox."""
        waiting = [item for item in items if item["status"] == "pending"]
        if waiting:
            self._line("## Waiting for your decision")
            self._list(f"{_plain(one['reason'])}{_proposal(one)}" for one in waiting)

    def write_notes(self, notes: Iterable[Record]) -> None:
        """Write the notes, each with its text."""
        for place, note in enumerate(notes):
            if not place:
                self._line("## Notes")
            title = f" – {_plain(note['title'])}" if note["title"] else ""
            self._line(f"### {self._time(note['created_at'])}{title}")
            gone = "; its file is gone" if note["missing"] else ""
            self._line(f"App: {_app(note['app'])}; {_plain(note['type'])}{gone}")
            self._line(_quoted(note["content"]))

    def write_conversations(self, records: Iterable[Record]) -> None:
        """Write the conversations, the oldest first, each with its messages."""
        self._line("## Conversations")
        for record in records:
            if record["record"] == "session":
                self._session(record)
            else:
                self._message(record)

    def _session(self, session: Record) -> None:
        title = f" – {_plain(session['title'])}" if session["title"] else ""
        self._line(f"### {self._time(session['started_at'])}{title}")
        self._line(f"App: {_app(session['app'])}")
        if session["summary"]:
            self._line(f"*{_plain(session['summary'])}*")

    def _message(self, message: Record) -> None:
        self._line(f"**{_SPEAKERS[message['role']]}**, {self._time(message['created_at'])}:")
        self._line(_quoted(message["content"]))

    def _memory(self, memory: Record) -> str:
        notes = [f"said on {self._day(memory['said_at'])}"]
        if memory["starts_at"]:
            notes.append(f"from {_date(memory['starts_at'])}")
        if memory["expires_at"]:
            notes.append(f"until {_date(memory['expires_at'])}")
        if memory["inactive_reason"]:
            notes.append(memory["inactive_reason"])
        if memory["pinned"]:
            notes.append("pinned")
        if memory["tags"]:
            notes.append(f"tags {_plain(memory['tags'].replace(' ', ', '))}")
        key = _plain(memory["key"].replace("_", " "))
        return f"**{key}**: {_plain(memory['value'])} ({', '.join(notes)})"

    def _list(self, lines: Iterable[str]) -> None:
        self._line("\n".join(f"- {line}" for line in lines))

    def _line(self, text: str) -> None:
        self.out.write(f"{text}\n\n")

    def _time(self, at: str) -> str:
        local = datetime.fromisoformat(at).astimezone(self.zone)
        return f"{local.day} {local:%B %Y, %H:%M}"

    def _day(self, at: str) -> str:
        return self._time(at).partition(",")[0]


def _date(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found.day} {found:%B %Y}"


def _app(name: str) -> str:
    return "every app" if name == EVERY_APP else _plain(name)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines() or [""])


def _proposal(item: Record) -> str:
    return f" {_plain(item['key'])}: {_plain(item['value'] or '')}" if item["key"] else ""


def _plain(text: str) -> str:
    """A text on one line, with its signs of Markdown and HTML shown as they are."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text)
    return " ".join(escaped.split())


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
            records = results.records_of(tx, self.scope, all_apps=self.all_apps)
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
        out.write(_line(results.header(self.scope, contains, now, all_apps=self.all_apps)))
        for record in self._counted(records.every(), written, sum(contains.values())):
            out.write(_line(record))
        out.write(_line(results.footer(written.total())))

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
