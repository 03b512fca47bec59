"""The log of a command: to a file of the data folder, which a person may send to whoever looks into
a problem, and with ``--verbose`` to standard error.

It is imported where a store is opened: what only shows help or completes a line needs no log.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memchat.cli import command, output
from memchat.errors import ConfigError, MemChatError, ProviderError, origin

if TYPE_CHECKING:
    from memchat.config import Settings

LEVELS = ("warning", "info", "debug")
"""What standard error gets at most, by how often ``--verbose`` was given; without it nothing."""
_handlers: list[logging.Handler] = []


def start(settings: Settings, *, verbose: int = 0) -> None:
    """Write memchat's log until ``stop``; ``verbose`` is as often as ``--verbose`` at least."""
    stop()
    verbose = max(verbose, command.VERBOSE.get())
    asked = min(verbose, len(LEVELS) - 1)
    if settings.log != "off":
        _add(LogFile(settings.home), LEVELS[max(asked, LEVELS.index(settings.log))])
    if verbose:
        _add(_to_stderr(), LEVELS[asked])
    if not _handlers:
        _handlers.append(logging.NullHandler())
    log = logging.getLogger("memchat")
    log.setLevel(min((one.level for one in _handlers), default=logging.WARNING))
    for handler in _handlers:
        log.addHandler(handler)


def stop() -> None:
    """Write the log no more."""
    if not _handlers:
        return
    log = logging.getLogger("memchat")
    while _handlers:
        log.removeHandler(_handlers.pop())
    log.setLevel(logging.NOTSET)


def command_began() -> None:
    """Log the command and the versions."""
    from importlib.metadata import version

    python = ".".join(map(str, sys.version_info[:3]))
    logging.getLogger(__name__).info(
        "%s (version %s, Python %s, %s)",
        command.COMMAND.get(),
        version("memchat"),
        python,
        sys.platform,
    )


def command_failed(error: Exception) -> None:
    """Log what ended a command, if its log was begun."""
    if _handlers:
        expected = isinstance(error, MemChatError)
        level = logging.WARNING if expected else logging.ERROR
        logging.getLogger(__name__).log(level, "%s failed: %s", command.COMMAND.get(), error)


def _add(handler: logging.Handler, level: str) -> None:
    handler.setLevel(level.upper())
    _handlers.append(handler)


def _to_stderr() -> logging.Handler:
    class Plain(logging.Formatter):
        """A line each, without the characters that would drive the terminal."""

        def formatMessage(self, record: logging.LogRecord) -> str:
            return output.plain(" ".join(super().formatMessage(record).split()))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    return handler


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
