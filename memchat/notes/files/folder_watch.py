"""Watching a folder: which of its files came, changed, moved or went.

What the system reports only says when to look; what there is to do is told by comparing the folder
with what it was before. So nothing is missed that the system reports badly: whole folders that are
moved, files that are written beside and then renamed, links.
"""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

from memchat.errors import ConfigError, InputError
from memchat.notes.files import folder
from memchat.notes.files.child import INSTALL

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
    for path in folder.files_in(place, lambda *_: None):
        try:
            about = os.lstat(path)
        except OSError:
            continue  # it has just gone
        if stat.S_ISREG(about.st_mode):
            states[path] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return states
