"""Notes as the command line shows them: rows of a list, one note, found passages, sources."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memchat.cli import tables
from memchat.cli.text_width import shorten
from memchat.types import Job, Note, NoteHit, NoteSource, NotesReport, counted, to_json

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from memchat.app import MemChat
    from memchat.app.notes import Notes

HEADINGS = ("id", "date", "type", "title", "state")
UNTITLED = "Untitled"
OPENING = 60
"""Characters of its text that stand for the title of a note that has none."""
EXCERPT = 320
"""Characters of a passage that a terminal shows: four lines."""
_LEAST = 3
"""Letters of a word that is looked for in a passage; shorter ones are in nearly every sentence."""
_MADE_UP = re.compile(r"[0-9a-f]{32}")
"""An external id that memchat gave itself, as there was none."""


def unfinished(mc: MemChat, user: str, note_ids: Sequence[int]) -> Mapping[int, Job]:
    """The job of each of these notes whose vectors are still to be made, or could not be made."""
    return {
        job.target_id: job
        for status in ("failed", "running", "pending")
        for job in mc.jobs.list(user=user, status=status, note_ids=note_ids, limit=len(note_ids))
    }


def row(notes: Notes, note: Note, job: Job | None, zone: ZoneInfo) -> tuple[object, ...]:
    """A note of a list under HEADINGS."""
    title = note.title or _opening(notes.get(note.id).text)
    return note.id, tables.time(note.created_at, zone), note.type, title, state(note, job)


def state(note: Note, job: Job | None) -> str:
    """What is unusual about a note; empty where nothing is. ``job`` is to make its vectors."""
    parts = ["its file is gone"] if note.missing else []
    if job is not None:
        failed = job.status == "failed"
        parts.append("vectors failed: memchat jobs status" if failed else "words only so far")
    return ", ".join(parts)


def without_text(note: Note) -> dict[str, Any]:
    """A note of a list as JSON: lists do not load the texts."""
    return {name: value for name, value in to_json(note).items() if name != "text"}


def whole(note: Note, job: Job | None, zone: ZoneInfo) -> str:
    """What is known of one note, a line for each thing, and its text."""
    lines = {
        "title": note.title or UNTITLED,
        "date": tables.time(note.created_at, zone),
        "type": note.type,
        "app": note.app,
        "changed": tables.time(note.updated_at, zone) if note.updated_at else "",
        "state": state(note, job),
        "source": "" if _MADE_UP.fullmatch(str(note.external_id)) else str(note.external_id),
        "length": f"{counted(len(note.text), 'character')}, {counted(note.chunks, 'chunk')}",
    }
    head = [f"{name:<8}  {content}" for name, content in lines.items() if content]
    return tables.plain("\n".join([*head, "", _lines(note.text)]))


def name(note: Note) -> str:
    """A note in a sentence."""
    named = f" “{note.title}”" if note.title else ""
    return f"note {note.id}{named} ({counted(len(note.text), 'character')})"


def print_hits(hits: Sequence[NoteHit], query: str, zone: ZoneInfo, *, scores: bool) -> None:
    """Print the passages that a search found, with a line where the confident ones end.

    A terminal shows the part of a passage that has the words of the query.
    """
    first, sure = True, any(hit.confident for hit in hits)
    for hit in hits:
        if sure and not hit.confident:
            sure = False
            print(f"{'' if first else chr(10)}Less sure:")
            first = True
        if not first:
            print()
        first = False
        print(_head(hit, zone))
        if scores:
            print(f"  {_scores(hit)}")
        tables.print_text(_passage(hit.text or "", query), indent="  ")


def sources(cited: Iterable[NoteSource], zone: ZoneInfo) -> list[str]:
    """The sources that an answer names, a line each with the number that it names them by."""
    return [_head(one, zone, f"[{one.number}] ") for one in cited]


def print_kept(note: Note, as_json: bool) -> None:
    """Print the note that a command wrote: its id, or all of it."""
    if as_json:
        tables.print_json(to_json(note))
    else:
        print(note.id)


def report_json(found: NotesReport) -> dict[str, Any]:
    """A report as JSON."""
    types = {name: to_json(counts) for name, counts in found.types.items()}
    return to_json(found) | {"types": types}


def print_report(found: NotesReport) -> None:
    """Print how many notes there are of each type, what waits, and which were never read."""
    rows = [
        (name, counts.notes, counts.chunks, counts.matches, counts.reads)
        for name, counts in found.types.items()
    ]
    tables.print_table(("type", "notes", "chunks", "found", "read"), rows, none="")
    if found.waiting:
        makes = "memchat jobs run makes the vectors now"
        lacks = "there is no embedding model, and memchat doctor tells how to get one"
        waiting = counted(found.waiting, "note")
        print(f"\nnot found by meaning yet: {waiting}; {makes if found.embeds else lacks}")
    if found.failed:
        failed = counted(found.failed, "note")
        print(f"\nvectors could not be made: {failed}; memchat jobs run tries again")
    if found.unread:
        print("\nFound by searches and never read:")
        unread = [
            (use.matches, use.note_id, use.type, use.title or UNTITLED) for use in found.unread
        ]
        tables.print_table(("found", "note", "type", "title"), unread, none="")


def _head(found: NoteHit | NoteSource, zone: ZoneInfo, mark: str = "") -> str:
    """Title, day and number of a note; a terminal shows as much of the title as fits a line."""
    title = tables.plain(found.title or UNTITLED)
    rest = f", {found.created_at.astimezone(zone).date()}, note {found.note_id}"
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - len(mark) - len(rest)
        title = shorten(title, max(room, tables.NARROWEST))
    return f"{mark}{title}{rest}"


def _scores(hit: NoteHit) -> str:
    """The score of a passage with the parts it is made of."""
    parts = [f"score {hit.score:.3f}"]
    parts += [] if hit.cosine is None else [f"meaning {hit.cosine:.2f}"]
    parts += [] if hit.bm25 is None else [f"words {hit.bm25:.2f}"]
    return ", ".join(parts)


def _passage(text: str, query: str) -> str:
    """A passage on one line; for a terminal no more than the part around the query's words."""
    text = " ".join(text.split())
    if len(text) <= EXCERPT or not sys.stdout.isatty():
        return text
    places = [found.start() for found in _words(query).finditer(text)]
    # The stretch that holds the most of the words.
    best = max(places or [0], key=lambda at: sum(at <= place < at + EXCERPT for place in places))
    start = max(0, min(best - EXCERPT // 4, len(text) - EXCERPT))
    start = text.rfind(" ", 0, start + 1) + 1
    end = start + EXCERPT
    cut = text[start:end] if end >= len(text) else text[start:end].rpartition(" ")[0]
    cut = cut or text[start:end]
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def _words(query: str) -> re.Pattern[str]:
    """The query's words as a text may have them, with other endings."""
    words = [word for word in re.findall(r"\w+", query) if len(word) >= _LEAST]
    return re.compile("|".join(rf"\b{re.escape(word)}" for word in words) or r"(?!)", re.I)


def _opening(text: str) -> str:
    """The first words of a text."""
    return shorten(" ".join(text[: 4 * OPENING].split()), OPENING)


def _lines(text: str) -> str:
    """A text with the line breaks of this system: a terminal shows others as errors."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
