"""The disk under the data folder: whether it is full, and files that only this account may read."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from memchat.errors import MemChatError, StoreFull

PROBE_BYTES = 1 << 20
"""More than SQLite asks for at a time when it opens a store or grows its files."""
OTHERS = 0o077
"""The rights of everybody but the owner."""


def has_no_room(error: OSError) -> bool:
    """Whether it was refused for want of room: a full disk, or a quota that is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def full(place: str, error: OSError | None = None) -> StoreFull:
    """The error to raise where the disk that holds ``place`` has no room."""
    if error is not None and error.errno == errno.EDQUOT:
        what = f"your quota on the disk that holds {place} is used up"
    else:
        what = f"the disk that holds {place} is full"
    return StoreFull(f"{what}. Nothing that was kept is lost. Free some space and try again")


def failure(error: OSError, place: str, otherwise: MemChatError) -> MemChatError:
    """The error to raise where the system refused to write: that the disk that holds ``place`` has
    no room, or else ``otherwise``."""
    return full(place, error) if has_no_room(error) else otherwise


def no_room_in(folder: Path) -> OSError | None:
    """The system's refusal where a file in the folder cannot grow, else None.

    Asked after SQLite failed, whose error tells a broken disk from a full one only at times. What
    the system reports as free says nothing of quotas, so a file is written, and gone at once.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error if has_no_room(error) else None
    return None


def make_folder(folder: Path) -> None:
    """Make a folder that nobody else may look into, whatever the umask. One that is there stays as
    it is: `memchat doctor` says where others may look into it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(0o700)


def new_file(path: Path) -> int:
    """Open a new file for writing that only this account may read, in the place of any other.

    A link that lies there is never followed.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


def open_to_others(folder: Path) -> bool:
    """Whether other accounts of this machine may list or enter a folder."""
    return bool(folder.stat().st_mode & OTHERS)
