"""The order in which lists of memories come."""

from __future__ import annotations

from datetime import timedelta

from memchat.db import apps
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.types import Scope
from tests.support.store import NOON


def test_the_values_of_a_key_come_by_when_they_were_said_the_newest_first(tx) -> None:
    own = apps.ensure(tx, Scope("ana")).own
    for days, value in ((1, "Porto"), (2, "Faro"), (0, "Lisbon")):
        said_at = NOON + timedelta(days=days)
        new = NewMemory("profile", "city", value, False, f"city {value}", said_at, "manual")
        changes.add(tx, own, new, Cause("user"))
    wanted = ["Faro", "Porto", "Lisbon"]
    assert [memory.value for memory in memories.with_key(tx, [own], "city")] == wanted
