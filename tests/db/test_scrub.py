"""Scrubbing the keyword index after deletions, for as long as a store may live."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memchat.db.database import BUSY_SECONDS, Database
from memchat.search import keywords
from tests.support import empty_store
from tests.support.rows import remove_words, write_words

DELETIONS = 2_200
"""More than the 2,000 levels that SQLite allows an index; each 'optimize' may add one."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Some pages of kept words; in a smaller index nothing ever nests."""
    chance = random.Random(1)
    database = Database(empty_store.place(tmp_path))
    with database.write() as tx:
        for row in range(1, 151):
            words = " ".join(f"w{chance.randrange(10**6)}" for _ in range(12))
            write_words(tx, "turn", row, 7, f"kept {words}")
    yield database
    database.close()


def test_the_keyword_index_outlives_thousands_of_deletions_and_keeps_none_of_their_words(
    database: Database,
) -> None:
    with database.write() as tx:
        for number in range(DELETIONS):
            write_words(tx, "turn", 1_000, 7, f"forget zanzibar{number}")
            remove_words(tx, "turn", [1_000])
            keywords.scrub(tx)
            if number % 100 == 0:
                blocks = tx.connection.exec_driver_sql(
                    "SELECT block FROM passages_fts_data"
                ).scalars()
                assert b"zanzibar" not in b"".join(blocks)
    with closing(Database(database.home)) as again, again.read() as tx:
        assert len(keywords.matches(tx, "turn", [7], ["kept"]).best(1_000)) == 150
        assert keywords.matches(tx, "turn", [7], ["forget"]).best(5) == []


def test_a_reader_holds_a_scrub_back_and_neither_holds_up_a_writer(database: Database) -> None:
    with database.read() as reader:
        assert len(keywords.matches(reader, "turn", [7], ["kept"]).best(1_000)) == 150
        with database.write() as tx:
            remove_words(tx, "turn", [1])
        began = time.monotonic()
        assert not database.truncate_wal()
        assert time.monotonic() - began < BUSY_SECONDS / 3
        with database.write() as tx:
            remove_words(tx, "turn", [2])
    assert database.truncate_wal()
