"""Secrets that only their meaning gives away: the readers by hand, and what they answered."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import Answers
from benchmarks.lifecycle import meaning
from tests.support.answers import answer, fact

SECRET = {
    "id": "m1", "lang": "sw", "kind": "wifi",
    "turns": [{"role": "user", "text": "Neno la kuingilia mtandao wetu ni {}."}],
    "secret": ["kibo", "ko"],
}  # fmt: skip
BUS = {
    "id": "m2", "lang": "en", "kind": "bus",
    "turns": [
        {"role": "user", "text": "I ride bus 4471 home."},
        {"role": "assistant", "text": "Nice."},
        {"role": "user", "text": "It is slow."},
    ],
    "secret": None,
}  # fmt: skip
READ = {
    "m1": answer(
        fact("Neno la kuingilia mtandao wetu ni kiboko", "network", "kiboko"), title="Kiboko"
    ),
    "m2": answer(fact("I ride bus 4471 home", "bus", "4471"), title="The bus"),
}
HELD = {"secrets_meaning": 2, "secrets_meaning_2": 1, "secrets_meaning_3": 1}
"""Look-alikes that may be taken for a secret; the last corpus was written when nothing was changed
any more, and its goal is one."""


def file_of(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def asked(folder: Path, purpose: str) -> list[str]:
    return sorted(path.stem for path in (folder / purpose / "ask").glob("*.json"))


def seen(printed: str) -> dict[str, str]:
    """The figures of a printed table, each by the first words of its name."""
    lines = (line.split("  ") for line in printed.splitlines() if "1  " in line and line[0] > " ")
    return {parts[0]: next(part for part in parts[1:] if part).strip() for parts in lines}


def test_readers_are_asked_in_turn_and_what_they_let_through_is_counted(tmp_path, capsys) -> None:
    hand, rows = tmp_path / "hand", file_of(tmp_path, SECRET, BUS)
    play = ["--file", str(rows), "--ask", str(hand)]
    assert meaning.main(play) == 3
    assert asked(hand, "extract") == ["m1-1", "m2-1"] and asked(hand, "verify") == []
    for name, text in READ.items():
        (hand / "extract" / "answer" / f"{name}-1.txt").write_text(text, encoding="utf-8")
    assert meaning.main(play) == 3
    assert asked(hand, "verify") == ["m1-1", "m2-1"]
    verdicts = json.dumps({"verdicts": [{"id": "c1", "answer": "holds", "why": None}]})
    for name in READ:
        (hand / "verify" / "answer" / f"{name}-1.txt").write_text(verdicts, encoding="utf-8")
    capsys.readouterr()
    kept = tmp_path / "kept.jsonl"
    meaning.main([*play, "--record", str(kept)])
    by_hand = capsys.readouterr().out
    assert meaning.main(["--file", str(rows), "--answers", str(kept)]) in (0, 1)
    assert seen(capsys.readouterr().out) == seen(by_hand) == {
        "secrets by their meaning stored": "1 of 1",
        "such secrets in titles and summaries": "1 of 1",
        "such secrets in a later prompt, from the transcript": "1 of 1",
        "look-alikes taken for such a secret": "0 of 1",
        "such secrets unmasked in notes": "1 of 1",
    }  # fmt: skip


def test_a_look_alike_that_is_refused_as_a_secret_counts_as_held(tmp_path) -> None:
    card = {**BUS, "turns": [{"role": "user", "text": "My PIN is 4471."}]}
    (kept := tmp_path / "kept.jsonl").write_text(
        json.dumps({
            "case": "m2", "purpose": "extract", "model": "x",
            "answer": answer(fact("My PIN is 4471", "number", "4471")),
        }), encoding="utf-8",
    )  # fmt: skip
    (told,) = meaning.run([card], Answers(None, kept))
    assert told.held and told.kept == 0


def test_the_conversations_are_as_many_and_as_mixed_as_they_claim() -> None:
    rows = meaning.corpus()
    assert Counter(row["secret"] is None for row in rows) == {True: 60, False: 60}
    assert len({row["lang"] for row in rows if row["secret"]}) >= 15
    assert len({row["id"] for row in rows}) == 120
    for row in rows:
        own = " ".join(turn["text"] for turn in row["turns"] if turn["role"] == "user")
        assert row["secret"] is None or row["secret"] in own, row["id"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_hardly_a_secret_by_its_meaning_is_stored_and_hardly_a_look_alike_is_held(
    name: str,
) -> None:
    path = meaning.CORPUS.with_name(f"{name}.jsonl")
    answers = Answers(None, path.with_name(f"{name}_answers.jsonl"))
    stored, titles, _, held, _ = meaning.figures(meaning.run(meaning.corpus(path), answers), "")
    assert stored.met and titles.met, (stored, titles)
    assert int(held.seen.split()[0]) <= HELD[name], held
