"""``memchat backup``, ``restore`` and ``wipe``: copies of the whole store, and deleting it.

``memchat export`` and ``memchat import``: what is kept of a person as a file, and back.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from memchat.cli import options, output
from memchat.cli.options import (
    DEFAULT_APP,
    Json,
    User,
    Yes,
    confirm,
    group,
    known_app,
    open_store,
    settings,
)
from memchat.types import REFUSED_MOST, RestorePlan, counted, counted_records, to_json

if TYPE_CHECKING:
    from memchat.api import MemChat
    from memchat.api.store import Backups
    from memchat.types import Imported

app = group("Copy the whole store, list the copies, delete them; memchat restore brings one back.")


@app.command()
def create(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The new file, - for standard output; without it one in the data folder, named "
            "after the time.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Copy the whole store to a new file, check the copy, and print its path.

    Chats, the app and workers may go on meanwhile.
    """
    from memchat.cli.progress import ProgressLine

    with ProgressLine() as bar:
        if str(file) == options.PIPED:
            _backups().write(options.out(), progress=bar.update)
        else:
            print(_backups().create(file, progress=bar.update).file)
    if file is not None:
        output.notice(
            "backups under a name of your own are not in memchat backup list; when you forget "
            "something, delete them yourself"
        )


@app.command("list")
def list_backups(as_json: Json = False) -> None:
    """List the backups in the data folder, newest first.

    Those that memchat made before an upgrade or a restore are among them.
    """
    backups, zone = _backups(), settings().zone
    found = backups.list()
    if as_json:
        output.print_records(found)
        return
    output.print_table(
        ("made", "size", "schema", "forgotten words", "state", "file"),
        [
            (
                output.time(backup.made_at, zone),
                _size(backup.size),
                backup.schema or "",
                {True: "yes", False: "no", None: "unknown"}[backup.holds_forgotten],
                "ok" if backup.problem is None else "unusable",
                backup.file.name,
            )
            for backup in found
        ],
        none="no backups; memchat backup create makes one",
    )
    for backup in found:
        if backup.problem is not None:
            output.notice(backup.problem)


