"""What was said in the open conversation and is not learnt yet can be forgotten, too."""

from __future__ import annotations

import pytest

from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.commands import values
from tests.support.store import Opener

STAYS = "words stay in this conversation; `memchat sessions delete` deletes them."


@pytest.mark.parametrize("wish", ["forget that I work as a nurse", "Forget my job."])
def test_what_was_just_said_is_shown_and_after_a_yes_never_learnt(
    open_store: Opener, extract_model: ScriptedModel, wish: str
) -> None:
    mc = open_store(chat_model=ScriptedModel(["So you are a nurse."]))
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("I work as a nurse").read()
        assert chat.send(wish).read() == (
            "I found 1 message of this conversation:\n1. not learnt yet: “I work as a nurse”\n"
            "Forget it for good? (yes or no)"
        )
        said = chat.send("yes").read()
    assert said == f"Nothing will be learnt from 1 message of this conversation. Its {STAYS}"
    assert extract_model.requests == [] and values(mc) == []
    assert ana.search("nurse").hits == ()


def test_a_no_leaves_it_to_be_learnt(open_store: Opener, extract_model: ScriptedModel) -> None:
    extract_model.replies.extend([answer(fact("I work as a nurse", "job", "nurse"))] * 2)
    mc = open_store(chat_model=ScriptedModel(["Fine."]))
    with mc.user("ana").chat() as chat:
        chat.send("I work as a nurse").read()
        chat.send("Forget that I work as a nurse.").read()
        assert chat.send("no").read() == "Nothing was forgotten."
    assert values(mc) == ["nurse"]


def test_a_memory_and_a_message_are_one_list_and_numbers_choose(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    mc = open_store(chat_model=ScriptedModel(["Fine."] * 3))
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    with ana.chat() as chat:
        chat.send("I live in Lisbon.").read()
        asked = chat.send("Forget that I live in Lisbon.").read()
        assert asked == (
            "I found 1 memory and 1 message of this conversation:\n"
            "1. #1 You live in Lisbon (said 2026-05-01)\n2. not learnt yet: “I live in Lisbon.”\n"
            "Forget these 2 for good? (yes, no, or the numbers)"
        )
        assert "1 message of this conversation" in chat.send("2").read()
        assert values(mc) == ["Lisbon"]
    assert extract_model.requests == []


def test_everything_is_the_memories_and_all_that_was_said(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    mc = open_store(chat_model=ScriptedModel(["Fine."] * 3))
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Porto")
    with ana.chat() as chat:
        chat.send("I work as a nurse.").read()
        chat.send("I have two cats.").read()
        assert "1 memory and 2 messages" in chat.send("Forget everything about me.").read()
        said = chat.send("yes").read()
    assert said.startswith("Forgotten: 1 memory.\nNothing will be learnt from 2 messages")
    assert extract_model.requests == [] and values(mc) == []


def test_what_was_read_already_is_forgotten_as_a_memory(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    extract_model.replies.extend([answer(fact("I work as a nurse", "job", "nurse"))] * 2)
    mc = open_store(chat_model=ScriptedModel(["Fine."] * 3))
    chat = mc.user("ana").chat()
    chat.send("I work as a nurse").read()
    chat.end()
    asked = chat.send("Forget that I work as a nurse.").read()
    assert "Job: nurse" in asked and "not learnt yet" not in asked
    assert chat.send("yes").read().startswith("Forgotten: 1 memory.")
    assert values(mc) == []
