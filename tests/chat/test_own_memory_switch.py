"""A chat's own switch of memory, beside the person's and the app's."""

from __future__ import annotations

import itertools

import pytest

from memchat import MemChat
from memchat.errors import InputError, NotFound
from tests.support.answers import answer, fact
from tests.support.conversation import sent_data, talk

BEES = fact("I keep bees", "hobby", "keep bees", many=True)


@pytest.mark.parametrize(
    ("user_on", "app_on", "chat_on", "incognito"), list(itertools.product([True, False], repeat=4))
)
def test_memory_takes_part_only_where_every_switch_is_on(
    mc: MemChat, chat_model, extract_model, user_on, app_on, chat_on, incognito
) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    ana.set_memory(user_on, all_apps=True)
    ana.set_memory(app_on)
    on = user_on and app_on and chat_on and not incognito
    if on:
        extract_model.replies.append(answer())
    with ana.chat(incognito=incognito) as chat:
        assert chat.set_memory(chat_on).on is on
        assert chat.memory.on is on and chat.memory.reason
        reply = chat.send("Where do I live? I keep bees.")
        assert reply.read()
        assert chat.memory.on is on
    assert bool(reply.shown.lines) is on
    assert ("Lisbon" in chat_model.requests[-1].messages[0].content) is on
    assert len(extract_model.requests) == int(on)


def test_the_switch_of_one_chat_is_no_other_s(mc: MemChat) -> None:
    ana = mc.user("ana")
    off, on = ana.chat(), ana.chat()
    for chat in (off, on):
        assert chat.send("I keep bees.").read()
    said = off.set_memory(False)
    assert said.reason == "memory is off for this chat"
    assert not off.memory.on and on.memory.on and ana.memory_switch().on
    assert ana.chat().memory.on


def test_the_reason_is_that_of_the_widest_switch(mc: MemChat) -> None:
    ana = mc.user("ana", app="work")
    chat = ana.chat()
    chat.set_memory(False)
    ana.set_memory(False)
    assert "app work" in chat.memory.reason
    ana.set_memory(True)
    assert chat.memory.reason == "memory is off for this chat"


def test_it_stays_with_the_conversation_and_with_a_copy_of_it(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.set_memory(False)
        assert chat.send("I keep bees.").read() and chat.send("And I ski.").read()
    (session,) = ana.sessions.list()
    assert not session.memory
    assert not ana.chat(resume=session.id).memory.on
    last = ana.sessions.messages(session.id)[-1]
    assert not ana.sessions.copy(session.id, before=last.id).memory


def test_what_is_said_while_it_is_off_is_never_learnt_later(mc: MemChat, extract_model) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.set_memory(False)
    assert chat.send("I moved to Lisbon.").read()
    chat.set_memory(True)
    assert chat.send("I keep bees.").read()
    extract_model.replies.append(answer(BEES))
    chat.end()
    assert [turn["text"] for turn in sent_data(extract_model)["transcript"]] == [
        "I keep bees.",
        "Fine.",
    ]


def test_what_was_said_while_it_was_on_waits_until_it_is_on_again(
    mc: MemChat, extract_model
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("I keep bees.").read()
        chat.set_memory(False)
    (session,) = ana.sessions.list()
    assert extract_model.requests == [] and ana.memories.list() == []
    with pytest.raises(InputError, match="memory is off for this chat"):
        ana.sessions.read_again(session.id)
    extract_model.replies.append(answer(BEES))
    assert ana.sessions.set_memory(session.id, True).on
    mc.jobs.run()
    assert [memory.value for memory in ana.memories.list()] == ["keep bees"]


def test_the_app_s_switch_does_not_read_a_chat_whose_own_is_off(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("I keep bees.").read()
        chat.set_memory(False)
    ana.set_memory(False)
    ana.set_memory(True)
    assert [job.kind for job in mc.jobs.list(user="ana")].count("extract") == 0


def test_a_command_to_remember_says_that_it_is_off(mc: MemChat) -> None:
    chat = mc.user("ana").chat()
    chat.set_memory(False)
    said = chat.send("Remember that I keep bees.").read()
    assert "Memory is off for this chat, so I will not remember this." in said
    assert mc.user("ana").memories.list() == []


def test_nobody_switches_another_person_s_chat(mc: MemChat) -> None:
    talk(mc, "Hello.", user="bo")
    (session,) = mc.user("bo").sessions.list()
    with pytest.raises(NotFound):
        mc.user("ana").sessions.set_memory(session.id, False)
    assert mc.user("bo").sessions.get(session.id).memory


def test_it_travels_in_an_export(mc: MemChat, tmp_path) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.set_memory(False)
        assert chat.send("I keep bees.").read()
    ana.export_file(tmp_path / "ana.jsonl")
    mc.user("eva").import_file(tmp_path / "ana.jsonl")
    (session,) = mc.user("eva").sessions.list()
    assert not session.memory
