"""Who holds a lease: a name for this process that another on the same machine can check."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from pathlib import Path

_SELF = secrets.token_hex(4)
"""Tells this process from an earlier one of the same number; in a container all may be 1."""
_STATE, _STARTED = 0, 19
"""Places in /proc/PID/stat behind the name: a letter, and when the process started."""
_ENDED = ("Z", "X")
"""States of a process that was killed and that its parent has not asked about yet."""

_kept: dict[str, threading.Event] = {}
"""The leases that a thread of this process renews, each with what tells that thread to end."""


def new_owner() -> str:
    """A name for one worker of this process: ``host:pid:start.random``."""
    pid = os.getpid()
    started = _known(pid)[_STARTED]  # asked each time: a fork has a start of its own
    return f"{socket.gethostname()}:{pid}:{started}.{_SELF}{secrets.token_hex(4)}"


def has_ended(owner: str | None) -> bool:
    """Whether the owner's process has surely ended: it was on this machine, and is no more.

    False where that cannot be told; the lease's time decides then.
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
    # Another process may have been given the number since; an older version told no start.
    return bool(random and started and known[_STARTED]) and known[_STARTED] != started


def add_renewal(owner: str, stop: threading.Event) -> None:
    """Note that a thread of this process renews the owner's lease until ``stop`` is set."""
    _kept[owner] = stop


def is_renewed(owner: str | None) -> bool:
    """Whether this process still renews the owner's lease, though its time may have run out while
    the machine slept."""
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
    """What the system tells of a process; empty words where it tells nothing."""
    try:
        # The name in brackets may hold blanks and brackets of its own.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return [""] * (_STARTED + 1)
