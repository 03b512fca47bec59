"""Verbs that wait: each ends at the time it is given, and refuses what is no time."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memchat import InputError, MemChat, ProviderError
from memchat.testing import ScriptedModel, ScriptedStream
from memchat.types import ChatMessage
from tests.support import private
from tests.support.store import Opener

SECONDS = 0.05


class Halting(ScriptedModel):
    """Says "One ", waits until it may go on, and then goes on, for ever or so many times."""

    def __init__(self) -> None:
        super().__init__()
        self.halted = threading.Event()
        self.goes_on = threading.Event()
        self.pieces: int | None = None

    def stream(self, messages: Sequence[ChatMessage], tools: Sequence[Any] = ()) -> ScriptedStream:
        return HaltingStream(self, messages, "One ")


class HaltingStream(ScriptedStream):
    def __init__(self, model: Halting, messages: Sequence[ChatMessage], reply: str) -> None:
        super().__init__(model, messages, reply)
        self._halting = model

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        self._halting.halted.set()
        self._halting.goes_on.wait(60)
        for number in itertools.count():
            if number == self._halting.pieces:
                return
            yield "."


NO_TIMES = [-1, 0, math.nan, "soon", 1e12]
VERBS: dict[str, Callable[[MemChat, object], object]] = {
    "add": lambda mc, time: mc.user("ana").add("I live in Lisbon", timeout=time),
    "search": lambda mc, time: mc.user("ana").search("where?", timeout=time),
    "context": lambda mc, time: mc.user("ana").context("where?", timeout=time),
    "answer": lambda mc, time: mc.user("ana").answer("where?", timeout=time),
    "send": lambda mc, time: mc.user("ana").chat().send("Hello", timeout=time),
    "redo": lambda mc, time: mc.user("ana").chat().redo(timeout=time),
    "read": lambda mc, time: mc.user("ana").chat().send("Hello").read(timeout=time),
    "jobs.run": lambda mc, time: mc.jobs.run(timeout=time),
}


@pytest.fixture
def answer_late() -> Iterator[threading.Event]:
    """Set by a test to let a model answer that was slow until then."""
    answers = threading.Event()
    yield answers
    answers.set()


@pytest.fixture
def slow(answer_late: threading.Event) -> Callable[[list[ChatMessage]], str]:
    def reply(_: object) -> str:
        answer_late.wait(30)
        return "Late."

    return reply


@pytest.fixture
def halting() -> Iterator[Halting]:
    model = Halting()
    yield model
    model.goes_on.set()


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_time_is_refused_and_stores_nothing(mc: MemChat, verb: str) -> None:
    for time in NO_TIMES:
        with pytest.raises(InputError, match=r"no timeout; give seconds|give timeout as a number"):
            VERBS[verb](mc, time)
    assert [s for s in mc.user("ana").sessions.list() if verb != "read"] == []


def test_a_reply_ends_at_its_time_and_says_so(
    mc: MemChat, chat_model: ScriptedModel, slow: Callable[..., str]
) -> None:
    chat_model.replies.appendleft(slow)
    reply = mc.user("ana").chat().send("Hello")
    assert reply.read(timeout=SECONDS) == "" and reply.stopped
    assert reply.cut == "The reply was ended after 0.05 s, the time it was given."


def test_a_time_given_with_the_message_holds_for_its_reply_however_it_is_read(
    mc: MemChat, chat_model: ScriptedModel, slow: Callable[..., str]
) -> None:
    chat_model.replies.extendleft([slow, slow])
    chat = mc.user("ana").chat()
    assert list(chat.send("Hello", timeout=SECONDS)) == []
    assert chat.send("Hello?", timeout=SECONDS).read() == ""


def test_after_a_reply_that_ended_at_its_time_the_rest_of_it_is_thrown_away(
    mc: MemChat, chat_model: ScriptedModel, slow: Callable[..., str], answer_late: threading.Event
) -> None:
    chat_model.replies.appendleft(slow)
    with mc.user("ana").chat() as chat:
        reply = chat.send("Hello")
        reply.read(timeout=SECONDS)
        answer_late.set()
        assert reply.read() == ""
        assert chat.send("And now?", timeout=30).read() == "Fine."
    said = mc.user("ana").sessions.messages(1)
    assert [m.content for m in said] == ["Hello", "And now?", "Fine."]


def said(mc: MemChat) -> list[tuple[str, str]]:
    return [(m.content, m.status) for m in mc.user("ana").sessions.messages(1)]


def test_what_came_in_time_is_kept_before_the_reading_of_the_reply_returns(
    open_store: Opener, halting: Halting
) -> None:
    chat = open_store(chat_model=halting).user("ana").chat()
    reply = chat.send("Hello", timeout=30)
    next(iter(reply))  # the time it takes to begin is not what is tested
    assert reply.read(timeout=SECONDS) == "One "
    assert reply.message_id is not None
    assert said(open_store()) == [("Hello", "complete"), ("One ", "partial")]


def test_a_model_that_never_stops_is_ended_at_its_time(
    open_store: Opener, halting: Halting
) -> None:
    chat = open_store(chat_model=halting).user("ana").chat()
    reply = chat.send("Hello")
    next(iter(reply))
    halting.goes_on.set()
    assert reply.read(timeout=SECONDS).startswith("One .")
    assert reply.cut == "The reply was ended after 0.05 s, the time it was given."


def test_a_reply_that_is_stopped_from_elsewhere_ends_at_once_and_stands_before_what_is_said_next(
    open_store: Opener, halting: Halting
) -> None:
    mc = open_store(chat_model=halting)
    chat = mc.user("ana").chat()
    reply = chat.send("Hello")
    reader = threading.Thread(target=reply.read)
    reader.start()
    while reply.received != "One ":
        assert reader.is_alive()
    chat.send("And now?")
    reader.join(30)
    assert not reader.is_alive(), "the model is silent still"
    assert said(mc) == [("Hello", "complete"), ("One ", "partial"), ("And now?", "complete")]


def test_two_threads_may_read_one_reply_and_each_returns_the_whole(
    open_store: Opener, halting: Halting
) -> None:
    halting.pieces = 3
    reply = open_store(chat_model=halting).user("ana").chat().send("Hello")
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(reply.read)]
        assert halting.halted.wait(30)
        readers.append(pool.submit(reply.read))
        halting.goes_on.set()
        texts = {reader.result(30) for reader in readers}
    assert texts == {"One ..."}


def test_a_second_reader_s_time_holds_while_another_waits_without_one(
    open_store: Opener, halting: Halting
) -> None:
    reply = open_store(chat_model=halting).user("ana").chat().send("Hello")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(reply.read)
        while reply.received != "One ":
            assert not first.done()
        assert reply.read(timeout=SECONDS) == "One " == first.result(30)
    assert reply.cut == "The reply was ended after 0.05 s, the time it was given."


def test_an_error_of_a_model_is_the_same_with_a_time_as_without(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    for time in (None, 30):
        chat_model.replies.appendleft(ZeroDivisionError("a bug"))
        with pytest.raises(ZeroDivisionError, match="a bug"):
            mc.user("ana").answer("Where do I live?", timeout=time)


def test_a_reply_that_comes_in_time_is_as_without_one(mc: MemChat) -> None:
    chat = mc.user("ana").chat()
    reply = chat.send("Hello", timeout=30)
    assert "".join(reply) == "Fine." == reply.read() == reply.read(timeout=1)
    assert reply.cut is None and reply.message_id is not None
    assert chat.redo(timeout=30).read() == "Fine."


def test_a_failure_is_raised_where_a_reply_has_a_time(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    chat_model.replies.appendleft(ProviderError("the model is down"))
    reply = mc.user("ana").chat().send("Hello", timeout=30)
    with pytest.raises(ProviderError, match="the model is down"):
        reply.read()


def test_an_answer_that_is_late_is_an_error(
    mc: MemChat, chat_model: ScriptedModel, slow: Callable[..., str]
) -> None:
    chat_model.replies.appendleft(slow)
    with pytest.raises(ProviderError, match=r"did not answer within 0\.05 s") as caught:
        mc.user("ana").answer("Where do I live?", timeout=SECONDS)
    assert caught.value.retryable
    assert mc.user("ana").answer("Where do I live?", timeout=30).text == "Fine."


def test_jobs_go_on_in_the_background_after_their_time(
    mc: MemChat,
    extract_model: ScriptedModel,
    slow: Callable[..., str],
    answer_late: threading.Event,
) -> None:
    extract_model.replies.append(slow)
    mc.user("ana").add("I live in Lisbon", wait=False)
    done = mc.jobs.run(timeout=SECONDS)
    assert done.running and done.done == 0
    answer_late.set()
    private.wait_for_work_behind(mc)
    assert mc.jobs.run(timeout=30).running is False
    assert done.done == 0, "what was returned is not changed by the background"
    assert [job.attempts for job in mc.jobs.list() if job.kind == "extract"] == [1]


def test_counts_that_cannot_be_are_refused(mc: MemChat) -> None:
    with pytest.raises(InputError, match="limit -1 cannot be"):
        mc.jobs.list(limit=-1)
    with pytest.raises(InputError, match="top -1 cannot be"):
        mc.user("ana").memories.insights(top=-1)


def test_a_change_of_a_memory_that_there_is_not_is_refused(mc: MemChat) -> None:
    memory = mc.user("ana").memories.add("fact", "city", "Lisbon")
    with pytest.raises(TypeError, match="a memory has no valeu that can be changed"):
        mc.user("ana").memories.update(memory.id, valeu="Porto")
