"""A conversation that takes many calls to read keeps no other waiting."""

from __future__ import annotations

import pytest

from memchat.learn.learner import WINDOWS_AT_ONCE
from memchat.testing import FakeClock, ScriptedModel
from tests.support.answers import answer
from tests.support.leftovers import rows_with
from tests.support.long_text import long_text, reader
from tests.support.store import Opener

EVENING = "I bake bread in the evening."


def queue(mc, user: str, text: str, **how) -> None:
    chat = mc.user(user).chat()
    chat.send(text, **how).read()
    chat.end(wait=False)


def test_another_person_is_read_before_the_long_reading_is_done(open_store: Opener) -> None:
    model = reader()
    chat_model = ScriptedModel(["Fine."] * 3, window=1_000_000)
    mc = open_store(chat_model=chat_model, extract_model=model)
    queue(mc, "ana", long_text(), read_all=True)
    queue(mc, "bo", EVENING)
    queue(mc, "cy", EVENING)
    done = mc.jobs.run()
    read = [EVENING in r.messages[1].content for r in model.requests if r.purpose == "extract"]
    assert [n for n, short in enumerate(read) if short] == [
        WINDOWS_AT_ONCE,
        2 * WINDOWS_AT_ONCE + 1,
    ]
    assert len(read) > 20 and done.failed == []
    assert len(mc.user("ana").memories.list()) == 3
    assert [s.status for s in mc.user("bo").sessions.list()] == ["extracted"]


def test_what_is_to_be_forgotten_does_not_wait_for_it(open_store: Opener, clock: FakeClock) -> None:
    left: list[int] = []

    def forgets(_: object) -> str:
        if not left:
            bo.memories.delete(told.id, hold=0.01)
            clock.advance(seconds=1)
        left.append(len(rows_with(mc, "Zanzibar")))
        return answer()

    model = reader(forgets)
    chat_model = ScriptedModel(["Fine."], window=1_000_000)
    mc = open_store(chat_model=chat_model, extract_model=model)
    bo = mc.user("bo")
    told = bo.memories.add("profile", "former_city", "Zanzibar")
    queue(mc, "ana", long_text().replace("Zanzibar", "Porto"), read_all=True)
    mc.jobs.run()
    assert left[0] > 0 and left[-1] == 0


def test_a_worker_that_is_interrupted_gives_back_all_that_it_was_reading(
    open_store: Opener,
) -> None:
    def interrupted(_: object) -> str:
        if len(model.requests) > 2 * WINDOWS_AT_ONCE:
            raise KeyboardInterrupt
        return answer()

    model = reader(interrupted)
    chat_model = ScriptedModel(["Fine."] * 3, window=1_000_000)
    mc = open_store(chat_model=chat_model, extract_model=model)
    for user in ("ana", "bo"):
        queue(mc, user, long_text(), read_all=True)
    with pytest.raises(KeyboardInterrupt):
        mc.jobs.run()
    jobs = [job for job in mc.jobs.list() if job.kind == "extract"]
    assert [(job.status, job.attempts) for job in jobs] == [("pending", 0)] * 2


def test_a_reading_that_waits_for_its_turn_is_taken_over_by_nobody(
    open_store: Opener, clock: FakeClock
) -> None:
    def slow(_: object) -> str:
        clock.advance(seconds=90)
        return answer()

    model = reader(slow)
    mc = open_store(chat_model=ScriptedModel(["Fine."] * 3, window=1_000_000), extract_model=model)
    for user in ("ana", "bo", "cy"):
        queue(mc, user, long_text(), read_all=True)
    assert mc.jobs.run().errors == []
    assert [job.attempts for job in mc.jobs.list() if job.kind == "extract"] == [1] * 3
