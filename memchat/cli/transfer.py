"""What goes out of a store and comes into it: ``memchat export`` and ``import``."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, TextIO

import typer
from typer import Argument, BadParameter, Option

from memchat.cli import command as cli
from memchat.cli import output
from memchat.cli.output import ProgressLine
from memchat.types import REFUSED_MOST, ImportedHistory, counted, counted_records, to_json

ExportFormat = Literal["jsonl", "markdown", "zip", "prompt"]


@cli.command(without="app")
def export(
    call: cli.Call,
    file: Path,
    app: str | None = Option(None, show_default="every app"),
    format: ExportFormat = "jsonl",
) -> None:
    """Write what is kept of a person into a file, for another store, to read or to give away.

    Memories with their history, notes, conversations, and what waits in the inbox; no keys and no
    settings. A backup has the rest. Only your account may read the file; nothing is encrypted.

    :param file: A file that is not there yet, - for standard output.
    :param app: Only what is kept in this app.
    :param format: jsonl, which import reads; zip, the same with the files of notes; markdown, a
        page for people; prompt, lines for another assistant, without what is sensitive.
    """
    export_to(call, file, format, app)


def export_to(call: cli.Call, file: Path, format: str, app: str | None) -> None:
    is_piped = str(file) == cli.PIPED
    if is_piped and call.as_json:
        raise BadParameter("with - standard output is the export itself; leave out --json")
    call.app = app or cli.DEFAULT_APP
    to: AbstractContextManager[Path | TextIO | BinaryIO] = nullcontext(file)
    if is_piped:
        to = nullcontext(cli.out()) if format == "zip" else cli.text_out()
    person = call.known
    with ProgressLine() as line, to as target:
        done = person.export_file(target, format=format, all_apps=app is None, progress=line.update)
    said = f"{counted_records(done.records)} of {call.user} written to {done.file}"
    if is_piped:
        output.notice(said)
    else:
        call.result(to_json(done) | {"file": str(done.file)}, said)


HistoryFile = Annotated[
    Path | None,
    Argument(
        metavar="FILE",
        show_default=False,
        help="A file, zip file or folder that another assistant exported, JSON with messages, "
        'Markdown, lines of "- [date] fact", or what memchat export wrote.',
    ),
]


@cli.command()
def import_(
    call: cli.Call,
    file: HistoryFile = None,
    learn: Literal["now", "later", "no"] = "later",
    newest: int = 200,
    max_calls: int | None = Option(None, min=0),
    max_cost: float | None = Option(None, min=0),
    undo: str | None = None,
    audit: bool = False,
    format: Literal["markdown", "html"] = "markdown",
    to: Path | None = Option(None, "--output", "-o", show_default="standard output"),
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Import your history from another assistant, or read an export of memchat back.

    What there is, and what would be done, is shown before; nothing is stored without a yes. A
    second import adds only what is new, and what was forgotten or deleted here stays away. See
    docs/import.md.

    An export of memchat becomes this user's own. What is here already stays as it is, but a note
    that was changed elsewhere later than here is taken from there. All of it is imported or, where
    the file is broken, nothing.

    :param learn: When the newest conversations are read for memories: now, later (by memchat jobs
        run or a worker), or no: they are kept and found, and not read.
    :param newest: How many conversations are read.
    :param max_calls: Read as many of them as take so many calls of the model.
    :param max_cost: Read as many of them as cost so many US dollars, as estimated.
    :param undo: Take back the import with this id instead, "last" for the latest one.
    :param audit: Look through it instead, without a store: duplicates, contradictions, stale facts,
        junk, secrets (counted, not shown) and restated system prompts, as one page.
    :param format: How that page is written.
    :param to: A file that is not there yet, for the page.
    :param dry_run: Store nothing; say what would be done.
    """
    if undo is not None:
        cli.confirm(f"Delete what the import {undo} added, and what only that taught?", yes=yes)
        deleted = call.known.undo_import(undo)
        gone = {"session": deleted.sessions, "memory": deleted.memories}
        call.result(to_json(deleted), f"{counted_records(gone)} deleted")
        return
    if file is None:
        raise BadParameter("name the file or folder to import; memchat import --help tells which")
    if audit:
        _audit(call, file, to, as_html=format == "html")
        return
    told: list[int] = []

    def done(dry_run: bool) -> ImportedHistory:
        with ProgressLine() as line:
            return call.person.import_history(
                file, learn=learn, newest=newest, max_calls=max_calls, max_cost=max_cost,
                dry_run=dry_run, progress=line.update,
            )  # fmt: skip

    plan = done(dry_run=True)
    if plan.product == "memchat":
        _import_own(call, file, dry_run)
        return
    if not dry_run:
        if not call.as_json:
            _tell(plan)
        cli.confirm("Import it?", yes=yes, why="the lines above say what would be imported")
        reading = cli.stopping(call.mc.jobs.stop) if learn == "now" else nullcontext(told)
        with reading as told:
            plan = done(dry_run=False)
    if call.as_json:
        output.print_json(plan)
    else:
        _tell_imported(plan)
    if told:
        raise typer.Exit(130)


