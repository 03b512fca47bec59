"""``memchat sessions``: the conversations kept on this disk; ``memchat why``: what a reply was
given, and what its model was sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated
from zoneinfo import ZoneInfo

from typer import Argument, BadParameter, Option

from memchat.cli import output
from memchat.cli.command import ALL, Call, Ids, agree, command, group, numbered
from memchat.cli.output import ProgressLine, shorten
from memchat.types import Given, Session, Undone, Why, counted, to_json

app = group("See, rename, end and delete conversations.")

Id = Annotated[int, Argument(metavar="ID", help="The session's number.")]


@command(app, "list")
def list_sessions(call: Call, limit: int = 50, offset: int = 0) -> None:
    """List conversations, newest first."""
    found = call.known.sessions.list(limit=offset + limit)[offset:]
    call.table(
        found,
        "id started=started_at messages=message_count state=status title",
        none=f"no conversations of {call.user} in {call.app}",
        more=f"go on with --offset {offset + limit}" if len(found) == limit else "",
    )


@command(app, "show")
def show_session(call: Call, session_id: Id) -> None:
    """Show one conversation, word for word, what it took of each model, and what was not kept."""
    person = call.person
    session = person.sessions.get(session_id)
    messages = person.sessions.messages(session_id)
    usage = person.usage(session_id=session_id)
    refusals = person.inbox.refusals(session_id=session_id)
    if call.as_json:
        whole = {"messages": messages, "usage": usage, "refusals": refusals}
        output.print_json(to_json(session) | whole)
        return
    lines = [f"{call.time(session.started_at)}  {session.title or '(no title)'}"]
    if session.copied_from is not None:
        lines.append(f"copied from session {session.copied_from}")
    if session.summary:
        lines.append(session.summary)
    for message in messages:
        mark = "" if message.status == "complete" else f" ({message.status})"
        head = f"{message.role}, {call.time(message.created_at)}{mark}"
        lines += ["", f"{head}  #{message.id}", message.content]
    if usage:
        lines += ["", *(f"used  {output.used(total)}" for total in usage)]
    if refusals:
        refused = output.not_kept(refusals, output.command("sessions keep", call.app))
        lines += ["", *(f"not kept  {line}" for line in refused)]
    output.page("\n".join(lines))


@command(app)
def keep(call: Call, refusal_id: int) -> None:
    """Keep anyway what was not kept. Prints the memory's id.

    It counts as your own word: it is stored, or replaces or ends what it speaks of, with your
    message as proof.

    :param refusal_id: What was not kept, as `sessions show` numbers it.
    """
    kept = call.person.inbox.keep_refused(refusal_id)
    call.result(kept, kept.id)
    call.embed_now()


@command(app)
def end(call: Call, session_id: Id) -> None:
    """End a conversation that was left open.

    It is then read for memories. One that another process still holds is refused.
    """
    session = call.person.sessions.end(session_id)
    call.result(session, f"session {session.id} is {session.status}")


@command(app)
def read_all(call: Call, message_id: int) -> None:
    """Have all of a very long message read for memories, not only its beginning and end.

    It is read when its conversation ends. Where that was read already, this message and those
    after it are read again.

    :param message_id: The message's number, as `sessions show` gives it.
    """
    sessions = call.person.sessions
    session = sessions.of_message(message_id)
    found = sessions.long_messages(session.id)
    long = next((one for one in found if one.message_id == message_id), None)
    if long is not None:
        session = sessions.read_all(message_id)
    if call.as_json:
        output.print_json(session)
    elif long is None:
        print(f"message {message_id} is not so long: it is read whole in any case")
    elif session.status == "extracted":
        print(f"all of message {message_id} was read already")
    elif session.ended_at is None:
        print(f"all of message {message_id} is read when its conversation ends ({long.effort})")
    else:
        print(f"all of message {message_id} is read next ({long.effort})")
        output.notice("`memchat jobs run` reads it now")


@command(app)
def read_again(
    call: Call, session_id: Id, model: str | None = Option(None, metavar="MODEL")
) -> None:
    """Read a conversation for memories once more, from its beginning.

    Nothing is stored twice, and what was forgotten stays forgotten. Where the reading fails it
    waits in the queue and is tried again.

    :param model: The model that reads it, this once.
    """
    sessions = call.person.sessions
    output.notice("Reading the conversation …")
    with ProgressLine() as line:
        learned = sessions.read_again(session_id, model=model, progress=line.update)
    if call.as_json:
        output.print_json(learned)
    elif learned.queued is None:
        print(output.learned(learned))
    if learned.queued is not None:
        output.error(f"{learned.queued}; {output.READ_LATER}")
        call.failed = True


@command(app)
def rename(call: Call, session_id: Id, title: str) -> None:
    """Give a conversation a title of your own, which stays when it is read again.

    :param title: Its new title.
    """
    session = call.person.sessions.rename(session_id, title)
    call.result(session, f"session {session.id} is now called “{session.title}”")


@command(app)
def copy(call: Call, session_id: Id, before: int = Option(metavar="MESSAGE")) -> None:
    """Copy a conversation up to a message, to go on from there in another way.

    Prints the copy's id for `chat --resume`. The conversation itself stays as it is; what was
    copied is not learned a second time.

    :param before: The message that the copy ends before, as `sessions show` numbers it.
    """
    session = call.person.sessions.copy(session_id, before=before)
    call.result(session, session.id)


@command(app)
def delete(
    call: Call,
    session_ids: Ids = None,
    query: str | None = None,
    message: int | None = Option(None, metavar="ID"),
    keep_memories: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Delete conversations for good, and what only they taught.

    What they had replaced comes back; what was also said elsewhere stays. --query finds words in
    their titles and messages.

    :param message: Delete only this message of one.
    :param keep_memories: Leave what was learnt from it.
    :param dry_run: Only show what would become of the memories.
    """
    sessions = call.person.sessions
    found = call.chosen(session_ids, sessions.get, query, partial(sessions.list, limit=ALL))
    numbers = [session.id for session in found]
    remove: Callable[..., Undone]
    if message is None:
        what = numbered("session", numbers)
        names = [_name(session) for session in found]
        remove = partial(sessions.delete_many, numbers)
    else:
        if len(found) > 1:
            raise BadParameter("--message goes with the number of one session")
        if message not in {turn.id for turn in sessions.messages(numbers[0])}:
            raise BadParameter(f"session {numbers[0]} has no message {message}")
        what = f"message {message}"
        names = [f"{what} of session {numbers[0]}"]
        remove = partial(sessions.delete_message, message)
    undone = remove(keep_memories=keep_memories, dry_run=True)
    lists = {
        "goes": undone.gone,
        "comes back": undone.back,
        "stays, known from elsewhere too": undone.kept,
    }
    for title, memories in () if call.as_json else lists.items():
        for memory in memories:
            print(output.plain(f"{title}: {memory.id}  {memory.told}"))
    if not dry_run:
        agree("Delete {} for good?", names, "session", yes=yes)
        undone = remove(keep_memories=keep_memories)
    if call.as_json:
        one = len(session_ids or ()) == 1
        of = {"session": numbers[0], "message": message} if one else {"sessions": numbers}
        output.print_json(of | {"deleted": not dry_run} | to_json(undone))
    output.notice("a dry run: nothing was deleted" if dry_run else f"deleted {what}")
    if not dry_run:
        call.tell_forgotten()


