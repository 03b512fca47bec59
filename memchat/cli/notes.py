"""``memchat notes``: texts and files become notes, which can be listed, searched and asked."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

from typer import Argument, BadParameter, Option

from memchat.cli import command as cli
from memchat.cli import output
from memchat.cli.output import ProgressLine, shorten
from memchat.errors import InputError, MemChatError
from memchat.types import Job, Note, NoteHit, NoteSource, counted, to_json

if TYPE_CHECKING:
    from memchat.api.base import FileChange

UNTITLED = "Untitled"
OPENING = 60
"""Characters of its text that stand for the title of a note that has none."""
EXCERPT = 320
"""Characters of a passage that a terminal shows: four lines."""
_LEAST = 3
"""Letters of a word that is looked for in a passage; shorter ones are in nearly every sentence."""
_MADE_UP = re.compile(r"[0-9a-f]{32}")
"""An external id that memchat gave itself, as there was none."""
MANY_CALLS = 5
"""Calls of a model beyond which a person is asked before an answer is made."""

app = cli.group("Keep memos and documents, search them, and ask them questions.")

Id = Annotated[int, Argument(metavar="ID", help="The note's number.")]
Title = Annotated[str | None, Option("--title", help="Its title.")]
OfType = Annotated[
    str | None, Option("--type", help="Only notes of this type: memo, document, file …")
]
OfTags = Annotated[
    list[str] | None,
    Option("--tag", metavar="TAG", help="Only notes with this tag; given twice, with both."),
]
Since = Annotated[
    date | None, Option("--since", help="Only notes of this day or a later one.", **cli.DAY)
]
Until = Annotated[
    date | None, Option("--until", help="Only notes of this day or an earlier one.", **cli.DAY)
]


def moment(text: str) -> datetime:
    """A day, or a day and a time, in no zone."""
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None or len(text) not in (len("YYYY-MM-DD"), len("YYYY-MM-DD HH:MM")):
            raise ValueError
        return at
    except ValueError:
        raise BadParameter(
            f"{text!r} is no date; write it as YYYY-MM-DD or 'YYYY-MM-DD HH:MM'"
        ) from None


@cli.command(app)
def add(
    call: cli.Call,
    files: list[Path] | None = Argument(None, metavar="FILE"),
    text: str | None = None,
    title: Title = None,
    said_at: datetime | None = Option(None, "--date", parser=moment, metavar="YYYY-MM-DD"),
    external_id: str | None = Option(None, "--id"),
    note_type: str | None = Option(None, "--type", metavar="TYPE"),
    metadata: cli.NewMetadata = None,
) -> None:
    """Keep files, or one text, as notes. Prints their ids.

    A file that is here already and has not changed is passed by; one that has changed replaces its
    note. What cannot be read is named with the reason, and the exit code is then 1.

    Example: memchat notes add talks/ letter.pdf

    :param files: Files, or folders with all files in them; - for a text on standard input.
    :param text: The text of a memo.
    :param said_at: When it was said or written; with a time as 'YYYY-MM-DD HH:MM' (default: now).
    :param external_id: An id of your own: the same type and id again replace the note.
    :param note_type: What it is, in a word of yours: memo (the default), document, letter …
    """
    given: dict[str, Any] = {
        "title": title,
        "created_at": said_at,
        "external_id": external_id,
        "type": note_type,
    }
    given["metadata"] = cli.noted(metadata) or None
    of_text: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if files and text is not None:
        raise BadParameter("give either files or --text")
    if files and cli.PIPED not in map(str, files):
        if of_text:
            raise BadParameter("--title, --date, --id, --type and --meta go with --text or -")
        _add_files(call, files)
    elif files is not None and len(files) > 1:
        raise BadParameter("- is one text alone; give files in a call of their own")
    elif text is None and not files and sys.stdin.isatty():
        raise BadParameter("name files, give --text, or - to write a text until Ctrl-D")
    else:
        _add_text(call, text, of_text)


def _add_text(call: cli.Call, text: str | None, of_text: dict[str, Any]) -> None:
    """Keep one text, that of standard input where none is given."""
    notes = call.person.notes
    if "created_at" in of_text:
        of_text["created_at"] = of_text["created_at"].replace(tzinfo=call.zone)
    profile = "document" if of_text.get("type") == "document" else "memo"
    note = notes.add(cli.piped() if text is None else text, profile=profile, **of_text)
    if note is None:
        raise InputError("the text has no words; nothing was kept")
    call.result(note, note.id)


def _add_files(call: cli.Call, files: list[Path]) -> None:
    """Keep files; those that cannot be read are named, and the exit code is then 1."""
    notes = call.person.notes
    try:
        with ProgressLine() as line:
            done = notes.add_files(files, on_progress=line.update)
    except KeyboardInterrupt:
        output.notice("stopped; what was added is kept, and adding it all again goes on there")
        raise
    if call.as_json:
        output.print_json(to_json(done) | {"added": [without_text(note) for note in done.added]})
    for note in () if call.as_json else done.added:
        print(output.plain(f"{note.id}  {note.title or UNTITLED}"))
    for failure in done.failed:
        output.error(f"{failure.path}: {failure.reason}")
    parts = [f"{counted(len(done.added), 'note')} added"]
    parts += [f"{done.unchanged:,} unchanged"] if done.unchanged else []
    parts += [f"{len(done.failed):,} failed"] if done.failed else []
    output.notice(", ".join(parts))
    try:  # the vectors that still wait, as after an addition that was broken off
        call.mc.jobs.run(user=call.user, kinds=("note",))
    except MemChatError as error:
        output.error(f"kept, but not yet found by meaning: {error}")
    call.failed = bool(done.failed)


@cli.command(app)
def watch(call: cli.Call, folder: Path = Argument(metavar="DIR")) -> None:
    """Keep the files of a folder as notes, and go on as they change, until Ctrl-C.

    A line tells what became of each file. The note of a file that is gone stays, and is marked.
    What cannot be read is named with the reason, and read again when it changes.

    :param folder: The folder to watch.
    """
    stop, notes = Event(), call.person.notes

    def tell(change: FileChange) -> None:
        note = change.note
        if call.as_json:
            shown = None if note is None else without_text(note)
            output.print_json(to_json(change) | {"note": shown}, indent=None)
        elif note is None:
            output.error(f"{change.path}: {change.reason}")
        else:
            print(output.plain(f"{change.what:<8} {note.id}  {note.title or UNTITLED}"))
        sys.stdout.flush()

    if folder.is_dir():
        output.notice(f"watching {folder}; Ctrl-C ends it")
    with cli.stopping(stop.set):
        notes.watch(folder, on_change=tell, stop=stop)
    output.notice("ended; what changes now is kept the next time")


@cli.command(app, "list")
def list_notes(
    call: cli.Call,
    note_type: OfType = None,
    metadata: list[str] | None = None,
    tags: OfTags = None,
    topic: int | None = None,
    limit: int = 50,
    offset: int = 0,
) -> None:
    """List notes, newest first."""
    notes = call.known.notes
    only: dict[str, Any] = {"type": note_type, "metadata": cli.noted(metadata), "topic": topic}
    page = notes.list(**only, tags=tags or (), limit=offset + limit)
    found = page[offset:]
    jobs = {} if call.as_json else unfinished(call, [note.id for note in found])
    call.table(
        found,
        "id date=created_at type title state",
        none=f"no notes of {call.user} in {call.app}; memchat notes add keeps some",
        more=f"go on with --offset {offset + limit}" if page.cursor else "",
        record=without_text,
        title=lambda note: note.title or _opening(notes.get(note.id).text),
        state=lambda note: state(note, jobs.get(note.id)),
    )


@cli.command(app, "show")
def show_note(call: cli.Call, note_id: Id) -> None:
    """Show one note, whole."""
    note = call.person.notes.get(note_id)
    if call.as_json:
        output.print_json(note)
        return
    source = "" if _MADE_UP.fullmatch(str(note.external_id)) else str(note.external_id)
    lines = {
        "title": note.title or UNTITLED,
        "date": call.time(note.created_at),
        "type": note.type,
        "app": note.app,
        "changed": call.time(note.updated_at) if note.updated_at else "",
        "state": state(note, unfinished(call, [note_id]).get(note_id)),
        "source": source,
        "tags": ", ".join(note.tags),
        "noted": note.metadata and json.dumps(note.metadata, ensure_ascii=False),
        "length": f"{counted(len(note.text), 'character')}, {counted(note.chunks, 'chunk')}",
    }
    head = [f"{name:<8}  {content}" for name, content in lines.items() if content]
    # The line breaks are those of this system: a terminal shows others as errors.
    text = note.text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    output.page("\n".join([*head, "", text]))


@cli.command(app)
def search(
    call: cli.Call,
    query: str,
    limit: int = 10,
    note_type: OfType = None,
    since: Since = None,
    until: Until = None,
    metadata: list[str] | None = None,
    tags: OfTags = None,
    topic: int | None = None,
    scores: bool = False,
    everything: bool = False,
) -> None:
    """Search notes for passages.

    By meaning and words, best first. Behind what surely has to do with the question come the
    best of the rest, under "Less sure:"; where nothing surely has, three of them are printed.

    :param query: What to look for.
    :param scores: Show how well each passage fits.
    """
    narrowed = _period(since, until, call.zone) | {"metadata": cli.noted(metadata)}
    narrowed |= {"tags": tags or (), "topic": topic}
    found = call.known.notes.search(
        query, limit=limit, type=note_type, **narrowed, include_text=True
    )
    if found.degraded:
        output.notice(found.degraded)
    if call.as_json:
        output.print_json(found.hits)
    elif found.hits:
        hits = output.shown_hits(found.hits, everything=everything)
        print_hits(hits, query, call.zone, scores=scores)
    else:
        output.notice("no note speaks of this")


@cli.command(app)
def ask(
    call: cli.Call,
    question: str,
    summary: bool = False,
    note_type: OfType = None,
    since: Since = None,
    until: Until = None,
    topic: int | None = None,
    yes: bool = False,
) -> None:
    """Answer a question from the notes, and name the notes that the answer is taken from.

    Without a chat model the passages that fit best are quoted.

    Example: memchat notes ask "What did I say about the budget last week?"

    :param question: What to ask.
    :param summary: Sum up all that the notes say on a subject.
    """
    line = ProgressLine()
    mode, period = "summary" if summary else "answer", _period(since, until, call.zone)
    answer = call.known.notes.ask(
        question, mode=mode, type=note_type, **period, topic=topic, on_progress=line.update
    )
    for told in (answer.degraded, *call.mc.address_notices()):
        if told:
            output.notice(told)
    if answer.plan.calls > MANY_CALLS:
        effort = f"{counted(len(answer.sources), 'note')} may speak of it: {answer.plan.effort}"
        cli.confirm(f"{effort}. Read them all?", yes=yes, why=f"{effort}; it may cost money")
    if call.as_json:
        with line:
            text = answer.read()
        more = {"degraded": answer.degraded, "cut": answer.cut}
        output.print_json({"text": text, "cited": answer.cited} | more)
        return
    pieces = iter(answer)
    with line:
        first = next(pieces, "")
    try:
        for piece in chain([first], pieces):
            print(output.plain(piece), end="", flush=True)
    finally:
        print(flush=True)
    if answer.cut:
        output.notice(answer.cut)
    if answer.cited:
        sources = [_head(one, call.zone, f"[{one.number}] ") for one in answer.cited]
        print("\n".join(["", *sources]))


@cli.command(app)
def edit(
    call: cli.Call,
    note_id: Id,
    text: str | None = None,
    title: Title = None,
    tags: cli.NewTags = None,
    untag: list[str] | None = Option(None, metavar="TAG"),
) -> None:
    """Change the text, title or tags of a note, and print its id.

    Without an option your editor (VISUAL or EDITOR) opens its text.

    :param text: The new text; - for standard input.
    :param untag: Take this tag away.
    """
    notes, given = call.person.notes, None
    if tags or untag:
        given = cli.retagged(notes.get(note_id).tags, tags, untag)
    if text == cli.PIPED:
        text = cli.piped()
    elif text is None and title is None and given is None:
        before = notes.get(note_id).text
        text = cli.edited(before)
        if text == before:
            output.notice("nothing was changed")
            return
    note = notes.update(note_id, text=text, title=title, tags=given)
    call.result(note, note.id)


@cli.command(app)
def delete(
    call: cli.Call, note_ids: cli.Ids = None, query: str | None = None, yes: bool = False
) -> None:
    """Delete notes for good."""
    notes = call.person.notes
    found = call.chosen(note_ids, notes.get, query, lambda words: notes.list(words, limit=cli.ALL))
    numbers = [note.id for note in found]
    cli.agree("Delete {} for good?", [name(notes.get(i)) for i in numbers], "note", yes=yes)
    done = call.each(
        numbers, lambda part: notes.delete(*part), lambda i: {"id": i, "deleted": True}
    )
    if done:
        output.notice(f"deleted {cli.numbered('note', done)}")
    call.tell_forgotten()


@cli.command(app)
def topics(call: cli.Call, name: bool = False) -> None:
    """Find out what notes and chats are about: groups of them, with the words that set them apart.

    A topic keeps its number as long as most of it stays together. What is of one is listed by
    memchat notes list --topic ID, and summed up by memchat notes ask --summary --topic ID.

    :param name: Have the extraction model name those without a name, in one call.
    """
    call.table(
        call.known.notes.find_topics(name=name),
        "id title notes chats=sessions last words",
        none=f"no topics of {call.user} in {call.app}; they take ten notes or chats with vectors",
        record=to_json,
        words=lambda topic: ", ".join(topic.words),
    )


@cli.command(app)
def reindex(call: cli.Call) -> None:
    """Cut all notes anew for the embedding model in use, and make the vectors that are lacking.

    What did not change stays. It may be stopped at any time and run again. Prints how many notes
    have other passages now.
    """
    notes = call.known.notes
    with ProgressLine() as line:
        changed = notes.reindex(on_progress=line.update).count
    call.result({"changed": changed}, changed)


@cli.command(app)
def report(call: cli.Call, limit: int = Option(20, min=1)) -> None:
    """Show how many notes there are, how they are used, and what waits to be done.

    A note that searches often find and nobody reads may only be in the way.

    :param limit: How many notes that nobody read to list.
    """
    found = call.known.notes.report(top=limit)
    if call.as_json:
        output.print_json(found)
        return
    if not found.types:
        output.notice(f"no notes of {call.user} in {call.app}; memchat notes add keeps some")
        return
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


def _period(since: date | None, until: date | None, zone: ZoneInfo) -> dict[str, Any]:
    """The moments between these days, both included."""
    if since is not None and until is not None and since > until:
        raise BadParameter("the day of --since is after that of --until")
    return {
        "since": None if since is None else datetime.combine(since, time.min, zone),
        "until": None if until is None else datetime.combine(until, time.max, zone),
    }


def unfinished(call: cli.Call, note_ids: Sequence[int]) -> Mapping[int, Job]:
    """The job of each of these notes whose vectors are still to be made, or could not be made."""
    find = partial(call.mc.jobs.list, user=call.user, note_ids=note_ids, limit=len(note_ids))
    return {
        job.target_id: job
        for status in ("failed", "running", "pending")
        for job in find(status=status)
    }


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


def name(note: Note) -> str:
    """A note in a sentence."""
    named = f" “{note.title}”" if note.title else ""
    return f"note {note.id}{named} ({counted(len(note.text), 'character')})"


def print_hits(hits: Sequence[NoteHit], query: str, zone: ZoneInfo, *, scores: bool) -> None:
    """Print the passages that a search found, with a line where the confident ones end.

    A terminal shows the part of a passage that has the words of the query.
    """
    sure = sum(hit.confident for hit in hits)
    for place, hit in enumerate(hits):
        if place:
            print()
        if sure and place == sure:
            print("Less sure:")
        print(_head(hit, zone))
        if scores:
            parts = {"score": f"{hit.score:.3f}"}
            parts |= {} if hit.cosine is None else {"meaning": f"{hit.cosine:.2f}"}
            parts |= {} if hit.bm25 is None else {"words": f"{hit.bm25:.2f}"}
            print(f"  {', '.join(f'{name} {part}' for name, part in parts.items())}")
        output.print_text(_passage(hit.text or "", query), indent="  ")


def _head(found: NoteHit | NoteSource, zone: ZoneInfo, mark: str = "") -> str:
    """Title, day and number of a note; a terminal shows as much of the title as fits a line."""
    title = output.plain(found.title or UNTITLED)
    rest = f", {found.created_at.astimezone(zone).date()}, note {found.note_id}"
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - len(mark) - len(rest)
        title = shorten(title, max(room, output.NARROWEST))
    return f"{mark}{title}{rest}"


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
