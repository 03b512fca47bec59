"""The recall benches count what they say they count; their data here is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.answers import Answers
from benchmarks.recall import __main__, answered, data, marks, notes
from benchmarks.recall.data import Person
from benchmarks.recall.feed import What, feed
from benchmarks.recall.found import ask, plain_rows
from benchmarks.recall.rows import Row, over_better
from benchmarks.recall.stores import asked_at, covers, store
from memchat.errors import ProviderError
from memchat.testing import HashEmbedder, ScriptedModel

PIANO = "Which instrument did Ola buy at the flea market?"
GOAT = "What is the goat of Timo called?"


@pytest.fixture
def people(tmp_path: Path) -> list[Person]:
    """Two people in two sessions, in the form of the real data."""
    talk = {
        "speaker_a": "Ola",
        "speaker_b": "Timo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ola", "dia_id": "D1:1", "text": "I bought an old piano at a flea market!"},
            {"speaker": "Timo", "dia_id": "D1:2", "text": "Lovely. My goat Ferdinand is ill."},
        ],
        "session_2_date_time": "9:00 am on 12 June, 2023",
        "session_2": [
            {"speaker": "Timo", "dia_id": "D2:1", "text": "Ferdinand eats again, the good animal."},
            {"speaker": "Ola", "dia_id": "D2:2", "text": "Rain all week here, and no sun at all."},
        ],
    }
    raw = {
        "conversation": talk,
        "observation": {
            "session_1_observation": {"Ola": [["Ola bought a piano at a flea market.", "D1:1"]]}
        },
        "session_summary": {"session_1_summary": "Ola told of a piano, Timo of his goat."},
        "qa": [
            {"question": PIANO, "answer": "an old piano", "evidence": ["D1:1"], "category": 4},
            {"question": GOAT, "answer": "Ferdinand", "evidence": ["D1:2; D9:9"], "category": 1},
            {"question": "Nobody knows?", "answer": "no", "evidence": ["D"], "category": 3},
            {"question": "Who lies?", "adversarial_answer": "no", "evidence": [], "category": 5},
        ],
    }
    (tmp_path / "locomo_dev.json").write_text(json.dumps([raw]), "utf-8")
    return data.people(tmp_path)


def model(name: str = "scripted/answers") -> ScriptedModel:
    """Knows the goat when it is told, says yes to the expected answer and no to any other."""

    def reply(messages) -> str:
        told = "\n".join(message.content for message in messages)
        if messages[0].content.startswith("You compare"):
            return "Yes." if told.count("Ferdinand") == 2 else "no"
        return "It is Ferdinand, I think." if "goat Ferdinand" in told else "I do not know."

    return ScriptedModel([reply] * 1000, name=name)


def test_only_questions_with_evidence_that_exists_are_asked(people) -> None:
    assert [asked.text for asked in people[0].asked] == [PIANO, GOAT]
    assert [asked.evidence for asked in people[0].asked] == [{"D1:1"}, {"D1:2"}]


def test_a_message_covers_itself_and_a_fact_what_it_was_drawn_from(people) -> None:
    (person,) = people
    with store(HashEmbedder(), asked_at(person)) as mc:
        fed = feed(mc, person, What(turns=True, facts=True, summaries=True))
        hits = mc.user(person.name).search(PIANO).hits
        assert {hit.kind: covers(mc, person, fed, hit) for hit in hits}["memory"] == {"D1:1"}
        hits = mc.user(person.name).search(GOAT).hits
        assert covers(mc, person, fed, hits[0]) == {"D1:2"} and hits[0].kind == "message"
        row = Row("memchat")
        ask(mc, person, fed, row)
    assert row.recall == [[1.0] * 4, [1.0] * 4] and row.first == [1.0, 1.0]
    assert row.categories == ["single", "multi"]


def test_facts_alone_do_not_find_what_only_a_turn_says(people) -> None:
    (person,) = people
    with store(HashEmbedder(), asked_at(person)) as mc:
        fed = feed(mc, person, What(facts=True))
        row = Row("facts")
        ask(mc, person, fed, row)
    assert list(row.ten) == [1.0, 0.0]
    words = plain_rows(HashEmbedder(), person)[0]
    assert "-50.0" in over_better(row, [words]), "the plain search over turns finds both"


def test_what_stands_in_the_prompt_is_measured_without_a_model(people) -> None:
    rows = {row.name: row for row in answered.measure(HashEmbedder(), people, None, None)}
    assert set(rows) == {"whole", *(f"{w} {b}" for w in ("plain", "memchat")
                                    for b in answered.BUDGETS)}  # fmt: skip
    assert rows["whole"].evidence == [1.0, 1.0] and rows["memchat 500"].evidence == [1.0, 1.0]
    for name, row in rows.items():
        assert not row.right and not row.f1
        assert name == "whole" or max(row.tokens) <= int(name.split()[1])
    text = answered.as_text(list(rows.values()), 2, None, None)
    assert "Accuracy was not measured" in text and "%" not in text


def test_a_model_s_answers_are_marked_and_replayed_from_their_record(people, tmp_path) -> None:
    asked_now = Answers(model())
    rows = answered.measure(HashEmbedder(), people, asked_now, asked_now)
    for row in rows:
        assert row.right == [False, True] and row.held == [False, True]
        assert row.f1[0] == 0 and 0 < row.f1[1] < 1
    asked_now.save(tmp_path / "said.jsonl")
    again = Answers(None, tmp_path / "said.jsonl")
    assert answered.measure(HashEmbedder(), people, again, again) == rows
    text = answered.as_text(rows, 2, again, again)
    assert "Answered by recorded answers (scripted/answers), judged by" in text


def test_another_model_may_judge_and_is_named(people) -> None:
    answers, judge = Answers(model()), Answers(model(name="scripted/judge"))
    rows = answered.measure(HashEmbedder(), people, answers, judge)
    assert all(line["case"].startswith("judge ") for line in judge.kept)
    assert "judged by scripted/judge" in answered.as_text(rows, 2, answers, judge)


def test_an_answer_that_is_not_in_the_record_is_an_error_that_names_it(people, tmp_path) -> None:
    (tmp_path / "said.jsonl").write_text("", "utf-8")
    nothing = Answers(None, tmp_path / "said.jsonl")
    with pytest.raises(ProviderError, match="memchat 500 a0"):
        answered.measure(HashEmbedder(), people, nothing, nothing)


@pytest.mark.parametrize(
    ("answer", "expected", "held", "f1"),
    [
        ("The piano, an old one.", "an old piano", True, 0.8),
        ("7 May 2023", "7 May 2023", True, 1.0),
        ("a harp", "an old piano", False, 0.0),
        ("", "an old piano", False, 0.0),
    ],
)
def test_words_are_marked_without_articles_and_points(answer, expected, held, f1) -> None:
    assert marks.holds(answer, expected) == held
    assert marks.f1(answer, expected) == pytest.approx(f1)


def test_a_part_of_the_questions_is_the_same_part_each_time(people) -> None:
    one = [p.asked for p in answered.some(people, 1)]
    assert sum(map(len, one)) == 1 and one == [p.asked for p in answered.some(people, 1)]
    assert sum(len(p.asked) for p in answered.some(people, None)) == 2


def test_a_corrected_question_has_the_evidence_that_was_checked(people, tmp_path) -> None:
    fault = {"sample_id": "one", "qa_index": 0, "correct_evidence": ["D2:1"]}
    raw = json.loads((tmp_path / "locomo_dev.json").read_text("utf-8"))
    raw[0]["sample_id"] = "one"
    (tmp_path / "locomo_dev.json").write_text(json.dumps(raw), "utf-8")
    assert data.people(tmp_path, corrected=True) == people, "there is no file of corrections"
    (tmp_path / "locomo_dev_corrections.json").write_text(json.dumps([fault]), "utf-8")
    (person,) = data.people(tmp_path, corrected=True)
    assert [asked.evidence for asked in person.asked] == [{"D2:1"}, {"D1:2"}]
    assert data.people(tmp_path) == people


def test_notes_count_as_found_by_the_text_that_they_were_made_of(people, capsys) -> None:
    assert notes.sessions(HashEmbedder(), people) == [1.0, 1.0]
    assert "2 questions, 2 sessions of 1 conversations as memos" in capsys.readouterr().out
    texts = ["The lighthouse was built in 1811.", "Cranes fly south.", "Bread needs salt."]
    asked = [("When was the lighthouse built?", 0), ("Do cranes fly?", 2)]
    found = notes.paragraphs(HashEmbedder(), texts, asked)
    assert [some[0] for some in found] == [0, 1]
    assert "memchat        R@1 50.0" in capsys.readouterr().out


def test_without_the_data_nothing_is_measured(tmp_path, monkeypatch, capsys) -> None:
    for bench in (__main__, answered):
        monkeypatch.setattr("sys.argv", ["bench", "--data", str(tmp_path / "none")])
        assert bench.main() == 1
        assert "nothing is measured" in capsys.readouterr().err
