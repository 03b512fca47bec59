"""``memchat sessions``: the conversations kept on this disk."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from memchat.cli import backup, tables
from memchat.cli.chosen import ALL, Ids, Query, agree, chosen, listed
from memchat.cli.options import (
    App,
    Json,
    Limit,
    Offset,
    User,
    Yes,
    embed_now,
    group,
    known_app,
    open_store,
)
from memchat.types import Session, Undone, counted, to_json

app = group("See, rename, end and delete conversations.")

Id = Annotated[int, typer.Argument(metavar="ID", help="The session's number.", show_default=False)]


@app.command("list")
def list_sessions(
    user: User,
    app: App = "default",
    limit: Limit = 50,
    offset: Offset = 0,
    as_json: Json = False,
) -> None:
    """List conversations, newest first."""
    with open_store() as mc:
        found = known_app(mc, user, app).sessions.list(limit=offset + limit)[offset:]
        if as_json:
            tables.print_records(found)
            return
        tables.print_table(
            ("id", "started", "messages", "state", "title"),
            [
                (
                    session.id,
                    tables.time(session.started_at, mc.settings.zone),
                    session.message_count,
                    session.status,
                    session.title or "",
                )
                for session in found
            ],
            none=f"no conversations of {user} in {app}",
            more=f"go on with --offset {offset + limit}" if len(found) == limit else "",
        )


@app.command("show")
def show_session(session_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """Show one conversation, word for word, what it took of each model, and what was not kept."""
    import shutil

    with open_store() as mc:
        person = mc.user(user, app=app)
        session = person.sessions.get(session_id)
        messages = person.sessions.messages(session_id)
        usage = person.usage(session_id=session_id)
        refusals = person.inbox.refusals(session_id=session_id)
        if as_json:
            whole = {
                "messages": [to_json(message) for message in messages],
                "usage": [to_json(total) for total in usage],
                "refusals": [to_json(refusal) for refusal in refusals],
            }
            tables.print_json(to_json(session) | whole)
            return
        zone = mc.settings.zone
        lines = [f"{tables.time(session.started_at, zone)}  {session.title or '(no title)'}"]
        if session.copied_from is not None:
            lines.append(f"copied from session {session.copied_from}")
        if session.summary:
            lines.append(session.summary)
        for message in messages:
            mark = "" if message.status == "complete" else f" ({message.status})"
            head = f"{message.role}, {tables.time(message.created_at, zone)}{mark}"
            lines += ["", f"{head}  #{message.id}"]
            lines.append(message.content)
        if usage:
            lines += ["", *(f"used  {tables.used(total)}" for total in usage)]
        if refusals:
            refused = tables.not_kept(refusals, tables.command("sessions keep", app))
            lines += ["", *(f"not kept  {line}" for line in refused)]
        tables.page(tables.plain("\n".join(lines)), shutil.get_terminal_size().lines)


@app.command()
def keep(
    refusal_id: Annotated[
        int,
        typer.Argument(
            metavar="REFUSAL_ID",
            help="What was not kept, as `sessions show` numbers it.",
            show_default=False,
        ),
    ],
    user: User,
    app: App = "default",
    as_json: Json = False,
) -> None:
    """Keep anyway what was not kept. Prints the memory's id.

    It counts as your own word: it is stored, or replaces or ends what it speaks of, with your
    message as proof.
    """
    with open_store() as mc:
        tables.print_written(mc.user(user, app=app).inbox.keep_refused(refusal_id), as_json)
        embed_now(mc)


@app.command()
def end(session_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """End a conversation that was left open.

    It is then read for memories. One that another process still holds is refused.
    """
    with open_store() as mc:
        session = mc.user(user, app=app).sessions.end(session_id)
        said = f"session {session.id} is {session.status}"
        tables.print_result(to_json(session), said, as_json)


@app.command()
def read_all(
    message_id: Annotated[
        int,
        typer.Argument(
            metavar="MESSAGE_ID",
            help="The message's number, as `sessions show` gives it.",
            show_default=False,
        ),
    ],
    user: User,
    app: App = "default",
    as_json: Json = False,
) -> None:
    """Have all of a very long message read for memories, not only its beginning and end.

    It is read when its conversation ends. Where that was read already, this message and those
    after it are read again.
    """
    with open_store() as mc:
        sessions = mc.user(user, app=app).sessions
        session = sessions.of_message(message_id)
        found = sessions.long_messages(session.id)
        long = next((one for one in found if one.message_id == message_id), None)
        if long is not None:
            session = sessions.read_all(message_id)
        if as_json:
            tables.print_json(to_json(session))
        elif long is None:
            print(f"message {message_id} is not so long: it is read whole in any case")
        elif session.status == "extracted":
            print(f"all of message {message_id} was read already")
        elif session.ended_at is None:
            print(f"all of message {message_id} is read when its conversation ends ({long.effort})")
        else:
            print(f"all of message {message_id} is read next ({long.effort})")
            tables.notice("`memchat jobs run` reads it now")


@app.command()
def read_again(
    session_id: Id,
    user: User,
    app: App = "default",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="The model that reads it, this once.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a conversation for memories once more, from its beginning.

    Nothing is stored twice, and what was forgotten stays forgotten. Where the reading fails it
    waits in the queue and is tried again.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        tables.notice("Reading the conversation …")
        with ProgressLine() as line:
            learned = mc.user(user, app=app).sessions.read_again(
                session_id, model=model, progress=line.update
            )
        if as_json:
            tables.print_json(to_json(learned))
        elif learned.queued is None:
            print(tables.learned(learned))
        if learned.queued is not None:
            tables.error(f"{learned.queued}; {tables.READ_LATER}")
            raise typer.Exit(1)


@app.command()
def rename(
    session_id: Id,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="Its new title.")],
    user: User,
    app: App = "default",
    as_json: Json = False,
) -> None:
    """Give a conversation a title of your own, which stays when it is read again."""
    with open_store() as mc:
        session = mc.user(user, app=app).sessions.rename(session_id, title)
        said = f"session {session.id} is now called “{session.title}”"
        tables.print_result(to_json(session), said, as_json)


@app.command()
def copy(
    session_id: Id,
    user: User,
    before: Annotated[
        int,
        typer.Option(
            "--before",
            metavar="MESSAGE",
            help="The message that the copy ends before, as `sessions show` numbers it.",
            show_default=False,
        ),
    ],
    app: App = "default",
    as_json: Json = False,
) -> None:
    """Copy a conversation up to a message, to go on from there in another way.

    Prints the copy's id for `chat --resume`. The conversation itself stays as it is; what was
    copied is not learned a second time.
    """
    with open_store() as mc:
        session = mc.user(user, app=app).sessions.copy(session_id, before=before)
        tables.print_result(to_json(session), session.id, as_json)


@app.command()
def delete(
    user: User,
    session_ids: Ids = None,
    query: Query = None,
    app: App = "default",
    message: Annotated[
        int | None,
        typer.Option("--message", metavar="ID", help="Delete only this message of one."),
    ] = None,
    keep_memories: Annotated[
        bool, typer.Option("--keep-memories", help="Leave what was learnt from it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would become of the memories.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete conversations for good, and what only they taught.

    What they had replaced comes back; what was also said elsewhere stays. --query finds words in
    their titles and messages.
    """
    with open_store() as mc:
        sessions = mc.user(user, app=app).sessions
        find = partial(sessions.list, limit=ALL)
        found = chosen(session_ids, sessions.get, query, find)
        numbers = [session.id for session in found]
        if message is None:
            what = f"session{'' if len(found) == 1 else 's'} {listed(numbers)}"
            names = [_name(session) for session in found]
            remove = partial(sessions.delete_many, numbers)
        else:
            if len(found) > 1:
                raise typer.BadParameter("--message goes with the number of one session")
            if message not in {turn.id for turn in sessions.messages(numbers[0])}:
                raise typer.BadParameter(f"session {numbers[0]} has no message {message}")
            what = f"message {message}"
            names = [f"{what} of session {numbers[0]}"]
            remove = partial(sessions.delete_message, message)
        remove = partial(remove, keep_memories=keep_memories)
        undone = remove(dry_run=True)
        if not as_json:
            _show_undone(undone)
        if not dry_run:
            agree("Delete {} for good?", names, "sessions", yes=yes)
            undone = remove()
        if as_json:
            one = len(session_ids or ()) == 1
            of = {"session": numbers[0], "message": message} if one else {"sessions": numbers}
            tables.print_json(of | {"deleted": not dry_run} | to_json(undone))
        tables.notice("a dry run: nothing was deleted" if dry_run else f"deleted {what}")
        if not dry_run:
            backup.tell_forgotten(mc)


def _name(session: Session) -> str:
    title = f" “{session.title}”" if session.title else ""
    return f"session {session.id}{title} ({counted(session.message_count, 'message')})"


def _show_undone(undone: Undone) -> None:
    for what, found in (
        ("goes", undone.gone),
        ("comes back", undone.back),
        ("stays, known from elsewhere too", undone.kept),
    ):
        for memory in found:
            print(tables.plain(f"{what}: {memory.id}  {memory.key}: {memory.value}"))
