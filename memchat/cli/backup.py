"""Copies of what is kept: ``memchat backup``, ``restore`` and ``wipe`` for the whole store,
``memchat export`` and ``import`` for what is kept of a person."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer
from typer import Argument, BadParameter, Option

from memchat.cli import output
from memchat.cli.command import (
    DEFAULT_APP,
    PIPED,
    Call,
    Yes,
    command,
    confirm,
    group,
    out,
    settings,
    text_out,
)
from memchat.cli.output import ProgressLine
from memchat.types import REFUSED_MOST, RestorePlan, counted, counted_records, to_json

if TYPE_CHECKING:
    from memchat.api.store import Backups
    from memchat.types import Imported

app = group("Copy the whole store, list the copies, delete them; memchat restore brings one back.")


@command(app, without="user app as_json")
def create(_: Call, file: Path | None = Argument(None)) -> None:
    """Copy the whole store to a new file, check the copy, and print its path.

    Chats, the app and workers may go on meanwhile.

    :param file: The new file, - for standard output; without it one in the data folder, named after
        the time.
    """
    with ProgressLine() as line:
        if str(file) == PIPED:
            _backups().write(out(), progress=line.update)
        else:
            print(_backups().create(file, progress=line.update).file)
    if file is not None:
        output.notice(
            "backups under a name of your own are not in memchat backup list; when you forget "
            "something, delete them yourself"
        )


@command(app, "list", without="user app")
def list_backups(call: Call) -> None:
    """List the backups in the data folder, newest first.

    Those that memchat made before an upgrade or a restore are among them.
    """
    found, zone = _backups().list(), settings().zone
    call.table(
        found,
        {
            "made": lambda backup: output.time(backup.made_at, zone),
            "size": lambda backup: _size(backup.size),
            "schema": lambda backup: backup.schema or "",
            "forgotten words": lambda backup: {True: "yes", False: "no", None: "unknown"}[
                backup.holds_forgotten
            ],
            "state": lambda backup: "ok" if backup.problem is None else "unusable",
            "file": lambda backup: backup.file.name,
        },
        none="no backups; memchat backup create makes one",
    )
    for backup in () if call.as_json else found:
        if backup.problem is not None:
            output.notice(backup.problem)


@command(app, without="user app as_json")
def prune(
    _: Call,
    names: list[Path] | None = Argument(None, metavar="NAME"),
    keep: int | None = Option(None, min=0),
    yes: Yes = False,
) -> None:
    """Delete backups in the data folder, after showing which they are.

    Nothing else deletes a backup, except memchat wipe.

    :param names: Delete these, by their names in the list.
    :param keep: Delete all but so many of the newest that can be restored.
    """
    if (keep is None) == (not names):
        raise BadParameter(
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


@command(without="user app as_json")
def restore(_: Call, file: Path, no_backup: bool = False, yes: Yes = False) -> None:
    """Replace the whole store by a backup, after showing what is lost.

    No chat, app or worker may have the store open. The present store is kept as a backup.

    :param file: A backup, by path or by its name in the list.
    :param no_backup: Do not keep the present store as a backup.
    """
    backups = _backups()
    plan = backups.plan_restore(file)
    made = output.time(plan.backup.made_at, settings().zone)
    for told in _consequences(plan, made, keep_present=not no_backup):
        output.notice(told)
    confirm(
        f"Replace the whole store by {plan.backup.file.name}?",
        yes=yes,
        why="this replaces the whole store",
    )
    with ProgressLine() as line:
        kept = backups.restore(file, keep_present=not no_backup, progress=line.update)
    output.notice(f"restored {plan.backup.file}")
    if kept is not None:
        output.notice(f"the store as it was before is {kept}")


@command(without="user app as_json")
def wipe(_: Call, with_settings: bool = False, yes: Yes = False) -> None:
    """Delete what memchat keeps of all users; settings, keys and MiniLM stay.

    What goes: the store, its backups and index, the logs, and models fetched into the data folder.
    What stays: settings, keys and your own prompts, unless --with-settings is given; MiniLM in
    your cache folder and models in a folder that MEMCHAT_MODELS names; any other file. Shows the
    files first and asks for the word “wipe”.

    :param with_settings: Also delete settings.toml, keys.toml and your own prompts.
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


@command(without="app")
def export(
    call: Call,
    file: Path,
    app: str | None = Option(None, show_default="every app"),
    format: Format = Format.JSONL,
) -> None:
    """Write what is kept of a person into a file, for another store or to read.

    Memories with their history, notes, conversations, and what waits in the inbox; no keys and no
    settings. A backup has the rest. Only your account may read the file; nothing is encrypted.

    :param file: A file that is not there yet, - for standard output.
    :param app: Only what is kept in this app.
    :param format: jsonl, which import reads; markdown, a page for people.
    """
    is_piped = str(file) == PIPED
    if is_piped and call.as_json:
        raise BadParameter("with - standard output is the export itself; leave out --json")
    call.app = app or DEFAULT_APP
    to: AbstractContextManager[Path | TextIO] = text_out() if is_piped else nullcontext(file)
    person = call.known
    with ProgressLine() as line, to as target:
        done = person.export_file(
            target, format=format.value, all_apps=app is None, progress=line.update
        )
    said = f"{counted_records(done.records)} of {call.user} written to {done.file}"
    if is_piped:
        output.notice(said)
    else:
        call.result(to_json(done) | {"file": str(done.file)}, said)


@command(without="app")
def import_(call: Call, file: Path, dry_run: bool = False) -> None:
    """Read an export back, as this user's own.

    What is here already stays as it is, but a note that was changed elsewhere later than here is
    taken from there. What was forgotten or deleted here stays away. All of it is imported or, where
    the file is broken, nothing.

    :param file: What memchat export wrote.
    :param dry_run: Store nothing; say what would be done.
    """
    person = call.person
    with ProgressLine() as line:
        done = person.import_file(file, dry_run=dry_run, progress=line.update)
    if call.as_json:
        output.print_json(done)
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
