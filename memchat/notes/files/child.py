"""Reading files in a process of its own: ``python -m memchat.notes.files.child``.

The libraries for PDF, Word documents and HTML read what strangers made, and long texts are read
there too. A file that keeps them busy for ever, unpacks to more than fits into memory, or crashes
them, ends this process and nothing else. It is used again for the next file, and ends by itself
when none has come for a while. A file comes on the standard input, a line with its ending and size
before it; the document, or the reason why it cannot be read, leaves as a line of JSON.
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
from dataclasses import asdict
from datetime import datetime
from threading import Event, Lock, Timer

from memchat.config.providers import without_secrets
from memchat.errors import ConfigError, InputError
from memchat.notes.files.document import Document

INSTALL = "run pip install 'memchat[files]'"
SECONDS = 60
IDLE_SECONDS = 60
MOST_MEMORY = 1 << 30
"""Bytes of address space; systems other than Linux may not heed it."""
MOST_CHARACTERS = 10_000_000
TOO_LONG = f"it takes longer than {SECONDS} s to read"
TOO_LARGE = f"it needs more than {MOST_MEMORY >> 30} GB of memory to read"
DAMAGED = "it is damaged, too large to read, or of another format than its name says"
PACKAGES = {".pdf": "pypdfium2", ".docx": "docx"}
READERS = {
    ".pdf": "pdf",
    ".docx": "word_document",
    ".html": "web_page",
    ".htm": "web_page",
    ".txt": "plain_text",
    ".text": "plain_text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".srt": "subtitles",
    ".vtt": "subtitles",
}
"""By the ending of a file's name the module that reads it."""
_lock = Lock()
_idle: subprocess.Popen[bytes] | None = None
"""The process that waits for the next file."""


def read(ending: str, data: bytes) -> Document:
    """Read a file in another process. Raises InputError, with the reason, where that fails or takes
    too long; ConfigError where the package for it is not installed."""
    package = PACKAGES.get(ending)
    if package is not None and importlib.util.find_spec(package) is None:
        raise ConfigError(f"{ending} files need another package; {INSTALL}")
    with _lock:
        answer = json.loads(_answer(ending, data))
    if "reason" in answer:
        raise InputError(answer["reason"])
    written_at = answer.pop("written_at")
    return Document(**answer, written_at=written_at and datetime.fromisoformat(written_at))


def read_here(ending: str, data: bytes) -> Document:
    """Read a file in this process; one of an unknown ending is taken for text."""
    module = importlib.import_module(f"memchat.notes.files.{READERS.get(ending, 'plain_text')}")
    found: Document = module.read(data)
    return found


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
        [sys.executable, "-P", "-m", __name__],
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
