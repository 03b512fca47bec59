"""Writes a person's export: JSON lines, which an import reads, alone or in a zip file with what
notes were read from; a Markdown page for people; or a text to give to another assistant.

It goes to a stream, or into a file that only this account may read.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from zoneinfo import ZoneInfo

from memchat import disk
from memchat.api.base import Exported
from memchat.assembly import Assembly
from memchat.errors import ConfigError, InputError, NotFound
from memchat.facts import manual
from memchat.learn.values import VALUE_LIMIT
from memchat.notes import files, rows
from memchat.transfer import kinds
from memchat.transfer.kinds import FORMAT, PACKED, VERSION, PersonRecords, Record, json_time
from memchat.types import EVERY_APP, MEMORY_TYPES, OnProgress, Scope, named_value, timed

_HEADINGS = {"profile": "Profile", "preference": "Preferences", "fact": "Facts", "other": "Other"}
_SPEAKERS = {"user": "You", "assistant": "Assistant"}


FORMATS = ("jsonl", "markdown", "zip", "prompt")
_EVERY = 500
"""Records between two reports of the progress."""


@dataclass(frozen=True, slots=True)
class _Page:
    """The records as a page for people, with times in ``zone``."""

    records: PersonRecords
    zone: ZoneInfo

    def paragraphs(self, user: str, now: datetime) -> Iterator[str]:
        """The page, part by part. The memories are held in memory until they are written."""
        yield f"# What memchat keeps of {as_markdown(user)}"
        yield f"Exported on {self._time(now.isoformat())}."
        yield "## Memories"
        groups: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        for memory in self.records.of(kinds.MEMORY):
            group = memory["memory_type"] if memory["active"] else ""
            groups[memory["app"], group].append(memory)
        for app in dict.fromkeys(app for app, _ in groups):
            yield f"### App: {_app(app)}"
            own = sorted({group for _, group in groups} - {*MEMORY_TYPES, ""})
            for group in (*MEMORY_TYPES, *own, ""):
                if (app, group) in groups:
                    yield f"#### {_HEADINGS.get(group, group or 'No longer in force')}"
                    yield _list(map(self._memory, groups[app, group]))
        items = [*self.records.of(kinds.INBOX_ITEM)]
        if items:
            yield "## Waiting for your decision"
            yield _list(f"{as_markdown(item['reason'])}{_proposal(item)}" for item in items)
        for place, note in enumerate(self.records.of(kinds.NOTE)):
            if not place:
                yield "## Notes"
            yield self._heading(note, "created_at")
            gone = "; its file is gone" if note["missing"] else ""
            about = f"{_app(note['app'])}; {as_markdown(note['type'])}{gone}"
            yield f"App: {'; '.join((about, *_noted(note)))}"
            yield _quoted(note["content"])
        yield "## Conversations"
        for record in self.records.conversations():
            if record["record"] == "message":
                yield f"**{_SPEAKERS[record['role']]}**, {self._time(record['created_at'])}:"
                yield _quoted(record["content"])
                continue
            yield self._heading(record, "started_at")
            yield f"App: {'; '.join((_app(record['app']), *_noted(record)))}"
            if record["summary"]:
                yield f"*{as_markdown(record['summary'])}*"

    def _heading(self, record: Record, at: str) -> str:
        title = f" – {as_markdown(record['title'])}" if record["title"] else ""
        return f"### {self._time(record[at])}{title}"

    def _memory(self, memory: Record) -> str:
        notes = [f"said on {self._time(memory['said_at']).partition(',')[0]}"]
        if memory["starts_at"]:
            notes.append(f"from {_date(memory['starts_at'])}")
        if memory["expires_at"]:
            notes.append(f"until {_date(memory['expires_at'])}")
        if memory["inactive_reason"]:
            notes.append(memory["inactive_reason"])
        if memory["pinned"]:
            notes.append("pinned")
        if memory["tags"]:
            notes.append(f"tags {as_markdown(memory['tags'].replace(' ', ', '))}")
        notes += _noted(memory)
        key = as_markdown(memory["key"].replace("_", " "))
        return f"**{key}**: {as_markdown(memory['value'])} ({', '.join(notes)})"

    def _time(self, at: str) -> str:
        local = datetime.fromisoformat(at).astimezone(self.zone)
        return f"{local.day} {local:%B %Y, %H:%M}"


def _noted(record: Record) -> list[str]:
    """What a program noted beside it."""
    return [
        f"{as_markdown(name)} = {as_markdown(str(value))}"
        for name, value in (record["metadata"] or {}).items()
    ]


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _date(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found.day} {found:%B %Y}"


def _app(name: str) -> str:
    return "every app" if name == EVERY_APP else as_markdown(name)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines() or [""])


def _proposal(item: Record) -> str:
    return f" {as_markdown(item['key'])}: {as_markdown(item['value'] or '')}" if item["key"] else ""


def as_markdown(text: str) -> str:
    """A text on one line, with its signs of Markdown and HTML shown as they are."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text)
    return " ".join(escaped.split())


