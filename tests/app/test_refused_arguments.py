"""Values that a caller gives and that cannot be: refused before anything is stored."""

from __future__ import annotations

import threading

import pytest

from memchat import InputError


@pytest.mark.parametrize(
    "timeout", [0, -1.0, float("inf"), float("nan"), threading.TIMEOUT_MAX * 2, "5"]
)
def test_a_timeout_that_cannot_be_is_refused_before_anything_is_stored(mc, timeout) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError, match="timeout"):
        ana.add("Hello", timeout=timeout)
    assert ana.sessions.list() == []


def test_a_cursor_of_another_list_is_refused(mc) -> None:
    ana = mc.user("ana")
    for number in range(3):
        ana.memories.add("fact", "boat", f"boat {number}")
    cursor = ana.memories.list(limit=1).cursor
    with pytest.raises(InputError, match="another status"):
        ana.memories.list(status="expiring", cursor=cursor)


@pytest.mark.parametrize("cursor", ["", "5", 5, "2026-01-01T00:00:00_1_", "2026-01-01T00:00:00_1"])
def test_what_is_no_cursor_is_refused(mc, cursor) -> None:
    ana = mc.user("ana")
    for room in (ana.memories, ana.sessions):
        with pytest.raises(InputError, match="no cursor"):
            room.list(cursor=cursor)
