"""The files of a folder: finding them, reading their bytes, and watching which came, changed, moved
or went. What the system reports only says when to look; what there is to do is told by comparing
the folder with what it was, so nothing is missed that the system reports badly.
"""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import monotonic

from memchat.errors import ConfigError, InputError
from memchat.notes import files
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
            if not is_skipped(name) and files.is_known(name) and not path.is_symlink():
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
            files.check_size(path.name, about.st_size)
            return FileContent(stream.read(files.most_bytes(path.name) + 1), modified)
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
        raise ConfigError(f"watching a folder needs another package; {files.INSTALL}")
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
