"""``memchat why``: what a reply was given, and what its model was sent."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import tables
from memchat.cli.options import App, Json, User, open_store
from memchat.cli.text_width import shorten
from memchat.types import Given, Why, to_json

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from memchat.app.sessions import Sessions

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
            tables.print_json(to_json(found))
        else:
            zone = mc.settings.zone
            lines = _sent(found) if prompt else explained(found, zone, everything=everything)
            tables.page(tables.plain("\n".join(lines)), shutil.get_terminal_size().lines)


def _judge(sessions: Sessions, found: Why, out: int | None, back: int | None) -> None:
    session_id = found.reply.session_id
    if out is not None:
        memory = sessions.mute(out, session_id)
        print(tables.plain(f"kept out of session {session_id}: {memory.key}: {memory.value}"))
    if back is not None:
        memory = sessions.unmute(back, session_id)
        print(tables.plain(f"takes part in session {session_id}: {memory.key}: {memory.value}"))


def explained(found: Why, zone: ZoneInfo, *, everything: bool) -> list[str]:
    """The lines that explain a reply; with ``everything`` also the facts that were sent unasked."""
    reply = found.reply
    said = shorten(" ".join((found.question or "").split()), QUESTION_COLUMNS)
    lines = [
        f"reply   #{reply.id}, {tables.time(reply.created_at, zone)}, session {reply.session_id}",
        f"to      {said}",
        f"memory  {_counted(found)}",
    ]
    if found.degraded:
        lines.append(f"search  {found.degraded}")
    lines += [f"model   {call.model}: {tables.spent(call)}" for call in found.calls]
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
        facts.append(_source(line, tables.time(line.said_at, zone)))
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
