"""``User.add`` with ``when``: a conversation that comes in parts is read once it rests, and what
asks to be remembered at once; until then its turns are found, before the facts they change."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memchat import InputError, MemChat
from memchat.providers import Completion
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import ChatMessage
from tests.conftest import Opener
from tests.support.answers import answer, fact

PATIENCE = 60.0
"""Seconds after which something that should happen is given up."""


def say(words: str, **more: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": words, **more}]


def reads(model: ScriptedModel) -> int:
    return sum(request.purpose == "extract" for request in model.requests)


def test_ten_turns_added_one_by_one_are_read_once_when_they_rest(
    mc: MemChat, clock: FakeClock, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    for n in range(10):
        learned = ana.add(say(f"My desk number {n} is green"), session="desk", wait=False)
        assert learned.queued == "it is read once nothing is added to it for a while"
        clock.advance(seconds=2 * 60)
        assert mc.jobs.run().learned == []
    extract_model.replies.append(answer(fact("My desk number 9 is green", "desk", "green")))
    clock.advance(seconds=27 * 60)
    assert mc.jobs.run().learned == []
    clock.advance(seconds=1 * 60)
    assert len(mc.jobs.run().learned) == 1
    assert [memory.value for memory in ana.memories.list()] == ["green"]
    # One call to read and one to look a second time, where each turn alone would take two.
    assert (reads(extract_model), len(extract_model.requests)) == (1, 2)
    assert sum(row.prompt_tokens for row in ana.usage()) <= 4_000


def test_what_asks_to_be_remembered_does_not_wait(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    ana.add(say("The tram was late"), session="day", wait=False)
    assert mc.jobs.run().learned == []
    learned = ana.add(say("Please remember that I live in Porto"), session="day", wait=False)
    assert learned.queued == "it waits to be read"
    ana.add(say("And the tram was green"), session="day", wait=False)
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    mc.jobs.run()
    assert [memory.value for memory in ana.memories.list()] == ["Porto"]


def test_a_conversation_is_read_when_it_is_ended_and_not_before(
    mc: MemChat, clock: FakeClock, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    learned = ana.add(say("I live in Porto"), session="day", when="end")
    assert learned.queued == "it is read when the session is ended" and learned.session_id
    clock.advance(days=400)
    assert mc.jobs.run().learned == [] and mc.doctor()
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    ana.sessions.end(learned.session_id)
    mc.jobs.run()
    assert [memory.value for memory in ana.memories.list()] == ["Porto"]


def test_without_a_session_or_with_waiting_it_is_read_now(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    extract_model.replies.extend([answer()] * 3)
    ana = mc.user("ana")
    assert ana.add("I had soup", wait=False).queued == "it waits to be read"
    assert ana.add(say("I had soup"), session="a").queued is None
    assert ana.add(say("And bread"), session="a", wait=False, when="now").queued is not None
    with pytest.raises(InputError, match="no time to read; use now, idle, end"):
        ana.add("I had soup", when="later")


@pytest.mark.parametrize("wanted", ["search", "context"])
def test_what_rests_is_found_and_stands_before_the_older_fact(
    mc: MemChat, clock: FakeClock, wanted: str
) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon", sentence="You live in Lisbon")
    clock.advance(seconds=3600)
    ana.add(say("I live in Porto now"), session="move", wait=False)
    if wanted == "search":
        first, second = ana.search("In which city do I live now?").hits
        assert (first.unread, first.kind, second.kind) == (True, "message", "memory")
        assert "Porto" in first.text
    else:
        lines = ana.context("Suggest something for tonight").text.splitlines()
        (line,) = (line for line in lines if "Porto" in line)
        assert "(newer than the facts above)" in line
        assert lines.index(line) > next(n for n, other in enumerate(lines) if "Lisbon" in other)


def test_what_rests_is_not_given_to_another_app_a_day_later_or_where_it_is_private(
    mc: MemChat, clock: FakeClock
) -> None:
    ana = mc.user("ana")
    ana.add(say("I live in Porto now"), session="move", wait=False)
    ana.add(say("The doctor says my depression is better"), session="health", wait=False)
    assert "Porto" in ana.context("Suggest something").text
    assert "depression" not in ana.context("Suggest something").text
    assert mc.user("ana", "work").context("Suggest something").text == ""
    clock.advance(days=2)
    assert ana.context("Suggest something").text == ""


def test_a_message_has_its_own_time(mc: MemChat, clock: FakeClock) -> None:
    ana = mc.user("ana")
    day = datetime(2023, 5, 4, 12, tzinfo=UTC)
    turns = [
        *say("I bought a kayak", created_at=day.isoformat()),
        *say("It is red", created_at=(day + timedelta(days=1)).timestamp()),
        *say("And it leaks", created_at=day + timedelta(days=2)),
        *say("Now it is sold"),
    ]
    learned = ana.add(turns, at=day + timedelta(days=3), wait=False)
    assert learned.session_id is not None
    said = [turn.created_at for turn in ana.sessions.messages(learned.session_id)]
    assert said == [day + timedelta(days=n) for n in range(4)]
    session = ana.sessions.get(learned.session_id)
    assert (session.started_at, session.last_activity_at) == (said[0], said[-1])
    for bad in ("yesterday", datetime(2023, 5, 4), clock() + timedelta(days=1), [1]):
        with pytest.raises(InputError):
            ana.add(say("I bought a boat", created_at=bad))
    assert len(ana.sessions.list()) == 1


def test_many_conversations_are_added_at_once_each_with_its_date(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    days = [datetime(2024, month, 1, tzinfo=UTC) for month in (3, 9)]
    first, second = ana.add_all(
        [
            {"messages": say("I live in Lisbon"), "at": days[0], "session": "a"},
            {"messages": "I live in Porto", "at": days[1]},
        ]
    )
    assert (first.count("added"), second.queued) == (1, None)
    assert [m.value for m in ana.memories.list()] == ["Porto"]
    for bad in ({"messages": []}, {"words": "x"}, "I live in Rome", {"messages": "x", "at": "now"}):
        with pytest.raises(InputError):
            ana.add_all([{"messages": "I live in Rome"}, bad])
    assert len(ana.sessions.list()) == 2, "nothing of what could not be added"


class Meeting(ScriptedModel):
    """Answers a reading once so many are under way, or none is to come."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self.all_there = threading.Barrier(at_once)
        self.under_way: set[str] = set()
        self.twice: list[str] = []

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        if purpose == "extract":
            who = next(name for name in PEOPLE if f"I am {name}" in messages[-1].content)
            self.twice += [who] if who in self.under_way else []
            self.under_way.add(who)
            self.all_there.wait(PATIENCE)
            self.under_way.discard(who)
        self.replies.append(answer())
        return super().complete(messages, purpose=purpose, schema=schema)


