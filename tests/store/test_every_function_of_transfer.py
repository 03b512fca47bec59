"""The contract of a store, second part: what export, import and forgetting call, run once."""

from __future__ import annotations

import pytest

from memchat.store import (
    apps,
    events,
    keywords,
    memories,
    memory_changes,
    messages,
    person_records,
    raw_sql,
    record_kinds,
    record_rows,
)
from memchat.types import Scope
from tests.support.rows import ANA, BY_HAND, keep, new, talk
from tests.support.store import NOON


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA, NOON)[0]


def test_a_person_s_rows_are_found_and_records_become_rows_once(tx, own) -> None:
    shared, work = apps.shared_id(tx, "ana"), apps.ensure(tx, Scope("ana", "work"), NOON)[0]
    assert shared is not None and apps.shared_id(tx, "bo") is None
    assert set(person_records.app_ids(tx, ANA, all_apps=True)) == {own, shared, work}
    assert person_records.app_ids(tx, ANA, all_apps=False) == [own]
    added = {"user": "bo", "name": "home", "created_at": NOON, "memory": True}
    bo = record_rows.add(tx, record_kinds.APP, added)
    assert bo is not None and apps.find(tx, Scope("bo", "home")).own == bo
    assert record_rows.add(tx, record_kinds.APP, added) is None
    assert raw_sql.rows(tx, "SELECT name FROM apps WHERE id = ?", bo) == [("home",)]


def test_what_an_edited_memory_said_before_is_known(tx, own) -> None:
    lisbon = keep(tx, ANA, "Lisbon")
    memory = memories.get(tx, [own], lisbon)
    assert memory is not None and events.former_wordings(tx, own) == []
    memory_changes.rewrite(tx, memory, own, new("Porto"), BY_HAND)
    former = events.former_wordings(tx, own)
    assert [(memory_id, old["value"]) for memory_id, old in former] == [(lisbon, "Lisbon")]


def test_the_keywords_of_messages_are_written_anew(tx, own) -> None:
    session_id, [said] = talk(tx, ANA, "I live in Lisbon")
    keywords.remove(tx, "messages", [said])
    assert keywords.rows_holding_all(tx, "messages", [own], ["lisbon"]) == set()
    messages.write_keywords(tx, session_id, [said])
    assert keywords.rows_holding_all(tx, "messages", [own], ["lisbon"]) == {said}
