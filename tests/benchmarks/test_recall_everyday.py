"""The everyday part of the recall bench counts what it says it counts; its data here is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.recall.everyday import blind, lives, table
from benchmarks.recall.everyday.kept import Cues, kept
from benchmarks.recall.everyday.lives import Life
from memchat.testing import HashEmbedder

GUESTS = "What can I cook for guests?"
CAPITAL = "What is the capital of Peru?"


@pytest.fixture
def people(tmp_path: Path) -> list[Life]:
    """Two people with two facts each; one of the facts helps with a request of the first."""
    facts = [
        ("ada", "a1", "preference", "diet", "vegetarian"),
        ("ada", "a2", "fact", "medication", "something for the back"),
        ("ben", "b1", "profile", "name", "Ben Okafor"),
        ("ben", "b2", "other", "lent_ladder", "to his neighbour Ruth"),
    ]
    named = ("person", "id", "type", "key", "value")
    asked = [
        {"person": "ada", "question": GUESTS, "needs": ["a1"], "style": "none"},
        {"person": "ada", "question": CAPITAL, "needs": [], "style": "foreign"},
        {"person": "ada", "question": "What is my medication?", "needs": ["a2"], "style": "direct"},
    ]
    lines = [dict(zip(named, fact, strict=True)) | {"cues": "food, cooking"} for fact in facts]
    for name, some in (("facts", lines), ("requests", asked)):
        text = "\n".join(json.dumps(line) for line in some)
        (tmp_path / f"everyday_{name}_made.jsonl").write_text(text, "utf-8")
    return lives.read(tmp_path)


def test_people_come_from_the_folder_or_else_are_the_project_s_own(people, tmp_path) -> None:
    assert [life.name for life in people] == ["ada", "ben"]
    assert people[0].facts[0].cues == ("food", "cooking")
    ours = lives.read(tmp_path / "nowhere")
    assert len(ours) == 6 and all(len(life.facts) == 20 for life in ours)
    for life in ours:
        known = {fact.id for fact in life.facts}
        assert all(request.needs <= known for request in life.requests)


@pytest.mark.parametrize(("cues", "held"), [("file", ("food", "cooking")), ("none", ())])
def test_facts_carry_the_cues_that_they_are_given(people, cues: Cues, held) -> None:
    with kept(HashEmbedder(), people[0], cues=cues) as store:
        assert store.memories["a1"].cues == held
        assert store.mc.user("ada").memories.count() == 2


def test_a_fact_counts_as_given_only_where_its_words_stand_in_the_prompt(people) -> None:
    with kept(HashEmbedder(), people[0], more=["Ola bought a piano."] * 2) as store:
        given = store.given(GUESTS)
        assert store.line("a1") in given and GUESTS not in given
        assert store.prompt(GUESTS)[-1].content == GUESTS
        assert not store.mc.user("ada").sessions.list(), "asking must leave nothing behind"


def test_shares_are_means_over_the_requests_that_a_row_speaks_of() -> None:
    rows = table.Rows()
    rows.add("all", [True, False])
    rows.add("all", [True])
    rows.add("all", [])
    assert rows.share("all") == 75 and rows.line("all") == " 75.0 (2)"
    assert rows.share("nobody asked") == 0


def test_the_table_tells_what_was_not_measured(people, tmp_path, capsys) -> None:
    table.table(HashEmbedder(), people, tmp_path)
    told = capsys.readouterr().out
    assert "2 people with 4 facts, 3 requests" in told
    assert "locomo_dev.json is not there" in told
    (sensitive,) = [line for line in told.splitlines() if line.startswith("    sensitive")]
    assert sensitive.endswith("(1)")


def test_among_many_facts_the_ceiling_knows_which_are_needed(people, capsys) -> None:
    table.crowded(HashEmbedder(), people[:1], [[f"Ola saw film {n}." for n in range(280)]])
    told = capsys.readouterr().out
    assert "who knew which facts are needed 100.0" in told
    assert "(280 facts)" not in told, "that many must not fit"


def test_prompts_of_the_blind_reader_do_not_tell_what_they_are_for(people, tmp_path) -> None:
    folder = tmp_path / "pack"
    assert blind.ask(HashEmbedder(), people, folder) == 6
    names = [case.name for case in blind.cases(people)]
    assert len(set(names)) == 6
    for name in names:
        text = (folder / f"{name}.prompt.txt").read_text("utf-8")
        assert text.startswith("<<system>>\n") and "\n\n<<user>>\n" in text
    assert {path.name for path in folder.iterdir()} == {
        "README.txt", *(f"{name}.prompt.txt" for name in names)
    }  # fmt: skip


def test_further_facts_of_others_stand_beside_a_persons_own(people) -> None:
    assert [fact.id for fact in blind.widened(people[0], people).facts] == ["b2", "a1", "a2"]


def test_verdicts_of_the_judge_are_counted_by_whether_a_fact_helps(people, tmp_path) -> None:
    assert list(blind.answers(people, tmp_path))[-1].startswith("6 prompts without a reply")
    for case in blind.cases(people):
        (tmp_path / f"{case.name}.reply.txt").write_text("Try a bean stew.", "utf-8")
    assert list(blind.answers(people, tmp_path)) == [
        "0 prompts without a reply, 6 replies without a verdict"
    ]
    for case in blind.cases(people):
        told = (tmp_path / "judge" / f"{case.name}.judge.txt").read_text("utf-8")
        assert "diet: vegetarian" in told and "Try a bean stew." in told
        place = [fact.id for fact in case.life.facts].index("a1") + 1
        said = f"{place}" if case.request.text != CAPITAL else "None."
        (tmp_path / "judge" / f"{case.name}.verdict.txt").write_text(said, "utf-8")
    assert list(blind.answers(people, tmp_path)) == [
        "a fact helps, 2 facts: 2 judged: 1 mention another fact, 1 use the fact that helps",
        "a fact helps, 3 facts: 2 judged: 1 mention another fact, 1 use the fact that helps",
        "foreign, 2 facts: 1 judged: 1 mention none",
        "foreign, 3 facts: 1 judged: 1 mention none",
        "0 prompts without a reply, 0 replies without a verdict",
    ]


@pytest.mark.parametrize("verdict", ["", "yes", "fact 99"])
def test_a_verdict_that_names_no_fact_of_the_case_is_refused(people, verdict: str) -> None:
    with pytest.raises(ValueError, match="none or numbers"):
        blind.named(blind.cases(people)[0], verdict)
