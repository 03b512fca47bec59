"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat.db.database import Database
from tests.support import empty_store
from tests.support.rows import BACKENDS


@pytest.fixture(params=sorted(BACKENDS))
def store(request, tmp_path: Path) -> Iterator[Database]:
    opened = BACKENDS[request.param](empty_store.place(tmp_path))
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=sorted(BACKENDS))
def shared_store(request, tmp_path_factory) -> Iterator[Database]:
    """One store for tests that only look, or undo what they write."""
    opened = BACKENDS[request.param](tmp_path_factory.mktemp("shared"))
    yield opened
    opened.close()


@pytest.fixture
def tx(shared_store: Database) -> Iterator:
    """A writer's transaction, undone at the end."""
    with shared_store.write() as connection:
        yield connection
        connection.connection.get_transaction().rollback()


# SQLite's own


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    opened = Database(empty_store.place(tmp_path / "store"))
    yield opened
    opened.close()
