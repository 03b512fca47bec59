"""``memchat notes add`` and ``watch``: texts and files become notes."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memchat.cli import note_details, tables, text_input
from memchat.cli.options import App, Json, User, open_store
from memchat.cli.signals import stopping
from memchat.errors import InputError, MemChatError
from memchat.types import counted, to_json

if TYPE_CHECKING:
    from memchat.app import MemChat
    from memchat.app.results import FileChange, FilesAdded

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
    if files and text_input.PIPED not in map(str, files):
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
            tables.notice(f"watching {folder}; Ctrl-C ends it")
        with stopping(stop.set):
            notes.watch(folder, on_change=_changed_json if as_json else _changed, stop=stop)
        tables.notice("ended; what changes now is kept the next time")


def _changed(change: FileChange) -> None:
    """Print what became of a file."""
    if change.note is None:
        tables.error(f"{change.path}: {change.reason}")
        return
    title = change.note.title or note_details.UNTITLED
    print(tables.plain(f"{change.what:<8} {change.note.id}  {title}"), flush=True)


def _changed_json(change: FileChange) -> None:
    note = None if change.note is None else note_details.without_text(change.note)
    tables.print_json(to_json(change) | {"note": note}, indent=None)
    sys.stdout.flush()


def _add_text(
    user: str, app: str, text: str | None, of_text: dict[str, Any], *, as_json: bool
) -> None:
    """Keep one text, that of standard input where none is given."""
    with open_store() as mc:
        if "created_at" in of_text:
            of_text["created_at"] = of_text["created_at"].replace(tzinfo=mc.settings.zone)
        profile = "document" if of_text.get("type") == "document" else "memo"
        words = text_input.piped() if text is None else text
        note = mc.user(user, app=app).notes.add(words, profile=profile, **of_text)
        if note is None:
            raise InputError("the text has no words; nothing was kept")
        note_details.print_kept(note, as_json)


def _add_files(user: str, app: str, files: list[Path], *, as_json: bool) -> None:
    """Keep files; those that cannot be read are named, and the exit code is then 1."""
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        notes = mc.user(user, app=app).notes
        try:
            with ProgressLine() as line:
                done = notes.add_files(files, on_progress=line.update)
        except KeyboardInterrupt:
            tables.notice("stopped; what was added is kept, and adding it all again goes on there")
            raise
        if as_json:
            added = [note_details.without_text(note) for note in done.added]
            tables.print_json(to_json(done) | {"added": added})
        for note in () if as_json else done.added:
            print(tables.plain(f"{note.id}  {note.title or note_details.UNTITLED}"))
        for failure in done.failed:
            tables.error(f"{failure.path}: {failure.reason}")
        tables.notice(_counts(done))
        _make_vectors(mc, user)
    if done.failed:
        raise typer.Exit(1)


def _make_vectors(mc: MemChat, user: str) -> None:
    """Make the vectors of notes that still wait, as after an addition that was broken off."""
    try:
        mc.jobs.run(user=user, kinds=("note",))
    except MemChatError as error:
        tables.error(f"kept, but not yet found by meaning: {error}")


def _counts(done: FilesAdded) -> str:
    """How many files were added, were here already, and failed."""
    parts = [f"{counted(len(done.added), 'note')} added"]
    parts += [f"{done.unchanged:,} unchanged"] if done.unchanged else []
    parts += [f"{len(done.failed):,} failed"] if done.failed else []
    return ", ".join(parts)