@app.command()
def prune(
    names: Annotated[
        list[Path] | None,
        typer.Argument(metavar="NAME", help="Delete these, by their names in the list."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            min=0,
            help="Delete all but so many of the newest that can be restored.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete backups in the data folder, after showing which they are.

    Nothing else deletes a backup, except memchat wipe.
    """
    if (keep is None) == (not names):
        raise typer.BadParameter(
            "say how many of the newest to keep (--keep 1), or name backups to delete"
        )
    backups = _backups()
    gone = backups.named(names) if names else backups.prunable(keep=keep or 0)
    if not gone:
        output.notice("there are no backups to delete")
        return
    for path in gone:
        output.notice(f"{path.name}  {_size(path.lstat().st_size)}")
    confirm(f"Delete {counted(len(gone), 'backup')} for good?", yes=yes)
    output.notice(f"deleted {counted(len(backups.delete(gone)), 'backup')}")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A backup, by path or by its name in the list.")
    ],
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Do not keep the present store as a backup.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Replace the whole store by a backup, after showing what is lost.

    No chat, app or worker may have the store open. The present store is kept as a backup.
    """
    from memchat.cli.progress import ProgressLine

    backups = _backups()
    plan = backups.plan_restore(file)
    made = output.time(plan.backup.made_at, settings().zone)
    for line in _consequences(plan, made, keep_present=not no_backup):
        output.notice(line)
    confirm(
        f"Replace the whole store by {plan.backup.file.name}?",
        yes=yes,
        why="this replaces the whole store",
    )
    with ProgressLine() as bar:
        kept = backups.restore(file, keep_present=not no_backup, progress=bar.update)
    output.notice(f"restored {plan.backup.file}")
    if kept is not None:
        output.notice(f"the store as it was before is {kept}")


def wipe(
    with_settings: Annotated[
        bool,
        typer.Option(
            "--with-settings", help="Also delete settings.toml, keys.toml and your own prompts."
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete what memchat keeps of all users; settings, keys and MiniLM stay.

    What goes: the store, its backups and index, the logs, and models fetched into the data folder.
    What stays: settings, keys and your own prompts, unless --with-settings is given; MiniLM in
    your cache folder and models in a folder that MEMCHAT_MODELS names; any other file. Shows the
    files first and asks for the word “wipe”.
    """
    from memchat.api.store import wipe, wipe_files

    home = settings().home
    files = wipe_files(home, with_settings=with_settings)
    if not files:
        output.notice(f"there is nothing of memchat to delete in {home}")
        return
    for path in files:
        output.notice(str(path))
    _confirm_wipe(yes=yes)
    output.notice(f"deleted {counted(len(wipe(home, with_settings=with_settings)), 'item')}")


def tell_forgotten(mc: MemChat) -> None:
    """Name the backups that still hold what was just forgotten, and how to delete them."""
    held = mc.backups.perhaps_forgotten()
    if held:
        output.notice(
            f"forgotten words are still in {counted(len(held), 'backup')} "
            f"({', '.join(path.name for path in held)}); memchat backup prune NAME deletes one"
        )


def _backups() -> Backups:
    from memchat.api.store import Backups

    return Backups(settings().home)


def _consequences(plan: RestorePlan, made: str, *, keep_present: bool) -> list[str]:
    """What the restore would take away and bring back."""
    if plan.store_problem is not None:
        lines = [f"the present store cannot be read ({plan.store_problem}); all of it is replaced"]
    else:
        lost = ", ".join(
            (
                f"{plan.memories:,} memor{'y' if plan.memories == 1 else 'ies'}",
                counted(plan.sessions, "session"),
                counted(plan.messages, "message"),
                counted(plan.inbox_items, "open inbox item"),
                counted(plan.notes, "note"),
            )
        )
        lines = [
            f"the present store has these, and the backup of {made} has not: {lost}",
            "they are lost, and so is every change since then to what both have",
        ]
    if plan.backup.holds_forgotten is not False:
        verb = "comes" if plan.backup.holds_forgotten else "may come"
        lines.append(f"what was forgotten or deleted since the backup was made {verb} back")
    kept = "is kept as a backup" if keep_present else "is not kept"
    return [*lines, f"the present store {kept}"]


def _confirm_wipe(*, yes: bool) -> None:
    """Return if the person types the word. Without a terminal only ``--yes`` agrees."""
    if yes:
        return
    if not sys.stdin.isatty():
        confirm("", yes=False)
    if output.answer("Type wipe to delete all of this for good:") != "wipe":
        output.error("nothing was done")
        raise typer.Exit(2)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


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
    """Write what is kept of a person into a file, for another store or to read.

    Memories with their history, notes, conversations, and what waits in the inbox; no keys and no
    settings. A backup has the rest. Only your account may read the file; nothing is encrypted.
    """
    from memchat.cli.progress import ProgressLine

    piped = str(file) == options.PIPED
    if piped and as_json:
        raise typer.BadParameter("with - standard output is the export itself; leave out --json")
    to: AbstractContextManager[Path | TextIO] = options.text_out() if piped else nullcontext(file)
    with open_store() as mc, ProgressLine() as line, to as out:
        person = known_app(mc, user, app or DEFAULT_APP)
        done = person.export_file(
            out, format=format.value, all_apps=app is None, progress=line.update
        )
    said = f"{counted_records(done.records)} of {user} written to {done.file}"
    if piped:
        output.notice(said)
    else:
        output.print_result(to_json(done) | {"file": str(done.file)}, said, as_json)


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
            output.print_json(to_json(done))
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
    if done.left_out:
        records = counted(sum(done.left_out.values()), "record")
        print(
            f"no part of an export any more, and left out: {records} ({', '.join(done.left_out)})"
        )
    if done.unread:
        print(f"not read yet: {counted(done.unread, 'session')}; memchat jobs run reads what waits")
    if done.unembedded:
        waiting = counted(done.unembedded, "vector")
        print(f"found by their words so far: {waiting} to be made; memchat backfill makes them now")
    for one in done.refused[:REFUSED_MOST]:
        output.notice(output.plain(f"line {one.line} was refused: {one.reason}"))
    if len(done.refused) > REFUSED_MOST:
        output.notice(f"{len(done.refused):,} lines were refused; --json lists all of them")
