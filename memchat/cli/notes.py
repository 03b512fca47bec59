"""``memchat notes``: memos and documents that can be searched and asked."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from memchat.cli import backup, note_files, options, output
from memchat.cli.chosen import ALL, Ids, Query, agree, chosen, in_turn, leave, listed, print_each
from memchat.cli.options import (
    All,
    App,
    Json,
    Limit,
    Offset,
    User,
    Yes,
    confirm,
    day,
    group,
    known_app,
    open_store,
)
from memchat.types import counted, to_json

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from memchat.cli.progress import ProgressLine
    from memchat.notes.ask import NotesAnswer

MANY_CALLS = 5
"""Calls of a model beyond which a person is asked before an answer is made."""


class _Period(TypedDict):
    """The ends of a period, as the verbs on notes take them."""

    since: datetime | None
    until: datetime | None


app = group("Keep memos and documents, search them, and ask them questions.")

Id = Annotated[int, typer.Argument(metavar="ID", help="The note's number.", show_default=False)]
OfType = Annotated[
    str | None,
    typer.Option(
        "--type", help="Only notes of this type: memo, document, file …", show_default=False
    ),
]
Since = Annotated[
    date | None,
    typer.Option(
        "--since",
        parser=day,
        metavar="YYYY-MM-DD",
        help="Only notes of this day or a later one.",
        show_default=False,
    ),
]
Until = Annotated[
    date | None,
    typer.Option(
        "--until",
        parser=day,
        metavar="YYYY-MM-DD",
        help="Only notes of this day or an earlier one.",
        show_default=False,
    ),
]

app.command()(note_files.add)
app.command()(note_files.watch)


@app.command("list")
def list_notes(
    user: User,
    app: App = "default",
    note_type: OfType = None,
    limit: Limit = 50,
    offset: Offset = 0,
    as_json: Json = False,
) -> None:
    """List notes, newest first."""
    with open_store() as mc:
        notes = known_app(mc, user, app).notes
        page = notes.list(type=note_type, limit=offset + limit)
        found = page[offset:]
        if as_json:
            output.print_json([note_files.without_text(note) for note in found])
            return
        jobs = note_files.unfinished(mc, user, [note.id for note in found])
        zone = mc.settings.zone
        output.print_table(
            note_files.HEADINGS,
            [note_files.row(notes, note, jobs.get(note.id), zone) for note in found],
            none=f"no notes of {user} in {app}; memchat notes add keeps some",
            more=f"go on with --offset {offset + limit}" if page.cursor else "",
        )


@app.command("show")
def show_note(note_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """Show one note, whole."""
    import shutil

    with open_store() as mc:
        note = mc.user(user, app=app).notes.get(note_id)
        if as_json:
            output.print_json(to_json(note))
        else:
            job = note_files.unfinished(mc, user, [note_id]).get(note_id)
            shown = note_files.whole(note, job, mc.settings.zone)
            output.page(shown, shutil.get_terminal_size().lines)


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    user: User,
    app: App = "default",
    limit: Limit = 10,
    note_type: OfType = None,
    since: Since = None,
    until: Until = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Show how well each passage fits.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """Search notes for passages.

    By meaning and words, best first. Behind what surely has to do with the question come the
    best of the rest, under "Less sure:"; where nothing surely has, three of them are printed.
    """
    with open_store() as mc:
        notes, zone = known_app(mc, user, app).notes, mc.settings.zone
        found = notes.search(
            query,
            limit=limit,
            type=note_type,
            **_period(since, until, zone),
            include_text=True,
        )
        if found.degraded:
            output.notice(found.degraded)
        if as_json:
            output.print_records(found.hits)
        elif found.hits:
            hits = output.shown_hits(found.hits, everything=everything)
            note_files.print_hits(hits, query, zone, scores=scores)
        else:
            output.notice("no note speaks of this")


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask.")],
    user: User,
    app: App = "default",
    summary: Annotated[
        bool,
        typer.Option("--summary", help="Sum up all that the notes say on a subject."),
    ] = False,
    note_type: OfType = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Answer a question from the notes, and name the notes that the answer is taken from.

    Without a chat model the passages that fit best are quoted.

    Example: memchat notes ask "What did I say about the budget last week?"
    """
    from memchat.cli.progress import ProgressLine

    line = ProgressLine()
    with open_store() as mc:
        notes, zone = known_app(mc, user, app).notes, mc.settings.zone
        answer = notes.ask(
            question,
            mode="summary" if summary else "answer",
            type=note_type,
            **_period(since, until, zone),
            on_progress=line.update,
        )
        for told in (answer.degraded, *mc.address_notices()):
            if told:
                output.notice(told)
        if answer.plan.calls > MANY_CALLS:
            effort = f"{counted(len(answer.sources), 'note')} may speak of it: {answer.plan.effort}"
            confirm(f"{effort}. Read them all?", yes=yes, why=f"{effort}; it may cost money")
        if as_json:
            with line:
                text = answer.read()
            cited = [to_json(source) for source in answer.cited]
            more = {"degraded": answer.degraded, "cut": answer.cut}
            output.print_json({"text": text, "cited": cited} | more)
            return
        _stream(answer, line)
        if answer.cut:
            output.notice(answer.cut)
        sources = note_files.sources(answer.cited, zone)
        if sources:
            print("\n".join(["", *sources]))


