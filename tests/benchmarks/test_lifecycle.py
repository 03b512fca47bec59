"""The memory keeps itself clean by its code alone, and the table that proves it tells the truth."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.answers import Answers
from benchmarks.lifecycle import (
    __main__,
    duplicates,
    forgotten,
    judged,
    leaks,
    memorybench,
    merges,
    stale,
    table,
)
from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.pairs import Pair, play, read
from benchmarks.lifecycle.stage import Stage, answer, fact
from memchat.errors import ConfigError, ProviderError
from memchat.learn import values
from memchat.testing import HashEmbedder, all_hold, same_answer
from tests.support.answers import answer as model_answer
from tests.support.answers import fact as model_fact
from tests.support.conversation import said, state, updates
from tests.support.slow import slow_but

BY_ID = {pair.id: pair for pair in read()}


def test_the_pairs_are_many_and_varied_and_a_third_is_held_back() -> None:
    pairs = list(BY_ID.values())
    labels = Counter(pair.label for pair in pairs)
    assert len(pairs) >= 150 and min(labels.values()) >= 40
    assert len({pair.lang for pair in pairs}) >= 8
    assert 0.3 <= sum(pair.held for pair in pairs) / len(pairs) <= 0.36
    assert {
        "digits",
        "names",
        "negation",
        "date",
        "units",
        "paraphrase",
        "word order",
        "A-B-A",
    } <= {tag for pair in pairs for tag in pair.tags}


def some(label: str, tags: set[str]) -> list[Pair]:
    """Up to twelve, from the whole file."""
    found = [p for p in BY_ID.values() if p.label == label and tags & set(p.tags)]
    return found[:: max(1, len(found) // 12)]


@pytest.mark.parametrize("verdict", slow_but(["same"], ["new", "same", "ends"]))
def test_no_verdict_makes_two_numbers_names_or_dates_one(verdict: str) -> None:
    with Stage(HashEmbedder()) as stage:
        for pair in some("distinct", {"digits", "names", "dates"}):
            assert not play(stage, pair, verdict, pair.id).wrong, pair.id


def test_what_is_equal_when_folded_is_one_memory_without_a_model() -> None:
    with Stage(HashEmbedder()) as stage:
        for pair in some("same", {"equal text"}):
            came = play(stage, pair, "new", pair.id)
            assert came.one or not came.reached, pair.id


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("ferry from Kiel to Oslo", "ferry from Oslo to Kiel", "name"),
        ("aunt keeps geese", "uncle keeps geese", "person"),
        ("pills at night", "pills in the morning", "side or time"),
        ("cacao with chilli", "cacao without chilli", "side or time"),
        ("desk on the second floor", "desk on the sixth floor", "number"),
        ("likes olives", "does not like olives", "negation"),
        ("saves 30 hours", "saves 30 euros", "unit"),
        ("182 cm tall", "182 centimetres tall", None),
        ("Gremlin", "Gremlins", "name"),
        ("walks with Priya", "walks with Priyanka", "name"),
        ("Zoë and Karim visit", "Karim and Zoë visit", None),
        ("an old kayak of oak", "a kayak of oak, an old one", None),
    ],
)
def test_guards_name_what_keeps_two_values_apart(one: str, other: str, why: str | None) -> None:
    assert values.difference(one, other) == why
    assert values.difference(other, one) == why


def test_the_order_of_words_counts_where_nobody_judged() -> None:
    assert not values.are_equivalent("cat chases dog", "dog chases cat")
    assert values.are_equivalent("repairs old clocks", "repairing old clocks")


def test_one_of_several_values_is_replaced_only_where_the_words_say_so(mc, extract_model) -> None:
    riga = model_fact("I plan a trip to Riga", "plan", "a trip to Riga", memory_type="fact")
    said(mc, extract_model, "I plan a trip to Riga.", riga)
    line = "I plan a trip to Narvik."
    said(mc, extract_model, line, updates(line[:-1], "plan", "a trip to Narvik", "k1"))
    assert state(mc) == {"a trip to Riga": (True, None)}
    assert [item.value for item in mc.user("ana").inbox.list()] == ["a trip to Narvik"]
    line = "I plan a trip to Bodø instead."
    said(mc, extract_model, line, updates(line[:-1], "plan", "a trip to Bodø", "k1"))
    assert state(mc)["a trip to Riga"] == (False, "superseded")


def test_what_a_word_says_is_added_is_looked_at_again_before_it_replaces(mc, extract_model) -> None:
    ana = mc.user("ana")
    cashews = model_fact("I am allergic to cashews", "allergy", "cashews")
    said(mc, extract_model, "I am allergic to cashews.", cashews)
    line = "I am also allergic to kiwis."
    extract_model.second_look = lambda request: same_answer(
        request, {"answer": "not", "why": "wrong_target"}
    )
    said(mc, extract_model, line, updates(line[:-1], "allergy", "kiwis", "k1"))
    assert state(mc) == {"cashews": (True, None)} and ana.inbox.list() == []
    (refused,) = ana.inbox.refusals()
    assert (refused.value, refused.relation) == ("kiwis", "updates")


def test_a_fact_ends_only_with_words_that_say_it_is_over(mc, extract_model) -> None:
    built = model_fact("I build the beehive", "project", "the beehive", memory_type="fact")
    said(mc, extract_model, "I build the beehive.", built)
    ends = {"memory_type": "fact", "to": "k1", "is": "ends"}
    extract_model.second_look = lambda request: same_answer(
        request, {"answer": "not", "why": "never_said"}
    )
    said(
        mc,
        extract_model,
        "I showed Ida the beehive.",
        model_fact("I showed Ida the beehive", "project", "", **ends),
    )
    assert state(mc) == {"the beehive": (True, None)}
    extract_model.second_look = all_hold
    said(
        mc,
        extract_model,
        "The beehive is sold.",
        model_fact("The beehive is sold", "project", "", **ends),
    )
    assert state(mc) == {"the beehive": (False, "ended")}


def test_a_restatement_that_says_more_stands_for_both_and_can_be_undone(mc, extract_model) -> None:
    ana = mc.user("ana")
    terrier = model_fact("I have a terrier Bruno", "pet", "terrier Bruno")
    said(mc, extract_model, "I have a terrier Bruno.", terrier)
    (old,) = ana.memories.list()
    line = "My grey terrier Bruno snores."
    same = {"to": "k1", "is": "same"}
    said(mc, extract_model, line, model_fact("My grey terrier Bruno snores", "pet",
                                             "grey terrier Bruno", **same))  # fmt: skip
    assert state(mc) == {"terrier Bruno": (False, "merged"), "grey terrier Bruno": (True, None)}
    assert ana.memories.evidence(ana.memories.list()[0].id)
    assert ana.memories.restore(old.id).active


def test_a_replaced_value_takes_no_place_among_the_facts_shown(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    for value in ("Helix", "Emacs", "Kakoune", "Vim", "Zed", "Nano", "Micro"):
        line = f"My editor is {value} now."

        def reply(messages, value=value, line=line):
            known = json.loads(messages[1].content.partition("\n")[2].rpartition("\n")[0])["known"]
            to = {"to": known[0]["id"], "is": "updates"} if known else {}
            assert len(known) <= 1, "only the value in use is shown"
            return model_answer(model_fact(line[:-1], "editor", value, **to))

        extract_model.replies.append(reply)
        with ana.chat() as chat:
            assert chat.send(line).read()
        clock.advance(days=1)
    assert [m.value for m in ana.memories.list()] == ["Micro"]


@pytest.mark.parametrize(
    "part",
    slow_but([duplicates], [duplicates, forgotten, leaks]),
    ids=lambda part: part.__name__[21:],
)
def test_a_part_of_the_table_meets_its_goal(part, monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "SAID", duplicates.SAID[::3])
    monkeypatch.setattr(forgotten, "FACTS", forgotten.FACTS[::3])
    monkeypatch.setattr(leaks, "APPS", ("home", "work"))
    for figure in part.measure(HashEmbedder()):
        assert figure.met is not False, f"{figure.name}: {figure.seen}; {figure.note}"


@pytest.mark.slow
def test_the_current_value_is_served_and_the_old_one_only_behind_it(monkeypatch) -> None:
    monkeypatch.setattr(stale, "CHAINS", stale.CHAINS[:6])
    for figure in stale.measure(HashEmbedder()):
        assert figure.met, f"{figure.name}: {figure.seen}; {figure.note}"


def test_a_prompt_that_shows_the_old_value_first_is_counted() -> None:
    good = "- #2 editor: Zed (said 2026-05-02; before: Vim, replaced 2026-05-02)"
    assert not stale.serves(good, "Zed", "Vim")
    assert stale.serves("- #1 editor: Vim (said 2026-05-01)\n" + good, "Zed", "Vim")
    assert stale.serves("- #3 tool: Nano (before: Vim, replaced 2026-05-01)", "Zed", "Vim")


def test_the_baseline_swallows_what_the_guards_keep_apart() -> None:
    near = merges.cosines([BY_ID["u01"], BY_ID["d49"]], HashEmbedder())
    assert near["u01"] > near["d49"]


PAIR = BY_ID["u11"]


def recorded(path: Path, **more: str) -> Path:
    new = fact(PAIR.message.rstrip("."), "city", "Porto", kind="profile", relation="updates",
               to="k1")  # fmt: skip
    line = {"case": PAIR.id, "model": "made/up", "answer": answer(new), **more}
    claim = {"fact": "city: Porto", "is": "updates"}
    looked = {"verdicts": [{"id": claim, "answer": "holds", "why": None, "now": None}]}
    look = {**line, "purpose": "verify", "answer": json.dumps(looked)}
    path.write_text(f"{json.dumps(line)}\n{json.dumps(look)}\n", encoding="utf-8")
    return path


def test_recorded_answers_are_judged_and_the_model_is_named(tmp_path) -> None:
    answers = Answers(None, recorded(tmp_path / "answers.jsonl"))
    same, right = judged.measure(answers, HashEmbedder(), [PAIR])
    assert (right.seen, right.met, right.by) == ("1 of 1", True, "recorded answers (made/up)")
    assert same.seen == "0 of 0"
    answers.save(tmp_path / "again.jsonl")
    assert [
        (line["case"], line["purpose"])
        for line in map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    ] == [(PAIR.id, "extract"), (PAIR.id, "verify")]


def test_a_wrong_or_missing_answer_is_not_right(tmp_path) -> None:
    wrong = answer(fact(PAIR.message.rstrip("."), "city", "Porto", relation="same", to="k1"))
    answers = Answers(None, recorded(tmp_path / "answers.jsonl", answer=wrong))
    _, right = judged.measure(answers, HashEmbedder(), [PAIR, BY_ID["u12"]])
    assert (right.seen, right.met) == ("0 of 2", False)
    assert answers.missing == {"u12"} and "1 of 2 cases without" in right.note


def test_answers_that_cannot_be_read_are_refused_in_one_line(tmp_path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"case": "x"}\n')
    with pytest.raises(ConfigError, match="case, model and answer"):
        Answers(None, tmp_path / "bad.jsonl")
    with pytest.raises(ProviderError, match="no answer is recorded"):
        Answers(None).complete([], purpose="extract")


def test_without_a_model_its_rows_say_that_they_were_not_measured(tmp_path) -> None:
    for figure in (*judged.measure(None), *memorybench.measure(tmp_path)):
        assert figure.met is None and figure.seen.startswith("not measured")


def test_the_table_ends_with_one_where_a_goal_is_missed(monkeypatch, capsys) -> None:
    missed = Figure("lost socks", "3 of 4", "0", False, note="in the wash")
    for figures, code in (([missed], 1), ([Figure("kept", "4 of 4", "all", True)], 0)):
        parts = {"socks": lambda figures=figures: figures}
        monkeypatch.setattr(table, "every_part", lambda *given, parts=parts: parts)
        monkeypatch.setattr(sys, "argv", ["lifecycle"])
        assert __main__.main() == code
        printed = capsys.readouterr().out
        assert figures[0].name in printed and table.BASELINE in printed
        assert ("goals missed: lost socks" in printed) is (code == 1)


def test_the_table_is_there_for_programs_too(monkeypatch, capsys) -> None:
    parts = {"socks": lambda: [Figure("kept", "4 of 4", "all", True)]}
    monkeypatch.setattr(table, "every_part", lambda *given: parts)
    monkeypatch.setattr(sys, "argv", ["lifecycle", "--json"])
    assert __main__.main() == 0
    assert json.loads(capsys.readouterr().out)[0]["seen"] == "4 of 4"