def _name(session: Session) -> str:
    title = f" “{session.title}”" if session.title else ""
    return f"session {session.id}{title} ({counted(session.message_count, 'message')})"


QUESTION_COLUMNS = 200
CHOSEN = {
    "pinned": "pinned",
    "listed": "listed, as you asked",
    "all": "sent with every message",
    "newest": "not found for it, but there was room",
}
"""Why a line was given that no search found."""


@command()
def why(
    call: Call,
    message: int | None = Argument(None),
    prompt: bool = False,
    not_relevant: int | None = Option(None, metavar="ID"),
    relevant: int | None = Option(None, metavar="ID"),
    everything: bool = Option(False, "--all"),
) -> None:
    """Explain a reply: which memories it was given, and why.

    For each memory how it was found, when it was said, and what became of it since.

    :param message: A message's number, as `memchat sessions show` gives it (default: the latest
        reply).
    :param prompt: Print all that the model was sent.
    :param not_relevant: Keep this memory out of that conversation.
    :param relevant: Let it take part there again.
    :param everything: List also the facts that were sent beside those found.
    """
    sessions = call.person.sessions
    found = sessions.why(message)
    session_id = found.reply.session_id
    if not_relevant is not None:
        memory = sessions.mute(not_relevant, session_id)
        print(output.plain(f"kept out of session {session_id}: {memory.told}"))
    if relevant is not None:
        memory = sessions.unmute(relevant, session_id)
        print(output.plain(f"takes part in session {session_id}: {memory.told}"))
    if not_relevant is not None or relevant is not None:
        return
    if call.as_json:
        output.print_json(found)
    else:
        lines = _sent(found) if prompt else explained(found, call.zone, everything=everything)
        output.page("\n".join(lines))


