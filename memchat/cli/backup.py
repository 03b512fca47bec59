"""``memchat backup``, ``restore`` and ``wipe``: copies of the whole store, and deleting it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import tables, text_input
from memchat.cli.options import Json, Yes, confirm, group, settings
from memchat.types import RestorePlan, counted

if TYPE_CHECKING:
    from memchat.app import MemChat
    from memchat.app.backups import Backups

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
        if str(file) == text_input.PIPED:
            _backups().write(text_input.out(), progress=bar.update)
        else:
            print(_backups().create(file, progress=bar.update).file)
    if file is not None:
        tables.notice(
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
        tables.print_records(found)
        return
    tables.print_table(
        ("made", "size", "schema", "forgotten words", "state", "file"),
        [
            (
                tables.time(backup.made_at, zone),
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
            tables.notice(backup.problem)


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
        tables.notice("there are no backups to delete")
        return
    for path in gone:
        tables.notice(f"{path.name}  {_size(path.lstat().st_size)}")
    confirm(f"Delete {counted(len(gone), 'backup')} for good?", yes=yes)
    tables.notice(f"deleted {counted(len(backups.delete(gone)), 'backup')}")


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
    made = tables.time(plan.backup.made_at, settings().zone)
    for line in _consequences(plan, made, keep_present=not no_backup):
        tables.notice(line)
    confirm(
        f"Replace the whole store by {plan.backup.file.name}?",
        yes=yes,
        why="this replaces the whole store",
    )
    with ProgressLine() as bar:
        kept = backups.restore(file, keep_present=not no_backup, progress=bar.update)
    tables.notice(f"restored {plan.backup.file}")
    if kept is not None:
        tables.notice(f"the store as it was before is {kept}")


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
    from memchat.app.wipe import wipe, wipe_files

    home = settings().home
    files = wipe_files(home, with_settings=with_settings)
    if not files:
        tables.notice(f"there is nothing of memchat to delete in {home}")
        return
    for path in files:
        tables.notice(str(path))
    _confirm_wipe(yes=yes)
    tables.notice(f"deleted {counted(len(wipe(home, with_settings=with_settings)), 'item')}")


def tell_forgotten(mc: MemChat) -> None:
    """Name the backups that still hold what was just forgotten, and how to delete them."""
    held = mc.backups.perhaps_forgotten()
    if held:
        tables.notice(
            f"forgotten words are still in {counted(len(held), 'backup')} "
            f"({', '.join(path.name for path in held)}); memchat backup prune NAME deletes one"
        )


def _backups() -> Backups:
    from memchat.app.backups import Backups

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
    if tables.answer("Type wipe to delete all of this for good:") != "wipe":
        tables.error("nothing was done")
        raise typer.Exit(2)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
