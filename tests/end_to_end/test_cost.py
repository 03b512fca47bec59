"""What the end of a session may cost, however much is remembered and however a provider fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import extraction_cost as cost
from tests.support.slow import slow_but


@pytest.mark.parametrize("count", slow_but((50,), cost.SIZES))
def test_a_session_end_costs_one_reading_one_look_and_one_batch_within_its_characters(
    tmp_path: Path, count: int
) -> None:
    filled = tmp_path / "filled"
    cost.fill(filled, count)
    for schema_mode in (True, False):
        home = tmp_path / f"store {schema_mode}"
        shutil.copytree(filled, home)
        seen = cost.measure(home, schema_mode=schema_mode)
        assert {name: size for name, size in seen.sizes.items() if size > cost.LIMITS[name]} == {}
        assert (seen.calls, seen.looks) == (1, 1)
        # Three facts, four turns, the reply (each time the same words), the summary.
        assert seen.batches == [3 + 4 + 1 + 1]
        assert seen.questions == 0
        assert (seen.known_facts > 0) == (count > 0)


@pytest.mark.parametrize("answers", cost.FAILURES.values(), ids=cost.FAILURES)
def test_an_attempt_with_a_failing_provider_costs_no_more_than_three_calls(
    tmp_path: Path, answers: list[Any]
) -> None:
    assert 1 <= cost.calls_of_an_attempt(tmp_path / "store", answers) <= cost.MOST_CALLS
