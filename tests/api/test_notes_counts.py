"""Matches of notes are counted where that delays no search."""

from __future__ import annotations

import time

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import HashEmbedder
from tests.support import private


def test_a_search_waits_for_no_writer_and_counts_its_matches_once_there_is_none(tmp_path) -> None:
    settings = Settings(home=tmp_path, timezone="UTC")
    with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
        notes = mc.user("ana").notes
        notes.add("The ferry to Helgoland leaves at nine.")
        began = time.monotonic()
        with private.database(mc).write():
            assert len(notes.search("ferry").hits) == 1
        assert time.monotonic() - began < 3, "a writer is waited for much longer elsewhere"
        counts = [notes.search("ferry").hits[0].match_count for _ in range(3)]
    assert counts == [0, 1, 2]
