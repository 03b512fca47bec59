"""``memchat chat`` and ``memchat recall``: a conversation at the terminal or over standard input,
and a search in what is remembered."""

from __future__ import annotations

import select
import sys
from datetime import date
from typing import TYPE_CHECKING

from typer import Argument, BadParameter, Option

from memchat.cli import output, sessions, system
from memchat.cli.command import TYPE, TYPES, Call, command, noted, settings
from memchat.errors import MemChatError, NotFound, StoreFull

if TYPE_CHECKING:
    from datetime import datetime

    from memchat.api import MemChat
    from memchat.api.user import User as Person
    from memchat.chat import Chat, Reply
    from memchat.chat.command_words import Slash

FENCE = '"""'
"""Begins and ends a message of several lines."""
GOES_ON = "\\"
"""At the end of a line: the message goes on in the next one."""
PASTE_SECONDS = 0.05
"""How long the rest of a paste may take to come, in a terminal that does not mark pastes."""


def next_message() -> str:
    """One message. Raises EOFError at the end of the input."""
    if not output.on_terminal():
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
    import readline

    # What is pasted comes as one line with breaks in it, where the terminal marks it; Python
    # switches that off. The module also gives ``input`` its line editing.
    readline.parse_and_bind("set enable-bracketed-paste on")
    text = input("> ")
    if text.lstrip().startswith(FENCE):
        text = text.lstrip().removeprefix(FENCE)
        while not text.rstrip().endswith(FENCE):
            text = f"{text}\n{input('... ')}"
        return text.rstrip().removesuffix(FENCE).strip("\n")
    while True:
        if text.endswith(GOES_ON):
            text = f"{text.removesuffix(GOES_ON)}\n{input('... ')}"
        # More lines came with this one, as in a paste that the terminal does not mark.
        elif text and select.select([sys.stdin], [], [], PASTE_SECONDS)[0]:
            text = f"{text}\n{input()}"
        else:
            return text


GOODBYES = ("exit", "quit", "bye")


@command(without="as_json")
def chat(
    call: Call,
    question: str | None = Argument(None),
    incognito: bool = False,
    resume: int | None = Option(None, metavar="ID"),
    latest: bool = Option(False, "--continue", "-c"),
    once: bool = False,
) -> None:
    """Talk; when the conversation ends, what matters is remembered.

    “Remember that …”, “forget …” (it shows what, and asks) and “what do you remember about me?”
    are carried out at once. One question without a conversation:
    memchat chat --once "What do I drink?"

    exit, quit, bye, Ctrl-C or Ctrl-D ends it; Ctrl-C during a reply only stops the reply.
    /help lists what can be typed behind a slash: /memories, /forget, /why, /note, /incognito.
    What is pasted is one message, however many lines it has. A message of several lines is typed
    between two lines of \"\"\", or with a backslash at the end of each line but the last.
    Without a terminal each line of standard input is one turn.

    :param question: With --once: what to ask; without it standard input is read.
    :param incognito: Use no memory and leave nothing behind.
    :param resume: Go on with this session.
    :param latest: Go on with the latest session of the app.
    :param once: Answer one question with what is remembered; learn nothing.
    """
    if sum((incognito, resume is not None, latest, once)) > 1:
        raise BadParameter("give one of --incognito, --resume, --continue and --once")
    if once:
        _answer_once(call, question)
        return
    if question is not None:
        raise BadParameter("a question goes with --once; without it the chat asks for one")
    system.offer(settings())
    mc, person = call.mc, call.person
    if latest:
        found = person.sessions.list(limit=1)
        if not found:
            raise NotFound(f"there is no conversation to go on with in the app {person.scope.app}")
        resume = found[0].id
    first_time = not any(item.sessions for item in person.apps.list())
    began = mc.now
    conversation: Chat | None = person.chat(incognito=incognito, resume=resume)
    answered = True
    while conversation is not None:
        try:
            _greet(mc, person, conversation, first_time=first_time)
            fine, go_on = _talk(mc, person, conversation)
            _end(person, conversation, began)
        finally:
            # However it ended, nothing that was said stays in an open session.
            conversation.end(wait=False)
        answered, first_time = answered and fine, False
        conversation = person.chat(incognito=True) if go_on else None
    call.failed = not answered and not output.on_terminal()


