"""Owners of leases: names for processes, by which others on the same machine can tell whether a
process has ended."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from pathlib import Path

_SELF = secrets.token_hex(4)
"""Distinguishes this process from an earlier one with the same number; in containers all may be
1."""
_STATE, _STARTED = 0, 19
"""Positions in /proc/PID/stat after the name: the state, and when the process started."""
_ENDED = ("Z", "X")
"""States of a process that ended and that its parent has not waited for yet."""

_kept: dict[str, threading.Event] = {}
"""The leases that a thread of this process renews, each with the event that stops the thread."""


def new_owner() -> str:
    """A name for one worker of this process: ``host:pid:start.random``."""
    pid = os.getpid()
    started = _known(pid)[_STARTED]  # read each time, since a fork has another start time
    return f"{socket.gethostname()}:{pid}:{started}.{_SELF}{secrets.token_hex(4)}"


def has_ended(owner: str | None) -> bool:
    """Whether the owner's process was on this machine and has certainly ended.

    False if that cannot be told; then the time of the lease decides.
    """
    host, _, rest = (owner or "").partition(":")
    pid, _, token = rest.partition(":")
    started, _, random = token.partition(".")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return not random.startswith(_SELF)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    known = _known(int(pid))
    if known[_STATE] in _ENDED:
        return True
    # The number may belong to another process by now. Older owners have no start time.
    return bool(random and started and known[_STARTED]) and known[_STARTED] != started


def add_renewal(owner: str, stop: threading.Event) -> None:
    """Note that a thread of this process renews the owner's lease until ``stop`` is set."""
    _kept[owner] = stop


def is_renewed(owner: str | None) -> bool:
    """Whether this process still renews the owner's lease. Its time may have run out while the
    machine slept."""
    stop = _kept.get(owner or "")
    return stop is not None and not stop.is_set()


def remove_renewal(owner: str, stop: threading.Event) -> None:
    """Note that the thread has ended, unless another one renews the lease by now."""
    if _kept.get(owner) is stop:
        del _kept[owner]


def pid_of(owner: str) -> int:
    """The number of the owner's process."""
    return int(owner.split(":")[1])


def _known(pid: int) -> list[str]:
    """The fields of the process in the system's table; empty strings if there are none."""
    try:
        # The name in brackets may hold blanks and brackets of its own.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return [""] * (_STARTED + 1)
