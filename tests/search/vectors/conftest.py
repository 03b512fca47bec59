"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat.db.database import Database
from memchat.search import vector_index as index_module
from memchat.search.embeddings import FOLDER
from tests.support import empty_store
from tests.support.vectors import ANA, keep, opened, search

# Over the rows


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    opened = Database(empty_store.place(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def saved(store: Database, monkeypatch) -> Path:
    """The one file of a shard that was large enough to be saved."""
    monkeypatch.setattr(index_module, "SAVE_FROM", 2)
    keep(store, ANA, "tea", "jazz", "chess")
    index = opened(store)
    search(store, index, ANA, "tea")
    with store.read() as tx:
        index.save(tx)
    (file,) = (store.home / FOLDER).iterdir()
    return file
