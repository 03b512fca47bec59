"""What nearly every test of a store needs: the time it starts at, how long to wait, its type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from memchat import MemChat
from memchat.types import Hit, Recalled

WAIT = 30.0
"""Seconds: no test's outcome hangs on how busy the machine is."""
NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def given(shown: Recalled) -> list[Hit]:
    """All that a prompt was given: its list of facts, and what was found for the message."""
    listed = {hit.id for hit in shown.listed}
    return [*shown.listed, *(h for h in shown.hits if h.kind == "message" or h.id not in listed)]


Opener = Callable[..., MemChat]
