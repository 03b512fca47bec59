"""An export as a Markdown page for people to read. It cannot be imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TextIO
from zoneinfo import ZoneInfo

from memchat.store.person_records import Record
from memchat.types import EVERY_APP, MEMORY_TYPES

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
