"""A desk that changes to other models while conversations are open."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memchat import MemChat
from memchat.errors import StoreError
from memchat.testing import FakeClock, ScriptedModel
from tests.support.store import Opener
from ui.desk import GRACE_SECONDS, Desk, Task


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    return open_store()


@pytest.fixture
def other(open_store: Opener) -> MemChat:
    """The same store with another chat model."""
    return open_store(chat_model=ScriptedModel(["By the new one."] * 9, name="scripted/new"))


@pytest.fixture
def desk(mc: MemChat) -> Iterator[Desk]:
    found = Desk(mc, "ana")
    yield found
    found.close()


def test_an_open_conversation_goes_on_with_the_new_model(desk: Desk, other: MemChat) -> None:
    talk = desk.open("default")
    assert desk.say(talk, "I live in Lisbon").wait(10)
    number = talk.session_id
    desk.change(other)
    turn = desk.say(talk, "And now?")
    assert turn.wait(10)
    assert turn.error is None
    assert talk.session_id == number
    kept = other.user("ana").sessions.messages(number or 0)
    assert [m.content for m in kept] == ["I live in Lisbon", "Fine.", "And now?", "By the new one."]


def test_a_reply_that_comes_in_is_finished_by_the_model_it_was_asked_of(
    desk: Desk, other: MemChat, chat_model: ScriptedModel
) -> None:
    chat_model.replies.clear()
    chat_model.replies.append("A long answer.")
    talk = desk.open("default")
    turn = desk.say(talk, "Tell me.")
    desk.change(other)
    assert turn.wait(10)
    assert (turn.text, turn.error) == ("A long answer.", None)


def test_an_incognito_conversation_keeps_its_words_and_its_model(
    desk: Desk, other: MemChat
) -> None:
    talk = desk.open("default", incognito=True)
    assert desk.say(talk, "A secret").wait(10)
    desk.change(other)
    assert desk.say(talk, "And now?").wait(10)
    assert [m.content for m in talk.chat.turns] == ["A secret", "Fine.", "And now?", "Fine."]
    fresh = desk.open("default", incognito=True)
    assert desk.say(fresh, "Hello").wait(10)
    assert fresh.chat.turns[-1].content == "By the new one."


def test_what_was_replaced_is_closed_when_nothing_uses_it_any_more(
    desk: Desk, mc: MemChat, other: MemChat, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()
    monkeypatch.setattr(mc, "close", closed.set)
    hidden = desk.open("default", incognito=True)
    assert desk.say(hidden, "Hello").wait(10)
    desk.change(other)
    clock.advance(seconds=GRACE_SECONDS + 1)
    desk.close_replaced()
    assert not closed.is_set(), "an incognito conversation still uses it"
    desk.end(hidden)
    desk.close_replaced()
    assert closed.wait(30)
    monkeypatch.undo()


def test_a_page_that_is_being_drawn_can_still_use_what_was_just_replaced(
    desk: Desk, mc: MemChat, other: MemChat, clock: FakeClock
) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    desk.change(other)
    clock.advance(seconds=GRACE_SECONDS - 1)
    desk.close_replaced()
    assert [m.value for m in mc.user("ana").memories.list()] == ["Lisbon"]


def test_a_task_gives_its_result_or_says_what_went_wrong() -> None:
    def fails(progress: object) -> None:
        raise StoreError("the disk is gone")

    done, failed = Task("Counting", 0, lambda progress: 7), Task("Failing", 0, fails)
    assert done.wait(10)
    assert failed.wait(10)
    assert (done.result, done.error) == (7, None)
    assert (failed.result, failed.error) == (None, "the disk is gone")
