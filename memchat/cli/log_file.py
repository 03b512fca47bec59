"""The log file in the data folder: what a person may send to whoever looks into a problem."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from memchat.errors import ConfigError, ProviderError, origin

NAME = "memchat.log"
OLDER = "memchat.log.1"
MOST_BYTES = 1_000_000
"""From this size on the file takes the place of the older one, and a new one begins."""


class WordlessFormatter(logging.Formatter):
    """A line for each record, in UTC. An error is named by its class and the places in the code
    that it came through: its text may hold what a person wrote."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The time of the record in UTC."""
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a newline."""
        record = copy.copy(record)
        if isinstance(record.args, tuple):
            record.args = tuple(_without_text(one) for one in record.args)
        record.exc_info = record.exc_text = None
        return " ".join(super().format(record).split())


class LogFile(logging.Handler):
    """Writes records to a file that this account alone may read.

    Several processes may write to it. It is opened for each record, so that none goes on writing
    to a file that another has replaced.
    """

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError if something that is no file is in the log's place."""
        super().__init__()
        self._path = folder.absolute() / NAME
        if self._path.exists() and not self._path.is_file():
            raise ConfigError(
                f"{self._path} is no file, so no log can be written there; move it away, or set "
                "MEMCHAT_LOG=off"
            )
        self.setFormatter(WordlessFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. Where that cannot be done it is left out: the work goes on."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_NONBLOCK  # a pipe in its place would be waited for until somebody reads it
        with contextlib.suppress(OSError):
            handle = os.open(self._path, flags, 0o600)
            with open(handle, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"{self.format(record)}\n")
                file.flush()
                if os.fstat(handle).st_size >= MOST_BYTES:
                    self._rotate(handle)

    def _rotate(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), self._path.stat()):  # no other process was faster
            self._path.replace(self._path.with_name(OLDER))


def _without_text(arg: object) -> object:
    if not isinstance(arg, BaseException):
        return arg
    status = f" (status {arg.status})" if isinstance(arg, ProviderError) and arg.status else ""
    cause = f", from {type(arg.__cause__).__name__}" if arg.__cause__ is not None else ""
    place = origin(arg) if arg.__traceback__ is not None else type(arg).__name__
    return f"{place}{status}{cause}"
