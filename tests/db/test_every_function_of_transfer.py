"""The contract of a store, second part: what export, import and forgetting call, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.db import apps, messages, sessions
from memchat.facts import changes, memories, proposals
from memchat.facts.memories import sha1_of
from memchat.search import keywords
from memchat.transfer.kinds import PersonRecords
from memchat.types import Proposal, Scope
from tests.support.rows import ANA, BY_HAND, keep, new, remove_words, talk
from tests.support.store import NOON


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def test_a_person_s_scope_rows_are_found_for_an_export(tx, own) -> None:
    shared, work = apps.shared_id(tx, "ana"), apps.ensure(tx, Scope("ana", "work")).own
    assert shared and not apps.shared_id(tx, "bo")
    assert set(PersonRecords(tx, ANA, all_apps=True).apps) == {own, shared, work}
    assert PersonRecords(tx, ANA, all_apps=False).apps == {own: ANA.app}


def test_what_an_edited_memory_said_before_is_known(tx, own) -> None:
    lisbon = keep(tx, ANA, "Lisbon")
    memory = memories.get(tx, [own], lisbon)
    assert memory is not None and changes.former_wordings(tx, own) == []
    changes.rewrite(tx, memory, own, new("Porto"), BY_HAND)
    former = changes.former_wordings(tx, own)
    assert [(memory_id, old["value"]) for memory_id, old in former] == [(lisbon, "Lisbon")]


def test_the_keywords_of_messages_are_written_anew(tx, own) -> None:
    session_id, [said] = talk(tx, ANA, "I live in Lisbon")
    remove_words(tx, "turn", [said])
    assert keywords.rows_holding_all(tx, "turn", [own], ["lisbon"]) == set()
    messages.index(tx, session_id, [said])
    assert keywords.rows_holding_all(tx, "turn", [own], ["lisbon"]) == {said}


def test_rows_that_were_imported_before_are_known_again(tx, own) -> None:
    lisbon = keep(tx, ANA, "Lisbon")
    memory, sha1 = memories.get(tx, [own], lisbon), sha1_of("profile", "city", "Lisbon")
    assert memory is not None
    assert memories.id_of(tx, own, sha1) == (lisbon, False)
    assert memories.id_of(tx, own, sha1_of("profile", "city", "Porto")) is None
    assert memories.made_at(tx, [own], sha1, memory.created_at) == lisbon
    assert memories.made_at(tx, [own], sha1, memory.created_at + timedelta(days=1)) is None
    session_id, said = talk(tx, ANA, "I live in Lisbon")
    assert messages.ids_of(tx, session_id) == said
    sessions.change(tx, session_id, extracted_to=said[-1])
    assert sessions.by_id(tx, session_id)[0].extracted_to == said[-1]
    proposals.add(tx, own, Proposal("unsure", quote="I live in Lisbon", key="city"))
    assert proposals.holds(tx, own, {"key": "city", "memory_type": None, "created_at": NOON})
    assert not proposals.holds(tx, own, {"key": None})
