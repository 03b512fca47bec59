"""The contract of a store, third part: the functions of copied conversations, run once."""

from __future__ import annotations

import pytest

from memchat.db import apps, messages, sessions
from memchat.facts import changes
from memchat.search import receipts
from memchat.search.receipts import SentPrompt
from memchat.types import Hit
from tests.support.rows import ANA, keep, talk
from tests.support.store import NOON


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA, NOON)[0]


def test_a_copy_has_the_messages_with_what_their_replies_were_given(tx, own) -> None:
    old, [said] = talk(tx, ANA, "Where do I live?")
    reply = messages.add(tx, old, "assistant", "In Lisbon.", NOON)
    receipts.add(tx, reply, [Hit("memory", 7, "city: Lisbon", 1.0, None, None, "words", 4)])
    list_id = receipts.add_list(tx, old, "You are kind.", [(7, "city: Lisbon")], NOON)
    receipts.add_prompt(tx, reply, SentPrompt("Be brief.", said, turns=1, list_id=list_id))
    last = messages.add(tx, old, "user", "Thanks", NOON)

    new = sessions.add(tx, old, last, NOON)
    found = sessions.get(tx, [own], new)
    assert found is not None and (found.copied_from, found.ended_at) == (old, NOON)
    first, second = messages.of_session(tx, new)
    assert (first.copied_from, second.copied_from) == (said, reply)
    assert found.extracted_to == second.id and sessions.originals(tx, new) == [said, reply]
    assert [hit.text for hit in receipts.of_reply(tx, second.id)] == ["city: Lisbon"]
    sent = receipts.prompt_of_reply(tx, second.id)
    assert sent is not None and (sent.system, sent.first_message_id) == ("Be brief.", first.id)
    assert sent.list_id not in (None, list_id)
    assert receipts.list_of(tx, sent.list_id) == receipts.list_of(tx, list_id)
    again = sessions.add(tx, new, second.id, NOON)
    (copy_of_copy,) = messages.of_session(tx, again)
    family = [(said, old), (first.id, new), (copy_of_copy.id, again)]
    assert sessions.same_message(tx, first.id) == sessions.same_message(tx, said) == family
    assert [turn.id for turn in sessions.unread_originals(tx, again)] == [said]


def test_the_first_copy_takes_the_place_of_a_message(tx, own) -> None:
    old, [said, last] = talk(tx, ANA, "I live in Lisbon", "Thanks")
    city = keep(tx, ANA, "Lisbon")
    changes.add_evidence(tx, city, [(said, 0, "I live in Lisbon")])
    new, other = (sessions.add(tx, old, last, NOON) for _ in range(2))
    heir_id = messages.of_session(tx, new)[0].id
    assert sessions.heirs_of_unread(tx, [said, last]) == {new: heir_id}
    assert sessions.take_place(tx, [said, last]) == {new}
    (heir,), (copy,) = messages.of_session(tx, new), messages.of_session(tx, other)
    assert (heir.copied_from, copy.copied_from) == (None, heir.id)
    assert [proof.message_id for proof in changes.evidence_of_memory(tx, city)] == [heir.id]