def _tell_imported(plan: ImportedHistory) -> None:
    dry_run = plan.dry_run
    if dry_run:
        _tell(plan)
    print(f"{counted_records(plan.added)} {'would be imported' if dry_run else 'imported'}")
    if asked := plan.added.get("inbox_item"):
        print(f"{counted(asked, 'saved fact')} to say yes or no to: memchat inbox list")
    if plan.waiting:
        whole = counted(plan.to_read, "conversation")
        read = f"{plan.to_read - plan.waiting} of {whole} read for memories"
        print(f"{read}; memchat jobs run, or the same import again, goes on with the rest")
    if plan.id is not None:
        print(f"memchat import --undo {plan.id} takes the import back")


def _audit(call: cli.Call, file: Path, to: Path | None, *, as_html: bool) -> None:
    from memchat.disk import replacing
    from memchat.transfer import history_audit
    from memchat.transfer.export import check_new

    if to is not None:
        check_new(to.expanduser())
    today = datetime.now(cli.settings().zone).date()
    with ProgressLine() as line:
        done = history_audit.audit(file.expanduser(), today, line.update)
    if call.as_json:
        output.print_json(done)
        return
    with cli.text_out() if to is None else replacing(to.expanduser()) as out:
        out.write(history_audit.page(done, file.name, today, as_html=as_html))
    if to is not None:
        output.notice(f"the page is in {to}; open it to see what was found")


def _tell(plan: ImportedHistory) -> None:
    for line in plan.told():
        print(output.plain(line))


def _import_own(call: cli.Call, file: Path, dry_run: bool) -> None:
    with ProgressLine() as line:
        done = call.person.import_file(file, dry_run=dry_run, progress=line.update)
    if call.as_json:
        output.print_json(done)
        return
    unread, vectors = counted(done.unread, "session"), counted(done.unembedded, "vector")
    told = {
        **dict.fromkeys(done.told(), True),
        f"not read yet: {unread}; memchat jobs run reads what waits": done.unread,
        f"found by their words so far: {vectors} to be made; memchat backfill makes them now": (
            done.unembedded
        ),
    }
    print(f"{counted_records(done.added)} {'would be imported' if dry_run else 'imported'}")
    for said, some in told.items():
        if some:
            print(said)
    for one in done.refused[:REFUSED_MOST]:
        output.notice(output.plain(f"line {one.line} was refused: {one.reason}"))
    if len(done.refused) > REFUSED_MOST:
        output.notice(f"{len(done.refused):,} lines were refused; --json lists all of them")


db_group = cli.group("See where the store is, and copy all of it into PostgreSQL or back.")


@cli.command(db_group, without="user app")
def status(call: cli.Call) -> None:
    """Say where the store is, what keeps it, and how many rows it has in each table."""
    from memchat.transfer import stores

    settings = cli.settings()
    place = str(settings.home) if settings.database_url is None else "env"
    with closing(stores.open_store(place, settings)) as store:
        found = stores.status(store)
    if call.as_json:
        output.print_json(found)
        return
    for line in (f"store   {found.store}", f"engine  {found.engine}", f"schema  {found.schema}"):
        print(output.plain(line))
    filled = [[name, str(count)] for name, count in found.rows.items() if count]
    output.print_table(["table", "rows"], filled, none="nothing is in it yet")


@cli.command(db_group, without="user app")
def copy(call: cli.Call, source: str, target: str) -> None:
    """Copy a whole store into an empty one, and check that both are the same.

    All users, with vectors and what was forgotten, so that no model is called. Settings, keys and
    prompts stay in their folder. End chats, the app and workers before: what they write meanwhile
    is not in the copy. One that is broken off leaves nothing; run it again.

    Each of the two is a data folder, a postgresql:// address, or the word env for the address in
    MEMCHAT_DATABASE_URL. Others on the machine can read a password that stands on a command line.

    :param source: The store that is copied, which stays as it is.
    :param target: Where to: a folder without a store, or a database or schema without one.
    """
    from memchat.transfer import stores

    settings = cli.settings()
    with (
        closing(stores.open_store(source, settings)) as old,
        closing(stores.open_store(target, settings, new=True)) as new,
        ProgressLine() as line,
    ):
        copied = stores.copy(old, new, line.update)
    shown = copied if call.as_json else [one for one in copied if one.rows]
    call.table(shown, "table rows sha256", none="", sha256=lambda one: one.sha256[:16])
    rows = counted(sum(one.rows for one in copied), "row")
    output.notice(f"{rows} copied; counts and hashes of all tables are the same on both sides")
