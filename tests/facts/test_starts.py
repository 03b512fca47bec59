"""A fact that is to hold from a later day: told as coming, in force on its day, taken back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

from memchat import MemChat
from memchat.errors import InputError
from memchat.search.embed import Question
from tests.support import private
from tests.support.starts import ANA, Rule, coming, in_force, known, store, tell
from tests.support.store import NOON, given

TODAY = NOON.date()


def on(days: int) -> date:
    """So many days from the first."""
    return TODAY + timedelta(days=days)


def lines(mc: MemChat, words: str = "city") -> list[str]:
    """What a prompt is given."""
    return [hit.text for hit in given(private.parts(mc).block.for_prompt(ANA, Question(words)))]


def test_before_its_day_it_is_told_as_coming_and_replaces_nothing(mc, clock) -> None:
    tell(mc, "Leeds")
    clock.advance(days=1)
    assert tell(mc, "Porto", starts_at=on(10)).kind == "added"
    assert in_force(mc) == ["Leeds"] and coming(mc) == ["Porto"]
    assert lines(mc) == ["city: Leeds", f"city: Porto (from {on(10)})"]


@pytest.mark.parametrize("swept", [False, True])
def test_on_its_day_it_is_in_force_and_the_older_value_is_told_as_before(mc, clock, swept) -> None:
    ana = mc.user("ana")
    tell(mc, "Leeds")
    clock.advance(days=1)
    tell(mc, "Porto", starts_at=on(10))
    clock.advance(days=9)
    if swept:
        mc.jobs.run()
    assert in_force(mc) == ["Porto"] and coming(mc) == []
    days = f"said 2026-05-02; from {on(10)}; before: Leeds, replaced {on(10)}"
    line = f"[profile] city: Porto ({days})"
    assert lines(mc) == ["city: Porto"]
    assert [hit.text for hit in ana.search("Leeds").hits] == [line]
    (old,) = ana.memories.list(status="inactive")
    assert (old.value, old.inactive_reason) == ("Leeds", "superseded")
    assert ana.memories.get(old.id).active is False
    assert ana.memories.count() == 1
    assert ana.inbox.list() == []


@pytest.mark.parametrize("swept", [False, True])
def test_what_was_said_later_stays_in_force_and_the_inbox_asks(mc, clock, swept) -> None:
    ana = mc.user("ana")
    tell(mc, "Leeds")
    clock.advance(days=1)
    tell(mc, "Porto", starts_at=on(10))
    clock.advance(days=1)
    lyon = known(tell(mc, "Lyon"))
    assert in_force(mc) == ["Lyon"] and coming(mc) == ["Porto"]
    clock.advance(days=20)
    if swept:
        mc.jobs.run()
    assert in_force(mc) == ["Lyon"] and coming(mc) == []
    mc.jobs.run()
    (item,) = ana.inbox.list()
    assert (item.relation, item.target_id, item.key, item.value) == (
        "updates",
        lyon.id,
        "city",
        "Porto",
    )
    assert item.reason.endswith("Replace city: Lyon?")
    mc.jobs.run()
    assert len(ana.inbox.list()) == 1


def test_a_list_is_joined_on_the_day(mc, clock) -> None:
    tell(mc, "judo", key="hobby")
    tell(mc, "rowing", key="hobby", starts_at=on(5))
    assert in_force(mc, "hobby") == ["judo"]
    clock.advance(days=5)
    assert sorted(in_force(mc, "hobby")) == ["judo", "rowing"]
    mc.jobs.run()
    assert sorted(in_force(mc, "hobby")) == ["judo", "rowing"]


@pytest.mark.parametrize("swept", [False, True])
def test_an_update_takes_its_target_s_place_on_the_day_whatever_the_key(mc, clock, swept) -> None:
    ana = mc.user("ana")
    old = known(tell(mc, "Tuesdays", key="gym_days", many=True))
    other = known(tell(mc, "Sundays", key="gym_days", many=True))
    clock.advance(days=1)
    new = known(
        tell(mc, "Fridays", key="training", relation="updates", target_id=old.id, starts_at=on(7))
    )
    assert new.key == "gym_days"
    assert sorted(in_force(mc, "gym_days")) == ["Sundays", "Tuesdays"]
    clock.advance(days=6)
    if swept:
        mc.jobs.run()
    assert sorted(in_force(mc, "gym_days")) == ["Fridays", "Sundays"]
    ana.memories.restore(old.id)
    clock.advance(days=1)
    assert sorted(in_force(mc, "gym_days")) == ["Fridays", "Sundays", "Tuesdays"]
    assert ana.memories.get(other.id).active


def test_one_plan_replaces_another_at_once(mc, clock) -> None:
    tell(mc, "Leeds")
    porto = known(tell(mc, "Porto", starts_at=on(10)))
    clock.advance(days=1)
    done = tell(mc, "Rome", starts_at=on(20), relation="updates", target_id=porto.id)
    assert (done.kind, done.before) == ("superseded", "Porto")
    assert in_force(mc) == ["Leeds"] and coming(mc) == ["Rome"]
    clock.advance(days=10)
    assert in_force(mc) == ["Leeds"]
    clock.advance(days=9)
    assert in_force(mc) == ["Rome"]


def test_it_may_be_put_off_and_it_may_be_there_already(mc, clock) -> None:
    ana = mc.user("ana")
    tell(mc, "Leeds")
    porto = known(tell(mc, "Porto", starts_at=on(10)))
    clock.advance(days=1)
    tell(mc, "Porto", starts_at=on(20))
    assert ana.memories.get(porto.id).starts_at == on(20)
    clock.advance(days=1)
    tell(mc, "Porto", relation="same", target_id=porto.id)
    assert ana.memories.get(porto.id).starts_at == on(20), "said again, and no more"
    assert tell(mc, "Porto").before == "Leeds"
    assert in_force(mc) == ["Porto"] and coming(mc) == []


def test_a_value_that_was_there_before_may_come_back_on_a_day(mc, clock) -> None:
    leeds = known(tell(mc, "Leeds"))
    clock.advance(days=1)
    tell(mc, "Porto")
    tell(mc, "Leeds", starts_at=on(10))
    assert in_force(mc) == ["Porto"] and coming(mc) == ["Leeds"]
    clock.advance(days=9)
    assert in_force(mc) == ["Leeds"]
    assert mc.user("ana").memories.get(leeds.id).seen_count == 2


def test_a_day_that_has_come_counts_as_now(mc, clock) -> None:
    for start in (on(0), on(-5)):
        assert known(tell(mc, f"from {start}", starts_at=start)).starts_at is None
    assert mc.user("ana").memories.add("profile", "job", "cook", starts_at=on(-1)).starts_at is None


def test_a_start_after_the_end_is_refused(mc) -> None:
    ana = mc.user("ana")
    done = tell(mc, "Porto", starts_at=on(10), expires_at=on(9))
    assert (done.kind, done.reason) == ("refused", "it would end before it starts")
    with pytest.raises(InputError, match="before it starts"):
        ana.memories.add("profile", "city", "Porto", starts_at=on(10), expires_at=on(9))
    with pytest.raises(InputError, match="date without a time"):
        ana.memories.add("profile", "city", "Porto", starts_at=datetime.now(UTC))
    assert ana.memories.list() == []


@pytest.mark.parametrize("swept", [False, True])
def test_a_value_with_both_days_gives_its_place_back(mc, clock, swept) -> None:
    tell(mc, "Leeds")
    tell(mc, "Porto", starts_at=on(5), expires_at=on(7))
    seen = []
    for _ in range(9):
        seen.append(in_force(mc)[0])
        clock.advance(days=1)
        if swept:
            mc.jobs.run()
    assert seen == ["Leeds"] * 5 + ["Porto"] * 3 + ["Leeds"]


def test_what_ends_before_a_value_comes_leaves_its_place_to_the_one_before(mc, clock) -> None:
    tell(mc, "Leeds")
    clock.advance(days=1)
    tell(mc, "Lyon", expires_at=on(3))
    tell(mc, "Porto", starts_at=on(6))
    clock.advance(days=3)
    assert in_force(mc) == ["Leeds"]
    mc.jobs.run()
    assert in_force(mc) == ["Leeds"]
    clock.advance(days=2)
    assert in_force(mc) == ["Porto"]


def test_a_value_for_a_while_gives_its_place_back_in_whatever_words_it_is_told(mc, clock) -> None:
    tell(mc, "Leeds")
    clock.advance(days=1)
    porto = known(tell(mc, "Porto", expires_at=on(5)))
    clock.advance(days=1)
    link = {"relation": "same", "target_id": porto.id}
    assert tell(mc, "Porto near the river", expires_at=on(5), **link).kind == "merged"
    clock.advance(days=4)
    assert in_force(mc) == ["Leeds"]
    mc.jobs.run()
    assert in_force(mc) == ["Leeds"]


def test_an_end_that_is_said_for_a_later_day_comes_on_it(mc, clock) -> None:
    job = known(tell(mc, "cook", key="job"))
    done = tell(mc, "", key="job", relation="ends", target_id=job.id, starts_at=on(10))
    assert done.kind == "ended" and in_force(mc, "job") == ["cook"]
    clock.advance(days=10)
    assert in_force(mc, "job") == []


def test_an_end_with_a_last_day_holds_until_then_and_is_never_put_off(mc, clock) -> None:
    gym = known(tell(mc, "FitX", key="gym"))
    end = {"key": "gym", "relation": "ends", "target_id": gym.id}
    assert known(tell(mc, "", expires_at=on(9), **end)).expires_at == on(9)
    assert known(tell(mc, "", expires_at=on(20), **end)).expires_at == on(9)
    assert known(tell(mc, "", starts_at=on(20), **end)).expires_at == on(9)
    assert in_force(mc, "gym") == ["FitX"]
    tell(mc, "", expires_at=on(-1), **end)
    assert in_force(mc, "gym") == []


def test_a_yes_to_an_end_with_a_last_day_ends_it_then(mc, clock) -> None:
    ana = mc.user("ana")
    gym = ana.memories.add("fact", "gym", "FitX")
    clock.advance(days=1)
    end = {"key": "gym", "relation": "ends", "target_id": gym.id}
    assert tell(mc, "", expires_at=on(9), **end).kind == "review"
    (item,) = ana.inbox.list()
    assert ana.inbox.question(item).endswith(f"Is gym: FitX over after {on(9)}?")
    done = ana.inbox.accept(item.id)
    assert (done.active, done.expires_at) == (True, on(9))


@pytest.mark.parametrize("key", ["city", "hobby"])
@pytest.mark.parametrize("swept", [False, True])
def test_what_was_pinned_meanwhile_stays_on_the_day_and_the_inbox_asks(
    mc, clock, key, swept
) -> None:
    ana = mc.user("ana")
    old = known(tell(mc, "Leeds", key=key))
    clock.advance(days=1)
    tell(mc, "Porto", key=key, relation="updates", target_id=old.id, starts_at=on(10))
    ana.memories.pin(old.id)
    clock.advance(days=9)
    if swept:
        mc.jobs.run()
    assert in_force(mc, key) == ["Leeds"]
    mc.jobs.run()
    (item,) = ana.inbox.list()
    assert item.reason.endswith(f"Replace {key}: Leeds?")
    ana.inbox.accept(item.id)
    assert in_force(mc, key) == ["Porto"]


def test_a_person_s_own_coming_value_is_moved_on_their_yes_only(mc, clock) -> None:
    ana = mc.user("ana")
    porto = ana.memories.add("profile", "city", "Porto", starts_at=on(10))
    clock.advance(days=1)
    assert tell(mc, "Porto", starts_at=on(40)).kind == "review"
    assert ana.memories.get(porto.id).starts_at == on(10)
    (item,) = ana.inbox.list()
    assert item.reason.endswith(f"Does “You live in Porto” hold from {on(40)}?")
    assert ana.inbox.accept(item.id).starts_at == on(40)


def test_a_plan_that_replaces_a_plan_replaces_what_is_in_force_on_its_day(mc, clock) -> None:
    nine = known(tell(mc, "9:00", key="standup_time"))
    change = {"key": "standup_time", "relation": "updates"}
    ten = known(tell(mc, "10:00", target_id=nine.id, starts_at=on(10), **change))
    tell(mc, "11:00", target_id=ten.id, starts_at=on(40), **change)
    clock.advance(days=20)
    assert in_force(mc, "standup_time") == ["9:00"]
    clock.advance(days=20)
    assert in_force(mc, "standup_time") == ["11:00"]


def test_a_plan_that_is_there_early_replaces_what_it_was_to_replace(mc, clock) -> None:
    nine = known(tell(mc, "9:00", key="standup_time"))
    link = {"relation": "updates", "target_id": nine.id}
    tell(mc, "10:00", key="standup_time", starts_at=on(10), **link)
    clock.advance(days=1)
    assert tell(mc, "10:00", key="standup_time").before == "9:00"
    assert in_force(mc, "standup_time") == ["10:00"]


def test_what_is_read_late_holds_until_the_plan_that_it_speaks_of_begins(mc, clock) -> None:
    porto = known(tell(mc, "Porto", starts_at=on(6)))
    link = {"relation": "updates", "target_id": porto.id}
    tell(mc, "Leeds", said_at=NOON - timedelta(days=3), **link)
    assert (in_force(mc), coming(mc)) == (["Leeds"], ["Porto"])
    clock.advance(days=6)
    assert in_force(mc) == ["Porto"]


def test_a_plan_that_is_there_early_by_words_read_late_replaces_nothing_newer(mc, clock) -> None:
    clock.advance(days=2)
    tell(mc, "Leeds")
    for starts_at in (on(6), None):
        tell(mc, "Porto", said_at=NOON, starts_at=starts_at)
    assert (in_force(mc), coming(mc)) == (["Leeds"], [])


def test_forgetting_what_is_to_come_leaves_no_word_of_it(mc, clock) -> None:
    tell(mc, "Leeds")
    porto = known(tell(mc, "Porto", starts_at=on(5)))
    mc.user("ana").memories.delete(porto.id)
    clock.advance(days=6)
    assert in_force(mc) == ["Leeds"]
    with private.database(mc).read() as tx:
        assert not any("Porto" in line for line in tx.driver.iterdump())


def test_what_is_to_come_hides_nothing_that_is_kept_for_every_app(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Leeds", all_apps=True)
    ana.memories.add("profile", "city", "Porto", starts_at=on(5))
    assert any("Leeds" in line for line in lines(mc))
    clock.advance(days=5)
    assert not any("city: Leeds" in line for line in lines(mc))


def test_a_value_brought_back_by_hand_stays_until_asked_about(mc, clock) -> None:
    ana = mc.user("ana")
    leeds = ana.memories.add("profile", "city", "Leeds")
    ana.memories.add("profile", "city", "Porto", starts_at=on(5))
    clock.advance(days=6)
    ana.memories.restore(leeds.id)
    assert in_force(mc) == ["Leeds"]
    mc.jobs.run()
    assert in_force(mc) == ["Leeds"]


def test_a_coming_value_does_not_contradict_the_one_in_force(mc) -> None:
    tell(mc, "Leeds")
    tell(mc, "Porto", starts_at=on(5))
    assert "contradiction" not in {f.kind for f in mc.user("ana").audit().findings}


@dataclass(frozen=True)
class Said:
    """Something said about the city: after so many days, from so many days later on."""

    wait: int
    value: str
    start: int | None


SAYINGS = st.lists(
    st.builds(
        Said,
        wait=st.integers(0, 4),
        value=st.sampled_from("ABCD"),
        start=st.one_of(st.none(), st.integers(-1, 6)),
    ),
    min_size=1,
    max_size=7,
)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@for_all(SAYINGS, st.lists(st.booleans(), min_size=7, max_size=7))
def test_whatever_is_said_when_one_value_is_in_force_and_it_is_the_right_one(
    tmp_path_factory, sayings, sweeps
) -> None:
    rule, day = Rule(), 0
    with store(tmp_path_factory.mktemp("store")) as (mc, clock):

        def check() -> None:
            holds = rule.holds(day)
            assert in_force(mc) == ([holds] if holds else [])
            assert sorted(coming(mc)) == sorted(
                value for value, (_, start) in rule.said.items() if start > day
            )
            told = [line for line in lines(mc) if "city: " in line]
            assert len(told) == len(in_force(mc)) + len(coming(mc))

        for at, (said, sweep) in enumerate(zip(sayings, sweeps, strict=False)):
            for _ in range(said.wait):
                clock.advance(days=1)
                day += 1
                check()
            clock.advance(seconds=1)
            if sweep:
                mc.jobs.run()
            start = None if said.start is None else on(day + said.start)
            tell(mc, said.value, starts_at=start)
            rule.says(at, said.value, day, said.start)
            check()
        for _ in range(7):
            clock.advance(days=1)
            day += 1
            check()
        mc.jobs.run()
        check()
