"""The evaluation of a reading counts what it says it counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import extract_quality
from benchmarks.answers import Answers, named
from memchat.config import OFFLINE_EXTRACT
from memchat.testing import HashEmbedder
from tests.conftest import answer, fact

CASE: dict[str, Any] = {
    "id": "t1",
    "at": "2026-11-18T10:00:00Z",
    "zone": "Europe/Berlin",
    "known": [
        {"id": "k1", "type": "fact", "key": "project", "value": "a punt", "many": True},
    ],
    "turns": [
        {"role": "user", "text": "I live in Zwolle until Friday. The punt is sold."},
        {"role": "assistant", "text": "Have you thought of a canoe?"},
    ],
    "store": [{"has": ["Zwolle"], "until": "2026-11-20", "is": "new", "to": None}],
    "never": [{"has": ["canoe"], "unless": []}],
    "ends": [{"to": "k1"}],
}
LIVES = fact("I live in Zwolle until Friday", "city", "Zwolle", until_said="until Friday",
             until="weekday:fri")  # fmt: skip
SOLD = fact("The punt is sold", "project", "", memory_type="fact", to="k1", **{"is": "ends"})
INVENTED = fact("I want a canoe", "plan", "a canoe")


def read(folder: Path, reply: str) -> tuple[dict[str, int], Answers]:
    sessions, recorded = folder / "sessions.jsonl", folder / "answers.jsonl"
    sessions.write_text(json.dumps(CASE), encoding="utf-8")
    line = {"case": "t1", "model": "made/up", "answer": reply}
    recorded.write_text(json.dumps(line), encoding="utf-8")
    answers = Answers(None, recorded)
    return extract_quality.tricky(answers, HashEmbedder(), sessions), answers


def test_what_is_found_ended_and_proven_is_counted(tmp_path) -> None:
    seen, answers = read(tmp_path, answer(LIVES, SOLD, INVENTED))
    assert (seen["facts found"], seen["facts expected"]) == (1, 1)
    assert (seen["ends right"], seen["contradictions resolved"]) == (1, 1)
    assert (seen["quotes verified"], seen["quotes"]) == (2, 3)
    assert (seen["traps stored"], seen["traps"]) == (0, 1)
    assert answers.tokens > 0 and answers.by == "recorded answers (made/up)"


def test_an_empty_answer_finds_nothing(tmp_path) -> None:
    seen, _ = read(tmp_path, answer())
    assert (seen["facts found"], seen["contradictions resolved"], seen["quotes"]) == (0, 0, 0)


def test_an_answer_that_is_none_is_counted_as_such(tmp_path) -> None:
    seen, _ = read(tmp_path, "I would rather not.")
    assert (seen["sessions without an answer"], seen["facts found"]) == (1, 0)


def test_a_history_counts_change_noise_and_what_is_over(tmp_path) -> None:
    turns = [{"role": "user", "content": "I use Krita until Friday."}]
    later = [{"role": "user", "content": "I use Inkscape now. My socks are red."}]
    person = {
        "user_id": "p",
        "sessions": [
            {"session_id": 1, "turns": turns, "expected_memories_after": [{"fact": "Uses Krita"}]},
            {
                "session_id": 2,
                "turns": later,
                "expected_memories_after": [
                    {"fact": "Switched to Inkscape", "contradicts": "Uses Krita"}
                ],
            },
        ],
        "memory_tests": [{"category": "temporal_relevance", "query": "Do I still use Krita?"}],
    }
    (tmp_path / extract_quality.HISTORIES).write_text(json.dumps([person]), encoding="utf-8")
    first = fact("I use Krita until Friday", "drawing_tool", "Krita", memory_type="fact",
                 until_said="until Friday", until="weekday:fri")  # fmt: skip
    second = fact("I use Inkscape now", "drawing_app", "Inkscape", memory_type="fact")
    noise = fact("My socks are red", "socks", "red", memory_type="fact")
    lines = [
        {"case": "p 1", "model": "m/m", "answer": answer(first)},
        {"case": "p 2", "model": "m/m", "answer": answer(second, noise)},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    seen = extract_quality.histories(tmp_path, Answers(None, path), HashEmbedder())
    assert (seen["facts found"], seen["facts expected"]) == (2, 2)
    assert (seen["stored"], seen["stored, not expected"]) == (3, 1)
    assert seen["contradictions"] == 1
    assert (seen["given an end"], seen["expired served"]) == (1, 0)


def test_the_offline_stand_in_reads_and_is_named(tmp_path, monkeypatch, capsys) -> None:
    sessions = tmp_path / "sessions.jsonl"
    sessions.write_text(json.dumps(CASE), encoding="utf-8")
    monkeypatch.setattr(extract_quality, "TRICKY", sessions)
    monkeypatch.setattr(extract_quality.tricky, "__defaults__", (HashEmbedder(), sessions))
    monkeypatch.setattr(sys, "argv", ["extract_quality", "--record", str(tmp_path / "out.jsonl")])
    assert extract_quality.main() == 0
    printed = capsys.readouterr().out
    assert "offline stand-in (patterns, no model)" in printed and "not measured" in printed
    assert json.loads((tmp_path / "out.jsonl").read_text())["model"] == OFFLINE_EXTRACT
    assert named(OFFLINE_EXTRACT).stand_in
