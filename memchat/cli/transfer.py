"""``memchat export`` and ``memchat import``: everything of a person as a file, and back."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from memchat.cli import tables, text_input
from memchat.cli.options import DEFAULT_APP, Json, User, known_app, open_store
from memchat.types import REFUSED_MOST, counted, counted_records, to_json

if TYPE_CHECKING:
    from memchat.types import Imported


class Format(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


OneApp = Annotated[
    str | None,
    typer.Option("--app", help="Only what is kept in this app.", show_default="every app"),
]


def export(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A file that is not there yet, - for standard output."),
    ],
    user: User,
    app: OneApp = None,
    format: Annotated[
        Format,
        typer.Option("--format", help="jsonl, which import reads; markdown, a page for people."),
    ] = Format.JSONL,
    as_json: Json = False,
) -> None:
    """Write everything that is kept of a person into a file.

    Memories with their history, notes, conversations, the inbox, and what replies were given; no
    keys and no settings. Only your account may read the file; nothing in it is encrypted.
    """
    from memchat.cli.progress import ProgressLine

    piped = str(file) == text_input.PIPED
    if piped and as_json:
        raise typer.BadParameter("with - standard output is the export itself; leave out --json")
    to: AbstractContextManager[Path | TextIO] = (
        text_input.text_out() if piped else nullcontext(file)
    )
    with open_store() as mc, ProgressLine() as line, to as out:
        person = known_app(mc, user, app or DEFAULT_APP)
        done = person.export_file(
            out, format=format.value, all_apps=app is None, progress=line.update
        )
    said = f"{counted_records(done.records)} of {user} written to {done.file}"
    if piped:
        tables.notice(said)
    else:
        tables.print_result(to_json(done) | {"file": str(done.file)}, said, as_json)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What memchat export wrote.")],
    user: User,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store nothing; say what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read an export back, as this user's own.

    What is here already stays as it is, but a note that was changed elsewhere later than here is
    taken from there. What was forgotten or deleted here stays away. All of it is imported or, where
    the file is broken, nothing.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        with ProgressLine() as line:
            done = mc.user(user).import_file(file, dry_run=dry_run, progress=line.update)
        if as_json:
            tables.print_json(to_json(done))
        else:
            _say(done)


def _say(done: Imported) -> None:
    print(f"{counted_records(done.added)} {'would be imported' if done.dry_run else 'imported'}")
    if done.known:
        print(f"here already, and left as they are: {counted_records(done.known)}")
    if done.forgotten:
        print(f"forgotten here, and left out: {counted_records({'memory': done.forgotten})}")
    if done.deleted_notes:
        print(f"deleted here, and left out: {counted(done.deleted_notes, 'note')}")
    if done.changed_notes:
        changed = counted(done.changed_notes, "note")
        print(f"changed elsewhere later than here, and taken from there: {changed}")
    if done.unread:
        print(f"not read yet: {counted(done.unread, 'session')}; memchat jobs run reads what waits")
    if done.unembedded:
        waiting = counted(done.unembedded, "vector")
        print(f"found by their words so far: {waiting} to be made; memchat backfill makes them now")
    for one in done.refused[:REFUSED_MOST]:
        tables.notice(tables.plain(f"line {one.line} was refused: {one.reason}"))
    if len(done.refused) > REFUSED_MOST:
        tables.notice(f"{len(done.refused):,} lines were refused; --json lists all of them")
