"""Forgetting one fact, where the same words prove another: the clause of the other is kept where
that can be, and what loses its proof is told before."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.answers import answer, fact
from tests.support.conversation import talk

BOTH = "I live in Ghent and I work at Umicore."
PIANO = "My Ghent flat has a piano."


def taught(mc: MemChat, extract_model, line: str, quote: str, second: tuple[str, str]) -> None:
    city, other = fact(quote, "city", "Ghent"), fact(quote, *second)
    extract_model.replies.append(answer(city, other))
    talk(mc, line)


def ids(mc: MemChat) -> dict[str, int]:
    return {memory.value: memory.id for memory in mc.user("ana").memories.list()}


def said(mc: MemChat) -> str:
    ana = mc.user("ana")
    return next(iter(ana.sessions.messages(ana.sessions.list()[0].id))).content


@pytest.mark.parametrize(
    ("line", "second", "left"),
    [
        (BOTH, ("employer", "Umicore"), "I work at Umicore"),
        ("I live in Ghent, I ski at Alta.", ("hobby", "ski at Alta"), "I ski at Alta"),
        ("I ski at Alta and I live in Ghent.", ("hobby", "ski at Alta"), "I ski at Alta"),
        ("I live in Ghent. I ski at Alta.", ("hobby", "ski at Alta"), "I ski at Alta"),
    ],
)
def test_the_clause_that_proves_another_fact_stays(
    mc: MemChat, extract_model, line: str, second: tuple[str, str], left: str
) -> None:
    taught(mc, extract_model, line, line.rstrip("."), second)
    ana, known = mc.user("ana"), ids(mc)
    assert ana.mentions.unproved([known["Ghent"]]) == []
    ana.memories.delete(known["Ghent"])
    content = said(mc)
    assert left in content and "Ghent" not in content and "live" not in content
    assert len(content) == len(line), "quotes of other facts keep their place"
    (proof,) = ana.memories.evidence(known[second[1]])
    assert proof.quote.strip(".") == left
    assert content[proof.start : proof.start + len(proof.quote)] == proof.quote
    assert [f for f in ana.audit().findings if f.kind == "missing evidence"] == []


def test_a_clause_with_a_word_of_the_forgotten_fact_goes_and_the_other_is_told_before(
    mc: MemChat, extract_model
) -> None:
    taught(
        mc,
        extract_model,
        "My Ghent flat has a piano.",
        "My Ghent flat has a piano",
        ("owns", "a piano"),
    )
    ana, known = mc.user("ana"), ids(mc)
    (other,) = ana.mentions.unproved([known["Ghent"]])
    assert other.id == known["a piano"]
    ana.memories.delete(known["Ghent"])
    assert "piano" not in said(mc)
    assert ana.memories.get(other.id).active, "it stays, as was said"


def test_what_other_words_prove_too_loses_nothing(mc: MemChat, extract_model) -> None:
    taught(
        mc,
        extract_model,
        "My Ghent flat has a piano.",
        "My Ghent flat has a piano",
        ("owns", "a piano"),
    )
    extract_model.replies.append(answer(fact("I have a piano", "owns", "a piano")))
    talk(mc, "I have a piano.")
    ana, known = mc.user("ana"), ids(mc)
    assert ana.mentions.unproved([known["Ghent"]]) == []
    assert ana.mentions.unproved([known["Ghent"], known["a piano"]]) == []


def test_the_question_in_the_chat_says_what_loses_its_proof(mc: MemChat, extract_model) -> None:
    taught(
        mc,
        extract_model,
        "My Ghent flat has a piano.",
        "My Ghent flat has a piano",
        ("owns", "a piano"),
    )
    asked = mc.user("ana").chat().send("Forget that I live in Ghent").read()
    assert "No words will prove this any more, which stays: “Owns: a piano”" in asked


def test_nobody_learns_of_another_person_s_proofs(mc: MemChat, extract_model) -> None:
    taught(
        mc,
        extract_model,
        "My Ghent flat has a piano.",
        "My Ghent flat has a piano",
        ("owns", "a piano"),
    )
    assert mc.user("bo").mentions.unproved([ids(mc)["Ghent"]]) == []
