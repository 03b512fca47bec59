"""Finding the files of a folder, and reading their bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memchat.errors import InputError
from memchat.notes.files import formats
from memchat.types.conversations import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file and when it was last changed."""

    data: bytes
    modified_at: datetime


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
            if not is_skipped(name) and formats.is_known(name) and not path.is_symlink():
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


def content(path: Path) -> FileContent:
    """A file, whole. Raises InputError where it is no file, too large or cannot be read."""
    try:
        # Opening a pipe would wait for somebody to write into it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            about = os.fstat(stream.fileno())
            modified = _time(about)
            formats.check_size(path.name, about.st_size)
            return FileContent(stream.read(formats.most_bytes(path.name) + 1), modified)
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
