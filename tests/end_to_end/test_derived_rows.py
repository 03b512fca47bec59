"""Rows, events, keyword rows and vectors stay in step; the checks are those of the crash test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import crash_checks
from memchat import MemChat
from memchat.db import records
from memchat.db.database import Database
from memchat.providers.embedders import SERVICE, HashEmbedder
from memchat.search.vector_index import VectorIndex
from memchat.testing import ScriptedModel
from memchat.types import Usage
from tests.support.answers import answer, fact
from tests.support.store import NOON, Opener

Faults = Callable[[], list[str]]


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """Every way in which the store contradicts itself."""
    (tmp_path / "diaries").mkdir()

    def found() -> list[str]:
        database = Database(tmp_path / "store")
        diaries = crash_checks.Diaries(tmp_path / "diaries")
        with database.read() as tx:
            store_id, service_id = records.get(tx, "store_id"), records.get(tx, "service_id")
            index = VectorIndex(database.home, store_id or "", int(service_id or 0), SERVICE)
            every = list(crash_checks.every_fault(tx, diaries, 0, NOON, [index]))
        database.close()
        return every

    return found


def add(mc: MemChat, value: str) -> int:
    return mc.user("ana").memories.add("profile", "city", value).id


def test_editing_a_memory_leaves_no_vector_of_its_old_words(mc: MemChat, faults: Faults) -> None:
    memory_id = add(mc, "Lisbon")
    mc.jobs.embed()
    mc.user("ana").memories.update(memory_id, value="Porto")
    mc.jobs.embed()
    assert faults() == []


def test_editing_a_superseded_memory_does_not_bring_it_back_into_search(
    mc: MemChat, faults: Faults
) -> None:
    ana = mc.user("ana")
    old = add(mc, "Lisbon")
    add(mc, "Porto")
    ana.memories.update(old, value="Faro")
    mc.jobs.embed()
    assert [hit.memory.value for hit in ana.search("city").hits if hit.memory] == ["Porto"]
    assert faults() == []


def test_moving_a_memory_to_every_app_and_back_moves_it_in_the_index(
    mc: MemChat, faults: Faults
) -> None:
    ana = mc.user("ana")
    memory_id = add(mc, "Lisbon")
    mc.jobs.embed()
    for everywhere in (True, False):
        ana.memories.update(memory_id, all_apps=everywhere)
        assert len(ana.search("Lisbon").hits) == 1
        assert len(mc.user("ana", app="notes").search("Lisbon").hits) == int(everywhere)
        assert faults() == []


def test_a_fact_said_again_leaves_no_vector_of_its_own(
    mc: MemChat, extract_model: ScriptedModel, faults: Faults
) -> None:
    ana = mc.user("ana")
    for text in ("My city is Lisbon.", "Lisbon is my city."):
        extract_model.replies.append(answer(fact(text[:-1], "city", "Lisbon")))
        with ana.chat() as chat:
            assert chat.send(text).read()
    assert [m.seen_count for m in ana.memories.list()] == [2]
    assert faults() == []


class Meanwhile(HashEmbedder):
    """Something happens while the vectors are being made."""

    def __init__(self) -> None:
        self.happens: list[Callable[[], Any]] = []

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        for happen in self.happens:
            happen()
        return super().embed_documents(texts)


@pytest.mark.parametrize("change", ["delete", "edit", "supersede", "move"])
def test_what_changes_while_its_vector_is_made_ends_in_step(
    open_store: Opener, faults: Faults, change: str
) -> None:
    embedder = Meanwhile()
    mc = open_store(embedder=embedder)
    ana = mc.user("ana")
    memory_id = add(mc, "Lisbon")
    changes = {
        "delete": lambda: ana.memories.delete(memory_id),
        "edit": lambda: ana.memories.update(memory_id, value="Porto"),
        "supersede": lambda: add(mc, "Porto"),
        "move": lambda: ana.memories.update(memory_id, all_apps=True),
    }
    embedder.happens.append(changes[change])
    mc.jobs.embed()
    embedder.happens.clear()
    mc.jobs.embed()
    assert faults() == []
