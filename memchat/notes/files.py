"""Reading files that can be notes, by the ending of their names.

What strangers' programs make, and long texts, are read in a process of its own, ``python -m
memchat.notes.files``: a file that keeps a library busy for ever, unpacks to more than fits into
memory, or crashes it, ends this process and nothing else. It is used again for the next file, and
ends by itself when none has come for a while. A file comes on its standard input, a line with its
ending and size before it; the document, or the reason why it cannot be read, leaves as a line of
JSON.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import resource
import select
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import PurePath
from threading import Event, Lock, Timer

from memchat.config.providers import without_secrets
from memchat.errors import ConfigError, InputError
from memchat.language.text import has_words
from memchat.notes import text_formats
from memchat.notes.text_formats import Document, short_title
from memchat.types import clean_text

INSTALL = "run pip install 'memchat[files]'"
SECONDS = 60
IDLE_SECONDS = 60
MOST_MEMORY = 1 << 30
"""Bytes of address space; systems other than Linux may not heed it."""
MOST_CHARACTERS = 10_000_000
TOO_LONG = f"it takes longer than {SECONDS} s to read"
TOO_LARGE = f"it needs more than {MOST_MEMORY >> 30} GB of memory to read"
DAMAGED = "it is damaged, too large to read, or of another format than its name says"
PACKAGES = ("pypdfium2", "docx")
_OFFICE = (".pdf", ".docx")

MB = 1_000_000
MOST_BYTES = 10 * MB
"""Of a file that is text: more than any book."""

AUDIO = frozenset((".flac", ".m4a", ".mp3", ".ogg", ".wav", ".webm"))
_MOST_BYTES_OF = {
    ".pdf": 100 * MB,  # with pictures
    ".docx": 100 * MB,
    **dict.fromkeys(AUDIO, 25 * MB),  # what OpenAI transcribes
}

_APART = frozenset((*_OFFICE, ".html", ".htm"))
"""What strangers' programs make: read in another process however short."""
_READ_HERE = 256_000
"""Bytes of a text up to which it is not worth another process."""
SAVE_AS = "PDF, DOCX, HTML or plain text"
_RTF = b"{\\rtf"
_lock = Lock()
_idle: subprocess.Popen[bytes] | None = None
"""The process that waits for the next file."""


def is_known(name: str) -> bool:
    """Whether files with such a name are read when their folder is."""
    return is_audio(name) or _is_document(_ending(name))


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
    apart = ending in _APART or len(data) > _READ_HERE
    try:
        if data.startswith(_RTF) and not _is_document(ending):
            raise InputError("it is RTF")
        found = (_read_apart if apart else read_here)(ending, data)
    except InputError as error:
        if _is_document(ending):
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


def _is_document(ending: str) -> bool:
    return ending in _OFFICE or ending in text_formats.READERS


def _read_apart(ending: str, data: bytes) -> Document:
    """Read a file in another process. Raises InputError, with the reason, where that fails or takes
    too long; ConfigError where the package for it is not installed."""
    if ending in _OFFICE and not all(map(importlib.util.find_spec, PACKAGES)):
        raise ConfigError(f"{ending} files need another package; {INSTALL}")
    with _lock:
        answer = json.loads(_answer(ending, data))
    if "reason" in answer:
        raise InputError(answer["reason"])
    written_at = answer.pop("written_at")
    return Document(**answer, written_at=written_at and datetime.fromisoformat(written_at))


def read_here(ending: str, data: bytes) -> Document:
    """Read a file in this process; one of an unknown ending is taken for text."""
    if ending in _OFFICE:
        from memchat.notes import office_formats

        return office_formats.READERS[ending](data)
    return text_formats.READERS.get(ending, text_formats.plain_text)(data)


def _answer(ending: str, data: bytes) -> bytes:
    """What the process says of a file. Only one that has answered is kept for the next file."""
    global _idle
    waiting, _idle = _idle, None
    said = _asked(waiting, ending, data) if waiting is not None else b""
    if not said:  # the one that was waiting has ended: none had come for long, or it was killed
        waiting = _begun()
        said = _asked(waiting, ending, data)
    if not said:
        raise InputError(DAMAGED)
    _idle = waiting
    return said


def _begun() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "memchat.notes.files"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=without_secrets(os.environ),
    )


def _asked(process: subprocess.Popen[bytes], ending: str, data: bytes) -> bytes:
    """What the process says of a file; nothing where it ended instead. Raises InputError where that
    takes too long."""
    assert process.stdin is not None and process.stdout is not None
    late = Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = Timer(SECONDS, stop)
    timer.start()
    said = b""
    try:
        process.stdin.write(f"{json.dumps([ending, len(data)])}\n".encode())
        process.stdin.write(data)
        process.stdin.flush()
        said = process.stdout.readline()
    except BrokenPipeError:
        pass
    finally:
        timer.cancel()
        if not said.endswith(b"\n"):
            process.kill()
            process.communicate()
    if late.is_set():
        raise InputError(TOO_LONG)
    return said if said.endswith(b"\n") else b""


def end() -> None:
    """End the process that waits for a file."""
    global _idle
    process, _idle = _idle, None
    if process is not None:
        process.communicate()


def _forget() -> None:
    global _idle, _lock
    _idle, _lock = None, Lock()


atexit.register(end)
os.register_at_fork(after_in_child=_forget)  # the process belongs to the parent


def main() -> None:
    """Read files within the limits until no more come."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    while select.select([sys.stdin], [], [], IDLE_SECONDS)[0]:
        asked = sys.stdin.buffer.readline()
        if not asked:
            return
        ending, size = json.loads(asked)
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + SECONDS  # should the parent be killed
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        try:
            found = read_here(ending, sys.stdin.buffer.read(size))
            if len(found.text) > MOST_CHARACTERS:
                raise InputError(f"it has more than {MOST_CHARACTERS:,} characters of text")
            answer = asdict(found)
        except InputError as error:
            answer = {"reason": str(error)}
        except MemoryError:
            answer = {"reason": TOO_LARGE}
        json.dump(answer, answers, default=datetime.isoformat)
        print(file=answers, flush=True)
        if answer.get("reason") == TOO_LARGE:
            return


if __name__ == "__main__":
    main()
