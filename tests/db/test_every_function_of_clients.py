"""The contract of a store: the functions of programs that use it over MCP, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.db import apps, sessions
from memchat.facts import changes, memories, programs, proposals
from memchat.types import ClientWrite, MemoryOrigin, Proposal
from tests.support.rows import ANA, keep, talk
from tests.support.store import NOON

LATER = NOON + timedelta(hours=2)


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def test_a_program_is_counted_and_what_it_wrote_is_listed(tx, own) -> None:
    mine = programs.record_call(tx, own, "Claude", "ask")
    tx.now = LATER
    assert programs.record_call(tx, own, "Claude", "trust") == mine
    tx.now = NOON
    assert (programs.find(tx, own, "Claude"), programs.find(tx, own, "Other")) == (mine, None)
    assert (programs.app_id_of(tx, mine), programs.waiting(tx, mine)) == (own, 0)
    city = keep(tx, ANA, "Lisbon")
    programs.record_write(tx, mine, "memory", city)
    tx.now = LATER
    programs.record_write(tx, mine, "note", 7)
    assert programs.writes(tx, mine) == [
        ClientWrite("memory", city, NOON), ClientWrite("note", 7, LATER)
    ]  # fmt: skip
    assert [one.target_id for one in programs.writes(tx, mine, kind="memory")] == [city]
    assert [one.target_id for one in programs.writes(tx, mine, since=LATER)] == [7]
    tx.now = NOON
    programs.record_note(tx, mine, 7)
    tx.now = LATER
    programs.record_note(tx, mine, 8)
    assert [(one.target_id, one.at) for one in programs.writes(tx, mine, kind="note")] == [
        (7, NOON), (8, LATER)
    ]  # fmt: skip
    (listed,) = programs.listed(tx.within(own))
    assert (listed.name, listed.mode, listed.calls, listed.memories) == ("Claude", "trust", 2, 1)
    assert (listed.first_call_at, listed.last_call_at) == (NOON, LATER)
    programs.record_write(tx, mine, "forget", city)
    programs.remove_writes(tx, mine, but_notes=[8])
    assert [(one.kind, one.target_id) for one in programs.writes(tx, mine)] == [
        ("note", 8), ("forget", city)
    ]  # fmt: skip


def test_the_conversation_of_a_program_is_no_chat_of_the_person(tx, own) -> None:
    mine = programs.record_call(tx, own, "Claude", "ask")
    assert programs.session_of(tx, mine) is None
    session_id, _ = talk(tx, ANA, "city: Lisbon")
    assert [one.id for one in sessions.listed(tx, [own], 5)] == [session_id]
    programs.set_session(tx, mine, session_id)
    assert programs.session_of(tx, mine) == session_id
    assert sessions.listed(tx, [own], 5) == []
    sessions.remove(tx, session_id)
    assert programs.session_of(tx, mine) is None


def test_a_memory_is_traced_to_the_program_whose_words_prove_it(tx, own) -> None:
    mine = programs.record_call(tx, own, "Claude", "trust")
    session_id, [said] = talk(tx, ANA, "city: Lisbon")
    stored, entered = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    programs.set_session(tx, mine, session_id)
    for memory_id in (stored, entered):
        changes.add_evidence(tx, memory_id, [(said, 0, "city")])
    tx.connection.exec_driver_sql("UPDATE memories SET created_by = 'mcp' WHERE id = ?", (stored,))
    assert programs.of_memories(tx, [stored, entered]) == {stored: "Claude"}


def test_requests_to_forget_a_memory_are_rejected_at_once(tx, own) -> None:
    city = keep(tx, ANA, "Lisbon")
    for relation in (proposals.FORGET, proposals.PROMOTE):
        proposals.add(tx, own, Proposal("asked", memory_id=city, relation=relation))
    proposals.reject_requests_to_forget(tx, city)
    assert [one.relation for one in proposals.listed(tx, own, "rejected")] == [proposals.FORGET]
    assert [one.relation for one in proposals.listed(tx, own, "pending")] == [proposals.PROMOTE]


def test_an_item_that_a_program_proposes_quotes_no_message(tx, own) -> None:
    _, [said] = talk(tx, ANA, "I live in Lisbon")
    words = {"memory_type": "profile", "key": "city", "value": "Lisbon", "quote": "Lisbon"}
    proposals.add(tx, own, Proposal("why", said, 10, 16, **words))
    (item,) = proposals.listed(tx, own, "pending")
    assert proposals.of_message(tx, said) == item.id
    proposals.ask_for_program(tx, item.id, "Claude", "Claude asks to keep it")
    (item,) = proposals.listed(tx, own, "pending")
    assert (item.reason, item.message_id, item.quote) == ("Claude asks to keep it", None, None)
    assert proposals.of_message(tx, said) is None


def test_what_two_programs_asked_for_is_not_asked_by_one_alone(tx, own) -> None:
    mine, other = (programs.record_call(tx, own, name, "ask") for name in ("A", "B"))
    for value in ("Lisbon", "Porto"):
        proposals.add(tx, own, Proposal("why", key="city", value=value))
    first, second = (item.id for item in proposals.listed(tx, own, "pending"))
    programs.record_write(tx, mine, "inbox", first)
    programs.record_write(tx, mine, "inbox", second)
    programs.record_write(tx, other, "inbox", second)
    assert programs.asked_alone(tx, mine) == [first]


def test_a_memory_names_the_conversation_that_it_comes_from(tx, own) -> None:
    session_id, (message_id,) = talk(tx, ANA, "city: Lisbon")
    said, entered = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    changes.add_evidence(tx, said, [(message_id, 0, "Lisbon")])
    assert memories.origins_of(tx, own, [said, entered]) == {
        said: MemoryOrigin(session_id),
        entered: MemoryOrigin(),
    }
