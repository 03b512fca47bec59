"""The indexing benchmark in small, with the hash embedder. No time is asserted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.indexing import runs
from benchmarks.indexing.child import STORE
from benchmarks.indexing.memos import memo


def test_memos_come_from_their_number_and_no_two_are_equal() -> None:
    memos = [memo(number) for number in range(300)]
    assert len(set(memos)) == 300 and memos == [memo(number) for number in range(300)]
    words = sorted(len(text.split()) for text in memos)
    assert words[0] > 30 and words[150] < 160 < 350 < words[-1]


@pytest.mark.slow
def test_a_killed_run_is_finished_by_the_next_and_what_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs.kills(tmp_path, 150, "hash", 1, seed=1)
    told = capsys.readouterr().out
    assert told.startswith("150 memos, 1 processes killed") and "damaged: nothing" in told
    with closing(sqlite3.connect(tmp_path / STORE / "memchat.db")) as db, db:
        db.execute("DELETE FROM embeddings WHERE hash IN (SELECT hash FROM chunks LIMIT 2)")
    assert runs.faults(tmp_path, 151) == ["1 memos missing", "2 chunks without a vector"]
