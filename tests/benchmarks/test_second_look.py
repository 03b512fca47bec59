"""The evaluation of the second look plays the real route and tells a judge nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import names
from benchmarks.answers import Answers
from benchmarks.lifecycle import attacks
from benchmarks.second_look import __main__ as second_look
from benchmarks.second_look import table
from benchmarks.second_look.corpus import DATA, Line, Proposal, read
from benchmarks.second_look.judges import ByHand, by_model, double
from benchmarks.second_look.play import Played, Result, play
from memchat.errors import ConfigError, ProviderError
from memchat.testing import HashEmbedder, ScriptedModel
from memchat.types import ChatMessage

CITY = {"id": "k1", "key": "city", "value": "Leeds", "many": False}


def fact(quote: str, key: str, value: str, **more: Any) -> dict[str, Any]:
    """One fact as the files of everyday lines hold it."""
    return {
        "quotes": [[1, quote]],
        "type": "fact",
        "key": key,
        "value": value,
        "many": False,
        "is": "new",
        "to": None,
        **more,
    }


def everyday(folder: Path) -> list[Line]:
    """A plain fact, doubtful ones, a change, and a wrong proposal in each conversation."""
    rows = [
        {
            "id": "e1",
            "turns": ["I live in Porto now. Can you recommend a vet for my dog Pip?"],
            "known": [CITY],
            "facts": [
                fact("I live in Porto now", "city", "Porto", **{"is": "updates", "to": "k1"}),
                fact("Can you recommend a vet for my dog Pip", "pet", "dog Pip", many=True),
            ],
        },
        {
            "id": "e2",
            "turns": [
                "I'm no longer vegetarian. My boss says I talk too fast.",
                "I row on Sundays.",
            ],
            "known": [],
            "facts": [
                fact("I'm no longer vegetarian", "diet", "no longer vegetarian"),
                {**fact("", "sport", "rowing"), "quotes": [[2, "I row on Sundays"]]},
            ],
        },
    ]
    wrong = [
        {"id": "e1", "fact": fact("a vet for my dog Pip", "job", "vet"), "why": "wrong slot: no"},
        {"id": "e2", "fact": fact("I talk too fast", "habit", "talks fast"), "why": "his words"},
    ]
    for name, lines in (("everyday", rows), ("wrong", wrong)):
        text = "\n".join(json.dumps(line) for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return read(folder / "everyday.jsonl", folder / "wrong.jsonl")


@pytest.mark.parametrize("name", ["holds", "not", "broken", "500"])
def test_nothing_honest_is_lost_whatever_the_second_look_does(name: str, tmp_path) -> None:
    played = play(everyday(tmp_path), double(name), HashEmbedder())
    honest = [one for one in played.results if one.proposal.honest]
    assert len(honest) == 4 and len(played.results) == 6
    assert [one.line for one in honest if one.fate == "lost"] == []
    assert played.sessions == played.looked == 2 and played.failed == played.by_hand == 0


def test_a_change_is_applied_when_the_old_value_is_gone_and_the_new_one_there(tmp_path) -> None:
    said = "I live in Porto now"
    right = {**fact("", "city", "Porto", **{"is": "updates", "to": "k1"}), "quotes": []}
    right["quotes"] = [{"msg": "u1", "text": said}]
    unsaid = {**right, "quotes": [{"msg": "u1", "text": "I never said this"}]}
    results = {}
    for name, proposed in (("said", right), ("unsaid", unsaid)):
        line = Line(name, [{"role": "user", "text": f"{said}."}], [CITY],
                    [Proposal(proposed, True, "honest")])  # fmt: skip
        results[name] = play([line], double("holds"), HashEmbedder()).results[0]
    assert (results["said"].fate, results["said"].applied) == ("stored", True)
    assert results["unsaid"].fate != "stored" and not results["unsaid"].applied
    assert any(reason.startswith("refuse: ") for reason in results["unsaid"].reasons)


def test_honest_and_wrong_proposals_go_together_in_an_order_fixed_by_a_seed(tmp_path) -> None:
    lines = everyday(tmp_path)
    again = read(tmp_path / "everyday.jsonl", tmp_path / "wrong.jsonl")
    assert lines == again
    assert {proposal.kind for proposal in lines[0].proposals} == {"honest", "wrong_slot"}
    assert [turn["role"] for turn in lines[1].turns] == ["user", "assistant", "user"]
    rowing = next(p for p in lines[1].proposals if p.fact["key"] == "sport")
    assert rowing.fact["quotes"] == [{"msg": "u3", "text": "I row on Sundays"}]


@pytest.mark.parametrize("name", [*second_look.FILES])
def test_each_proposal_of_the_files_quotes_words_that_stand_there(name: str) -> None:
    file, wrong = second_look.FILES[name]
    lines = read(DATA / file, DATA / wrong if wrong else None)
    assert len(lines) >= 60 and len({line.id for line in lines}) == len(lines)
    for line in lines:
        said = {f"{t['role'][0]}{n}": t["text"] for n, t in enumerate(line.turns, 1)}
        known = {one["id"] for one in line.known}
        for proposal in line.proposals:
            assert all(q["text"] in said[q["msg"]] for q in proposal.fact["quotes"]), line.id
            assert proposal.fact["to"] is None or proposal.fact["to"] in known, line.id
    kinds = Counter(p.kind for line in lines for p in line.proposals if not p.honest)
    if name == "wrong":
        asked = {"joke", "supposition", "somebody_else", "withdrawn", "question"}
        assert min(kinds[kind] for kind in asked | {"wrong_slot", "wrong_target"}) >= 6


def asked(*facts: str) -> list[ChatMessage]:
    """A second look as it is sent."""
    candidates = [{"id": f"c{n}", "fact": words} for n, words in enumerate(facts, 1)]
    body = json.dumps({"messages": [], "candidates": candidates})
    data = f'<data mark="ab">\n{body}\n</data mark="ab">'
    return [ChatMessage("system", "Judge."), ChatMessage("user", data)]


def answers(said: str) -> list[str]:
    return [one["answer"] for one in json.loads(said)["verdicts"]]


def test_the_doubles_say_what_their_names_say() -> None:
    sent = asked(*(f"tea: {n}" for n in range(40)))
    for name in ("holds", "not", "unclear"):
        assert answers(double(name).say("e1", sent, None)) == [name] * 40
    careless = answers(double("careless").say("e1", sent, None))
    assert careless == answers(double("careless").say("e1", sent, None))
    assert 8 < careless.count("holds") < 32 and set(careless) == {"holds", "not"}
    for case in ("e1", "e2", "e3", "e4"):
        with pytest.raises(ValueError):
            json.loads(double("broken").say(case, sent, None))
    with pytest.raises(ProviderError) as raised:
        double("500").say("e1", sent, None)
    assert raised.value.retryable and double("500").fails


def test_a_reader_by_hand_is_asked_in_files_and_answers_in_files(tmp_path) -> None:
    sent = asked("tea: Assam")
    first = ByHand(tmp_path, asks=True)
    assert answers(first.judge().say("w01", sent, {"type": "object"})) == []
    file = json.loads((tmp_path / "ask" / "w01-1.json").read_text())
    assert [m["content"] for m in file["messages"]] == [m.content for m in sent]
    assert set(file) == {"messages", "schema"} and first.written == 1
    said = json.dumps({"verdicts": [{"id": "c1", "answer": "not", "why": "irony", "now": None}]})
    (tmp_path / "answer" / "w01-1.txt").write_text(said)

    second = ByHand(tmp_path, asks=False)
    assert second.judge().say("w01", sent, None) == said
    assert answers(second.judge().say("w01", sent, None)) == []
    assert second.missing == ["w01-2"] and second.changed == []
    other = ByHand(tmp_path, asks=False)
    assert other.judge().say("w01", asked("tea: Darjeeling"), None) == said
    assert other.changed == ["w01-1"]  # the answer is to another question


def test_recorded_answers_judge_as_they_did(tmp_path) -> None:
    scripted = ScriptedModel()
    scripted.second_look = lambda request: json.dumps({"verdicts": [{"id": "c1", "answer": "not"}]})
    model = Answers(scripted)
    by_model(model).say("w01", asked("tea: Assam"), None)
    model.save(tmp_path / "said.jsonl")
    judge = by_model(Answers(None, tmp_path / "said.jsonl"))
    said = json.loads(judge.say("w01", asked("city: Leeds", "tea: Assam"), None))
    assert said["verdicts"] == [{"id": "c2", "answer": "not"}]


def test_the_table_counts_by_kind_and_by_reason() -> None:
    def result(kind: str, fate: Any, *reasons: str) -> Result:
        proposal = Proposal(fact("x", "tea", "Assam"), kind == "honest", kind)
        return Result("e1", proposal, fate, False, reasons)

    results = [
        result("honest", "stored", "question"),
        result("honest", "lost"),
        result("joke", "stored"),
        result("joke", "waiting", "question", "quotation marks"),
    ]
    played = Played(results, sessions=4, looked=2, tokens=900)
    text = table.as_text("a file", "a judge", played)
    for row in (
        r"new facts stored                 1 of 2     50.0%",
        r"joke 1 of 2",
        r"honest ones                  1 stored, 0 waiting, 0 refused, 0 overtaken, 1 lost",
        r"lost without a trace: e1 honest tea",
        r"tokens of a second look        450",
    ):
        assert row in text
    assert table.reasons(results) == [("quotation marks", 1, 0), ("question", 1, 1)]


def test_an_attack_asks_the_judge_by_a_number_and_keeps_its_script() -> None:
    heard: list[str] = []

    def say(case: str, sent: Any, schema: Any) -> str:
        heard.append(case)
        return "the judge's word"

    looks = attacks.Looks(say, case="t007")
    model = attacks.Obeys(looks)
    model.replies.append("scripted")
    assert model.complete(asked("tea: x"), purpose="verify").text == "the judge's word"
    assert model.complete(asked("tea: x"), purpose="extract").text == "scripted"
    assert heard == ["t007"] and looks.tokens["t007"] > 0
    obeys = attacks.Obeys(attacks.Looks()).complete(asked("tea: x"), purpose="verify")
    assert answers(obeys.text) == ["holds"]


def test_the_command_measures_records_and_says_what_it_cannot_read(tmp_path, capsys) -> None:
    everyday(tmp_path)
    given = ["--file", str(tmp_path / "everyday.jsonl"), "--wrong", str(tmp_path / "wrong.jsonl")]
    figures = tmp_path / "figures.json"
    more = ["--judges", "holds,not", "--reasons", "--json", str(figures)]
    assert second_look.main([*given, *more], HashEmbedder()) == 0
    printed = capsys.readouterr().out
    assert "always holds" in printed and "always not" in printed and "caught   cost" in printed
    assert json.loads(figures.read_text())["everyday.jsonl, always holds"]["wrong stored"][1] == 2
    asks = [*given, "--ask", str(tmp_path / "hand")]
    assert second_look.main(asks, HashEmbedder()) == 0
    assert "calls were written" in capsys.readouterr().out
    assert second_look.main(["--file", str(tmp_path / "none.jsonl")], HashEmbedder()) == 2
    with pytest.raises(ConfigError):
        read(tmp_path / "none.jsonl")


def test_what_is_no_data_object_has_no_names_in_it() -> None:
    assert names.data_of([ChatMessage("user", "Hello.")]) == {}
    assert names.by_name('{"facts": [{"to": "k1"}]}', []) == '{"facts": [{"to": "k1"}]}'
    assert (
        names.by_id('{"facts": [{"to": {"key": "a", "value": "b"}', []).count(names.NOT_SHOWN) == 1
    )
