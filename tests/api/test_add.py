"""``User.add``: a conversation of another program's chat loop is stored and learned from."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memchat import InputError, ProviderError, StoreError
from tests.support.answers import answer, fact

LISBON = answer(fact("I live in Lisbon", "city", "Lisbon"))
NOTHING = answer()


def user(words: object) -> dict[str, Any]:
    return {"role": "user", "content": words}


def assistant(words: object) -> dict[str, Any]:
    return {"role": "assistant", "content": words}


def said(ana, session_id: int) -> list[tuple[str, str]]:
    return [(m.role, m.content) for m in ana.sessions.messages(session_id)]


def test_messages_are_stored_and_learned_from(mc, extract_model, chat_model) -> None:
    extract_model.replies.append(LISBON)
    ana = mc.user("ana")
    learned = ana.add([user("I live in Lisbon"), assistant("A fine city.")])
    assert (learned.headline, learned.stored) == ("Saved 1 (merged/updated 0)", 2)
    assert learned.queued is None and learned.skipped is None
    assert said(ana, learned.session_id) == [
        ("user", "I live in Lisbon"),
        ("assistant", "A fine city."),
    ]
    (memory,) = ana.memories.list()
    assert [proof.quote for proof in ana.memories.evidence(memory.id)] == ["I live in Lisbon"]
    assert ana.sessions.get(learned.session_id).status == "extracted"
    assert chat_model.requests == []


def test_a_string_is_one_message_of_the_user(mc, extract_model) -> None:
    extract_model.replies.append(LISBON)
    ana = mc.user("ana")
    learned = ana.add("I live in Lisbon")
    assert said(ana, learned.session_id) == [("user", "I live in Lisbon")]
    assert learned.count("added") == 1


def test_what_is_not_text_of_a_person_or_a_model_is_left_out_and_counted(mc) -> None:
    ana = mc.user("ana")
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    learned = ana.add(
        [
            {"role": "system", "content": "You are kind."},
            {"role": "developer", "content": "Be brief."},
            user([{"type": "text", "text": "Look:"}, picture, {"type": "text", "text": "my boat"}]),
            {"role": "assistant", "content": None, "tool_calls": [{}]},
            {"role": "tool", "content": "42"},
            assistant([{"type": "output_text", "text": "Nice."}]),
            user([picture]),
            user("  "),
        ],
        wait=False,
    )
    assert (learned.stored, learned.ignored) == (2, 7)
    turns = said(ana, learned.session_id)
    assert turns == [("user", "Look:\nmy boat"), ("assistant", "Nice.")]


@pytest.mark.parametrize(
    "messages",
    [
        "",
        " \n",
        [],
        [{"role": "system", "content": "You are kind."}],
        [user(None)],
        [user("hello"), {"role": "robot", "content": "beep"}],
        [user("hello"), {"content": "no role"}],
        [user("hello"), "just words"],
        [user(7)],
    ],
)
def test_nothing_to_add_and_malformed_messages_are_refused(mc, messages) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError):
        ana.add(messages)
    assert ana.sessions.list() == []


def test_the_same_session_goes_on_and_known_turns_are_skipped(mc, extract_model) -> None:
    ana = mc.user("ana")
    first = [user("Hello"), assistant("Hi.")]
    more = [user("I live in Lisbon"), assistant("A fine city.")]
    extract_model.replies.extend([NOTHING, LISBON])
    one = ana.add(first, session="chat-17")
    two = ana.add(first + more, session="chat-17")
    assert two.session_id == one.session_id
    assert (two.known, two.stored, two.count("added")) == (2, 2, 1)
    again = ana.add(first + more, session="chat-17")
    assert (again.known, again.stored, again.skipped) == (4, 0, "nothing new was said")
    three = ana.add([user("Bye"), assistant("Bye.")], session="chat-17", wait=False)
    assert (three.known, three.stored) == (0, 2)
    window = [*more[1:], user("Bye"), assistant("Bye."), user("One more thing")]
    four = ana.add(window, session="chat-17", wait=False)
    assert (four.known, four.stored) == (3, 1)
    assert len(said(ana, one.session_id)) == 7 and len(ana.sessions.list()) == 1
    assert ana.add(first, wait=False).session_id != one.session_id, "no name, no continuation"


def test_the_same_name_is_another_session_for_another_person_and_in_another_app(mc) -> None:
    users = mc.user("ana"), mc.user("bo"), mc.user("ana", app="work")
    ids = {who.add("Hello", session="1", wait=False).session_id for who in users}
    assert len(ids) == 3


def test_a_conversation_with_a_changed_reply_is_not_added_a_second_time(mc) -> None:
    ana = mc.user("ana")
    one = ana.add([user("Hello"), assistant("Hi.")], session="s", wait=False)
    two = ana.add([user("Hello"), assistant("Hey."), user("So")], session="s", wait=False)
    assert (two.known, two.stored) == (1, 2)
    three = ana.add(
        [user("Hello"), assistant("Hey."), user("So"), assistant("Yes?")], session="s", wait=False
    )
    assert (three.known, three.stored) == (3, 1)
    words = [content for _, content in said(ana, one.session_id)]
    assert words == ["Hello", "Hi.", "Hey.", "So", "Yes?"]


def test_forgotten_and_deleted_words_do_not_come_back_with_the_conversation(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(LISBON)
    talk = [user("I live in Lisbon"), assistant("A fine city.")]
    one = ana.add(talk, session="s")
    ana.memories.delete(ana.memories.list()[0].id)
    again = ana.add([*talk, user("Hello")], session="s", wait=False)
    assert (again.known, again.stored) == (2, 1)
    assert "Lisbon" not in str(said(ana, one.session_id))
    ana.sessions.delete(one.session_id)
    assert ana.add([*talk, user("Hello")], session="s").skipped == "nothing new was said"
    assert ana.sessions.list() == []
    new = ana.add([*talk, user("Hello"), user("Good day")], session="s", wait=False)
    assert said(ana, new.session_id) == [("user", "Good day")]


@pytest.mark.parametrize("all_apps", [True, False])
def test_nothing_is_stored_where_memory_is_off(mc, all_apps: bool) -> None:
    ana = mc.user("ana")
    ana.set_memory(False, all_apps=all_apps)
    learned = ana.add("I live in Lisbon", session="s")
    assert learned.session_id is None and learned.stored == 0
    assert learned.skipped is not None and "memory is off" in learned.skipped
    assert ana.sessions.list() == []


def test_a_provider_that_fails_leaves_it_in_the_queue(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(ProviderError("the model is down", retryable=True))
    learned = ana.add("I live in Lisbon", session="s")
    assert learned.stored == 1 and "the model is down" in (learned.queued or "")
    clock.advance(days=1)
    extract_model.replies.append(LISBON)
    assert mc.jobs.run().done and [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_without_waiting_it_is_only_queued(mc, extract_model) -> None:
    ana = mc.user("ana")
    learned = ana.add("I live in Lisbon", wait=False)
    assert learned.queued and extract_model.requests == []
    extract_model.replies.append(LISBON)
    mc.jobs.run()
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_waiting_ends_with_the_timeout_and_the_reading_goes_on(mc, extract_model) -> None:
    go_on, read = threading.Event(), threading.Event()

    def slow(_: object) -> str:
        go_on.wait(30)
        read.set()
        return LISBON

    extract_model.replies.append(slow)
    ana = mc.user("ana")
    learned = ana.add("I live in Lisbon", timeout=0.05)
    assert "0.05 s" in (learned.queued or "") and learned.changes == ()
    go_on.set()
    assert read.wait(30)
    for thread in threading.enumerate():
        if thread.name == "memchat-worker":
            thread.join(30)
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_an_error_in_the_background_says_why_it_still_waits(mc, extract_model) -> None:
    def damage(_: object) -> str:
        with closing(sqlite3.connect(mc.settings.home / "memchat.db")) as raw, raw:
            raw.execute("ALTER TABLE jobs RENAME TO elsewhere")
        return LISBON

    extract_model.replies.append(damage)
    learned = mc.user("ana").add("I live in Lisbon", timeout=30)
    assert learned.stored == 1 and "no such table" in (learned.queued or "")


def test_messages_have_the_time_that_is_given(mc, extract_model, clock) -> None:
    extract_model.replies.append(LISBON)
    ana, then = mc.user("ana"), clock() - timedelta(days=40)
    ana.add("I live in Lisbon", at=then)
    (memory,) = ana.memories.list()
    assert memory.said_at == then and ana.memories.evidence(memory.id)[0].said_at == then


def test_an_earlier_time_leaves_the_last_activity_as_it_is(mc, clock) -> None:
    ana, now = mc.user("ana"), clock()
    then = now - timedelta(days=40)
    for at in (now, then):
        session_id = ana.add(f"Hello at {at}", session="s", at=at, wait=False).session_id
        assert session_id is not None
    session = ana.sessions.get(session_id)
    assert (session.started_at, session.last_activity_at) == (then, now)


def test_a_conversation_without_words_of_the_user_says_so(mc) -> None:
    learned = mc.user("ana").add([assistant("I am a bot.")], session="s")
    assert (learned.stored, learned.skipped) == (1, "nothing was said by the user")


@pytest.mark.parametrize("at", [datetime(2026, 4, 1), datetime(2031, 1, 1, tzinfo=UTC)])
def test_a_time_without_zone_or_to_come_is_refused(mc, at: datetime) -> None:
    with pytest.raises(InputError):
        mc.user("ana").add("Hello", at=at)


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_name_that_is_empty_or_too_long_is_refused(mc, name: str) -> None:
    with pytest.raises(InputError, match="1 to 200"):
        mc.user("ana").add("Hello", session=name)


def test_a_conversation_that_is_open_in_a_chat_takes_nothing(mc) -> None:
    ana = mc.user("ana")
    session_id = ana.add("Hello", session="s", wait=False).session_id
    chat = ana.chat(resume=session_id)
    assert chat.send("Hello again").read()
    with pytest.raises(StoreError, match="open in a chat"):
        ana.add("Good day", session="s")
    chat.end(wait=False)
    assert ana.add("Good day", session="s", wait=False).session_id == session_id


def test_the_name_of_a_session_that_was_deleted_is_nowhere_in_the_store(mc) -> None:
    ana = mc.user("ana")
    added = ana.add("I live in Lisbon", session="Zanzibarville")
    assert ana.add("I live in Lisbon", session="Zanzibarville").known == 1
    ana.sessions.delete(added.session_id)
    folder = mc.settings.home
    mc.close()
    assert [f.name for f in folder.iterdir() if f.is_file() and b"Zanzibar" in f.read_bytes()] == []


def test_what_a_program_sends_that_is_not_trusted_waits_and_what_it_sends_later_does_not(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    for through, key in (("page", "city"), (None, "pet")):
        said = f"My {key} is Porto"
        extract_model.replies.append(answer(fact(said, key, "Porto")))
        ana.add(said, session="s", through=through)
    assert [memory.key for memory in ana.memories.list()] == ["pet"]
    (item,) = ana.inbox.list()
    assert item.key == "city" and item.reason.startswith("page sent it as your words")
