"""Owners of leases: names for processes, by which others on the same machine can tell whether a
process has ended."""

from __future__ import annotations

import functools
import os
import re
import secrets
import socket
import threading
from pathlib import Path

_SELF = secrets.token_hex(4)
"""Distinguishes this process from an earlier one with the same number; in containers all may be
1."""
_STATE, _STARTED = 0, 19
"""Positions in /proc/PID/stat after the name: the state, and when the process started."""
_NAME = re.compile(
    r"(?P<host>[^:]+):(?P<pid>\d+):((?P<started>\d*)\.)?(?P<random>\w*)"
    r"(-(?P<boot>\w*)-(?P<namespace>\d*))?(:\w+)?"
)
"""The name of an owner; those of earlier versions have no boot, the oldest no start time. A claim
of jobs has a number of its own behind it."""
_ENDED = ("Z", "X")
"""States of a process that ended and that its parent has not waited for yet."""

_kept: dict[str, threading.Event] = {}
"""The leases that a thread of this process renews, each with the event that stops the thread."""


def new_owner() -> str:
    """A name for one worker of this process: ``host:pid:start.random-boot-namespace``.

    A process is known for sure by the boot of its kernel, the PID namespace (that of a container),
    its number and its start time; boot and namespace are empty where the system tells neither.
    """
    pid = os.getpid()
    started = _known(pid)[_STARTED]  # read each time, since a fork has another start time
    worker = f"{_SELF}{secrets.token_hex(4)}"
    return f"{socket.gethostname()}:{pid}:{started}.{worker}-{_boot()}-{_namespace()}"


def has_ended(owner: str | None) -> bool:
    """Whether the owner's process was on this machine and has certainly ended.

    False if that cannot be told; then the time of the lease decides.
    """
    name = _NAME.fullmatch(owner or "")
    if name is None:
        return False
    same_host = name["host"] == socket.gethostname()
    if name["boot"] and _boot():
        if name["boot"] != _boot():
            return same_host  # then this machine was started again since
        if name["namespace"] != _namespace():
            return False  # another container, whose processes cannot be seen from here
    elif not same_host:
        return False
    return _has_process_ended(int(name["pid"]), name["started"], name["random"])


def is_of_this_process(owner: str | None) -> bool:
    """Whether the owner is a worker of this very process."""
    name = _NAME.fullmatch(owner or "")
    return name is not None and int(name["pid"]) == os.getpid() and _is_own(name["random"])


def _has_process_ended(pid: int, started: str | None, random: str) -> bool:
    """Whether no process that is seen from here has this number and started then."""
    if pid == os.getpid():
        return not _is_own(random)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    known = _known(pid)
    if known[_STATE] in _ENDED:
        return True
    # The number may belong to another process by now. Older owners have no start time.
    return bool(started and known[_STARTED]) and known[_STARTED] != started


def _is_own(random: str) -> bool:
    return random.startswith(_SELF)


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


@functools.cache
def _boot() -> str:
    """The beginning of the id that the kernel drew when it was started; empty if it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").replace("-", "")[:12]
    except OSError:
        return ""


@functools.cache
def _namespace() -> str:
    """The number of the PID namespace; processes of one kernel may be in several."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""
