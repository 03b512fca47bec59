"""Files that can be notes: which those are by the ending of their names, reading them, finding
those of a folder, and watching which of them came, changed, moved or went.

What strangers' programs make, and long texts, are read in a process of its own, ``python -m
memchat.notes.files``: a file that keeps a library busy for ever, unpacks to more than fits into
memory, or crashes it, ends this process and nothing else. It is used again for the next file, and
ends by itself when none has come for a while. A file comes on its standard input, a line with its
ending and size before it; the document, or the reason why it cannot be read, leaves as a line of
JSON.

Of a watched folder the system's reports only say when to look; what there is to do is told by
comparing the folder with what it was, so nothing is missed that the system reports badly.
"""

from __future__ import annotations

import atexit
import base64
import importlib.util
import json
import os
import resource
import select
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePath
from threading import Event, Lock, Timer
from time import monotonic

from memchat.config.providers import without_secrets
from memchat.errors import ConfigError, InputError
from memchat.language.text import has_words
from memchat.notes.formats import READERS, Document, plain_text, short_title
from memchat.types import Attachment, clean_text, one_line
from memchat.types.conversations import EARLIEST, LATEST

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
    return is_audio(name) or _ending(name) in READERS


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
        if data.startswith(_RTF) and ending not in READERS:
            raise InputError("it is RTF")
        found = (_read_apart if apart else read_here)(ending, data)
    except InputError as error:
        if ending in READERS:
            raise
        raise InputError(f"{error}; save it as {SAVE_AS}") from error
    if not has_words(found.text):
        raise InputError("it holds no words")
    return replace(found, text=clean_text(found.text), title=short_title(found.title))


PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
MOST_ATTACHED = 100_000
"""Of one document; each later message of the chat sends it once more."""
MOST_PIXELS = 50_000_000
SIDE = 1568
"""Pixels of the longer side of a picture as it is sent: providers make larger ones smaller."""
NAME_LIMIT = 200


def attachment(name: str, data: bytes) -> Attachment:
    """What ``Chat.attachment`` does."""
    name = one_line(PurePath(name).name[-NAME_LIMIT:], "name of the file", NAME_LIMIT)
    if _ending(name) in PICTURES:
        check_size(name, len(data))
        return _picture(name, data)
    if is_audio(name):
        raise InputError("it is a recording; keep it as a note to have it written down")
    text = read(name, data).text
    if len(text) > MOST_ATTACHED:
        raise InputError(
            f"it has {len(text):,} characters of text; at most {MOST_ATTACHED:,} go with a "
            "message; keep it as a note instead, or send a part"
        )
    return Attachment(name, "text/plain", text)


def _picture(name: str, data: bytes) -> Attachment:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ConfigError('pictures need another package: pip install "memchat[ui]"') from None
    try:
        given = Image.open(BytesIO(data), formats=[*set(PICTURES.values())])
        if given.width * given.height > MOST_PIXELS:
            raise InputError(f"it has more than {MOST_PIXELS // 1_000_000} million pixels")
        turned = ImageOps.exif_transpose(given)
        kind = "PNG" if given.format == "PNG" or turned.has_transparency_data else "JPEG"
        plain = turned.convert("RGBA" if turned.has_transparency_data else "RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError("it is no picture that can be read, or it is damaged") from error
    plain.thumbnail((SIDE, SIDE))
    plain.info = {}  # comments and profiles would be written again
    written = BytesIO()
    plain.save(written, kind, quality=90)
    sent = base64.b64encode(written.getvalue()).decode()
    return Attachment(name, f"image/{kind.lower()}", data=sent)


def check_size(name: str, size: int) -> None:
    """Raise InputError for a file that is too large."""
    most = most_bytes(name)
    if size > most:
        raise InputError(f"it has {size / MB:,.0f} MB; at most {most / MB:,.0f} MB are read")


def _ending(name: str) -> str:
    return PurePath(name).suffix.lower()


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
    return READERS.get(ending, plain_text)(data)


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


def absolute(path: Path | str) -> Path:
    """The path from the root, without ``..``; links in it stay."""
    return Path(os.path.abspath(os.path.expanduser(path)))


def files_in(folder: Path, on_error: Callable[[Path, str], None]) -> Iterator[Path]:
    """The files below a folder that can be notes, in the order of their names. Hidden files and
    folders and links are left out; ``on_error`` is told which folder cannot be read, and why."""

    def unreadable(error: OSError) -> None:
        on_error(Path(error.filename), f"the folder cannot be read ({error.strerror})")

    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not is_skipped(name))
        for name in sorted(names):
            path = Path(place, name)
            if not is_skipped(name) and is_known(name) and not path.is_symlink():
                yield path


