"""How long a caller waits."""

from __future__ import annotations

import threading

from memchat.errors import InputError


def checked_timeout(seconds: object) -> float | None:
    """How long to wait, None for as long as it takes. Raises InputError for what is no time."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= threading.TIMEOUT_MAX:
        most = f"{threading.TIMEOUT_MAX:.0f}"
        raise InputError(f"{seconds!r} is no timeout; give seconds, more than 0 and up to {most}")
    return float(seconds)
