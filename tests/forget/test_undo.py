"""Deleting a conversation takes back what it taught, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memchat import MemChat
from memchat.errors import NotFound
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Finding
from tests.support import empty_store, private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import files_with, rows_with
from tests.support.starts import Rule, coming, in_force, store, tell
from tests.support.store import NOON


def says(
    mc: MemChat, extract_model: ScriptedModel, clock: FakeClock, *facts: dict[str, Any]
) -> int:
    """A conversation a day later in which these facts are said; its id."""
    clock.advance(days=1)
    extract_model.replies.append(
        answer(
            *(
                {**f, "quotes": [{"msg": f"u{2 * n + 1}", "text": f["quotes"][0]["text"]}]}
                for n, f in enumerate(facts)
            )
        )
    )
    return talk(mc, *(f["quotes"][0]["text"] for f in facts)).session_id


def city(name: str, **more: Any) -> dict[str, Any]:
    return fact(f"I live in {name}", "city", name, **more)


BEES = fact("I keep bees", "hobby", "keep bees")


def state(mc: MemChat) -> dict[int, tuple[Any, ...]]:
    """What counts of every memory."""
    return {
        m.id: (
            m.key,
            m.value,
            m.active,
            m.inactive_reason,
            m.replaced_by,
            m.seen_count,
            m.said_at,
            m.expires_at,
        )
        for m in mc.user("ana").memories.list(status="all")
    }


def active(mc: MemChat) -> set[str]:
    return {m.value for m in mc.user("ana").memories.list()}


def test_what_only_it_taught_goes_with_its_words(mc, extract_model, clock) -> None:
    says(mc, extract_model, clock, city("Lisbon"))
    gone = says(mc, extract_model, clock, BEES)
    done = mc.user("ana").sessions.delete(gone)
    assert [m.value for m in done.gone] == ["keep bees"] and done.back == done.kept == ()
    assert active(mc) == {"Lisbon"}
    assert rows_with(mc, "bees") == [] and files_with(mc, "bees") == []


def test_what_it_replaced_comes_back(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    says(mc, extract_model, clock, city("Lisbon"))
    before = state(mc)
    second = says(mc, extract_model, clock, city("Porto"))
    assert active(mc) == {"Porto"}
    done = ana.sessions.delete(second)
    assert [m.value for m in done.back] == ["Lisbon"]
    assert state(mc) == before
    mc.jobs.run()
    assert ana.search("Lisbon").hits[0].memory.value == "Lisbon"


def test_what_it_ended_comes_back(mc, extract_model, clock) -> None:
    says(mc, extract_model, clock, BEES)
    before = state(mc)
    ending = fact("I gave up bees", "hobby", "", to="k1", **{"is": "ends"})
    second = says(mc, extract_model, clock, ending)
    assert active(mc) == set()
    mc.user("ana").sessions.delete(second)
    assert {i: s[:5] for i, s in state(mc).items()} == {i: s[:5] for i, s in before.items()}


def test_what_was_also_said_elsewhere_stays_as_it_was_said_there(mc, extract_model, clock) -> None:
    says(mc, extract_model, clock, BEES)
    before = state(mc)
    second = says(mc, extract_model, clock, BEES)
    assert [s[5] for s in state(mc).values()] == [2]
    done = mc.user("ana").sessions.delete(second)
    assert [m.value for m in done.kept] == ["keep bees"]
    assert state(mc) == before


def test_the_first_of_two_that_said_it_may_go_too(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    first = says(mc, extract_model, clock, BEES)
    says(mc, extract_model, clock, BEES)
    ana.sessions.delete(first)
    (bees,) = ana.memories.list()
    (proof,) = ana.memories.evidence(bees.id)
    assert proof.session_id != first


def test_what_was_said_since_keeps_its_place(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    says(mc, extract_model, clock, city("Lisbon"))
    second = says(mc, extract_model, clock, city("Porto"))
    says(mc, extract_model, clock, city("Faro"))
    ana.sessions.delete(second)
    assert active(mc) == {"Faro"}
    (faro,) = ana.memories.list()
    (lisbon,) = ana.memories.list(status="inactive")
    assert (lisbon.value, lisbon.replaced_by) == ("Lisbon", faro.id)


def test_a_value_it_revived_gives_its_place_back(mc, extract_model, clock) -> None:
    says(mc, extract_model, clock, city("Lisbon"))
    says(mc, extract_model, clock, city("Porto"))
    before = state(mc)
    third = says(mc, extract_model, clock, city("Lisbon"))
    assert active(mc) == {"Lisbon"}
    mc.user("ana").sessions.delete(third)
    assert state(mc) == before and active(mc) == {"Porto"}


def test_a_day_it_changed_is_as_before(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    until = {"until_said": "until June", "until": "month:jun"}
    says(mc, extract_model, clock, fact("I live in Porto until June", "city", "Porto", **until))
    before = state(mc)
    later = {"until_said": "until July", "until": "month:jul"}
    second = says(
        mc, extract_model, clock, fact("I live in Porto until July", "city", "Porto", **later)
    )
    assert ana.memories.list()[0].expires_at == date(2026, 7, 31)
    ana.sessions.delete(second)
    assert state(mc) == before


def test_what_a_person_edited_or_accepted_is_theirs(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    session = says(mc, extract_model, clock, city("Lisbon"))
    (lisbon,) = ana.memories.list()
    ana.memories.update(lisbon.id, value="Lisbon, Alfama")
    done = ana.sessions.delete(session)
    assert [m.value for m in done.kept] == ["Lisbon, Alfama"]
    assert active(mc) == {"Lisbon, Alfama"}
    assert ana.memories.evidence(lisbon.id) == []


def test_a_dry_run_tells_the_same_and_changes_nothing(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    says(mc, extract_model, clock, city("Lisbon"))
    second = says(mc, extract_model, clock, city("Porto"), BEES)
    mc.jobs.run()
    with private.database(mc).read() as tx:
        before = list(tx.driver.iterdump())
    foreseen = mc.user("ana").sessions.delete(second, dry_run=True)
    with private.database(mc).read() as tx:
        assert list(tx.driver.iterdump()) == before
    done = ana.sessions.delete(second)
    assert tuple([m.id for m in part] for part in (done.gone, done.back, done.kept)) == tuple(
        [m.id for m in part] for part in (foreseen.gone, foreseen.back, foreseen.kept)
    )


def test_one_message_takes_back_what_it_taught_and_leaves_the_rest(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    session = says(mc, extract_model, clock, city("Lisbon"), BEES)
    first, reply, *_ = ana.sessions.messages(session)
    done = ana.sessions.delete_message(first.id)
    assert [m.value for m in done.gone] == ["Lisbon"]
    assert active(mc) == {"keep bees"}
    assert next(m.id for m in ana.sessions.messages(session)) == reply.id
    assert rows_with(mc, "Lisbon") == [] and files_with(mc, "Lisbon") == []
    with pytest.raises(NotFound):
        ana.sessions.delete_message(first.id)


def test_nobody_deletes_another_s_message(mc, extract_model, clock) -> None:
    session = says(mc, extract_model, clock, city("Lisbon"))
    message = mc.user("ana").sessions.messages(session)[0]
    with pytest.raises(NotFound):
        mc.user("bo").sessions.delete_message(message.id)
    with pytest.raises(NotFound):
        mc.user("ana", app="work").sessions.delete(session)


def test_it_may_be_learnt_again_since_nobody_asked_to_forget_it(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    session = says(mc, extract_model, clock, city("Lisbon"))
    ana.sessions.delete(session)
    says(mc, extract_model, clock, city("Lisbon"))
    assert active(mc) == {"Lisbon"} and ana.inbox.list() == []


PLACES = ("Lisbon", "Porto", "Faro")
HOBBIES = ("keep bees", "paint", "row")


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.lists(
            st.one_of(
                st.sampled_from(PLACES).map(city),
                st.sampled_from(HOBBIES).map(lambda h: fact(f"I {h}", "hobby", h)),
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda f: "city" if f["key"] == "city" else f["value"],
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_last_conversation_undone_leaves_the_store_as_it_was_before_it(
    tmp_path_factory, sessions
) -> None:
    clock, model = FakeClock(NOON), ScriptedModel(name="scripted/extract")
    chat = ScriptedModel(["Fine."] * 100, name="scripted/chat")
    from memchat.config import Settings
    from memchat.providers.embedders import HashEmbedder

    home = empty_store.place(tmp_path_factory.mktemp("store"))
    with MemChat(
        settings=Settings(home=home, timezone="Europe/Berlin"),
        chat_model=chat,
        extract_model=model,
        embedder=HashEmbedder(),
        clock=clock,
    ) as mc:
        seen = [state(mc)]
        ids = []
        for facts in sessions:
            ids.append(says(mc, model, clock, *facts))
            seen.append(state(mc))
        for session_id in reversed(ids):
            assert state(mc) == seen.pop()
            mc.user("ana").sessions.delete(session_id)
        assert state(mc) == {}


def test_a_hand_entered_fact_that_was_merged_into_one_that_goes_stays(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    mine = ana.memories.add("fact", "note", "My sister Eva plays the cello")
    said = "My sister Eva plays the cello"
    session = says(mc, extract_model, clock, fact(said, "sister", said, memory_type="fact"))
    (learned,) = (m for m in ana.memories.list() if m.id != mine.id)
    ana.mend([Finding("duplicate", (learned.id, mine.id), "the same", "keep the newer")])
    assert ana.memories.get(mine.id).inactive_reason == "merged"
    done = ana.sessions.delete(session)
    assert [m.id for m in done.back] == [mine.id]
    assert active(mc) == {said}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_in_whatever_order_conversations_go_the_value_before_them_is_there_again(
    mc, extract_model, clock, order
) -> None:
    ids = [says(mc, extract_model, clock, city(name)) for name in ("Lisbon", "Porto", "Faro")]
    for place in order:
        mc.user("ana").sessions.delete(ids[place])
    assert active(mc) == {"Lisbon"}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_in_whatever_order_they_go_a_last_day_is_as_before_them(
    mc, extract_model, clock, order
) -> None:
    ana = mc.user("ana")
    ids = []
    for until, code in ((None, None), ("until June", "month:jun"), ("until July", "month:jul")):
        quote = f"I live in Porto {until}" if until else "I live in Porto"
        ids.append(
            says(
                mc, extract_model, clock, fact(quote, "city", "Porto", until_said=until, until=code)
            )
        )
    for place in order:
        ana.sessions.delete(ids[place])
    (porto,) = ana.memories.list()
    assert porto.expires_at is None


def test_titles_of_other_conversations_stay(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    first = says(mc, extract_model, clock, fact("I love weekend walks", "hobby", "weekend walks"))
    extract_model.replies.append(answer(title="Ideas for the weekend"))
    talk(mc, "What could I do?")
    ana.sessions.delete(first)
    assert ana.sessions.list()[0].title == "Ideas for the weekend"


@dataclass(frozen=True)
class Said:
    """A conversation in which the city is told, some days after the one before."""

    wait: int
    value: str
    start: int | None
    """From so many days later on."""


def told(mc: MemChat, said: Said, day: int) -> int:
    """That conversation, with a first day where it names one; its id."""
    session_id = talk(mc, f"I live in {said.value}.").session_id
    message = mc.user("ana").sessions.messages(session_id)[0]
    start = None if said.start is None else NOON.date() + timedelta(days=day + said.start)
    proof = (message.id, 0, f"I live in {said.value}")
    tell(mc, said.value, (session_id, message.id), starts_at=start, proofs=(proof,))
    return session_id


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            Said,
            wait=st.integers(0, 3),
            value=st.sampled_from("ABC"),
            start=st.one_of(st.none(), st.integers(0, 5)),
        ),
        min_size=2,
        max_size=6,
    ),
    st.randoms(use_true_random=False),
    st.integers(0, 6),
)
def test_what_is_in_force_is_what_would_be_had_the_deleted_never_been_said(
    tmp_path_factory, sayings, random, later
) -> None:
    with store(tmp_path_factory.mktemp("store")) as (mc, clock):
        ana = mc.user("ana")
        day, stays = 0, {}
        for said in sayings:
            day += said.wait
            clock.advance(days=said.wait, seconds=1)
            stays[told(mc, said, day)] = (said, day)
        clock.advance(days=later)
        day += later
        order = sorted(stays, key=lambda _: random.random())
        for session_id in order:
            if random.random() < 0.3:
                mc.jobs.run()
            if random.random() < 0.3:
                clock.advance(days=1)
                day += 1
            ana.sessions.delete(session_id)
            del stays[session_id]
            rule = Rule()
            for at, (said, then) in enumerate(stays.values()):
                rule.says(at, said.value, then, said.start)
            holds = rule.holds(day)
            assert in_force(mc) == ([holds] if holds else [])
            begins = {value: start for value, (_, start) in rule.said.items() if start > day}
            assert sorted(coming(mc)) == sorted(begins)
        assert ana.memories.list(status="all") == []


def test_a_value_that_was_to_come_back_is_there_where_nothing_replaced_it(tmp_path) -> None:
    with store(tmp_path) as (mc, clock):
        ana = mc.user("ana")
        ids = []
        for said in (Said(0, "A", None), Said(0, "B", None), Said(0, "A", 5)):
            clock.advance(seconds=1)
            ids.append(told(mc, said, 0))
        assert (in_force(mc), coming(mc)) == (["B"], ["A"])
        ana.sessions.delete(ids[1])
        assert (in_force(mc), coming(mc)) == (["A"], [])
        ana.sessions.delete(ids[0])
        assert (in_force(mc), coming(mc)) == ([], ["A"])


def test_what_waits_on_its_day_is_in_force_once_the_later_words_are_gone(tmp_path) -> None:
    with store(tmp_path) as (mc, clock):
        ana = mc.user("ana")
        ids = []
        for said in (Said(0, "A", None), Said(0, "B", 3), Said(0, "C", None)):
            clock.advance(seconds=1)
            ids.append(told(mc, said, 0))
        clock.advance(days=4)
        mc.jobs.run()
        assert in_force(mc) == ["C"] and len(ana.inbox.list()) == 1
        ana.sessions.delete(ids[2])
        assert in_force(mc) == ["B"]
        assert ana.inbox.list() == [], "there is nothing left to ask"


def test_an_older_value_does_not_come_back_where_a_newer_one_was_ended(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    says(mc, extract_model, clock, city("Lisbon"))
    second = says(mc, extract_model, clock, city("Porto"))
    says(mc, extract_model, clock, city("Faro"))
    (faro,) = ana.memories.list()
    tell(mc, "", relation="ends", target_id=faro.id)
    ana.sessions.delete(second)
    assert active(mc) == set()


def test_a_last_day_that_only_deleted_words_named_is_gone_though_the_fact_stays(
    mc, extract_model, clock
) -> None:
    says(mc, extract_model, clock, BEES)
    until = {"until_said": "until tomorrow", "until": "tomorrow"}
    quote = "I keep bees until tomorrow"
    second = says(mc, extract_model, clock, fact(quote, "hobby", "keep bees", **until))
    clock.advance(days=3)
    mc.jobs.run()
    assert active(mc) == set()
    mc.user("ana").sessions.delete(second)
    assert active(mc) == {"keep bees"}


def test_what_is_taken_back_twice_counts_once(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    ids = [says(mc, extract_model, clock, BEES) for _ in range(3)]
    (message, *_) = ana.sessions.messages(ids[1])
    ana.sessions.unlearn(message.id)
    ana.sessions.delete(ids[1])
    (bees,) = ana.memories.list()
    assert bees.seen_count == 2


def test_what_was_entered_by_hand_is_as_old_as_that_once_later_words_are_gone(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    entered = ana.memories.add("profile", "city", "Lisbon")
    clock.advance(days=1)
    session = says(mc, extract_model, clock, city("Lisbon"))
    ana.sessions.delete(session)
    assert ana.memories.get(entered.id).said_at == entered.said_at


def test_a_plan_that_was_dropped_for_what_holds_now_waits_again_once_that_is_unsaid(
    tmp_path,
) -> None:
    with store(tmp_path) as (mc, clock):
        told(mc, Said(0, "A", 6), 0)
        clock.advance(seconds=1)
        plan = next(iter(mc.user("ana").memories.list()))
        session_id = talk(mc, "I live in B.").session_id
        message = mc.user("ana").sessions.messages(session_id)[0]
        proof = (message.id, 0, "I live in B")
        link = {"relation": "updates", "target_id": plan.id}
        tell(mc, "B", (session_id, message.id), proofs=(proof,), **link)
        assert (in_force(mc), coming(mc)) == (["B"], [])
        clock.advance(seconds=1)
        told(mc, Said(0, "C", None), 0)
        mc.user("ana").sessions.delete(session_id)
        assert (in_force(mc), coming(mc)) == (["C"], ["A"])
