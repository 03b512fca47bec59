"""The list, commands that need no model, and commands while memory is off."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from memchat.chat import command_replies
from memchat.testing import ScriptedModel
from tests.support.commands import LIST, caller, said, values
from tests.support.leftovers import files_with, rows_with
from tests.support.store import Opener
from tests.support.wire import Call, GeminiServer, OpenAIServer, WireServer
from tests.support.wire.case import chat_of

# List


def test_the_list_is_made_by_code_of_all_that_is_remembered(open_store: Opener, clock) -> None:
    model = caller(LIST)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    clock.advance(days=1)
    ana.memories.add("preference", "like", "jazz", all_apps=True)
    ana.memories.add("profile", "name", "Ana")
    reply = ana.chat().send("What do you remember about me?")
    assert reply.read() == (
        "I remember 3 memories about you.\n"
        "Preferences:\n- #2 like: jazz (said 2026-05-02, kept everywhere)\n"
        "Profile:\n- #3 name: Ana (said 2026-05-02)\n- #1 city: Lisbon (said 2026-05-01)"
    )
    assert len(model.requests) == 1
    listed = [hit for hit in ana.sessions.receipt(reply.message_id) if hit.channel == "listed"]
    assert sorted(hit.id for hit in listed) == [1, 2, 3]


def test_a_long_list_counts_what_it_leaves_out(open_store: Opener) -> None:
    mc = open_store(chat_model=caller(LIST))
    ana = mc.user("ana")
    for number in range(43):
        ana.memories.add("fact", "trip", f"island {number}")
    text = ana.chat().send("What do you know about me?").read()
    assert text.count("\n- #") == 40
    assert text.endswith("and 3 more: `memchat memories list` shows them all.")


def test_nothing_is_learnt_from_a_conversation_that_only_lists(open_store, extract_model) -> None:
    mc = open_store(chat_model=ScriptedModel())
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    with ana.chat() as chat:
        chat.send("What do you remember about me?").read()
    assert extract_model.requests == [] and values(mc) == ["Lisbon"]


# Without tools


def test_a_bare_command_needs_no_model_at_all(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel())
    chat = mc.user("ana").chat()
    assert chat.send("Please remember that I am allergic to nuts").read() == "Saved: allergy: nuts."
    assert "allergy: nuts" in chat.send("What do you know about me?").read()
    assert "1. #1 allergy: nuts" in chat.send("Vergiss, dass ich nuts nicht mag").read()
    assert chat.send("ja").read() == "Forgotten: 1 memory."
    assert values(mc) == [] and len(said(mc)) == 8
    assert rows_with(mc, "nuts") == [] and files_with(mc, "nuts") == []


def test_a_command_with_more_behind_it_is_one_call_and_code_s_words_after_it(open_store) -> None:
    model = ScriptedModel(["Try a curry."])
    mc = open_store(chat_model=model)
    reply = mc.user("ana").chat().send("Remember that I am vegan. What can I cook?")
    assert reply.read() == "Try a curry.\n\nSaved: diet: vegan."
    assert len(model.requests) == 1 and model.requests[0].tools == ()


def test_what_no_pattern_reads_waits_for_the_model_that_reads_the_conversation(open_store) -> None:
    mc = open_store(chat_model=ScriptedModel())
    reply = mc.user("ana").chat().send("Remember that the blue folder holds the tax papers.")
    assert reply.read() == command_replies.LATER and values(mc) == []


def test_a_password_that_is_to_be_remembered_is_said_not_to_be_kept(open_store) -> None:
    mc = open_store(chat_model=ScriptedModel())
    reply = mc.user("ana").chat().send("Remember that my password is hunter2.")
    assert reply.read() == "Not saved: that is a password, and such things are never kept."
    assert values(mc) == []


def test_the_stand_in_keeps_it_as_a_note_since_nobody_else_will_read_it(open_store) -> None:
    model = ScriptedModel()
    model.stand_in = True
    mc = open_store(chat_model=model)
    reply = mc.user("ana").chat().send("Merk dir bitte, dass ich gegen Nüsse allergisch bin.")
    assert reply.read() == "Saved: note: ich gegen Nüsse allergisch bin."


# Off and incognito


@pytest.mark.parametrize("tools", [True, False])
def test_with_memory_off_a_command_gets_an_honest_answer(open_store: Opener, tools: bool) -> None:
    model = ScriptedModel(["Fine."], tools=tools)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    mc.user("ana", app="default").set_memory(False)
    chat = ana.chat()
    for message in ("Remember that I am vegan", "Forget my city", "What do you know about me?"):
        text = chat.send(message).read()
        assert text.startswith("Memory is off for the app default") and "Lisbon" not in text
    assert model.requests == []
    chat.send("Hello.").read()
    assert model.requests[0].tools == ()
    assert "memory is off for the app default" in model.requests[0].messages[0].content
    mc.user("ana", app="default").set_memory(True)
    assert values(mc) == ["Lisbon"]


def test_incognito_says_so_and_leaves_no_trace(open_store: Opener) -> None:
    model = caller("Fine.")
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    with ana.chat(incognito=True) as chat:
        for message in ("Remember that I am vegan", "Forget my city", "What do you know about me?"):
            text = chat.send(message).read()
            assert text.startswith("This conversation is incognito") and "Lisbon" not in text
        chat.send("Remember that I am vegan. What can I cook?").read()
    assert model.requests[0].tools == () and len(model.requests) == 1
    assert values(mc) == ["Lisbon"] and ana.sessions.list() == []
    assert files_with(mc, "vegan") == []


def test_with_memory_on_the_model_is_told_of_its_tools_and_of_nothing_else(open_store) -> None:
    model = caller("Fine.")
    mc = open_store(chat_model=model)
    mc.user("ana").chat().send("Hello.").read()
    system = model.requests[0].messages[0].content
    assert "by calling the tool" in system and "can be remembered or forgotten here" not in system


# Over the wire


@pytest.fixture(params=[OpenAIServer, GeminiServer], ids=["openai", "gemini"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    with request.param() as running:
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
            monkeypatch.setenv(name, running.key)
        yield running


def test_a_turn_with_a_command_is_one_request_and_its_answer_is_none(
    open_store: Opener, server: WireServer
) -> None:
    remember = {"quote": "I live in Porto", "type": "profile", "key": "city", "value": "Porto"}
    server.script(
        Call((("remember", json.dumps(remember)),), text="Lovely."),
        Call((("forget", '{"what": "my city"}'), ("list_memories", "{}"))),
    )
    mc = open_store(chat_model=chat_of(server))
    ana = mc.user("ana")
    chat = ana.chat()
    assert chat.send("Remember that I live in Porto.").read() == "Lovely.\n\nSaved: city: Porto."
    asks = chat.send("Forget my city. And what do you know?").read()
    assert asks.startswith("I remember 1 memory about you.")
    assert asks.endswith("Forget it for good? (yes or no)")
    assert chat.send("yes").read() == "Forgotten: 1 memory."
    assert values(mc) == [] and rows_with(mc, "Porto") == [] and files_with(mc, "Porto") == []
    assert len(server.requests) == 2 and server.refusals == []
    assert all("tools" in request.body for request in server.requests)
    (used,) = [total for total in ana.usage() if total.purpose == "chat"]
    assert used.calls == 2 and used.prompt_tokens > 0


def test_no_tools_are_sent_while_memory_is_off_or_the_talk_is_incognito(
    open_store: Opener, server: WireServer
) -> None:
    mc = open_store(chat_model=chat_of(server))
    ana = mc.user("ana")
    ana.chat(incognito=True).send("Hello.").read()
    ana.set_memory(False, all_apps=True)
    ana.chat().send("Hello.").read()
    assert len(server.requests) == 2
    assert not any("tools" in request.body for request in server.requests)
