"""What a program is told of similar memories, and what it says that a fact replaces."""

from __future__ import annotations

from datetime import date
from threading import Event

import pytest

from memchat.errors import InputError, NotFound
from memchat.providers.embedders import HashEmbedder
from memchat.types import SessionQuote
from tests.support.answers import answer

COFFEE = ("fact", "coffee_habit", "drinks four cups of coffee a day")
TEA = ("preference", "drinks_now", "green tea and no coffee a day")


@pytest.fixture
def ana(mc):
    return mc.user("ana")


@pytest.fixture
def desk(ana):
    return ana.client("Desk", "trust")


class Stuck(HashEmbedder):
    """Answers a question only after it was told to, or after some seconds in vain."""

    def __init__(self) -> None:
        self.go = Event()
        self.waited_in_vain = False

    def embed_query(self, text: str):
        self.waited_in_vain |= not self.go.wait(5)
        return super().embed_query(text)


def in_use(user) -> set[tuple[str, str]]:
    return {(memory.key, memory.value) for memory in user.memories.list()}


def test_the_result_names_similar_memories_that_are_still_in_use(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    desk.remember("fact", "sister", "Lena lives in Leeds")
    done = desk.remember(*TEA)
    assert [hit.id for hit in done.similar] == [old.id]
    wednesday = desk.remember("fact", "gym_day", "Wednesday").memory
    assert wednesday.id in {h.id for h in desk.remember("fact", "gym_day", "Thursday").similar}


def test_similar_memories_are_named_where_it_waits_and_none_where_nothing_is_new(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    waiting = ana.client("Stranger").remember(*TEA)
    assert waiting.status == "waiting" and [hit.id for hit in waiting.similar] == [old.id]
    assert desk.remember(*COFFEE).similar == ()


def test_a_stuck_embedding_service_holds_no_program_up(open_store) -> None:
    stuck = Stuck()
    desk = open_store(embedder=stuck, embed_patience=0.01).user("ana").client("Desk", "trust")
    old = desk.remember(*COFFEE).memory
    done = desk.remember(*TEA)
    assert not stuck.waited_in_vain
    assert [hit.id for hit in done.similar] == [old.id]  # by words alone
    stuck.go.set()


def test_a_fact_said_to_replace_another_takes_its_place_and_is_kept_once(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    beside = desk.remember(*TEA).memory
    done = desk.remember_instead(old.id, *TEA)
    assert (done.status, done.replaced) == ("stored", COFFEE[2])
    assert in_use(ana) == {("coffee_habit", TEA[2])}
    assert ana.memories.get(old.id).replaced_by == done.memory.id
    assert ana.memories.get(beside.id).replaced_by == done.memory.id


def test_a_second_value_of_a_key_replaces_the_first_where_the_program_says_so(ana, desk) -> None:
    old = desk.remember("fact", "gym_day", "Wednesday").memory
    new = desk.remember("fact", "gym_day", "Thursday").memory
    done = desk.remember_instead(old.id, "fact", "gym_day", "Thursday")
    assert (done.memory.id, done.replaced) == (new.id, "Wednesday")
    assert in_use(ana) == {("gym_day", "Thursday")}


def test_what_starts_later_replaces_on_its_first_day(ana, desk, clock) -> None:
    job = ("profile", "job", "nurse in Leeds")
    plan = ("profile", "new_position", "nurse in Manchester")
    day = clock.now.date().replace(year=clock.now.year + 1)
    old = desk.remember(*job).memory
    desk.remember(*plan, starts_at=day)
    done = desk.remember_instead(old.id, *plan, starts_at=day)
    assert done.replaced is None and ana.memories.get(old.id).active
    assert in_use(ana) == {job[1:], ("job", plan[2])}
    clock.advance(days=366)
    assert in_use(ana) == {("job", plan[2])}


def test_without_trust_it_is_one_question_that_names_what_it_replaces(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    stranger = ana.client("Stranger")
    stranger.remember(*TEA)
    assert stranger.remember_instead(old.id, *TEA).status == "waiting"
    (item,) = ana.inbox.list()
    assert item.target_id == old.id
    ana.inbox.accept(item.id)
    assert in_use(ana) == {("coffee_habit", TEA[2])}


def test_a_question_that_another_program_asked_too_stays_as_it_is(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    stranger = ana.client("Stranger")
    first = stranger.remember(*TEA).inbox_id
    ana.client("Phone").remember(*TEA)
    assert stranger.remember_instead(old.id, *TEA).status == "waiting"
    assert [(item.id, item.target_id) for item in ana.inbox.list()] == [(first, None)]


def test_what_the_person_entered_is_replaced_only_after_their_yes(ana, desk) -> None:
    mine = ana.memories.add(*COFFEE)
    assert desk.remember_instead(mine.id, *TEA).status == "waiting"
    assert in_use(ana) == {COFFEE[1:]}


@pytest.mark.parametrize("purged", [False, True], ids=["before the answer", "purged"])
@pytest.mark.parametrize("own", ["entered", "pinned", "for every app"])
def test_what_is_the_persons_own_is_not_replaced_by_forgetting_it_first(
    mc, ana, desk, clock, own, purged
) -> None:
    if own == "entered":
        mine = ana.memories.add("profile", "city", "Porto")
    else:
        mine = desk.remember("profile", "city", "Porto").memory
    if own == "pinned":
        ana.memories.pin(mine.id)
    elif own == "for every app":
        ana.memories.update(mine.id, all_apps=True)
    assert desk.forget(mine.id).status == "hidden"
    if purged:
        ana.inbox.accept(ana.inbox.list()[0].id)
        mc.jobs.run()
    clock.advance(days=1)
    done = desk.remember("profile", "city", "Lisbon")
    assert (done.status, done.memory) == ("waiting", None) and in_use(ana) == set()
    item = ana.inbox.list()[-1]
    assert (item.value, item.reason) == ("Lisbon", "Desk asks to keep it")
    ana.inbox.accept(item.id)
    assert in_use(ana) == {("city", "Lisbon")}


@pytest.mark.parametrize("name", ["home_city", "city_now", "my_present_city"])
def test_another_name_of_a_key_that_a_program_made_free_waits_for_the_person_too(
    mc, ana, desk, clock, name
) -> None:
    desk.forget(ana.memories.add("profile", "city", "Porto").id)
    ana.inbox.accept(ana.inbox.list()[0].id)
    mc.jobs.run()
    clock.advance(days=1)
    assert desk.remember("profile", name, "Lisbon").status == "waiting" and in_use(ana) == set()
    assert desk.remember("profile", "birthplace", "Faro").status == "stored"
    ana.memories.add("profile", "city", "Braga")
    assert desk.remember("profile", "city_garden", "roses").status == "stored"


def test_the_eleventh_forgetting_of_an_hour_leaves_its_key_to_the_person_too(
    mc, ana, desk, clock
) -> None:
    mine = [ana.memories.add("fact", f"item_{n}", f"value {n}") for n in range(11)]
    assert [desk.forget(one.id).status for one in mine][-1] == "waiting"
    for item in ana.inbox.list():
        ana.inbox.accept(item.id)
    mc.jobs.run()
    clock.advance(days=1)
    assert desk.remember("fact", "item_10", "Lisbon").status == "waiting"


@pytest.mark.parametrize("own", ["entered anew", "brought back"])
def test_the_persons_own_entry_gives_the_key_free_again(ana, desk, clock, own) -> None:
    mine = ana.memories.add("fact", "hobby", "chess")
    desk.forget(mine.id)
    if own == "entered anew":
        ana.memories.add("fact", "hobby", "bees")
    else:
        ana.inbox.reject(ana.inbox.list()[0].id)
    clock.advance(days=1)
    assert desk.remember("fact", "hobby", "go").status == "stored"


def test_an_older_quote_does_not_take_the_place_of_what_a_program_forgot(
    ana, desk, clock, extract_model
) -> None:
    extract_model.replies += [answer()] * 2
    said = [{"role": "user", "content": "I live in Porto."}]
    older = SessionQuote(ana.add(said, wait=False).session_id, "I live in Porto")
    clock.advance(days=1)
    desk.forget(ana.memories.add("profile", "city", "Lisbon").id)
    assert desk.remember("profile", "city", "Porto", quote=older).status == "waiting"
    clock.advance(days=1)
    newer = SessionQuote(ana.add(said, session="2", wait=False).session_id, "I live in Porto")
    assert desk.remember("profile", "city", "Porto", quote=newer).status == "stored"


def test_a_program_may_forget_and_replace_what_was_learned(ana, desk) -> None:
    old = desk.remember(*COFFEE).memory
    desk.forget(old.id)
    assert desk.remember("fact", "coffee_habit", "one espresso").status == "stored"


def test_undoing_the_program_brings_back_what_it_replaced(ana, desk) -> None:
    old = ana.client("Phone", "trust").remember(*COFFEE).memory
    desk.remember(*TEA)
    desk.remember_instead(old.id, *TEA)
    ana.clients.undo("Desk")
    assert in_use(ana) == {COFFEE[1:]}


def test_what_is_not_there_or_not_in_use_cannot_be_replaced(mc, ana, desk) -> None:
    old = desk.remember("profile", "city", "Porto").memory
    new = desk.remember("profile", "city", "Lisbon").memory
    with pytest.raises(InputError, match=f"{old.id} is not in use; {new.id} took its place"):
        desk.remember_instead(old.id, "profile", "town_now", "Braga")
    foreign = mc.user("bob").memories.add("profile", "city", "Oslo")
    with pytest.raises(NotFound, match="recall and list_memories give the ids"):
        desk.remember_instead(foreign.id, "profile", "town_now", "Braga")
    assert in_use(ana) == {("city", "Lisbon")}


def test_an_update_keeps_a_first_day_to_come_and_says_that_the_last_day_is_gone(
    ana, desk, clock
) -> None:
    start = clock.now.date().replace(year=clock.now.year + 1)
    end = start.replace(year=start.year + 1)
    shift = desk.remember("fact", "shifts", "early", starts_at=start, expires_at=end).memory
    later = desk.update(shift.id, "early, but Fridays", expires_at=end.replace(day=1))
    assert (later.memory.starts_at, later.memory.expires_at) == (start, end.replace(day=1))
    assert later.last_day_gone is None
    moved = desk.update(later.memory.id, "late", starts_at=date(start.year, 12, 31))
    assert (moved.memory.starts_at, moved.memory.expires_at) == (date(start.year, 12, 31), None)
    assert moved.last_day_gone == end.replace(day=1)
