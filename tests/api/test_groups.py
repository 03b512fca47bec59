"""The groups that a person looks for memories in."""

from __future__ import annotations

import pytest

from memchat.facts import keys
from memchat.types import Wanted


@pytest.mark.parametrize(
    ("kind", "key", "group"),
    [
        ("profile", "city", "about you"),
        ("profile", "wife", "people"),
        ("fact", "sister_city", "people"),
        ("fact", "food_allergy", "health"),
        ("preference", "diet", "health"),
        ("profile", "occupation", "work"),
        ("preference", "tea", "preferences"),
        ("fact", "travel_plan", "plans"),
        ("fact", "boat", "more"),
    ],
)
def test_a_group_goes_by_the_slot_and_then_by_the_type(kind: str, key: str, group: str) -> None:
    assert keys.group(kind, key) == group


def test_the_groups_in_use_are_counted_and_browsed(mc) -> None:
    memories = mc.user("ana").memories
    memories.add("fact", "sister_city", "Braga")
    memories.add("preference", "tea", "sencha")
    over = memories.add("preference", "coffee", "black")
    memories.delete(over.id)
    assert memories.groups() == {"people": 1, "preferences": 1}
    found = memories.browse(Wanted(group="people"))
    assert ([m.value for m in found.memories], found.total) == (["Braga"], 1)
