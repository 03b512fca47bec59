"""Rows, events, keyword rows and vectors stay in step; the checks are those of the crash test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import crash_checks
from memchat import MemChat
from memchat.providers.hash_embedder import SERVICE, HashEmbedder
from memchat.store import meta
from memchat.store.database import Database
from memchat.testing import ScriptedModel
from memchat.types import Usage
from memchat.vectors.vector_index import VectorIndex
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
            store_id, service_id = meta.get(tx, "store_id"), meta.get(tx, "service_id")
            index = VectorIndex(database.home, store_id or "", int(service_id or 0), SERVICE)
            every = list(crash_checks.every_fault(tx, diaries, 0, NOON, [index]))
        database.close()
        return every

    return found


def add(mc: MemChat, value: str) -> int:
    return mc.add("profile", "city", value, user="ana").id


def test_editing_a_memory_leaves_no_vector_of_its_old_words(mc: MemChat, faults: Faults) -> None:
    memory_id = add(mc, "Lisbon")
    mc.embed_pending()
    mc.edit(memory_id, user="ana", value="Porto")
    mc.embed_pending()
    assert faults() == []


def test_editing_a_superseded_memory_does_not_bring_it_back_into_search(
    mc: MemChat, faults: Faults
) -> None:
    old = add(mc, "Lisbon")
    add(mc, "Porto")
    mc.edit(old, user="ana", value="Faro")
    mc.embed_pending()
    assert [hit.memory.value for hit in mc.recall("city", user="ana").hits if hit.memory] == [
        "Porto"
    ]
    assert faults() == []


def test_moving_a_memory_to_every_app_and_back_moves_it_in_the_index(
    mc: MemChat, faults: Faults
) -> None:
    memory_id = add(mc, "Lisbon")
    mc.embed_pending()
    for everywhere in (True, False):
        mc.edit(memory_id, user="ana", all_apps=everywhere)
        assert len(mc.recall("Lisbon", user="ana").hits) == 1
        assert len(mc.recall("Lisbon", user="ana", app="notes").hits) == int(everywhere)
        assert faults() == []


def test_a_fact_said_again_leaves_no_vector_of_its_own(
    mc: MemChat, extract_model: ScriptedModel, faults: Faults
) -> None:
    for text in ("My city is Lisbon.", "Lisbon is my city."):
        extract_model.replies.append(answer(fact(text[:-1], "city", "Lisbon")))
        with mc.session(user="ana") as chat:
            assert chat.send(text).text
    assert [m.seen_count for m in mc.memories(user="ana")] == [2]
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
    memory_id = add(mc, "Lisbon")
    changes = {
        "delete": lambda: mc.delete(memory_id, user="ana"),
        "edit": lambda: mc.edit(memory_id, user="ana", value="Porto"),
        "supersede": lambda: add(mc, "Porto"),
        "move": lambda: mc.edit(memory_id, user="ana", all_apps=True),
    }
    embedder.happens.append(changes[change])
    mc.embed_pending()
    embedder.happens.clear()
    mc.embed_pending()
    assert faults() == []
