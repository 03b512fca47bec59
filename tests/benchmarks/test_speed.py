"""The speed benchmark in small: 200 rows, memchat alone. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import __main__ as bench
from benchmarks.speed import data, measure, stores
from benchmarks.speed.data import Size
from benchmarks.speed.peers.serving import Data
from tests.support.slow import slow_but


def test_a_size_is_read_as_people_write_it() -> None:
    assert Size.of("150k/100") == Size(150_000, 100)
    assert Size.of("1M/10k") == Size(1_000_000, 10_000)
    assert str(Size.of("1M/10k")) == "1M/10k"


def test_the_same_seed_makes_the_same_data(tmp_path: Path) -> None:
    first, again = (data.make(tmp_path / name, Size(200, 4), 7) for name in "ab")
    for name in ("vectors.npy", "texts.txt", "extra.txt", "questions.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    vectors = Data(first).vectors
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_recall_counts_the_nearest_rows_that_were_found(tmp_path: Path) -> None:
    given = Data(data.make(tmp_path, Size(200, 1), 7))
    best = np.argsort(-(given.vectors[:200] @ given.question_vectors[0]))
    right = best[:10].tolist()
    found = [right, [*right[:9], int(best[60])], right[:9], [right[0]] * 10]
    assert measure.recalls(given, 200, [0] * 4, found) == pytest.approx([1, 0.9, 0.9, 0.1])


def test_memchat_alone_gives_the_whole_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, drawn = tmp_path / "seen.json", tmp_path / "cost.svg"
    small = ["--sizes", "200/4", "--peers", "none", "--rounds", "1", "--work", str(tmp_path)]
    assert bench.main([*small, "--json", str(told), "--svg", str(drawn)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("200/4: 200 memories of 4 users\n")
    for name in (
        "search p50",
        "durable add",
        "delete (hidden)",
        "purge",
        "open and first",
        "index",
    ):
        assert name in text
    (seen,) = json.loads(told.read_text())["seen"]
    assert seen["store"] == "memchat" and seen["rows"] == 200 and seen["exact"] == 1.0
    assert len(seen["search"]) == measure.A_ROUND
    assert len(seen["add"]) == len(seen["delete"]) == measure.WRITES_A_ROUND
    assert "<polyline" in drawn.read_text()


@pytest.mark.parametrize("size", slow_but(["120/4"], ["120/1", "120/4"]))
def test_notes_are_searched_with_and_without_a_filter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: str
) -> None:
    told = tmp_path / "seen.json"
    small = ["--note-sizes", size, "--peers", "none", "--rounds", "1", "--work", str(tmp_path)]
    assert bench.main([*small, "--json", str(told)]) == 0
    assert capsys.readouterr().out.startswith(f"{size}: 120 notes of {size[4:]} types\n")
    (seen,) = json.loads(told.read_text())["seen"]
    assert seen["recall"] == 1.0 and seen["returned"] > 9
    assert len(seen["add"]) == len(seen["delete"]) == measure.WRITES_A_ROUND


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = stores.Entry("nobody", "nobody", "nobody_store.py")

    def refuse(*_: object) -> Path:
        raise stores.Unavailable("not installed: no such package")

    monkeypatch.setattr(stores, "python_of", refuse)
    size = Size(200, 4)
    place = data.make(tmp_path, size, 7)
    (seen,) = measure.measure([entry], size, place, tmp_path, rounds=1, limit=1)
    assert seen.why_not == "not installed: no such package" and not seen.search