PEOPLE = ("ana", "ben", "cleo")


def test_conversations_of_several_people_are_read_at_once_and_those_of_one_in_order(
    open_store: Opener, clock: FakeClock
) -> None:
    model = Meeting(len(PEOPLE))
    mc = open_store(extract_model=model)
    for _ in range(2):
        for name in PEOPLE:
            mc.user(name).add(f"I am {name}, and I had soup", wait=False)
            clock.advance(seconds=1)
    done = mc.jobs.run(parallel=len(PEOPLE))
    # The barrier opens for three at once alone: had fewer been under way, it would have broken.
    assert (len(done.learned), done.failed, model.twice) == (6, [], [])
    for name in PEOPLE:
        ids = [one.id for one in mc.user(name).sessions.list()]
        assert [o.session_id for o in done.learned if o.session_id in ids] == sorted(ids)
    for bad in (0, 65, "3"):
        with pytest.raises(InputError, match=r"at once cannot be|give parallel as a whole number"):
            mc.jobs.run(parallel=bad)  # type: ignore[arg-type]


def test_doctor_names_conversations_that_nobody_reads(mc: MemChat, clock: FakeClock) -> None:
    mc.user("ana").add(say("I live in Porto"), session="move", wait=False)

    def queue() -> list[tuple[str, str]]:
        return [(one.state, one.detail) for one in mc.doctor() if one.name == "queue"]

    assert queue() == [("ok", "nothing waits")]
    clock.advance(seconds=31 * 60)
    assert queue() == [("note", "work is waiting")]
    clock.advance(seconds=3600)
    late = "1 conversation should have been read by now; no worker runs"
    assert queue() == [("problem", late)]
