"""What a conversation says of a person's own entries is asked about first."""

from __future__ import annotations

from datetime import date

import pytest

from memchat import MemChat
from memchat.types import Memory, to_json
from tests.support.answers import answer
from tests.support.conversation import state, talk
from tests.support.starts import known, tell


def entered(mc: MemChat) -> Memory:
    return mc.user("ana").memories.add("profile", "city", "Lisbon")


def entered_and_said(mc: MemChat) -> Memory:
    memory = entered(mc)
    tell(mc, "Lisbon", relation="same", target_id=memory.id)
    return memory


def reworded(mc: MemChat) -> Memory:
    return mc.user("ana").memories.update(known(tell(mc, "Lisboa")).id, value="Lisbon")


def pinned(mc: MemChat) -> Memory:
    return mc.user("ana").memories.pin(known(tell(mc, "Lisbon")).id)


def for_every_app(mc: MemChat) -> Memory:
    return mc.user("ana").memories.add("profile", "city", "Lisbon", all_apps=True)


@pytest.mark.parametrize("made", [entered, entered_and_said, reworded, pinned, for_every_app])
@pytest.mark.parametrize("start", [None, date(2026, 12, 1)])
def test_a_change_of_a_person_s_own_is_one_question_and_no_second_value(
    mc, extract_model, clock, made, start
) -> None:
    ana = mc.user("ana")
    old = made(mc)
    clock.advance(days=1)
    extract_model.replies.append(answer())
    session = talk(mc, "I live in Porto now.").session_id
    message = ana.sessions.messages(session)[0]
    done = tell(
        mc,
        "Porto",
        (session, message.id),
        key="home",
        relation="updates",
        target_id=old.id,
        starts_at=start,
        cues=("travel",),
        around="I live in Porto now.",
        proofs=((message.id, 0, "I live in Porto now"),),
    )
    assert done.kind == "review" and state(mc) == {"Lisbon": (True, None)}
    (item,) = ana.inbox.list()
    named = "city: Lisbon" if made is pinned else "“You live in Lisbon”"  # as a reader told it
    assert item.reason == f"You said “I live in Porto now”. Replace {named}?"
    assert (item.relation, item.target_id, item.memory_type) == ("updates", old.id, "profile")
    assert (item.key, item.value, item.starts_at, item.cues) == (
        "city",
        "Porto",
        start,
        ("travel",),
    )
    assert (item.quote, item.start, item.around) == (
        "I live in Porto now",
        0,
        "I live in Porto now.",
    )
    assert (item.message_id, item.memory_id, item.related_id) == (message.id, None, None)
    ended = tell(mc, "", key="city", relation="ends", target_id=old.id)
    assert ended.kind == "review" and state(mc) == {"Lisbon": (True, None)}
    assert ana.inbox.list()[-1].relation == "ends"


def test_another_value_of_a_key_that_holds_one_asks_as_an_update_does(mc, clock) -> None:
    old = entered(mc)
    clock.advance(days=1)
    assert tell(mc, "Porto").kind == "review"
    (item,) = mc.user("ana").inbox.list()
    assert (item.relation, item.target_id) == ("updates", old.id)


def test_what_was_said_before_a_person_s_own_word_asks_nothing(mc, clock) -> None:
    before = mc.now
    clock.advance(days=1)
    entered(mc)
    tell(mc, "Porto", said_at=before)
    assert mc.user("ana").inbox.list() == []
    assert state(mc) == {"Lisbon": (True, None), "Porto": (False, "superseded")}


def test_words_of_a_person_s_own_are_never_put_in_other_words(mc, clock) -> None:
    ana = mc.user("ana")
    mine = ana.memories.add("fact", "boat", "a kayak")
    clock.advance(days=1)
    done = tell(
        mc,
        "a green kayak of oak",
        key="boat",
        memory_type="fact",
        relation="same",
        target_id=mine.id,
    )
    assert done.kind == "repeated"
    (memory,) = ana.memories.list(status="all")
    assert (memory.value, memory.seen_count) == ("a kayak", 2)


