"""What is recalled, recited and agreed with is never learnt a second time."""

from __future__ import annotations

import pytest

from benchmarks.lifecycle import loop
from benchmarks.lifecycle.loop import Growth
from tests.support.answers import answer, fact


@pytest.mark.slow
def test_fifty_sessions_about_what_is_remembered_add_nothing(tmp_path) -> None:
    assert loop.run(tmp_path) == Growth(active=0, inbox=0, repeats=0)


def _say(mc, chat_model, recital: str, *lines: str):
    chat_model.replies.clear()
    chat_model.replies.extend([recital] * len(lines))
    with mc.user("ana").chat() as chat:
        for line in lines:
            assert chat.send(line).read()
    return chat.learned


@pytest.fixture
def lisbon(mc):
    return mc.user("ana").memories.add("profile", "city", "Lisbon")


def _same(quote: str):
    return fact(quote, "city", "Lisbon", msg="u3", **{"is": "same", "to": "k1"})


def test_a_bare_yes_to_a_recital_is_no_repeat(mc, chat_model, extract_model, lisbon) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(_same("Yes.")))
    _say(mc, chat_model, "Your city is Lisbon.", "How is the weather at home?", "Yes.")
    (memory,) = ana.memories.list()
    assert memory.seen_count == lisbon.seen_count and ana.inbox.list() == []


def test_the_fact_said_again_is_a_repeat_and_no_new_memory(
    mc, chat_model, extract_model, lisbon
) -> None:
    said = "Yes, I live in Lisbon."
    extract_model.replies.append(answer(fact(said, "remark", said, msg="u3")))
    _say(mc, chat_model, "Your city is Lisbon.", "How is the weather at home?", said)
    (memory,) = mc.user("ana").memories.list()
    assert (memory.key, memory.value, memory.seen_count) == ("city", "Lisbon", 2)


def test_what_a_recital_adds_to_a_memory_is_not_taken_by_a_yes(
    mc, chat_model, extract_model, lisbon
) -> None:
    ana = mc.user("ana")
    recital = "You live in Lisbon and you are an accountant."
    taken = fact("Yes.", "job", "accountant", msg="u3", ref={"msg": "a2", "span": recital})
    extract_model.replies.append(answer(taken))
    _say(mc, chat_model, recital, "How is the weather at home?", "Yes.")
    assert [m.key for m in ana.memories.list()] == ["city"]
    assert ana.inbox.list() == []


@pytest.mark.parametrize("words", ["Yes, that is right", "Yes, I do sail my teal kayak with oars"])
def test_what_is_recited_from_the_list_of_facts_is_learnt_only_where_the_user_says_it_too(
    mc, chat_model, extract_model, words
) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "boat", "teal kayak with oars")
    for n in range(8):
        # These are nearer to what is said, so that the model is not shown the boat.
        ana.memories.add("profile", f"detail_{n}", f"yes that is right, large capital {n}")
    mc.jobs.embed()
    recital = "Your boat is a teal kayak with oars, is it not?"
    ref = {"msg": "a2", "span": "teal kayak with oars"}
    said = fact(words, "vessel", "teal kayak with oars", msg="u3", memory_type="fact", ref=ref)
    extract_model.replies.append(answer(said))
    _say(mc, chat_model, recital, "How large is the capital of Peru?", words)
    refused = [r.reason for r in ana.inbox.refusals()]
    repeats = "the cited words only repeat a memory that was shown"
    assert (repeats in " ".join(refused)) == ("kayak" not in words)


def test_something_new_said_beside_a_recital_is_learnt(
    mc, chat_model, extract_model, lisbon
) -> None:
    said = "Right, and I have a sailing boat."
    extract_model.replies.append(
        answer(fact("I have a sailing boat", "boat", "sailing boat", msg="u3"))
    )
    _say(mc, chat_model, "Your city is Lisbon.", "How is the weather at home?", said)
    assert {m.value for m in mc.user("ana").memories.list()} == {"Lisbon", "sailing boat"}


def test_titles_and_summaries_are_shown_to_no_later_extraction(
    mc, chat_model, extract_model
) -> None:
    extract_model.replies.append(answer(title="Boats", summary="Ana asked about boats."))
    _say(mc, chat_model, "Fine.", "Tell me about boats.")
    extract_model.replies.append(answer())
    _say(mc, chat_model, "Fine.", "And about winds?")
    sent = "".join(m.content for m in extract_model.requests[-1].messages)
    assert "Ana asked about boats" not in sent and "Boats" not in sent
    assert "Ana asked" not in "".join(m.content for m in chat_model.requests[-1].messages)
