"""``memchat notes add`` and ``watch``: texts and files become notes.

Notes as the command line shows them: rows of a list, one note, found passages, sources.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memchat.cli import options, output
from memchat.cli.log import stopping
from memchat.cli.options import App, Json, User, open_store
from memchat.cli.output import shorten
from memchat.errors import InputError, MemChatError
from memchat.types import Job, Note, NoteHit, NoteSource, NotesReport, counted, to_json

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from memchat.api import MemChat
    from memchat.api.notes import Notes
    from memchat.api.results import FileChange, FilesAdded

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
    return note.id, output.time(note.created_at, zone), note.type, title, state(note, job)


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
        "date": output.time(note.created_at, zone),
        "type": note.type,
        "app": note.app,
        "changed": output.time(note.updated_at, zone) if note.updated_at else "",
        "state": state(note, job),
        "source": "" if _MADE_UP.fullmatch(str(note.external_id)) else str(note.external_id),
        "length": f"{counted(len(note.text), 'character')}, {counted(note.chunks, 'chunk')}",
    }
    head = [f"{name:<8}  {content}" for name, content in lines.items() if content]
    return output.plain("\n".join([*head, "", _lines(note.text)]))


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
        output.print_text(_passage(hit.text or "", query), indent="  ")


def sources(cited: Iterable[NoteSource], zone: ZoneInfo) -> list[str]:
    """The sources that an answer names, a line each with the number that it names them by."""
    return [_head(one, zone, f"[{one.number}] ") for one in cited]


def print_kept(note: Note, as_json: bool) -> None:
    """Print the note that a command wrote: its id, or all of it."""
    if as_json:
        output.print_json(to_json(note))
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
    output.print_table(("type", "notes", "chunks", "found", "read"), rows, none="")
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
        output.print_table(("found", "note", "type", "title"), unread, none="")


def _head(found: NoteHit | NoteSource, zone: ZoneInfo, mark: str = "") -> str:
    """Title, day and number of a note; a terminal shows as much of the title as fits a line."""
    title = output.plain(found.title or UNTITLED)
    rest = f", {found.created_at.astimezone(zone).date()}, note {found.note_id}"
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - len(mark) - len(rest)
        title = shorten(title, max(room, output.NARROWEST))
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


Title = Annotated[str | None, typer.Option("--title", help="Its title.", show_default=False)]


def moment(text: str) -> datetime:
    """A day, or a day and a time, in no zone."""
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None or len(text) not in (len("YYYY-MM-DD"), len("YYYY-MM-DD HH:MM")):
            raise ValueError
        return at
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no date; write it as YYYY-MM-DD or 'YYYY-MM-DD HH:MM'"
        ) from None


def add(
    user: User,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Files, or folders with all files in them; - for a text on standard input.",
            show_default=False,
        ),
    ] = None,
    app: App = "default",
    text: Annotated[
        str | None, typer.Option("--text", help="The text of a memo.", show_default=False)
    ] = None,
    title: Title = None,
    said_at: Annotated[
        datetime | None,
        typer.Option(
            "--date",
            parser=moment,
            metavar="YYYY-MM-DD",
            help="When it was said or written; with a time as 'YYYY-MM-DD HH:MM' (default: now).",
            show_default=False,
        ),
    ] = None,
    external_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="An id of your own: the same type and id again replace the note.",
            show_default=False,
        ),
    ] = None,
    note_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="What it is, in a word of yours: memo (the default), document, letter …",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Keep files, or one text, as notes. Prints their ids.

    A file that is here already and has not changed is passed by; one that has changed replaces its
    note. What cannot be read is named with the reason, and the exit code is then 1.

    Example: memchat notes add talks/ letter.pdf
    """
    of_text: dict[str, Any] = {
        name: value
        for name, value in (
            ("title", title),
            ("created_at", said_at),
            ("external_id", external_id),
            ("type", note_type),
        )
        if value is not None
    }
    if files and text is not None:
        raise typer.BadParameter("give either files or --text")
    if files and options.PIPED not in map(str, files):
        if of_text:
            raise typer.BadParameter("--title, --date, --id and --type go with --text or -")
        _add_files(user, app, files, as_json=as_json)
    elif files is not None and len(files) > 1:
        raise typer.BadParameter("- is one text alone; give files in a call of their own")
    elif text is None and not files and sys.stdin.isatty():
        raise typer.BadParameter("name files, give --text, or - to write a text until Ctrl-D")
    else:
        _add_text(user, app, text, of_text, as_json=as_json)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to watch.", show_default=False)
    ],
    user: User,
    app: App = "default",
    as_json: Json = False,
) -> None:
    """Keep the files of a folder as notes, and go on as they change, until Ctrl-C.

    A line tells what became of each file. The note of a file that is gone stays, and is marked.
    What cannot be read is named with the reason, and read again when it changes.
    """
    from threading import Event

    stop = Event()
    with open_store() as mc:
        notes = mc.user(user, app=app).notes
        if folder.is_dir():
            output.notice(f"watching {folder}; Ctrl-C ends it")
        with stopping(stop.set):
            notes.watch(folder, on_change=_changed_json if as_json else _changed, stop=stop)
        output.notice("ended; what changes now is kept the next time")


