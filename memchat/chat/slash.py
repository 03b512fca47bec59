"""What can be typed in a chat behind a slash: one list for the terminal and the app.

``/memories`` and ``/forget`` are turns like any other, carried out by code whatever the model can
do; the rest is done by the face the chat is held in, and is no part of the conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memchat.chat.command_words import Command
from memchat.errors import InputError

COMMANDS = {
    "help": ("", "show these commands"),
    "memories": ("", "list what is remembered about you"),
    "forget": ("WORDS", "show what is remembered about that, and ask whether to forget it"),
    "why": ("", "explain the last reply: which memories it was given, and why"),
    "note": (
        "[TEXT]",
        "keep the text, or the last long message, as a note (--title TITLE)",
    ),
    "incognito": ("", "begin a new chat that uses no memory and leaves nothing behind"),
    "exit": ("", "end this chat; /quit does the same"),
}
"""Each with what stands behind it, and what it does."""
_SECOND_NAMES = {"quit": "exit"}
# "/usr/bin/env" and "/s" are no commands, nor is a pasted text; a space in front makes any text a
# message.
_TYPED = re.compile(r"/([a-z]{2,})(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
_KEEP = re.compile(
    r"(?:please\s+)?(?:keep|save|store)\s+(?:this|that|it)\s+as\s+a\s+note(?:\s*,?\s*please)?"
    r"|(?:bitte\s+)?(?:behalte|speichere?|sichere?)\s+(?:das|dies|es)\s+als\s+notiz"
    r"|(?:garde|enregistre)(?:[- ](?:le|la|ça|cela))?\s+(?:ça\s+|cela\s+)?comme\s+note"
    r"|(?:guarda(?:lo)?|guárdalo)\s+(?:esto\s+)?como\s+(?:una\s+)?nota"
    r"|(?:salva(?:lo)?|tienilo)\s+(?:questo\s+)?come\s+nota"
    r"|(?:guarda|salva)\s+(?:isto|isso)\s+como\s+(?:uma\s+)?nota"
    r"|bewaar\s+(?:dit|dat)\s+als\s+notitie",
    re.IGNORECASE,
)
"""``/note`` in plain words, which have to be the whole message."""


@dataclass(frozen=True, slots=True)
class Slash:
    """A command, by its name in ``COMMANDS``, and the words behind it."""

    name: str
    words: str = ""


def read(message: str) -> Slash | None:
    """The command that a message is, or None.

    Raises InputError for a line that names no command there is, and where one lacks its words.
    """
    typed = _TYPED.fullmatch(message)
    if typed is None:
        return Slash("note") if _KEEP.fullmatch(message.strip().rstrip(" .!")) else None
    name, words = typed[1].lower(), (typed[2] or "").strip()
    name = _SECOND_NAMES.get(name, name)
    if name not in COMMANDS:
        if "\n" in message.strip():
            return None
        raise InputError(
            f"there is no command /{name}; /help lists them. To say this as it is, begin it with "
            "a space"
        )
    if name == "forget" and not words:
        raise InputError("say what to forget: /forget WORDS")
    return Slash(name, words)


def memory_command(message: str) -> Command | None:
    """The command to memory that a message is, if it is one typed behind a slash."""
    typed = _TYPED.fullmatch(message)
    kind, words = (typed[1].lower(), (typed[2] or "").strip()) if typed else ("", "")
    if kind == "forget" and words:
        return Command("forget", words, words, whole=True, typed=True)
    return Command("list", "", message, whole=True, typed=True) if kind == "memories" else None


def helped() -> list[tuple[str, str]]:
    """Each command as it is typed, and what it does."""
    return [(f"/{name} {words}".rstrip(), does) for name, (words, does) in COMMANDS.items()]
