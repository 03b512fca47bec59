"""``memchat sessions``: the conversations kept on this disk.

``memchat why``: what a reply was given, and what its model was sent.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import backup, output
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
from memchat.cli.output import shorten
from memchat.types import Given, Session, Undone, Why, counted, to_json

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from memchat.api.sessions import Sessions

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
            output.print_records(found)
            return
        output.print_table(
            ("id", "started", "messages", "state", "title"),
            [
                (
                    session.id,
                    output.time(session.started_at, mc.settings.zone),
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
            output.print_json(to_json(session) | whole)
            return
        zone = mc.settings.zone
        lines = [f"{output.time(session.started_at, zone)}  {session.title or '(no title)'}"]
        if session.copied_from is not None:
            lines.append(f"copied from session {session.copied_from}")
        if session.summary:
            lines.append(session.summary)
        for message in messages:
            mark = "" if message.status == "complete" else f" ({message.status})"
            head = f"{message.role}, {output.time(message.created_at, zone)}{mark}"
            lines += ["", f"{head}  #{message.id}"]
            lines.append(message.content)
        if usage:
            lines += ["", *(f"used  {output.used(total)}" for total in usage)]
        if refusals:
            refused = output.not_kept(refusals, output.command("sessions keep", app))
            lines += ["", *(f"not kept  {line}" for line in refused)]
        output.page(output.plain("\n".join(lines)), shutil.get_terminal_size().lines)


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
        output.print_written(mc.user(user, app=app).inbox.keep_refused(refusal_id), as_json)
        embed_now(mc)


@app.command()
def end(session_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """End a conversation that was left open.

    It is then read for memories. One that another process still holds is refused.
    """
    with open_store() as mc:
        session = mc.user(user, app=app).sessions.end(session_id)
        said = f"session {session.id} is {session.status}"
        output.print_result(to_json(session), said, as_json)


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
            output.print_json(to_json(session))
        elif long is None:
            print(f"message {message_id} is not so long: it is read whole in any case")
        elif session.status == "extracted":
            print(f"all of message {message_id} was read already")
        elif session.ended_at is None:
            print(f"all of message {message_id} is read when its conversation ends ({long.effort})")
        else:
            print(f"all of message {message_id} is read next ({long.effort})")
            output.notice("`memchat jobs run` reads it now")


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
        output.notice("Reading the conversation …")
        with ProgressLine() as line:
            learned = mc.user(user, app=app).sessions.read_again(
                session_id, model=model, progress=line.update
            )
        if as_json:
            output.print_json(to_json(learned))
        elif learned.queued is None:
            print(output.learned(learned))
        if learned.queued is not None:
            output.error(f"{learned.queued}; {output.READ_LATER}")
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
        output.print_result(to_json(session), said, as_json)


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
        output.print_result(to_json(session), session.id, as_json)


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
            output.print_json(of | {"deleted": not dry_run} | to_json(undone))
        output.notice("a dry run: nothing was deleted" if dry_run else f"deleted {what}")
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
            print(output.plain(f"{what}: {memory.id}  {memory.key}: {memory.value}"))


QUESTION_COLUMNS = 200
CHOSEN = {
    "pinned": "pinned",
    "listed": "listed, as you asked",
    "all": "sent with every message",
    "newest": "not found for it, but there was room",
}
"""Why a line was given that no search found."""


def why(
    user: User,
    message: Annotated[
        int | None,
        typer.Argument(
            metavar="MESSAGE",
            help="A message's number, as `memchat sessions show` gives it (default: the latest "
            "reply).",
            show_default=False,
        ),
    ] = None,
    app: App = "default",
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print all that the model was sent.")
    ] = False,
    not_relevant: Annotated[
        int | None,
        typer.Option(
            "--not-relevant", metavar="ID", help="Keep this memory out of that conversation."
        ),
    ] = None,
    relevant: Annotated[
        int | None,
        typer.Option("--relevant", metavar="ID", help="Let it take part there again."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List also the facts that were sent beside those found.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain a reply: which memories it was given, and why.

    For each memory how it was found, when it was said, and what became of it since.
    """
    with open_store() as mc:
        sessions = mc.user(user, app=app).sessions
        found = sessions.why(message)
        if not_relevant is not None or relevant is not None:
            _judge(sessions, found, not_relevant, relevant)
        elif as_json:
            output.print_json(to_json(found))
        else:
            zone = mc.settings.zone
            lines = _sent(found) if prompt else explained(found, zone, everything=everything)
            output.page(output.plain("\n".join(lines)), shutil.get_terminal_size().lines)


