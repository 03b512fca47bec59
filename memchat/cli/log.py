"""The log of a command: to a file of the data folder, and with ``--verbose`` to standard error.

Ending a command that goes on until it is told to stop.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING

from memchat.cli import output
from memchat.errors import MemChatError

if TYPE_CHECKING:
    import logging

    from memchat.config import Settings

COMMAND: ContextVar[str] = ContextVar("COMMAND", default="memchat")
"""The names of the command that is running, without its arguments."""
VERBOSE: ContextVar[int] = ContextVar("VERBOSE", default=0)
"""How often ``--verbose`` was given."""
LEVELS = ("warning", "info", "debug")
"""What standard error gets at most, by how often ``--verbose`` was given; without it nothing."""
_handlers: list[logging.Handler] = []


def start(settings: Settings, *, verbose: int = 0) -> None:
    """Write memchat's log until ``stop``; ``verbose`` is as often as ``--verbose`` at least."""
    import logging

    from memchat.cli.log_file import LogFile

    stop()
    verbose = max(verbose, VERBOSE.get())
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
    import logging

    log = logging.getLogger("memchat")
    while _handlers:
        log.removeHandler(_handlers.pop())
    log.setLevel(logging.NOTSET)


def command_began() -> None:
    """Log the command and the versions."""
    import logging
    from importlib.metadata import version

    python = ".".join(map(str, sys.version_info[:3]))
    logging.getLogger(__name__).info(
        "%s (version %s, Python %s, %s)", COMMAND.get(), version("memchat"), python, sys.platform
    )


def command_failed(error: Exception) -> None:
    """Log what ended a command, if its log was begun."""
    if _handlers:
        import logging

        expected = isinstance(error, MemChatError)
        level = logging.WARNING if expected else logging.ERROR
        logging.getLogger(__name__).log(level, "%s failed: %s", COMMAND.get(), error)


def _add(handler: logging.Handler, level: str) -> None:
    handler.setLevel(level.upper())
    _handlers.append(handler)


def _to_stderr() -> logging.Handler:
    import logging

    class Plain(logging.Formatter):
        """A line each, without the characters that would drive the terminal."""

        def formatMessage(self, record: logging.LogRecord) -> str:
            return output.plain(" ".join(super().formatMessage(record).split()))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    return handler


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[list[int]]:
    """In this block the first signal to end calls ``stop``, which lets what is in hand come to its
    end, and the second breaks it off.

    Gives a list that the signal's number is put into.
    """
    told: list[int] = []

    def first(number: int, frame: FrameType | None) -> None:
        for name in SIGNALS:
            signal.signal(name, signal.default_int_handler)
        told.append(number)
        stop()

    before = {name: signal.signal(name, first) for name in SIGNALS}
    try:
        yield told
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
