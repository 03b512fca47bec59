"""The lock that each opening of a store holds on its folder until it is closed or its process ends.

A process in another container cannot be seen, but its locks can: where nobody else holds this one,
every process that took a lease in the store before has ended.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


class OpenLock:
    """A shared ``flock`` on the folder; on a system or disk without such locks it does nothing.

    Processes of a memchat that knows no such lock, and other programs, are not noticed by it.
    """

    def __init__(self, home: Path) -> None:
        self._file: int | None = None
        self.alone = False
        """Whether nobody else has the store open; sure until ``share`` is called."""
        if sys.platform == "win32":
            return
        with contextlib.suppress(OSError):
            self._file = os.open(home, os.O_RDONLY)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.alone = True

    def share(self) -> None:
        """Let others open the store too; they are no more alone then."""
        if sys.platform != "win32" and self._file is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Give the lock up, as the store is closed."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
