"""Two years of somebody's conversations are imported: what is in force at the end is what is so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memchat.testing import ScriptedModel
from tests.support import two_years
from tests.support.histories import write, zipped
from tests.support.two_years import ENDED, LIFE, Reader, Talk

TALKS = two_years.talks()


def test_the_history_is_what_it_says() -> None:
    assert len(TALKS) == 60 and two_years.talks() == TALKS
    assert (TALKS[-1].at - TALKS[0].at).days > 650
    assert sum(len(told) - 1 for told in LIFE.values()) == 20
    assert sum(one.key != "" and one.value != one.before for one in TALKS) == 33
    assert all(told[n] != told[n - 1] for told in LIFE.values() for n in range(1, len(told)))


def teach(ana: Any, model: ScriptedModel, tmp_path: Path, some: list[Talk]) -> Reader:
    """Import these conversations and have them read."""
    reader = Reader(TALKS)
    model.replies.clear()
    model.replies.extend([reader] * len(some))
    exported = [one.exported for one in reversed(some)]
    file = write(tmp_path / "theirs.zip", zipped({"conversations.json": exported}))
    done = ana.import_history(file, learn="now")
    assert (done.added["session"], done.to_read, done.waiting) == (len(some), len(some), 0)
    assert reader.read == [one.name for one in some], "the oldest first"
    return reader


def in_force(ana: Any) -> set[tuple[str, str]]:
    return {(one.key, one.value) for one in ana.memories.list(limit=1000)}


@pytest.mark.slow
def test_nothing_stale_is_in_force_after_two_years(mc, extract_model, tmp_path: Path) -> None:
    ana = mc.user("ana")
    reader = teach(ana, extract_model, tmp_path, TALKS)
    assert in_force(ana) == two_years.holding()
    assert {one.created_by for one in ana.memories.list(limit=1000)} == {"import"}
    assert ana.inbox.list() == []
    missed = [one.name for one in TALKS if one.before and one.before not in reader.shown[one.name]]
    assert missed == [], "what it changes was shown to the reader"
    past = {(one.key, one.value) for one in ana.memories.list(status="all", limit=1000)}
    assert past == {(key, v) for (_, key), told in LIFE.items() for v, _ in told if v != ENDED}


SLOW = pytest.mark.slow
CUTS = [
    pytest.param([30], id="two halves"),
    pytest.param([22], id="what ended in the newer part began in the older one", marks=SLOW),
    pytest.param([20], id="and what it had replaced, too", marks=SLOW),
    pytest.param([15, 30, 45], id="four quarters", marks=SLOW),
]


@pytest.mark.parametrize("cuts", CUTS)
def test_older_conversations_that_come_later_bring_nothing_stale(
    mc, extract_model, tmp_path: Path, cuts: list[int]
) -> None:
    ana = mc.user("ana")
    for first, end in reversed([*pairwise([0, *cuts, 60])]):
        teach(ana, extract_model, tmp_path, TALKS[first:end])
    assert in_force(ana) == two_years.holding()
    assert ana.inbox.list() == []
