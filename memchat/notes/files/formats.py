"""The formats of files that can be notes, by the ending of a file's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from memchat.errors import InputError
from memchat.notes.files import child
from memchat.notes.files.document import Document, short_title
from memchat.notes.index import has_words
from memchat.types import clean_text

MB = 1_000_000
MOST_BYTES = 10 * MB
"""Of a file that is text: more than any book."""

AUDIO = frozenset((".flac", ".m4a", ".mp3", ".ogg", ".wav", ".webm"))
_MOST_BYTES_OF = {
    ".pdf": 100 * MB,  # with pictures
    ".docx": 100 * MB,
    **dict.fromkeys(AUDIO, 25 * MB),  # what OpenAI transcribes
}

_READ_APART = frozenset((".pdf", ".docx", ".html", ".htm"))
"""What strangers' programs make: read in another process however short."""
_READ_HERE = 256_000
"""Bytes of a text up to which it is not worth another process."""
SAVE_AS = "PDF, DOCX, HTML or plain text"
_RTF = b"{\\rtf"


def is_known(name: str) -> bool:
    """Whether files with such a name are read when their folder is."""
    return is_audio(name) or _ending(name) in child.READERS


def is_audio(name: str) -> bool:
    """Whether a file of this name is speech, which a model has to write down."""
    return _ending(name) in AUDIO


def most_bytes(name: str) -> int:
    """The size up to which a file with such a name is read."""
    return _MOST_BYTES_OF.get(_ending(name), MOST_BYTES)


def read(name: str, data: bytes) -> Document:
    """What is in a file of this name that is no audio; one with an unknown ending is tried as text.

    Raises InputError, which says why, where it cannot be read or holds no words.
    """
    check_size(name, len(data))
    ending = _ending(name)
    apart = ending in _READ_APART or len(data) > _READ_HERE
    try:
        if data.startswith(_RTF) and ending not in child.READERS:
            raise InputError("it is RTF")
        found = (child.read if apart else child.read_here)(ending, data)
    except InputError as error:
        if ending in child.READERS:
            raise
        raise InputError(f"{error}; save it as {SAVE_AS}") from error
    if not has_words(found.text):
        raise InputError("it holds no words")
    return replace(found, text=clean_text(found.text), title=short_title(found.title))


def check_size(name: str, size: int) -> None:
    """Raise InputError for a file that is too large."""
    most = most_bytes(name)
    if size > most:
        raise InputError(f"it has {size / MB:,.0f} MB; at most {most / MB:,.0f} MB are read")


def _ending(name: str) -> str:
    return PurePath(name).suffix.lower()
