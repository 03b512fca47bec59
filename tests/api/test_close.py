"""Closing a MemChat: what it was used for is refused afterwards, and nothing of it stays open."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memchat import MemChat, StoreError
from tests.support.store import Opener

USES: dict[str, Callable[[MemChat], object]] = {
    "list": lambda mc: mc.user("ana").memories.list(),
    "add": lambda mc: mc.user("ana").memories.add("fact", "pet", "cat"),
    "search": lambda mc: mc.user("ana").search("pet"),
    "notes": lambda mc: mc.user("ana").notes.add("a text"),
    "chat": lambda mc: mc.user("ana").chat(),
    "incognito chat": lambda mc: mc.user("ana").chat(incognito=True),
    "jobs": lambda mc: mc.jobs.run(),
    "doctor": lambda mc: mc.doctor(),
    "with": lambda mc: mc.__enter__(),
}


@pytest.mark.parametrize("use", USES)
def test_whatever_is_used_after_close_says_that_it_was_closed(open_store: Opener, use: str) -> None:
    mc = open_store()
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.close()
    mc.close()
    with pytest.raises(StoreError, match=r"memchat\.db was closed .*open it again"):
        USES[use](mc)
    kept = open_store().user("ana").memories.list()
    assert [memory.value for memory in kept] == ["Lisbon"]


def test_a_chat_of_a_closed_store_takes_no_more_words_also_incognito(open_store: Opener) -> None:
    mc = open_store()
    for chat in (mc.user("ana").chat(), mc.user("ana").chat(incognito=True)):
        chat.send("Hello.").read()
    mc.close()
    for said in (chat.send, chat.redo):
        with pytest.raises(StoreError, match="was closed"):
            said("Hello again.").read()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_close_leaves_no_file_and_no_thread(tmp_path: Path, open_store: Opener) -> None:
    before = {*threading.enumerate()}
    mc = open_store()
    mc.user("ana").chat().send("I live in Lisbon.").read()
    reading = mc.user("ana").export()
    next(reading)
    mc.close()
    list(reading)  # what was begun comes to its end, and lets go of its file there
    assert not [name for name in _open_files() if str(tmp_path) in name]
    ours = {t.name for t in {*threading.enumerate()} - before if t.name.startswith("memchat")}
    assert not ours


def _open_files() -> list[str]:
    folder = Path("/proc/self/fd")
    return [os.readlink(file) for file in folder.iterdir() if file.exists()]
