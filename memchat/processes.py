"""Who holds a lease: a name for this process that another on the same machine can check."""

from __future__ import annotations

import os
import secrets
import socket

_SELF = secrets.token_hex(4)
"""Tells this process from an earlier one of the same number; in a container all may be 1."""


def new_owner() -> str:
    """A name for one worker of this process: ``host:pid:random``."""
    return f"{socket.gethostname()}:{os.getpid()}:{_SELF}{secrets.token_hex(4)}"


def is_gone(owner: str | None) -> bool:
    """Whether the owner's process has surely ended: it was on this machine, and is no more.

    False where that cannot be told; the lease's time decides then.
    """
    host, _, rest = (owner or "").partition(":")
    pid, _, token = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return not token.startswith(_SELF)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