def _changed(change: FileChange) -> None:
    """Print what became of a file."""
    if change.note is None:
        output.error(f"{change.path}: {change.reason}")
        return
    title = change.note.title or UNTITLED
    print(output.plain(f"{change.what:<8} {change.note.id}  {title}"), flush=True)


def _changed_json(change: FileChange) -> None:
    note = None if change.note is None else without_text(change.note)
    output.print_json(to_json(change) | {"note": note}, indent=None)
    sys.stdout.flush()


def _add_text(
    user: str, app: str, text: str | None, of_text: dict[str, Any], *, as_json: bool
) -> None:
    """Keep one text, that of standard input where none is given."""
    with open_store() as mc:
        if "created_at" in of_text:
            of_text["created_at"] = of_text["created_at"].replace(tzinfo=mc.settings.zone)
        profile = "document" if of_text.get("type") == "document" else "memo"
        words = options.piped() if text is None else text
        note = mc.user(user, app=app).notes.add(words, profile=profile, **of_text)
        if note is None:
            raise InputError("the text has no words; nothing was kept")
        print_kept(note, as_json)


def _add_files(user: str, app: str, files: list[Path], *, as_json: bool) -> None:
    """Keep files; those that cannot be read are named, and the exit code is then 1."""
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        notes = mc.user(user, app=app).notes
        try:
            with ProgressLine() as line:
                done = notes.add_files(files, on_progress=line.update)
        except KeyboardInterrupt:
            output.notice("stopped; what was added is kept, and adding it all again goes on there")
            raise
        if as_json:
            added = [without_text(note) for note in done.added]
            output.print_json(to_json(done) | {"added": added})
        for note in () if as_json else done.added:
            print(output.plain(f"{note.id}  {note.title or UNTITLED}"))
        for failure in done.failed:
            output.error(f"{failure.path}: {failure.reason}")
        output.notice(_counts(done))
        _make_vectors(mc, user)
    if done.failed:
        raise typer.Exit(1)


def _make_vectors(mc: MemChat, user: str) -> None:
    """Make the vectors of notes that still wait, as after an addition that was broken off."""
    try:
        mc.jobs.run(user=user, kinds=("note",))
    except MemChatError as error:
        output.error(f"kept, but not yet found by meaning: {error}")


def _counts(done: FilesAdded) -> str:
    """How many files were added, were here already, and failed."""
    parts = [f"{counted(len(done.added), 'note')} added"]
    parts += [f"{done.unchanged:,} unchanged"] if done.unchanged else []
    parts += [f"{len(done.failed):,} failed"] if done.failed else []
    return ", ".join(parts)
