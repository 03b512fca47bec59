"""Values that a caller gives and that cannot be: refused before anything is stored."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from memchat import InputError, MemChat, Wanted


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
        with pytest.raises(InputError, match=r"no cursor|give cursor as a text"):
            room.list(cursor=cursor)


REFUSED = {
    "no messages": lambda ana: ana.add(None),
    "a list as role": lambda ana: ana.add([{"role": ["user"], "content": "Hello"}]),
    "a number as session": lambda ana: ana.add("Hello", session=17),
    "a text as time": lambda ana: ana.add("Hello", at="2020-01-01"),
    "a time before 1970": lambda ana: ana.add("Hello", at=datetime(1, 1, 1, tzinfo=UTC)),
    "a huge limit": lambda ana: ana.search("Hello", limit=10**20),
    "a negative limit of a search": lambda ana: ana.search("Hello", limit=-1),
    "a negative limit of memories": lambda ana: ana.memories.list(limit=-1),
    "a negative limit of sessions": lambda ana: ana.sessions.list(limit=-1),
    "a negative limit of a page": lambda ana: ana.memories.browse(Wanted(), limit=-1),
    "a negative offset": lambda ana: ana.memories.browse(Wanted(), offset=-1),
    "an unknown status of memories": lambda ana: ana.memories.browse(Wanted(status="zzz")),
    "an unknown status of ids": lambda ana: ana.memories.browse_ids(Wanted(status="zzz")),
    "an unknown group": lambda ana: ana.memories.browse(Wanted(group="zzz")),
    "an unknown order": lambda ana: ana.memories.browse(Wanted(sort="zzz")),
    "an unknown status of proposals": lambda ana: ana.inbox.list(status="nonsense"),
    "an unknown type": lambda ana: ana.memories.list(type="nonsense"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_value_that_cannot_be_is_refused(mc, what: str) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError):
        REFUSED[what](ana)
    assert ana.sessions.list() == []


@pytest.mark.parametrize("at", [None, "now", datetime(1, 1, 1, tzinfo=UTC), datetime.max])
def test_a_clock_that_says_no_time_to_reckon_with_is_refused_at_the_opening_and_by_every_verb(
    tmp_path, at
) -> None:
    says: list[object] = [at]
    unusable = pytest.raises(InputError, match="it must return an aware time of the years")
    with unusable:
        MemChat(tmp_path, clock=lambda: says[0], embedder=None)
    says[0] = datetime(2026, 11, 23, tzinfo=UTC)
    with MemChat(tmp_path, clock=lambda: says[0], embedder=None) as mc:
        ana = mc.user("ana")
        says[0] = at
        for verb in (
            lambda: ana.notes.add("A word."),
            lambda: ana.memories.add("fact", "boat", "a boat"),
            lambda: ana.search("boat last week"),
            ana.memories.list,
            lambda: mc.now,
        ):
            with unusable:
                verb()
