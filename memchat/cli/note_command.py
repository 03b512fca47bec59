"""``/note`` in ``memchat chat``: keeping a long message, or a text, as a note."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memchat.cli import tables
from memchat.errors import InputError, MemChatError
from memchat.types.long_message import PASTE_LENGTH

if TYPE_CHECKING:
    from memchat.app.user import User as Person
    from memchat.chat import Chat
    from memchat.types import Message, Note

_COMMAND = re.compile(r"/note(?=\s|$)\s*", re.IGNORECASE)
_TITLE = re.compile(r"--title(?:=|\s+)(?:\"(?P<quoted>[^\"]*)\"|(?P<word>\S+))\s*")
_SAID = re.compile(
    r"(?:please\s+)?(?:keep|save|store)\s+(?:this|that|it)\s+as\s+a\s+note(?:\s*,?\s*please)?"
    r"|(?:bitte\s+)?(?:behalte|speichere?|sichere?)\s+(?:das|dies|es)\s+als\s+notiz"
    r"|(?:garde|enregistre)(?:[- ](?:le|la|ça|cela))?\s+(?:ça\s+|cela\s+)?comme\s+note"
    r"|(?:guarda(?:lo)?|guárdalo)\s+(?:esto\s+)?como\s+(?:una\s+)?nota"
    r"|(?:salva(?:lo)?|tienilo)\s+(?:questo\s+)?come\s+nota"
    r"|(?:guarda|salva)\s+(?:isto|isso)\s+como\s+(?:uma\s+)?nota"
    r"|bewaar\s+(?:dit|dat)\s+als\s+notitie",
    re.IGNORECASE,
)
"""The same in plain words, which have to be the whole message."""


@dataclass(frozen=True, slots=True)
class NoteCommand:
    """What is to be kept. Without a ``text`` it is the last long message."""

    text: str = ""
    title: str | None = None


def read(message: str) -> NoteCommand | None:
    """The command that a message is, or None."""
    said = message.strip()
    if _SAID.fullmatch(said.rstrip(" .!")):
        return NoteCommand()
    command = _COMMAND.match(said)
    if command is None:
        return None
    rest, title = said[command.end() :], None
    if named := _TITLE.match(rest):
        rest, title = rest[named.end() :], named["quoted"] or named["word"]
    return NoteCommand(rest, title)


def keep(person: Person, conversation: Chat, command: NoteCommand) -> None:
    """Keep it and say so, or say why that cannot be done."""
    try:
        note = _kept(person, conversation, command)
    except MemChatError as error:
        tables.error(str(error))
        return
    named = f" “{note.title}”" if note.title else ""
    tables.notice(f"kept as note {note.id}{named}; nothing is learned about you from it")


def offer(conversation: Chat) -> None:
    """Say how to keep the message that was just sent, where it is long."""
    last = _last_long(conversation)
    said = [turn for turn in conversation.turns if turn.role == "user"]
    if last is not None and last == said[-1]:
        tables.notice("To keep this message as a note: /note, or /note --title TITLE")


def _kept(person: Person, conversation: Chat, command: NoteCommand) -> Note:
    if conversation.incognito:
        raise InputError(
            "an incognito conversation keeps nothing; memchat notes add keeps a text as a note"
        )
    if command.text:
        note = person.notes.add(command.text, title=command.title)
        if note is None:
            raise InputError("the text has no words; nothing was kept")
        return note
    message = _last_long(conversation)
    if message is None:
        raise InputError(
            f"no message of {PASTE_LENGTH:,} characters or more was sent here; "
            "write the text behind /note"
        )
    return person.sessions.keep_as_note(message.id, title=command.title)


def _last_long(conversation: Chat) -> Message | None:
    long = [
        t
        for t in conversation.turns
        if t.role == "user" and len(t.content) >= PASTE_LENGTH and t.id
    ]
    return long[-1] if long else None
