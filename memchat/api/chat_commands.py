"""What the terminal and the app do at a command behind a slash (``memchat.chat.slash``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.types import Message, Note
from memchat.types.conversation import PASTE_LENGTH

if TYPE_CHECKING:
    from memchat.api.user import User
    from memchat.chat import Chat

_TITLE = re.compile(r"--title(?:=|\s+)(?:\"(?P<quoted>[^\"]*)\"|(?P<word>\S+))\s*")


def last_reply(person: User, chat: Chat) -> int:
    """The number of the last reply of a chat, for ``sessions.why``. Raises InputError for none."""
    if chat.incognito:
        raise InputError("an incognito chat keeps no record of what a reply was given")
    replies = [turn.id for turn in _turns(person, chat) if turn.role == "assistant"]
    if not replies:
        raise InputError("there is no reply in this chat yet; /why explains the last one")
    return replies[-1]


def keep_note(person: User, chat: Chat, words: str) -> Note:
    """Keep the words behind ``/note``, or without any the last long message, as a note.

    Raises InputError where there is nothing to keep, and in an incognito chat.
    """
    if chat.incognito:
        raise InputError(
            "an incognito conversation keeps nothing; memchat notes add keeps a text as a note"
        )
    title = None
    if named := _TITLE.match(words):
        words, title = words[named.end() :], named["quoted"] or named["word"]
    if words:
        note = person.notes.add(words, title=title)
        if note is None:
            raise InputError("the text has no words; nothing was kept")
        return note
    message = last_long(_turns(person, chat))
    if message is None:
        raise InputError(
            f"no message of {PASTE_LENGTH:,} characters or more was sent here; "
            "write the text behind /note"
        )
    return person.sessions.keep_as_note(message.id, title=title)


def last_long(turns: list[Message]) -> Message | None:
    """The last message that is long enough to be offered as a note."""
    long = [turn for turn in turns if turn.role == "user" and len(turn.content) >= PASTE_LENGTH]
    return long[-1] if long else None


def _turns(person: User, chat: Chat) -> list[Message]:
    """The turns as they are stored: a chat that was resumed has read none of them yet."""
    return [] if chat.session_id is None else [*person.sessions.messages(chat.session_id)]
