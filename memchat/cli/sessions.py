"""``memchat sessions``: the conversations kept on this disk."""

from __future__ import annotations

from typing import Annotated

import typer

from memchat.cli import show
from memchat.cli.options import App, Json, Limit, Offset, User, Yes, confirm, group, open_store
from memchat.types import to_json

app = group("See, end and delete conversations.")

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
        found = mc.sessions(user=user, app=app, limit=limit, offset=offset)
        if as_json:
            show.print_records(found)
            return
        show.print_table(
            ("id", "started", "messages", "state", "title"),
            [
                (
                    session.id,
                    show.time(session.started_at, mc.settings.zone),
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
    """Show one conversation, word for word, and what it took of each model."""
    import shutil

    with open_store() as mc:
        session = mc.find_session(session_id, user=user, app=app)
        messages = mc.messages(session_id, user=user, app=app)
        usage = mc.usage(user=user, session_id=session_id)
        if as_json:
            whole = {
                "messages": [to_json(message) for message in messages],
                "usage": [to_json(total) for total in usage],
            }
            show.print_json(to_json(session) | whole)
            return
        zone = mc.settings.zone
        lines = [f"{show.time(session.started_at, zone)}  {session.title or '(no title)'}"]
        if session.summary:
            lines.append(session.summary)
        for message in messages:
            mark = "" if message.status == "complete" else f" ({message.status})"
            lines += ["", f"{message.role}, {show.time(message.created_at, zone)}{mark}"]
            lines.append(message.content)
        if usage:
            lines += ["", *(f"used  {show.used(total)}" for total in usage)]
        show.page(show.plain("\n".join(lines)), shutil.get_terminal_size().lines)


@app.command()
def end(session_id: Id, user: User, app: App = "default") -> None:
    """End a conversation that was left open.

    It is then read for memories. One that another process still holds is refused.
    """
    with open_store() as mc:
        session = mc.end_session(session_id, user=user, app=app)
        print(f"session {session.id} is {session.status}")


@app.command()
def delete(session_id: Id, user: User, app: App = "default", yes: Yes = False) -> None:
    """Delete a conversation for good.

    Its memories stay, without the words that proved them.
    """
    with open_store() as mc:
        session = mc.find_session(session_id, user=user, app=app)
        title = f" “{session.title}”" if session.title else ""
        confirm(
            f"Delete session {session_id}{title}, {session.message_count} messages, for good?",
            yes=yes,
        )
        mc.delete_session(session_id, user=user, app=app)
        show.notice(f"deleted session {session_id}")