def _judge(sessions: Sessions, found: Why, out: int | None, back: int | None) -> None:
    session_id = found.reply.session_id
    if out is not None:
        memory = sessions.mute(out, session_id)
        print(output.plain(f"kept out of session {session_id}: {memory.key}: {memory.value}"))
    if back is not None:
        memory = sessions.unmute(back, session_id)
        print(output.plain(f"takes part in session {session_id}: {memory.key}: {memory.value}"))


def explained(found: Why, zone: ZoneInfo, *, everything: bool) -> list[str]:
    """The lines that explain a reply; with ``everything`` also the facts that were sent unasked."""
    reply = found.reply
    said = shorten(" ".join((found.question or "").split()), QUESTION_COLUMNS)
    lines = [
        f"reply   #{reply.id}, {output.time(reply.created_at, zone)}, session {reply.session_id}",
        f"to      {said}",
        f"memory  {_counted(found)}",
    ]
    if found.degraded:
        lines.append(f"search  {found.degraded}")
    lines += [f"model   {call.model}: {output.spent(call)}" for call in found.calls]
    if not found.by_model:
        lines.append("model   none was asked: memory answered by itself")
    for line in found.lines:
        lines += ["", *_line(line, zone)]
    if found.also:
        lines += ["", _also(found, everything=everything)]
    for line in found.also if everything else ():
        lines += ["", *_line(line, zone)]
    return lines


def _also(found: Why, *, everything: bool) -> str:
    """How many facts were sent whatever was asked."""
    count = len(found.also)
    other = "other " if any(line.hit.kind == "memory" for line in found.lines) else ""
    facts = f"{other}fact" if count == 1 else f"{other}facts"
    hint = ":" if everything else "; memchat why --all lists them"
    return f"also sent: {count} {facts}, as all fit{hint}"


def _counted(found: Why) -> str:
    given = (*found.lines, *found.also)
    tokens, count = sum(line.hit.tokens for line in given), len(given)
    parts = [f"{count} {'line' if count == 1 else 'lines'}, {tokens} tokens"]
    if found.dropped:
        parts.append(f"{found.dropped} more did not fit")
    if found.forgotten:
        parts.append(f"{found.forgotten} forgotten since")
    return "; ".join(parts) if count or len(parts) > 1 else "nothing was given"


def _line(line: Given, zone: ZoneInfo) -> list[str]:
    hit = line.hit
    mark = {"memory": "#", "message": "message ", "note": "note "}[hit.kind]
    facts = [_how(line), f"{hit.tokens} tokens"]
    if line.said_at is not None:
        facts.append(_source(line, output.time(line.said_at, zone)))
    lines = [f"{mark}{hit.id}  {hit.text}", f"    {' · '.join(facts)}"]
    if line.since is not None:
        lines.append(f"    since then: {line.since}")
    if line.muted:
        lines.append("    not relevant here: kept out of the rest of the conversation")
    return lines


def _source(line: Given, at: str) -> str:
    """When and where it was said, or which program stored it."""
    if line.session_id is not None:
        return f"said {at}, session {line.session_id}"
    if line.client is not None:
        return f"stored {at} by {line.client} over MCP"
    return f"said {at}" if line.hit.kind == "note" else f"said {at}, by hand"


def _how(line: Given) -> str:
    """Why a line was given, and the parts of its score."""
    hit = line.hit
    if hit.channel in CHOSEN:
        return CHOSEN[hit.channel]
    parts = []
    if hit.cosine is not None:
        parts.append(f"meaning {hit.cosine:.2f}")
    if hit.bm25 is not None:
        parts.append(f"words {hit.bm25:.2f}")
    if hit.prior:
        parts.append(f"its conversation {hit.prior:.2f}")
    if hit.dated:
        parts.append(f"the days asked about {hit.dated:.2f}")
    named = f"{hit.channel}: " if hit.channel in ("both", "conversation") else ""
    return f"{named}{' + '.join(parts) or hit.channel}, score {hit.score:.2f}"


def _sent(found: Why) -> list[str]:
    if not found.by_model:
        return ["no model was asked: memory answered by itself"]
    if found.prompt is None:
        return ["what the model was sent held something that was forgotten since; it is gone"]
    lines = [f"tools   {', '.join(found.tools)}", ""] if found.tools else []
    if found.deleted:
        lines += [f"turns   {found.deleted} deleted since, and not below", ""]
    for message in found.prompt:
        lines += [f"{message.role}:", message.content.rstrip("\n"), ""]
    return lines[:-1]
