"""The contract of a store, continued: what an export and an import call."""

from __future__ import annotations

from datetime import UTC, datetime

from memchat.store import (
    apps,
    events,
    keywords,
    memories,
    memory_changes,
    messages,
    person_records,
    record_kinds,
    record_rows,
    sessions,
)
from memchat.store.events import Cause
from memchat.store.new_memory import NewMemory
from memchat.store.person_records import PersonRecords
from memchat.types import Scope

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ANA, WORK = Scope("ana", "home"), Scope("ana", "work")
BY_ANA = Cause(NOON, "user", "typed")


def fact(value: str) -> NewMemory:
    return NewMemory(
        memory_type="profile",
        key="city",
        value=value,
        many=False,
        search_text=f"city {value}",
        said_at=NOON,
        created_by="manual",
    )


def test_the_records_of_a_person_are_those_of_all_their_apps_or_of_one(tx) -> None:
    assert apps.shared_id(tx, "ana") is None
    home, shared = apps.ensure(tx, ANA, NOON)
    work, _ = apps.ensure(tx, WORK, NOON)
    apps.ensure(tx, Scope("bo", "home"), NOON)
    assert apps.shared_id(tx, "ana") == shared
    assert set(person_records.app_ids(tx, ANA, all_apps=True)) == {home, work, shared}
    assert person_records.app_ids(tx, WORK, all_apps=False) == [work]
    memory_changes.add(tx, home, fact("Lisbon"), BY_ANA)
    memory_changes.add(tx, work, fact("Porto"), BY_ANA)
    records = PersonRecords(tx, [work])
    assert [one["value"] for one in records.every() if one["record"] == "memory"] == ["Porto"]
    assert records.counts()["memory"] == 1


def test_a_record_becomes_a_row_once_and_keeps_its_id_in_an_unused_table(tx) -> None:
    home, _ = apps.ensure(tx, ANA, NOON)
    assert record_rows.is_unused(tx, record_kinds.SESSION)
    row = {"id": 7, "app_id": home, "started_at": NOON, "last_activity_at": NOON}
    assert record_rows.add(tx, record_kinds.SESSION, row) == 7
    assert record_rows.add(tx, record_kinds.SESSION, row) is None
    assert not record_rows.is_unused(tx, record_kinds.SESSION)
    found = sessions.by_id(tx, 7)
    assert found is not None and found[0].started_at == NOON


def test_former_wordings_are_what_an_edit_replaced(tx) -> None:
    home, _ = apps.ensure(tx, ANA, NOON)
    lisbon = memory_changes.add(tx, home, fact("Lisbon"), BY_ANA)
    assert events.former_wordings(tx, home) == []
    known = memories.get(tx, [home], lisbon)
    assert known is not None
    memory_changes.rewrite(tx, known, home, fact("Faro"), BY_ANA)
    ((memory_id, old),) = events.former_wordings(tx, home)
    assert (memory_id, old["value"]) == (lisbon, "Lisbon")


def test_messages_written_without_keyword_rows_are_found_once_they_have_them(tx) -> None:
    home, _ = apps.ensure(tx, ANA, NOON)
    session_id = sessions.start(tx, home, "host:1:1", NOON, NOON)
    row = {"session_id": session_id, "role": "user", "content": "A red kayak", "created_at": NOON}
    message_id = record_rows.add(tx, record_kinds.MESSAGE, row)
    assert message_id is not None
    assert keywords.rows_holding_all(tx, "messages", [home], ["kayak"]) == set()
    messages.write_keywords(tx, session_id, [message_id])
    assert keywords.rows_holding_all(tx, "messages", [home], ["kayak"]) == {message_id}
