"""The records of an export or import, counted in words."""

from __future__ import annotations

from collections.abc import Mapping

REFUSED_MOST = 20
"""Refused lines of a file that are listed, at most."""


def counted_records(records: Mapping[str, int], *, session: str = "session") -> str:
    """``3 memories, 1 session, 2 messages``, or ``nothing``. ``session`` is the word for one."""
    nouns = {
        "memory": ("memory", "memories"),
        "session": (session, f"{session}s"),
        "message": ("message", "messages"),
        "note": ("note", "notes"),
    }
    numbers = [(records.get(kind, 0), *names) for kind, names in nouns.items()]
    told = [f"{n:,} {one if n == 1 else many}" for n, one, many in numbers if n]
    return ", ".join(told) or "nothing"