@command()
def recall(
    call: Call,
    query: str,
    tags: list[str] | None = None,
    metadata: list[str] | None = None,
    key: str | None = None,
    memory_type: str | None = Option(None, "--type", help=f"Only one of {TYPES}.", **TYPE),
    since: date | None = None,
    until: date | None = None,
    said_by: str | None = None,
    limit: int = 10,
    confident: bool = False,
    min_score: float | None = Option(None, metavar="X"),
    everything: bool = False,
) -> None:
    """Search memories and past conversations.

    By meaning and words, best first. Behind what surely has to do with the question come the
    best of the rest, under "Less sure:"; where nothing surely has, three of them are printed. With
    --tag, --key or --type only memories are searched.

    :param query: What to look for.
    :param confident: Only what surely has to do with it.
    :param min_score: Only hits with this score or a higher one.
    """
    found = call.known.search(
        query,
        limit=limit,
        tags=tags or (),
        metadata=noted(metadata),
        key=key,
        type=memory_type,
        since=since,
        until=until,
        said_by=said_by,
    )
    if found.degraded:
        output.notice(found.degraded)
    hits = [
        hit
        for hit in (found.confident if confident else found.hits)
        if min_score is None or hit.score >= min_score
    ]
    if call.as_json:
        output.print_json(hits)
    else:
        shown = output.shown_hits(hits, everything=everything)
        sure = sum(hit.confident for hit in shown)
        output.print_table(
            ("score", "kind", "id", "session", "text"),
            [(f"{h.score:.3f}", h.kind, h.id, h.session_id or "", h.text) for h in shown],
            none="nothing is known about this",
            divide=(sure, "Less sure:") if sure else None,
        )


def _answer_once(call: Call, question: str | None) -> None:
    """Print the answer to one question, that of standard input where none is given, and write
    nothing."""
    if question is None and sys.stdin.isatty():
        raise BadParameter('say what to ask: memchat chat --once "QUESTION"')
    answer = call.known.answer(sys.stdin.read() if question is None else question)
    for line in call.mc.address_notices():
        output.notice(line)
    print(output.plain(answer.text), flush=True)
    for line in (answer.shown.degraded or "", output.remembered(answer.shown)):
        if line:
            output.notice(line)


def _greet(mc: MemChat, person: Person, conversation: Chat, *, first_time: bool) -> None:
    if output.on_terminal():
        output.notice(mc.models_line())
    for line in mc.address_notices():
        output.notice(line)
    if notice := conversation.notice():
        output.notice(notice)
    if first_time and conversation.memory.on:
        output.notice(
            "Memory is on: when a conversation ends, what you said about yourself is kept in "
            f"{mc.settings.home}. `memchat memories list` shows it, `memchat apps off` switches "
            "it off, `memchat chat --incognito` leaves one conversation out."
        )
    elif not conversation.memory.on and not conversation.incognito:
        output.notice(f"Nothing is remembered: {conversation.memory.reason}.")
    if conversation.session_id is not None:
        session = person.sessions.get(conversation.session_id)
        title = f" “{session.title}”" if session.title else ""
        output.notice(f"Going on with session {session.id}{title}.")
    if output.on_terminal():
        output.notice(f"App {person.scope.app}. /help lists commands, exit ends the conversation.")


def _talk(mc: MemChat, person: Person, conversation: Chat) -> tuple[bool, bool]:
    """Turn after turn until the person is done; whether every turn was answered, and whether an
    incognito chat is to follow."""
    from memchat.api.sessions import last_long
    from memchat.chat import command_words

    answered, told = True, set[str]()
    try:
        while (text := next_message()).strip().lower() not in GOODBYES:
            if not text.strip():
                continue
            try:
                command = command_words.typed(text)
                if command is not None and command.name in ("exit", "incognito"):
                    return answered, command.name == "incognito"
                if command is not None and _carry_out(command, mc, person, conversation):
                    continue
            except MemChatError as error:
                output.error(output.told(error))
                answered = False
                continue
            answered = _turn(conversation, text, told) and answered
            _tell_long(person, conversation)
            said = [turn for turn in conversation.turns if turn.role == "user" and turn.id]
            if said and last_long(said) == said[-1]:
                output.notice("To keep this message as a note: /note, or /note --title TITLE")
    except (EOFError, KeyboardInterrupt):
        if output.on_terminal():
            print()
    return answered, False


def _carry_out(command: Slash, mc: MemChat, person: Person, conversation: Chat) -> bool:
    """Do what stands behind a slash; False for what is a turn of the conversation."""
    from memchat.api.sessions import keep_note, last_reply
    from memchat.chat import command_words

    if command.name == "help":
        for typed, does in command_words.helped():
            print(f"{typed:<14} {does}", flush=True)
    elif command.name == "why":
        found = person.sessions.why(last_reply(person, conversation))
        lines = sessions.explained(found, mc.settings.zone, everything=False)
        print(output.plain("\n".join(lines)), flush=True)
    elif command.name == "note":
        note = keep_note(person, conversation, command.words)
        named = f" “{note.title}”" if note.title else ""
        output.notice(f"kept as note {note.id}{named}; nothing is learned about you from it")
    else:
        return False
    return True


