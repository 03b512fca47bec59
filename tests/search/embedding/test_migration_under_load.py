"""Searches and writes of other processes while the service changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks import switch as bench
from memchat import MemChat
from memchat.config import Settings
from memchat.search import switch
from memchat.testing import FakeClock, ScriptedModel
from tests.support import empty_store
from tests.support.answers import answer
from tests.support.service_change import NEW, OLD, Between, migrate, spaces
from tests.support.slow import slow_but
from tests.support.store import NOON

# Properties

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "edit", "delete", "embed", "search", "reopen", "chat"]),
        st.integers(0, 99),
    ),
    max_size=12,
)


@pytest.mark.parametrize("examples", slow_but([2], [2, 8]))
def test_no_search_is_empty_and_no_cosine_foreign_whatever_happens_during_changes(
    tmp_path_factory: pytest.TempPathFactory, examples: int
) -> None:
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(STEPS, min_size=1, max_size=3))
    def holds(rounds: list[list[tuple[str, int]]]) -> None:
        change_back_and_forth(tmp_path_factory.mktemp("switch"), rounds)

    holds()


def change_back_and_forth(home: Path, rounds: list[list[tuple[str, int]]]) -> None:
    """Change the service once for each round, while its steps are done."""
    life = Life(home)
    target = [NEW, OLD]
    try:
        for steps in rounds:
            left = iter(steps)

            def does(batch: int, left: Any = left) -> None:
                for _ in range(2):
                    if (step := next(left, None)) is not None:
                        life.do(*step)
                        life.look()

            before = switch.BATCH
            switch.BATCH = 2
            try:
                assert migrate(life.writer, Between(target[0], does)).switched
            finally:
                switch.BATCH = before
            life.look()
            target.reverse()
        assert life.writer.repair() == []  # nothing is out of step, nothing left of what is gone
    finally:
        life.close()


class Life:
    """A writer and a reader on one store, and what they must find."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.writer, self.reader = self._open(), self._open()
        self.words: dict[int, str] = {}
        self.numbers = iter(range(10_000))
        for _ in range(5):
            self.do("add", 0)
        self.do("embed", 0)

    def _open(self) -> MemChat:
        model = ScriptedModel(["Fine."] * 500)
        extract = ScriptedModel([answer()] * 500)
        return MemChat(
            settings=Settings(
                empty_store.place(self.home / "store"), embed_model=OLD, embed_patience=30
            ),
            chat_model=model,
            extract_model=extract,
            clock=FakeClock(NOON),
        )

    def close(self) -> None:
        self.writer.close()
        self.reader.close()

    def do(self, step: str, chance: int) -> None:
        mc = self.writer
        ana = mc.user("ana")
        known = sorted(self.words)
        one = known[chance % len(known)] if known else None
        if step == "add" or one is None:
            word = _letters(next(self.numbers))
            self.words[ana.memories.add("fact", "thing", f"{word} pebble").id] = word
        elif step == "edit":
            word = _letters(next(self.numbers))
            ana.memories.update(one, value=f"{word} pebble")
            self.words[one] = word
        elif step == "delete" and len(known) > 1:
            ana.memories.delete(one)
            del self.words[one]
        elif step == "embed":
            mc.jobs.embed()
        elif step == "search":
            assert ana.search(f"{self.words[one]} pebble").hits
        elif step == "reopen":
            self.reader.close()
            self.reader = self._open()
        elif step == "chat":
            with ana.chat() as chat:
                assert chat.send(f"the {self.words[one]} pebble").read()

    def look(self) -> None:
        """Every fact is found by its words, in one space, by both processes."""
        for mc in (self.reader, self.writer):
            for memory_id, word in self.words.items():
                question = f"{word} pebble"
                hits = mc.user("ana").search(question).hits
                facts = {hit.id: hit for hit in hits if hit.kind == "memory"}
                assert facts[memory_id].cosine is not None
                assert spaces(mc, question, hits), hits


def _letters(number: int) -> str:
    return "pq" + "".join("bcdfghjklm"[int(digit)] for digit in str(number))


# The figure, smaller


@pytest.mark.slow
def test_readers_in_other_processes_find_everything_while_the_service_changes(
    tmp_path: Path,
) -> None:
    figure = bench.run(tmp_path, rows=300, kills=1)
    assert figure.faults == []
    services_seen = {search.service for search in figure.searches}
    assert {"old", "new"} <= services_seen
    after = figure.between(figure.switched + 1, figure.searches[-1].at + 1)
    assert "old" not in {search.service for search in after}