def explained(found: Why, zone: ZoneInfo, *, everything: bool) -> list[str]:
    """The lines that explain a reply; with ``everything`` also the facts that were sent unasked."""
    reply = found.reply
    said = shorten(" ".join((found.question or "").split()), QUESTION_COLUMNS)
    given = (*found.lines, *found.also)
    parts = [f"{found.dropped} more did not fit"] if found.dropped else []
    parts += [f"{found.forgotten} forgotten since"] if found.forgotten else []
    if given or parts:
        tokens = sum(line.hit.tokens for line in given)
        parts.insert(0, f"{counted(len(given), 'line')}, {tokens} tokens")
    lines = [
        f"reply   #{reply.id}, {output.time(reply.created_at, zone)}, session {reply.session_id}",
        f"to      {said}",
        f"memory  {'; '.join(parts) or 'nothing was given'}",
    ]
    if found.degraded:
        lines.append(f"search  {found.degraded}")
    lines += [f"model   {call.model}: {output.spent(call)}" for call in found.calls]
    if not found.by_model:
        lines.append("model   none was asked: memory answered by itself")
    for line in found.lines:
        lines += ["", *_line(line, zone)]
    if found.also:
        other = "other " if any(line.hit.kind == "memory" for line in found.lines) else ""
        facts = counted(len(found.also), f"{other}fact")
        hint = ":" if everything else "; memchat why --all lists them"
        lines += ["", f"also sent: {facts}, as all fit{hint}"]
    for line in found.also if everything else ():
        lines += ["", *_line(line, zone)]
    return lines


def _line(line: Given, zone: ZoneInfo) -> list[str]:
    hit = line.hit
    mark = {"memory": "#", "message": "message ", "note": "note "}[hit.kind]
    facts = [_reason(line), f"{hit.tokens} tokens"]
    if line.said_at is not None:
        at = output.time(line.said_at, zone)
        if line.session_id is not None:
            facts.append(f"said {at}, session {line.session_id}")
        elif line.client is not None:
            facts.append(f"stored {at} by {line.client} over MCP")
        else:
            facts.append(f"said {at}" if hit.kind == "note" else f"said {at}, by hand")
    lines = [f"{mark}{hit.id}  {hit.text}", f"    {' · '.join(facts)}"]
    if line.since is not None:
        lines.append(f"    since then: {line.since}")
    if line.muted:
        lines.append("    not relevant here: kept out of the rest of the conversation")
    return lines


def _reason(line: Given) -> str:
    """Why a line was given, and the parts of its score."""
    hit = line.hit
    if hit.channel in CHOSEN:
        return CHOSEN[hit.channel]
    scores = {
        "meaning": hit.cosine,
        "words": hit.bm25,
        "its conversation": hit.prior or None,
        "the days asked about": hit.dated or None,
    }
    parts = [f"{name} {score:.2f}" for name, score in scores.items() if score is not None]
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
