"""The contract of a store: the functions of tags, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.errors import InputError
from memchat.store import apps, events, memories, memory_changes, memory_lists, tags
from memchat.store.events import Cause
from memchat.store.values_in_force import ValuesInForce
from memchat.types import TAGS_MOST, Wanted
from tests.support.rows import ANA, BO, BY_HAND, TODAY, keep
from tests.support.store import NOON

STANDING = ValuesInForce(TODAY)
LATER = Cause(NOON + timedelta(hours=1), "user", "edited by hand")


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA, NOON)[0]


def test_tags_are_put_and_added_read_with_the_row_and_told_by_events(tx, own) -> None:
    city = keep(tx, ANA, "Lisbon")
    tags.put(tx, city, ["Home", "work  trips"], BY_HAND)
    tags.add(tx, city, ["zoo", "home"], LATER)
    tags.add(tx, city, ["zoo"], LATER)
    held = ("home", "work-trips", "zoo")
    assert tags.of(tx, city) == held
    memory = memories.get(tx, [own], city)
    assert memory is not None and (memory.tags, memory.updated_at) == (held, LATER.at)
    (listed,) = memory_lists.listed(tx, [own], Wanted(tags=("home", "zoo")), STANDING)
    assert listed.tags == held
    told = [(e.old, e.new) for e in events.of_memory(tx, city) if e.kind == "tag"]
    assert told == [
        ({"tags": []}, {"tags": ["home", "work-trips"]}),
        ({"tags": ["home", "work-trips"]}, {"tags": list(held)}),
    ]


def test_a_replacement_inherits_tags_as_far_as_it_may_have_them(tx, own) -> None:
    old, new = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    tags.put(tx, old, [f"a{n:02}" for n in range(TAGS_MOST)], BY_HAND)
    tags.put(tx, new, ["z"], BY_HAND)
    before = memories.get(tx, [own], old)
    assert before is not None
    memory_changes.deactivate(tx, before, "superseded", LATER, replaced_by=new)
    assert tags.of(tx, new) == (*(f"a{n:02}" for n in range(TAGS_MOST - 1)), "z")
    assert tags.of(tx, old) == before.tags
    third = keep(tx, ANA, "Faro")
    tags.inherit(tx, third, ["sun"], LATER)
    assert tags.of(tx, third) == ("sun",)
    with pytest.raises(InputError, match="at most 20"):
        tags.add(tx, new, ["one-more"], LATER)


def test_tags_are_counted_and_found_in_their_own_scopes_alone(tx, own) -> None:
    city, pet = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "a dog", key="pet")
    for memory_id, words in ((city, ["home", "sun"]), (pet, ["home"])):
        tags.put(tx, memory_id, words, BY_HAND)
    tags.put(tx, keep(tx, BO, "Porto"), ["home", "sun"], BY_HAND)
    assert list(tags.counts(tx, [own], STANDING).items()) == [("home", 2), ("sun", 1)]
    assert sorted(tags.ids_with_all(tx, [own], ["home"])) == [city, pet]
    assert tags.ids_with_all(tx, [own], ["home", "sun"]) == [city]
    assert memory_lists.counted(tx, [own], Wanted(tags=("sun", "home")), STANDING) == 1
    memory_changes.remove(tx, [city])
    rows = tx.exec_driver_sql("SELECT count(*) FROM memory_tags WHERE memory_id = ?", (city,))
    assert rows.scalar_one() == 0


def test_the_tags_of_an_imported_row_are_written_without_an_event(tx, own) -> None:
    city = keep(tx, ANA, "Lisbon")
    tags.write(tx, city, ("home", "sun"))
    assert tags.of(tx, city) == ("home", "sun")
    assert [e.kind for e in events.of_memory(tx, city)] == ["add"]
