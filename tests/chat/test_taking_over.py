"""A session that is resumed while another chat of the same process has it open."""

from __future__ import annotations

import threading

import pytest

from memchat import MemChat
from memchat.chat import Chat
from memchat.errors import StoreError
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer
from tests.support.store import Opener


@pytest.fixture
def older(mc: MemChat) -> Chat:
    chat = mc.user("ana").chat()
    assert chat.send("I live in Lisbon.").read() == "Fine."
    return chat


def said(mc: MemChat, session_id: int | None) -> list[str]:
    assert session_id is not None
    return [turn.content for turn in mc.user("ana").sessions.messages(session_id)]


@pytest.mark.parametrize("stores", ["one", "two"])
def test_the_session_goes_on_in_the_chat_that_resumed_it_and_nothing_said_is_lost(
    mc: MemChat, open_store: Opener, older: Chat, stores: str
) -> None:
    other = mc if stores == "one" else open_store()
    newer = other.user("ana").chat(resume=older.session_id)
    assert private.is_renewing(newer)
    assert newer.send("I work as a nurse.").read() == "Fine."
    assert said(mc, older.session_id) == [
        "I live in Lisbon.",
        "Fine.",
        "I work as a nurse.",
        "Fine.",
    ]


def test_the_older_chat_says_that_it_was_taken_over_and_stores_nothing(
    mc: MemChat, older: Chat
) -> None:
    mc.user("ana").chat(resume=older.session_id)
    for use in (lambda: older.send("I have a cat."), older.redo, lambda: older.redo("Hello")):
        with pytest.raises(StoreError, match=r"taken over by another chat of this program.*resume"):
            use()
    assert said(mc, older.session_id) == ["I live in Lisbon.", "Fine."]


def test_the_older_chat_neither_ends_the_session_nor_keeps_its_lease(
    mc: MemChat, older: Chat, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    newer = ana.chat(resume=older.session_id)
    assert older.end() is None and not private.renew(older)
    assert older.session_id is not None
    assert ana.sessions.get(older.session_id).ended_at is None
    assert newer.send("Still here.").read() == "Fine."
    extract_model.replies.append(answer())
    newer.end()
    assert ana.sessions.get(older.session_id).ended_at is not None


def test_the_older_chat_may_take_the_session_back_by_resuming_it(mc: MemChat, older: Chat) -> None:
    ana = mc.user("ana")
    newer = ana.chat(resume=older.session_id)
    again = ana.chat(resume=older.session_id)
    with pytest.raises(StoreError, match="taken over"):
        newer.send("Hello")
    assert again.send("Hello").read() == "Fine."


def test_a_reply_that_is_coming_in_is_stored_whole_in_the_session(
    mc: MemChat, older: Chat, chat_model: ScriptedModel
) -> None:
    chat_model.replies.insert(0, "One two three.")
    pieces = iter(older.send("Count."))
    assert next(pieces)
    mc.user("ana").chat(resume=older.session_id)
    assert "".join(pieces)
    assert said(mc, older.session_id)[-2:] == ["Count.", "One two three."]


def test_of_threads_that_resume_at_once_one_has_the_session(mc: MemChat, older: Chat) -> None:
    start = threading.Barrier(4)
    chats: list[Chat] = []

    def resume() -> None:
        start.wait(60)
        chats.append(mc.user("ana").chat(resume=older.session_id))

    threads = [threading.Thread(target=resume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent = []
    for chat in [older, *chats]:
        try:
            sent.append(chat.send("Mine.").read())
        except StoreError as error:
            assert "taken over" in str(error)
    assert sent == ["Fine."]
    assert said(mc, older.session_id).count("Mine.") == 1


def test_a_session_that_a_chat_has_open_is_not_ended_beside_it(mc: MemChat, older: Chat) -> None:
    assert older.session_id is not None
    with pytest.raises(StoreError, match="is open in a chat of this program; end it there first"):
        mc.user("ana").sessions.end(older.session_id)
    assert older.send("Still here.").read() == "Fine."
