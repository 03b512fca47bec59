"""The evaluation of a reading counts what it says it counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import extract_quality
from benchmarks.answers import Answers, named
from benchmarks.desk import USER, Desk, at_desk
from memchat.config.providers import OFFLINE_EXTRACT
from memchat.learn.candidate import KnownFact
from memchat.learn.model_calls import Window, render_data
from memchat.testing import HashEmbedder, ScriptedModel
from memchat.types import ChatMessage
from tests.support.answers import answer, fact
from tests.support.store import NOON

CASE: dict[str, Any] = {
    "id": "t1",
    "at": "2026-11-18T10:00:00Z",
    "zone": "Europe/Berlin",
    "known": [{"id": "k1", "type": "fact", "key": "project", "value": "a punt", "many": True}],
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


def read(folder: Path, reply: str, **changes: Any) -> tuple[dict[str, int], Answers]:
    sessions, recorded = folder / "sessions.jsonl", folder / "answers.jsonl"
    sessions.write_text(json.dumps({**CASE, **changes}), encoding="utf-8")
    line = {"case": "t1", "model": "made/up", "answer": reply}
    recorded.write_text(json.dumps(line), encoding="utf-8")
    answers = Answers(None, recorded)
    return extract_quality.tricky(answers, HashEmbedder(), sessions), answers


def test_what_is_found_ended_and_proven_is_counted(tmp_path) -> None:
    seen, answers = read(tmp_path, answer(LIVES, SOLD, INVENTED))
    assert (seen["facts found"], seen["facts expected"]) == (1, 1)
    assert (seen["ends right"], seen["changes applied"]) == (1, 1)
    assert (seen["quotes verified"], seen["quotes"]) == (2, 3)
    assert (seen["traps stored"], seen["traps"]) == (0, 1)
    assert answers.tokens > 0 and answers.by == "recorded answers (made/up)"


def test_an_empty_answer_finds_nothing(tmp_path) -> None:
    seen, _ = read(tmp_path, answer())
    assert (seen["facts found"], seen["changes applied"], seen["quotes"]) == (0, 0, 0)


def test_an_answer_that_is_none_is_counted_as_such(tmp_path) -> None:
    seen, _ = read(tmp_path, "I would rather not.")
    assert (seen["sessions without an answer"], seen["facts found"]) == (1, 0)


def test_a_trap_is_seen_in_the_key_too(tmp_path) -> None:
    turns = [{"role": "user", "text": "My canoe is red."}]
    seen, _ = read(tmp_path, answer(fact("My canoe is red", "canoe_colour", "red")), turns=turns)
    assert (seen["traps stored"], seen["traps"]) == (1, 1)


def history(folder: Path, *sessions: tuple[str, list[dict[str, str]], str]) -> dict[str, int]:
    """Reads sessions of one message each, with what is expected and what the model answers."""
    written = [
        {
            "session_id": number,
            "turns": [{"role": "user", "content": said}],
            "expected_memories_after": expected,
        }
        for number, (said, expected, _) in enumerate(sessions)
    ]
    person = {"user_id": "p", "sessions": written, "memory_tests": []}
    (folder / extract_quality.HISTORIES).write_text(json.dumps([person]), encoding="utf-8")
    lines = [
        {"case": f"p {n}", "model": "m/m", "answer": reply}
        for n, (_, _, reply) in enumerate(sessions)
    ]
    path = folder / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return extract_quality.histories(folder, Answers(None, path), HashEmbedder())


def test_the_stale_value_is_not_the_new_one(tmp_path) -> None:
    old = fact("My team has 8 people", "team_size", "8 people", memory_type="fact")
    seen = history(
        tmp_path,
        ("My team has 8 people.", [{"fact": "Team of 8 people"}], answer(old)),
        (
            "My team grew to 11 people.",
            [{"fact": "Team grew to 11 people", "contradicts": "Team of 8 people"}],
            answer(),
        ),
    )
    assert (seen["facts found"], seen["facts expected"]) == (1, 2)
    assert (seen["changes applied"], seen["changes expected"]) == (0, 1)
    assert (seen["stale rows in force"], seen["rows in force"]) == (1, 1)


def test_what_waits_is_counted_in_histories_too(tmp_path) -> None:
    said = "I take tablets for my asthma."
    held = fact(said.rstrip("."), "medication", "tablets for asthma", flags=["sensitive"])
    seen = history(tmp_path, (said, [{"fact": "Takes tablets for asthma"}], answer(held)))
    assert (seen["facts found"], seen["facts waiting in the inbox"]) == (0, 1)


def test_a_session_that_expects_nothing_is_read_and_one_that_only_asks_is_not(tmp_path) -> None:
    socks = fact("My socks are red", "socks", "red", memory_type="fact")
    seen = history(
        tmp_path,
        ("My socks are red.", [], answer(socks)),
        ("[MEMORY TEST] What colour are my socks?", [], answer()),
    )
    assert (seen["sessions"], seen["stored"], seen["stored, not expected"]) == (1, 1, 1)


def test_what_is_not_kept_is_told_apart_by_its_trace(tmp_path) -> None:
    invented = fact("I have a yacht", "boat", "a yacht", memory_type="fact")
    said = "My socks are red."
    seen = history(tmp_path, (said, [], answer(invented)))
    assert (seen["proposed"], seen["not kept"]) == (1, 1)
    assert seen["refused with a trace"] <= seen["not kept"]


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
    assert seen["changes expected"] == 1
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


def at(use: Any, *replies: str) -> Answers:
    answers = Answers(ScriptedModel(replies))
    at_desk(answers, NOON, "Europe/Berlin", HashEmbedder(), use)
    return answers


def test_a_message_that_code_answers_does_not_shift_the_replies_after_it() -> None:
    turns = [
        {"role": "user", "text": "Remember that I live in Zwolle."},
        {"role": "assistant", "text": "Noted, as a model would say it."},
        {"role": "user", "text": "How much is two and two?"},
        {"role": "assistant", "text": "Four."},
    ]
    said: list[str] = []

    def use(desk: Desk) -> None:
        chat = desk.hold("t1", turns)
        assert chat.session_id is not None
        said.extend(m.content for m in desk.mc.user(USER).sessions.messages(chat.session_id))

    at(use, answer())
    assert said[2:] == ["How much is two and two?", "Four."]
    assert not said[1].startswith("Noted, as a model")


def test_what_is_known_was_said_and_not_entered_by_hand() -> None:
    known = [
        {"id": "k1", "key": "home_city", "value": "Leeds", "many": False},
        {"id": "k2", "type": "preference", "key": "tea", "value": "Assam", "many": False},
    ]

    def use(desk: Desk) -> None:
        taught = desk.teach(known)
        assert [taught[i].value for i in ("k1", "k2")] == ["Leeds", "Assam"]
        assert {memory.created_by for memory in taught.values()} == {"auto"}
        assert desk.by_hand == [] and desk.mc.user(USER).inbox.list() == []

    assert at(use).kept == []  # the set-up is no answer of the model


def call(*facts: tuple[str, str, str]) -> list[ChatMessage]:
    """An extraction call that shows known facts: id, key and value."""
    known = [(KnownFact(i, n, "fact", key, value, False), "2026-05-01")
             for n, (i, key, value) in enumerate(facts)]  # fmt: skip
    return [ChatMessage("system", "Read."), ChatMessage("user", render_data(Window(()), known, ()))]


def test_a_recorded_answer_names_the_fact_and_finds_it_under_another_id(tmp_path) -> None:
    said = answer(fact("I moved to Porto", "city", "Porto", to="k1", **{"is": "updates"}))
    asked = Answers(ScriptedModel([said]))
    asked.case = "p 1"
    asked.complete(call(("k1", "city", "Leeds"), ("k2", "tea", "Assam")), purpose="extract")
    path = tmp_path / "recorded.jsonl"
    asked.save(path)
    assert '"to": {"key": "city", "value": "Leeds"}' in json.loads(path.read_text())["answer"]
    assert asked.said("p 1") == [said]

    def replayed(*facts: tuple[str, str, str]) -> str:
        again = Answers(None, path)
        again.case = "p 1"
        text = again.complete(call(*facts), purpose="extract").text
        return json.loads(text)["facts"][0]["to"]

    assert replayed(("k1", "tea", "Assam"), ("k2", "city", "Leeds")) == "k2"
    assert replayed(("k7", "place", "Leeds")) == "k7"  # the key has another name by now
    assert replayed(("k1", "tea", "Assam")) == "k0"  # it is not shown, so no id of the call


def test_a_second_look_is_recorded_by_fact_and_counted_apart(tmp_path) -> None:
    def looked(*facts: str) -> list[ChatMessage]:
        asked = [{"id": f"c{n}", "fact": f, "is": "new"} for n, f in enumerate(facts, 1)]
        body = json.dumps({"messages": [], "candidates": asked})
        return [ChatMessage("user", f'<data mark="ab">\n{body}\n</data mark="ab">')]

    said = json.dumps({"verdicts": [{"id": "c2", "answer": "not", "why": "joke", "now": None}]})
    model = ScriptedModel()
    model.second_look = lambda request: said
    asked = Answers(model)
    asked.case = "p 1"
    asked.complete(looked("tea: Assam", "job: king"), purpose="verify")
    asked.save(tmp_path / "recorded.jsonl")
    assert asked.looks["p 1"] == asked.tokens > 0 and asked.said("p 1") == []
    again = Answers(None, tmp_path / "recorded.jsonl")
    again.case = "p 1"
    text = again.complete(looked("job: king"), purpose="verify").text
    assert json.loads(text)["verdicts"][0]["id"] == "c1"