def test_an_update_to_what_is_known_already_still_retires_its_target(mc, clock) -> None:
    tea = known(tell(mc, "tea", key="drinks", many=True))
    tell(mc, "coffee", key="drinks", many=True)
    clock.advance(days=1)
    done = tell(mc, "coffee", key="drinks", relation="updates", target_id=tea.id)
    assert (done.kind, done.before) == ("superseded", "tea")
    assert [m.value for m in mc.user("ana").memories.list()] == ["coffee"]


def test_what_a_second_look_said_stands_in_every_event_of_the_change(mc, clock) -> None:
    ana = mc.user("ana")
    old = known(tell(mc, "Lisbon"))
    clock.advance(days=1)
    detail = {"verdict": "holds", "reason": "a plain move", "model": "scripted/extract"}
    new = known(tell(mc, "Porto", detail=detail))
    assert [e.detail for e in ana.memories.history(new.id)] == [detail]
    assert [e.detail for e in ana.memories.history(old.id)] == [None, detail]
    assert to_json(ana.memories.history(new.id)[0])["detail"] == detail


def test_a_person_s_own_is_not_replaced_through_a_repeat_either(mc, clock) -> None:
    ana = mc.user("ana")
    chess = ana.memories.pin(ana.memories.add("preference", "hobby", "chess").id)
    tell(mc, "go", key="hobby")
    clock.advance(days=1)
    switch = {"key": "hobby", "relation": "updates", "target_id": chess.id}
    assert tell(mc, "go", **switch).kind == "review"
    assert state(mc) == {"chess": (True, None), "go": (True, None)}
    ana.inbox.accept(ana.inbox.list()[0].id)
    assert state(mc) == {"chess": (False, "superseded"), "go": (True, None)}


@pytest.mark.parametrize("relation", ["updates", "ends"])
def test_what_got_a_no_is_refused_with_that_reason_when_it_is_said_again(
    mc, clock, relation
) -> None:
    ana = mc.user("ana")
    old = entered(mc)
    clock.advance(days=1)
    assert tell(mc, "Porto", relation=relation, target_id=old.id).kind == "review"
    ana.inbox.reject(ana.inbox.list()[0].id)
    again = tell(mc, "Porto", relation=relation, target_id=old.id)
    assert (again.kind, again.reason) == ("refused", "you said no to it before")


def test_a_forgotten_value_that_comes_back_as_a_change_replaces_on_a_yes(mc, clock) -> None:
    ana = mc.user("ana")
    tea = known(tell(mc, "tea", key="hot_drink"))
    ana.memories.delete(tea.id)
    clock.advance(days=1)
    coffee = known(tell(mc, "coffee", key="hot_drink"))
    clock.advance(days=1)
    assert (
        tell(mc, "tea", key="hot_drink", relation="updates", target_id=coffee.id).kind == "review"
    )
    (item,) = ana.inbox.list()
    assert "learn it again?" in item.reason and item.target_id == coffee.id
    ana.inbox.accept(item.id)
    assert state(mc)["coffee"] == (False, "superseded")


def test_on_the_day_what_got_a_no_before_is_listed(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer())
    session = talk(mc, "Porto it is.").session_id
    message = ana.sessions.messages(session)[0]
    proofs = ((message.id, 0, "Porto"),)
    old = ana.memories.pin(known(tell(mc, "Leeds")).id)
    tell(mc, "Porto", (session, message.id), proofs=proofs)
    ana.inbox.reject(ana.inbox.list()[0].id)
    ana.memories.pin(old.id, on=False)
    tell(mc, "Porto", (session, message.id), proofs=proofs, starts_at=date(2026, 5, 11))
    ana.memories.pin(old.id)
    clock.advance(days=10)
    mc.jobs.run()
    assert state(mc)["Leeds"] == (True, None) and ana.inbox.list() == []
    assert [r.reason for r in ana.inbox.refusals()] == ["you said no to it before"]