def _turn(conversation: Chat, text: str, told: set[str]) -> bool:
    """Say one thing and print the reply as it arrives; whether there was one.

    ``told`` holds what was said of the search before, so that it is said once.
    """
    try:
        reply = conversation.send(text)
        _stream(reply)
    except KeyboardInterrupt:
        print(flush=True)
        output.notice("(stopped)")
        return True
    except MemChatError as error:
        output.command_failed(error)
        output.error(output.told(error))
        return False
    if reply.cut:
        output.notice(reply.cut)
    dropped = "the first turns no longer fit the model's window" if reply.dropped_turns else ""
    for line in (dropped, reply.shown.degraded):
        if line and line not in told:
            told.add(line)
            output.notice(line)
    if used := output.remembered(reply.shown):
        output.notice(used)
    # What a turn did to the memory, by code's own count: a model's words prove nothing.
    forgotten = sum(change.kind == "forgotten" for change in reply.done)
    done = [
        f"{change.kind} #{change.memory.id} {change.memory.key}"
        for change in reply.done
        if change.memory is not None
    ]
    done += [f"forgotten {forgotten}"] if forgotten else []
    if done:
        output.notice(f"memory: {', '.join(done)}")
    return True


def _tell_long(person: Person, conversation: Chat) -> None:
    """Say what of a very long message is read for memories, and how to have all of it read."""
    if conversation.session_id is None:
        return
    last = max((turn.id for turn in conversation.turns if turn.role == "user"), default=0)
    for message in person.sessions.long_messages(conversation.session_id):
        if message.message_id == last and not message.read_all:
            read_all = output.command("sessions read-all", person.scope.app)
            output.notice(
                f"The message is very long ({message.characters:,} characters): for memories only "
                f"its beginning and end are read. To have all of it read ({message.effort}): "
                f"{read_all} {last}"
            )


def _stream(reply: Reply) -> None:
    started = False
    try:
        for piece in reply:
            print(output.plain(piece), end="", flush=True)
            started = True
        print(flush=True)
    except MemChatError:
        if started:
            print(flush=True)
        raise
    finally:
        # Whatever cut it, the part that came is kept now, not when Python clears up.
        reply.stop()


def _end(person: Person, conversation: Chat, began: datetime) -> None:
    """End the session, wait for its extraction, and say what was saved, what waits and what was
    not kept since it ``began``."""
    later = output.READ_LATER
    if conversation.session_id is not None and conversation.memory.on:
        output.notice("Reading the conversation …")
    try:
        outcome = conversation.end(wait=True)
    except KeyboardInterrupt:
        output.error(f"stopped; {later}")
        raise
    except StoreFull:
        raise  # closing the conversation meets it again: it is said once, by the command itself
    except MemChatError as error:
        output.error(f"{error}; {later}")
        return
    if conversation.failure is not None:
        output.error(f"{conversation.failure}; {later}")
        return
    if outcome is not None:
        print(output.learned(outcome, kept_only=True), flush=True)
    if conversation.session_id is not None and conversation.memory.on:
        there = person, conversation.session_id, began
        for line in [*_changed(*there), *_left_open(*there)]:
            print(line, flush=True)


def _changed(person: Person, session_id: int, began: datetime) -> list[str]:
    """What this conversation replaced or ended since it ``began``, each with what undoes it."""
    lessons = person.sessions.learned(session_id).values()
    lines = []
    for memory in [change.memory for changes in lessons for change in changes]:
        gone = [] if memory is None else person.memories.replaced(memory.id)
        if memory is not None and memory.inactive_reason == "ended":
            gone = [memory]
        undo = output.command("memories restore", person.scope.app)
        lines += [output.changed(old, memory, undo) for old in gone[:1] if old.updated_at >= began]
    return lines


def _left_open(person: Person, session_id: int, began: datetime) -> list[str]:
    """What this conversation leaves for the person to decide."""
    said = {message.id for message in person.sessions.messages(session_id)}
    lines = []
    for item in person.inbox.list():
        if item.created_at >= began and (item.message_id is None or item.message_id in said):
            yes, no = (
                output.command(f"inbox {verb}", person.scope.app) for verb in ("accept", "reject")
            )
            asks = output.plain(person.inbox.question(item))
            lines.append(f"waits: {asks} yes: {yes} {item.id}, no: {no} {item.id}")
    refusals = [r for r in person.inbox.refusals(session_id=session_id) if r.created_at >= began]
    refused = output.not_kept(refusals, output.command("sessions keep", person.scope.app))
    return lines + [f"not kept: {line}" for line in refused]
