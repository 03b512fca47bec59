"""Undoing what a program wrote takes back its own words alone, and what the person entered holds
as long as they said, whatever a program repeats."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from memchat.errors import InputError, NotFound, StoreError
from tests.support.answers import answer, fact
from tests.support.leftovers import rows_with
from tests.support.store import NOON

SPRING = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def ana(mc):
    return mc.user("ana")


@pytest.fixture
def trusted(ana):
    return ana.client("Desk", "trust")


def waiting(user) -> list[str]:
    return [item.value for item in user.inbox.list()]


@pytest.mark.parametrize("said", ["peanuts", "Peanuts."])
def test_a_program_that_repeats_what_the_person_entered_does_not_say_until_when_it_holds(
    ana, trusted, said
) -> None:
    entered = ana.memories.add("fact", "allergy", "peanuts")
    today = NOON.date()
    assert trusted.remember("fact", "allergy", said, expires_at=today).status == "waiting"
    assert trusted.update(entered.id, "peanuts", expires_at=today).status == "waiting"
    assert ana.memories.get(entered.id).expires_at is None
    (item, *_) = ana.inbox.list()
    assert item.reason == f"Desk asks to keep it until {today}"
    ana.inbox.accept(item.id)
    assert ana.memories.get(entered.id).expires_at == today


def test_a_program_does_not_bring_back_what_the_person_let_end(ana, trusted, clock) -> None:
    entered = ana.memories.add("fact", "trip", "Rome", expires_at=NOON.date())
    clock.advance(seconds=3 * 86_400)
    assert trusted.remember("fact", "trip", "Rome").status == "waiting"
    assert ana.memories.get(entered.id).expires_at == NOON.date()


def test_a_pinned_memory_keeps_its_days_and_a_programs_own_may_change(ana, trusted) -> None:
    own = trusted.remember("fact", "car", "a red van").memory
    later = NOON.date() + timedelta(days=9)
    assert trusted.update(own.id, "a red van", expires_at=later).status == "known"
    assert ana.memories.get(own.id).expires_at == later
    ana.memories.pin(own.id)
    assert trusted.update(own.id, "a red van", expires_at=NOON.date()).status == "waiting"
    assert ana.memories.get(own.id).expires_at == later


@pytest.mark.parametrize("key", ["employer", "pet"])
def test_what_two_programs_said_goes_with_the_second_of_them(ana, trusted, key) -> None:
    other = ana.client("Other", "trust")
    first = trusted.remember("fact", key, "Acmewerk").memory
    assert other.remember("fact", key, "Acmewerk").status == "known"
    assert ana.clients.undo("Desk").gone == ()
    assert [one.id for one in ana.memories.list()] == [first.id]
    assert ana.clients.of_memories([first.id]) == {first.id: "Other"}
    assert [one.id for one in ana.clients.undo("Other").gone] == [first.id]
    assert list(ana.memories.list(status="all")) == []


def test_what_another_asked_too_waits_on(ana, clock) -> None:
    first, second = ana.client("First"), ana.client("Second")
    car = ana.memories.add("fact", "car", "red")
    for program in (first, second):
        program.remember("fact", "pet", "a dog")
        program.promote(car.id)
        clock.advance(seconds=1)
    assert [one.waiting for one in ana.clients.list()] == [2, 2]
    for name in ("First", "Second"):
        ana.clients.undo(name)
        assert waiting(ana) == ["a dog", None]


def test_the_number_of_an_answered_item_answers_no_later_one(ana) -> None:
    first = ana.client("First")
    answered = first.remember("fact", "pet", "a dog").inbox_id
    ana.inbox.accept(answered)
    asked = ana.client("Second").remember("fact", "car", "a red van")
    assert asked.inbox_id > answered
    with pytest.raises(NotFound):
        ana.inbox.accept(answered)
    assert {one.name: one.waiting for one in ana.clients.list()} == {"First": 0, "Second": 1}
    ana.clients.undo("First")
    assert waiting(ana) == ["a red van"]


def test_a_no_outlives_the_undoing(ana) -> None:
    program = ana.client("First")
    ana.inbox.reject(program.remember("fact", "pet", "a dog").inbox_id)
    ana.clients.undo("First")
    assert program.remember("fact", "pet", "a dog").status == "refused"


def test_a_note_that_the_person_changed_is_neither_replaced_nor_undone(ana, trusted, clock) -> None:
    note = trusted.index_memo("m1", "Four hundred euros.", SPRING)
    left = trusted.index_memo("m2", "The roof leaks.", SPRING)
    clock.advance(seconds=1)
    trusted.index_memo("m1", "Five hundred euros.", SPRING)
    clock.advance(seconds=1)
    ana.notes.update(note.id, text="Six hundred euros, says Eva.")
    with pytest.raises(InputError, match="the person changed this note"):
        trusted.index_memo("m1", "Seven hundred euros.", SPRING)
    ana.clients.undo("Desk")
    assert left.id != note.id and [one.id for one in ana.notes.list()] == [note.id]
    with pytest.raises(InputError, match="the person changed this note"):
        trusted.index_memo("m1", "Seven hundred euros.", SPRING)
    assert ana.notes.get(note.id).text == "Six hundred euros, says Eva."


def test_no_name_of_a_program_leads_into_the_notes_of_another(ana) -> None:
    theirs = ana.client("A/B").index_memo("c", "The roof leaks.", SPRING)
    mine = ana.client("A").index_memo("B/c", "The garden.", SPRING)
    odd = ana.client("A%2FB").index_memo("c", "The cellar.", SPRING)
    assert len({theirs.id, mine.id, odd.id}) == 3
    assert ana.client("A/B").memo_id(theirs.external_id) == "c"


def test_what_a_program_stored_and_asked_to_forget_goes_with_it(mc, ana, trusted) -> None:
    before = trusted.remember("profile", "employer", "Acmewerk").memory
    trusted.forget(trusted.remember("profile", "employer", "Boltwerk").memory.id)
    other = ana.client("Other", "trust")
    other.forget(trusted.remember("fact", "boat", "Dinghywerk").memory.id)
    mine = ana.memories.add("fact", "pet", "a dog")
    trusted.forget(mine.id)
    undone = ana.clients.undo("Desk")
    assert {one.value for one in undone.gone} == {"Acmewerk", "Boltwerk", "Dinghywerk"}
    assert not rows_with(mc, "Boltwerk") and not rows_with(mc, "Dinghywerk")
    # About the person's own memory the question stays.
    (item,) = ana.inbox.list()
    assert ana.inbox.question(item) == "Forget “Your pets include a dog” for good?"
    # Nothing of the undone requests keeps the same from being said again.
    assert other.remember("profile", "employer", "Boltwerk").status == "stored"
    assert before.id not in {one.id for one in ana.memories.list(status="all")}


def test_what_the_person_deleted_themselves_is_still_forgotten_after_the_undoing(
    mc, ana, trusted, clock
) -> None:
    ana.memories.delete(trusted.remember("fact", "boat", "Dinghywerk").memory.id)
    assert ana.clients.undo("Desk").gone == ()
    clock.advance(seconds=86_400)
    mc.jobs.run()
    assert not rows_with(mc, "Dinghywerk")
    assert ana.client("Other", "trust").remember("fact", "boat", "Dinghywerk").status == "waiting"


def test_what_the_person_pinned_tagged_or_kept_for_every_app_stays(ana, trusted) -> None:
    pinned, promoted, tagged, loose = (
        trusted.remember("fact", key, "a red one", tags=["red"]).memory
        for key in ("car", "boat", "bag", "hat")
    )
    ana.memories.update(tagged.id, tags=["red", "mine"])
    ana.memories.pin(pinned.id)
    ana.inbox.accept(trusted.promote(promoted.id).inbox_id)
    undone = ana.clients.undo("Desk")
    assert [one.id for one in undone.gone] == [loose.id]
    assert {one.id for one in undone.kept} == {pinned.id, promoted.id, tagged.id}
    assert {one.key for one in ana.memories.list()} == {"car", "boat", "bag"}


def test_a_note_and_its_program_are_stored_together_or_not_at_all(mc, ana, trusted) -> None:
    trusted.called()
    with closing(sqlite3.connect(mc.settings.home / "memchat.db")) as db, db:
        db.execute(
            "CREATE TRIGGER never BEFORE INSERT ON client_writes"
            " BEGIN SELECT RAISE(ABORT, 'killed here'); END"
        )
    with pytest.raises(StoreError):
        trusted.index_memo("m1", "The roof leaks.", SPRING)
    assert list(ana.notes.list()) == []


def test_forgetting_leaves_the_questions_of_a_program_whose_name_has_the_word(ana) -> None:
    program = ana.client("Porto Travel")
    program.remember("fact", "pet", "a dog")
    program.promote(ana.memories.add("fact", "car", "red").id)
    program.remember("fact", "trip", "Porto in May")
    ana.memories.delete(ana.memories.add("profile", "city", "Porto").id)
    assert waiting(ana) == ["a dog", None]


def test_a_deleted_conversation_takes_along_what_a_program_asked_to_forget_of_it(
    mc, ana, trusted, extract_model
) -> None:
    said = "I live in Portosanto"
    extract_model.replies.append(answer(fact(said, "city", "Portosanto")))
    session_id = ana.add(said).session_id
    trusted.forget(ana.memories.list()[0].id)
    assert [one.value for one in ana.sessions.delete(session_id).gone] == ["Portosanto"]
    assert ana.inbox.list() == [] and not rows_with(mc, "Portosanto")
