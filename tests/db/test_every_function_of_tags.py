"""The contract of a store: the functions of tags, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.db import apps, details, schema
from memchat.errors import InputError
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.memories import ValuesInForce
from memchat.types import TAGS_MOST, Wanted
from tests.support.rows import ANA, BO, BY_HAND, TODAY, count, keep
from tests.support.store import NOON

STANDING = ValuesInForce(TODAY)
EDITED = Cause("user", "edited by hand")


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def test_tags_are_put_and_added_read_with_the_row_and_told_by_events(tx, own) -> None:
    city = keep(tx, ANA, "Lisbon")
    changes.put_tags(tx, city, ["Home", "work  trips"], BY_HAND)
    tx.now = NOON + timedelta(hours=1)
    changes.add_tags(tx, city, ["zoo", "home"], EDITED)
    changes.add_tags(tx, city, ["zoo"], EDITED)
    held = ("home", "work-trips", "zoo")
    assert memories.tags_of(tx, city) == held
    memory = memories.get(tx, [own], city)
    assert memory is not None and (memory.tags, memory.updated_at) == (held, tx.now)
    (listed,) = memories.listed(tx, [own], Wanted(tags=("home", "zoo")), STANDING)
    assert listed.tags == held
    told = [(e.old, e.new) for e in changes.events_of_memory(tx, city) if e.kind == "tag"]
    assert told == [
        ({"tags": []}, {"tags": ["home", "work-trips"]}),
        ({"tags": ["home", "work-trips"]}, {"tags": list(held)}),
    ]


def test_a_replacement_inherits_tags_as_far_as_it_may_have_them(tx, own) -> None:
    old, new = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    changes.put_tags(tx, old, [f"a{n:02}" for n in range(TAGS_MOST)], BY_HAND)
    changes.put_tags(tx, new, ["z"], BY_HAND)
    before = memories.get(tx, [own], old)
    assert before is not None
    changes.deactivate(tx, before, "superseded", EDITED, replaced_by=new)
    assert memories.tags_of(tx, new) == (*(f"a{n:02}" for n in range(TAGS_MOST - 1)), "z")
    assert memories.tags_of(tx, old) == before.tags
    third = keep(tx, ANA, "Faro")
    changes.inherit_tags(tx, third, ["sun"], EDITED)
    assert memories.tags_of(tx, third) == ("sun",)
    with pytest.raises(InputError, match="at most 20"):
        changes.add_tags(tx, new, ["one-more"], EDITED)


def test_tags_are_counted_and_found_in_their_own_scopes_alone(tx, own) -> None:
    city, pet = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "a dog", key="pet")
    for memory_id, words in ((city, ["home", "sun"]), (pet, ["home"])):
        changes.put_tags(tx, memory_id, words, BY_HAND)
    changes.put_tags(tx, keep(tx, BO, "Porto"), ["home", "sun"], BY_HAND)
    assert list(memories.tag_counts(tx, [own], STANDING).items()) == [("home", 2), ("sun", 1)]
    assert sorted(memories.ids_that_fit(tx, [own], Wanted(tags=("home",)))) == [city, pet]
    assert memories.ids_that_fit(tx, [own], Wanted(tags=("home", "sun"))) == [city]
    assert count(tx, [own], Wanted(tags=("sun", "home")), STANDING) == 1
    changes.remove(tx, [city])
    rows = tx.connection.exec_driver_sql(
        "SELECT count(*) FROM memory_tags WHERE memory_id = ?", (city,)
    )
    assert rows.scalar_one() == 0


def test_the_tags_of_an_imported_row_are_written_without_an_event(tx, own) -> None:
    city = keep(tx, ANA, "Lisbon")
    details.put_tags(tx, schema.memories, city, ("home", "sun"))
    assert memories.tags_of(tx, city) == ("home", "sun")
    assert [e.kind for e in changes.events_of_memory(tx, city)] == ["add"]