def _prompt(records: PersonRecords, now: datetime, zone: ZoneInfo) -> Iterator[str]:
    """What is known of the person and holds now, to paste into another assistant: neither secrets
    nor what is sensitive."""
    today = now.astimezone(zone).date().isoformat()
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for memory in records.of(kinds.MEMORY):
        key, value, until = memory["key"], memory["value"], memory["expires_at"]
        held = memory["active"] and (memory["starts_at"] or "") <= today <= (until or "9")
        if not held or memory["sensitive"] or manual.is_secret(key, value, keep=True):
            records.read[kinds.MEMORY.name] -= 1
            continue
        told = memory["sentence"] or named_value(key, value)
        told = " ".join((told if len(told) < VALUE_LIMIT - 20 else value).split())
        day = datetime.fromisoformat(memory["said_at"]).astimezone(zone).date()
        last = f" (until {until})" if until else ""
        groups[memory["memory_type"]].append(f"- [{day}] {told}{last}")
    yield "Please remember this about me. “You” in these lines is me; each has the day I said it."
    for kind in (*MEMORY_TYPES, *sorted(groups.keys() - {*MEMORY_TYPES})):
        if kind in groups:
            yield f"## {_HEADINGS.get(kind, kind.capitalize())}"
            yield "\n".join(groups[kind])


def _originals(records: PersonRecords) -> Iterator[tuple[str, bytes]]:
    """The files that notes were read from, by their names in a zip file: only those that are still
    as they were read, since an import may have named any file of this machine."""
    for note in records.of(kinds.NOTE):
        path = Path(str(note["external_id"]))
        try:
            data, changed = files.content(path) if note["type"] == rows.TYPE else (b"", None)
            if changed is not None and (
                json_time(changed) == note["created_at"]
                or files.read(path.name, data).text == note["content"]
            ):
                yield f"files/{note['id']}-{path.name}", data
        except (InputError, ConfigError):
            continue  # it is gone, or cannot be read any more; the text of its note is there


def export(assembly: Assembly, scope: Scope, *, all_apps: bool) -> Iterator[Record]:
    """The records of a person, all of one moment; each is read when it is asked for."""
    with assembly.database.read() as tx:
        yield from PersonRecords(tx, scope, all_apps=all_apps).every()


def check_new(path: Path) -> None:
    """Raises InputError for a file that exists."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} is there already; name another file")


def export_file(
    assembly: Assembly,
    scope: Scope,
    to: Path | TextIO | BinaryIO,
    form: str,
    *,
    all_apps: bool,
    progress: OnProgress | None = None,
) -> Exported:
    """Write all records of one moment into a new file, or to a stream that is open already. The
    file is complete or not there at all.

    Raises InputError for an unknown form or a file that exists, NotFound where nothing is kept of
    the person, StoreError where the file cannot be written.
    """
    if form not in FORMATS:
        raise InputError(f"{form!r} is no format; use {' or '.join(FORMATS)}")
    is_packed = form == "zip"
    if isinstance(to, Path):
        check_new(to)
    elif isinstance(to, io.TextIOBase) == is_packed:
        raise InputError("zip goes to a stream of bytes, every other format to one of text")
    report, now, expected, done = timed(progress, "records"), assembly.clock(), 0, 0
    with assembly.database.read() as tx:
        records = PersonRecords(tx, scope, all_apps=all_apps)
        if not records.apps:
            where = "" if all_apps else f" in the app {scope.app!r}"
            raise NotFound(f"nothing is kept of {scope.user!r}{where}", see="users list")
        if form == "markdown":
            page = _Page(records, assembly.settings.zone).paragraphs(scope.user, now)
            texts: Iterable[str] = (f"{paragraph}\n\n" for paragraph in page)
        elif form == "prompt":
            texts = (f"{part}\n\n" for part in _prompt(records, now, assembly.settings.zone))
        else:
            contains = records.counts()
            expected = sum(contains.values())
            about: Record = {"exported_at": json_time(now), "user": scope.user}
            about |= {"app": None if all_apps else scope.app, "contains": contains}
            texts = map(_line, _whole_file(records, about))
        with ExitStack() as stack:
            given = disk.replacing(to) if isinstance(to, Path) else nullcontext(to)
            out: Any = stack.enter_context(given)
            if is_packed:
                raw = getattr(out, "buffer", out)
                packed = stack.enter_context(zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED))
                member = packed.open(PACKED, "w", force_zip64=True)
                out = stack.enter_context(io.TextIOWrapper(member, "utf-8", newline=""))
            for text in texts:
                out.write(text)
                if records.read.total() >= done + _EVERY:
                    done = records.read.total()
                    report(done, max(expected, done))
            if is_packed:
                out.close()
                for name, data in _originals(PersonRecords(tx, scope, all_apps=all_apps)):
                    packed.writestr(name, data)
                    records.read["file"] += 1
    return Exported(to if isinstance(to, Path) else Path("-"), dict(records.read))


def _whole_file(records: PersonRecords, about: Record) -> Iterator[Record]:
    """The records between a header and a footer, by which a file that was cut off is known."""
    yield {"record": "header", "format": FORMAT, "version": VERSION, **about}
    yield from records.every()
    yield {"record": "end", "records": records.read.total()}


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