@app.command()
def edit(
    note_id: Id,
    user: User,
    app: App = "default",
    text: Annotated[
        str | None,
        typer.Option("--text", help="The new text; - for standard input.", show_default=False),
    ] = None,
    title: note_files.Title = None,
    as_json: Json = False,
) -> None:
    """Change the text or title of a note, and print its id.

    Without --text and --title your editor (VISUAL or EDITOR) opens its text.
    """
    with open_store() as mc:
        notes = mc.user(user, app=app).notes
        if text == options.PIPED:
            text = options.piped()
        elif text is None and title is None:
            before = notes.get(note_id).text
            text = options.edited(before)
            if text == before:
                output.notice("nothing was changed")
                return
        note_files.print_kept(notes.update(note_id, text=text, title=title), as_json)


@app.command()
def delete(
    user: User,
    note_ids: Ids = None,
    query: Query = None,
    app: App = "default",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete notes for good."""
    with open_store() as mc:
        notes = mc.user(user, app=app).notes
        found = chosen(note_ids, notes.get, query, lambda words: notes.list(words, limit=ALL))
        numbers = [note.id for note in found]
        agree(
            "Delete {} for good?",
            [note_files.name(notes.get(i)) for i in numbers],
            "notes",
            yes=yes,
        )
        done = in_turn(numbers, lambda part: notes.delete(*part))
        if as_json:
            given = len(note_ids or ()) == 1
            print_each([{"id": number, "deleted": True} for number in done], one=given)
        if done:
            output.notice(f"deleted note{'' if len(done) == 1 else 's'} {listed(done)}")
        backup.tell_forgotten(mc)
        leave(done, numbers)


@app.command()
def reindex(user: User, app: App = "default", as_json: Json = False) -> None:
    """Cut all notes anew for the embedding model in use, and make the vectors that are lacking.

    What did not change stays. It may be stopped at any time and run again. Prints how many notes
    have other passages now.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc, ProgressLine() as line:
        changed = known_app(mc, user, app).notes.reindex(on_progress=line.update).count
    if as_json:
        output.print_json({"changed": changed})
    else:
        print(changed)


@app.command()
def report(
    user: User,
    app: App = "default",
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="How many notes that nobody read to list.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """Show how many notes there are, how they are used, and what waits to be done.

    A note that searches often find and nobody reads may only be in the way.
    """
    with open_store() as mc:
        found = known_app(mc, user, app).notes.report(top=limit)
        if as_json:
            output.print_json(note_files.report_json(found))
        elif not found.types:
            output.notice(f"no notes of {user} in {app}; memchat notes add keeps some")
        else:
            note_files.print_report(found)


def _period(since: date | None, until: date | None, zone: ZoneInfo) -> _Period:
    """The moments between these days, both included."""
    if since is not None and until is not None and since > until:
        raise typer.BadParameter("the day of --since is after that of --until")
    return {
        "since": None if since is None else datetime.combine(since, time.min, zone),
        "until": None if until is None else datetime.combine(until, time.max, zone),
    }


def _stream(answer: NotesAnswer, line: ProgressLine) -> None:
    """Print an answer as it comes in, after the progress of what is read for it."""
    pieces = iter(answer)
    with line:
        first = next(pieces, "")
    try:
        print(output.plain(first), end="", flush=True)
        for piece in pieces:
            print(output.plain(piece), end="", flush=True)
    finally:
        print(flush=True)
