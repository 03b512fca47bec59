"""A conversation, turn by turn, and how it ends."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from memchat.db import sessions
from memchat.errors import InputError, NotFound, ProviderError, StoreError
from memchat.testing import Broken, ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.store import Opener


def rows(mc, chat) -> list[tuple[str, str, str]]:
    return [
        (m.role, m.content, m.status) for m in mc.user("ana").sessions.messages(chat.session_id)
    ]


def test_the_user_s_words_are_on_disk_before_the_model_is_asked(open_store: Opener) -> None:
    seen = []

    def reply(messages) -> str:
        seen.append(rows(mc, chat))
        return "Hello."

    mc = open_store(chat_model=ScriptedModel([reply]))
    chat = mc.user("ana").chat()
    chat.send("Hi").read()
    assert seen == [[("user", "Hi", "complete")]]
    assert rows(mc, chat) == [("user", "Hi", "complete"), ("assistant", "Hello.", "complete")]


def test_a_reply_arrives_in_pieces(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel(["one two three"]))
    assert list(mc.user("ana").chat().send("Hi")) == ["one ", "two ", "three"]


def test_a_stopped_reply_is_kept_as_far_as_it_came_and_the_connection_is_cut(open_store) -> None:
    model = ScriptedModel(["one two three"])
    mc = open_store(chat_model=model)
    chat = mc.user("ana").chat()
    reply = chat.send("Hi")
    assert next(iter(reply)) == "one "
    reply.stop()
    assert rows(mc, chat)[-1] == ("assistant", "one ", "partial")
    assert model.streams[0].closed


def test_an_interrupt_from_the_keyboard_keeps_the_partial_reply(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel(["one two three"]))
    chat = mc.user("ana").chat()
    reply = chat.send("Hi")
    with pytest.raises(KeyboardInterrupt):
        for _ in reply:
            reply._pieces.throw(KeyboardInterrupt())
    assert rows(mc, chat)[-1] == ("assistant", "one ", "partial")


def test_a_reply_that_nobody_reads_on_is_kept_as_partial_by_the_next_message(open_store) -> None:
    mc = open_store(chat_model=ScriptedModel(["one two three", "four"]))
    chat = mc.user("ana").chat()
    next(iter(chat.send("Hi")))
    assert chat.send("Go on").read() == "four"
    assert [r[1:] for r in rows(mc, chat)] == [
        ("Hi", "complete"),
        ("one ", "partial"),
        ("Go on", "complete"),
        ("four", "complete"),
    ]


def test_a_stream_that_breaks_keeps_what_came_and_says_what_happened(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel([Broken("one two ", ProviderError("cut off"))]))
    chat = mc.user("ana").chat()
    reply = chat.send("Hi")
    with pytest.raises(ProviderError, match="cut off"):
        list(reply)
    assert rows(mc, chat)[-1] == ("assistant", "one two ", "partial")


def test_a_provider_that_fails_loses_no_message_and_the_chat_goes_on(open_store: Opener) -> None:
    model = ScriptedModel([ProviderError("down", status=500), "Back again."])
    mc = open_store(chat_model=model)
    chat = mc.user("ana").chat()
    with pytest.raises(ProviderError):
        chat.send("First").read()
    assert chat.send("Second").read() == "Back again."
    assert [r[:2] for r in rows(mc, chat)] == [
        ("user", "First"),
        ("user", "Second"),
        ("assistant", "Back again."),
    ]
    # Providers want the roles to alternate: the unanswered turn goes with the next.
    assert [(m.role, m.content) for m in model.requests[1].messages[1:]] == [
        ("user", "First\n\nSecond")
    ]


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_blank_message_is_refused(mc, text: str) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError, match="empty"):
        ana.chat().send(text)
    assert ana.sessions.list() == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("שלום 👋🏽 مرحبا", "שלום 👋🏽 مرحبا"),
    ],
)
def test_any_text_is_kept(mc, extract_model, text: str, kept: str) -> None:
    extract_model.replies.append(answer())
    with mc.user("ana").chat() as chat:
        chat.send(text).read()
    assert rows(mc, chat)[0][1] == kept


def test_a_message_of_a_megabyte_is_kept_and_the_model_s_limit_is_said(mc, chat_model) -> None:
    chat = mc.user("ana").chat()
    with pytest.raises(InputError, match="longer than scripted/chat can read"):
        chat.send("x" * 1_000_000).read()
    assert len(rows(mc, chat)[0][1]) == 1_000_000
    assert chat.send("Hi").read() == "Fine."


def test_a_chat_that_outgrows_the_window_keeps_the_newest_turns(open_store: Opener) -> None:
    model = ScriptedModel(["Fine."] * 30, window=1000)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    chat = ana.chat()
    for n in range(20):
        reply = chat.send(f"Turn {n} " + "and some more words " * 10)
        assert reply.read()
    sent = [m.content for m in model.requests[-1].messages]
    assert sent[-1].startswith("Turn 19") and not any(s.startswith("Turn 0 ") for s in sent)
    assert sent[0].startswith("You are") and model.requests[-1].messages[1].role == "user"
    assert reply.dropped_turns > 0
    assert len(ana.sessions.messages(chat.session_id)) == 40


def test_older_turns_return_when_they_are_spoken_of(open_store: Opener) -> None:
    model = ScriptedModel(["Fine."] * 30, window=1000)
    mc = open_store(chat_model=model)
    chat = mc.user("ana").chat()
    chat.send("The zebra crossing on Mill Street is broken.").read()
    for n in range(20):
        chat.send(f"Turn {n} " + "and some more words " * 10).read()
    reply = chat.send("What did I say about the zebra?")
    assert reply.read()
    assert [hit.channel for hit in reply.shown.hits] == ["conversation"]
    assert "zebra crossing on Mill Street" in model.requests[-1].messages[0].content


def test_a_reply_keeps_the_receipt_of_what_was_shown(mc, extract_model, chat_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    reply = ana.chat().send("Is Lisbon my city?")
    assert reply.read()
    (hit,) = ana.sessions.receipt(reply.message_id)
    assert (hit.kind, hit.channel) == ("memory", "both")
    assert f"- #{hit.id} {hit.text}" in chat_model.requests[-1].messages[0].content


def test_nothing_remembered_means_no_block_at_all(mc, chat_model) -> None:
    mc.user("ana").chat().send("Hi").read()
    assert "memories" not in chat_model.requests[-1].messages[0].content


def test_chat_once_retrieves_and_writes_nothing(mc, chat_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    before = dump(mc)
    said = ana.answer("Which city is it?")
    assert said.text == "Fine." and len(said.shown.hits) == 1
    assert dump(mc) == before


def dump(mc) -> str:
    with private.database(mc).read() as tx:
        return "\n".join(tx.driver.iterdump())


def test_ending_twice_reads_once(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    chat = mc.user("ana").chat()
    chat.send("Hi").read()
    chat.end()
    chat.end()
    assert len(extract_model.requests) == 1


def test_a_session_can_go_on_after_its_end(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.extend([answer(), answer()])
    chat = ana.chat()
    chat.send("Hi").read()
    chat.end()
    chat.send("Still here").read()
    assert ana.sessions.list()[0].status in ("open", "extracted")
    chat.end()
    assert len(ana.sessions.list()) == 1 and len(extract_model.requests) == 2


def test_a_session_in_use_by_another_process_can_be_neither_ended_nor_resumed(
    mc, open_store, clock
) -> None:
    chat = mc.user("ana").chat()
    chat.send("Hi").read()
    private.give_to_another_process(chat, mc)
    other = open_store()
    ana = other.user("ana")
    with pytest.raises(StoreError, match="open in another process"):
        ana.chat(resume=chat.session_id)
    with pytest.raises(StoreError, match="open in another process"):
        ana.sessions.end(chat.session_id)
    other.jobs.run()
    assert ana.sessions.get(chat.session_id).status == "open"


def test_a_chat_that_lost_its_lease_does_not_end_the_one_that_took_over(
    mc, open_store, extract_model, clock
) -> None:
    ana = mc.user("ana")
    slept = ana.chat()
    slept.send("Hi").read()
    private.stop_renewing(slept)
    clock.advance(seconds=61)
    extract_model.replies.append(answer())
    other = open_store().user("ana").chat(resume=slept.session_id)
    other.send("I am here now.").read()
    slept.end()
    assert ana.sessions.get(slept.session_id).ended_at is None


def test_a_session_whose_lease_ran_out_is_ended_and_read_by_the_next_process(
    mc, open_store, extract_model, clock
) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon.").read()
    private.stop_renewing(chat)  # its process is stuck: nobody renews the lease
    clock.advance(seconds=61)
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    (learned,) = open_store().jobs.run().learned
    assert learned.count("added") == 1


def test_a_machine_that_slept_does_not_end_the_session_it_still_holds(
    mc, open_store, clock
) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Hi").read()
    clock.advance(seconds=100)  # the keeper's thread has not come round yet
    mc.jobs.run()
    open_store().jobs.run()
    assert ana.sessions.get(chat.session_id).status == "open"


def test_a_session_of_a_dead_process_is_ended_at_once(mc, open_store, extract_model) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon.").read()
    private.stop_renewing(chat)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    owner, until = private.lease(chat, mc.now)
    with private.database(mc).write() as tx:
        gone = owner.replace(f":{os.getpid()}:", f":{pid}:")
        sessions.reopen(tx, chat.session_id, gone, until, mc.now)
    extract_model.replies.append(answer())
    assert len(open_store().jobs.run().learned) == 1


def test_the_lease_is_renewed_while_the_process_lives(mc, clock) -> None:
    chat = mc.user("ana").chat()
    chat.send("Hi").read()
    assert private.is_renewing(chat)
    with private.database(mc).read() as tx:
        owner, until = sessions.lease(tx, chat.session_id)
    assert owner == private.lease(chat, clock())[0] and until > clock()


def test_resuming_an_unknown_or_foreign_session_is_refused(mc) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Hi").read()
    with pytest.raises(NotFound, match="no session"):
        mc.user("bo").chat(resume=chat.session_id)
    with pytest.raises(NotFound):
        mc.user("ana", app="other").chat(resume=chat.session_id)
    with pytest.raises(InputError, match="incognito"):
        ana.chat(resume=chat.session_id, incognito=True)


def test_a_chat_that_nobody_keeps_lets_go_of_its_lease_when_the_store_closes(open_store) -> None:
    mc = open_store()
    before = set(threading.enumerate())
    mc.user("ana").chat().send("Hello").read()
    gc.collect()
    mc.close()
    new = set(threading.enumerate()) - before
    assert [thread for thread in new if thread.name == "memchat-lease"] == []