def is_skipped(name: str) -> bool:
    """Whether a file or folder of this name is left out: it is hidden, or a lock of a word
    processor."""
    return name.startswith((".", "~$"))


def modified_at(path: Path) -> datetime:
    """When a file was last changed. Raises InputError where it is not there or no file."""
    try:
        about = path.stat()
    except OSError as error:
        raise _unreadable(error) from error
    except ValueError as error:
        raise InputError("no file can have such a name") from error
    return _time(about)


def content(path: Path) -> tuple[bytes, datetime]:
    """The bytes of a file and when it was last changed. Raises InputError where it is no file, too
    large or cannot be read."""
    try:
        # Opening a pipe would wait for somebody to write into it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            about = os.fstat(stream.fileno())
            modified = _time(about)
            check_size(path.name, about.st_size)
            return stream.read(most_bytes(path.name) + 1), modified
    except OSError as error:
        raise _unreadable(error) from error


def _time(about: os.stat_result) -> datetime:
    if not stat.S_ISREG(about.st_mode):
        raise InputError("it is no file")
    at = min(max(about.st_mtime, EARLIEST.timestamp()), LATEST.timestamp())
    return datetime.fromtimestamp(at, UTC)


def _unreadable(error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("it is not there")
    return InputError(f"it cannot be read ({error.strerror})")


REST = 1.0
"""Seconds between two looks. A file is taken as it is when it was the same at both."""

_State = tuple[int, int, int]
"""Inode, time of the last change and size of a file."""
_UNKNOWN: _State = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different in a folder. ``moved`` are files with their former and their new path."""

    changed: tuple[Path, ...] = ()
    gone: tuple[Path, ...] = ()
    moved: tuple[tuple[Path, Path], ...] = ()


class FolderWatch:
    """Compares a folder with what it was. ``known`` are files that are taken to be in it at first;
    those that are not there are told as gone, the others as changed."""

    def __init__(self, place: Path, known: Iterable[Path] = ()) -> None:
        self._place = place
        self._told: dict[Path, _State] = dict.fromkeys(known, _UNKNOWN)
        self._seen: dict[Path, _State] | None = None
        self.waiting = True
        """Whether something is different that was not the same at two looks yet."""

    def look(self) -> Changes:
        """What is different since it was told, and as it was at the look before: files that are
        being written wait. Raises InputError where the folder is gone."""
        if not self._place.is_dir():
            raise InputError(f"{self._place} is not there any more")
        now = _states(self._place)
        before, self._seen = self._seen, now
        different = {p for p in {*now, *self._told} if now.get(p) != self._told.get(p)}
        rested = set()
        if before is not None:
            rested = {path for path in different if before.get(path) == now.get(path)}
        self.waiting = rested != different
        return self._tell(rested, now)

    def _tell(self, paths: set[Path], now: dict[Path, _State]) -> Changes:
        gone = {path for path in paths if path not in now}
        by_state = {self._told[path]: path for path in gone}
        moved = {
            by_state[now[path]]: path
            for path in sorted(paths - gone)
            if path not in self._told and now[path] in by_state
        }
        for path in paths:
            if path in gone:
                del self._told[path]
            else:
                self._told[path] = now[path]
        changed = paths - gone - {*moved.values()}
        return Changes(tuple(sorted(changed)), tuple(sorted(gone - {*moved})), tuple(moved.items()))


def watch(place: Path, known: Iterable[Path], stop: Event) -> Iterator[Changes]:
    """The changes of a folder until ``stop`` is set; first all its files.

    Raises ConfigError where the package for it is not installed, InputError where the folder cannot
    be watched.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise ConfigError(f"watching a folder needs another package; {INSTALL}")
    if not place.is_dir():
        raise InputError(f"there is no folder {place}")
    watched = FolderWatch(place, known)
    watched.look()
    looked_at, different = monotonic(), False
    for reported in _reports(place, stop):
        different |= reported
        if (different or watched.waiting) and monotonic() - looked_at >= REST:
            looked_at, different = monotonic(), False
            yield watched.look()


def _reports(place: Path, stop: Event) -> Iterator[bool]:
    """Whether the system reported a change, each time that it did and after each rest."""
    import watchfiles

    try:
        for found in watchfiles.watch(
            place,
            watch_filter=None,
            debounce=int(REST * 1000),
            rust_timeout=int(REST * 1000),
            yield_on_timeout=True,
            stop_event=stop,
            ignore_permission_denied=True,
        ):
            yield bool(found)
    except OSError as error:
        raise InputError(f"{place} cannot be watched ({error})") from error


def _states(place: Path) -> dict[Path, _State]:
    states = {}
    for path in files_in(place, lambda *_: None):
        try:
            about = os.lstat(path)
        except OSError:
            continue  # it has just gone
        if stat.S_ISREG(about.st_mode):
            states[path] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return states


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
