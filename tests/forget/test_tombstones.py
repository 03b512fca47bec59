"""What was forgotten is not learnt again without a yes."""

from __future__ import annotations

from datetime import datetime

import pytest

from memchat.search import keywords
from memchat.types import InboxItem
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar, read_again
from tests.support.leftovers import rows_with


def said_again(mc, extract_model, clock, quote: str, key: str, value: str) -> InboxItem:
    """A forgotten fact is said in a later conversation; what waits then."""
    clock.advance(days=300)
    extract_model.replies.append(answer(fact(quote, key, value)))
    chat = talk(mc, quote)
    assert [change.kind for change in chat.learned.changes] == ["review"]
    (item,) = mc.user("ana").inbox.list()
    return item


def test_what_was_forgotten_and_is_said_again_waits_for_a_yes(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
    item = said_again(mc, extract_model, clock, "I live in Lisbon", "city", "Lisbon")
    assert "learn it again?" in item.reason
    again = ana.inbox.accept(item.id)
    assert again.value == "Lisbon"
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    chat = talk(mc, "I live in Lisbon")
    assert [change.kind for change in chat.learned.changes] == ["repeated"]
    clock.advance(days=1)
    ana.memories.delete(again.id)
    with private.database(mc).read() as tx:
        (forgotten_at,) = tx.connection.exec_driver_sql(
            "SELECT created_at FROM tombstones WHERE kind = 'value'"
        ).scalars()
    assert datetime.fromisoformat(forgotten_at) == clock(), "the last forgetting counts"


def test_a_forgotten_value_waits_for_a_yes_in_whatever_words_it_is_said(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "hobby", "chess").id)
    item = said_again(mc, extract_model, clock, "I play chess every evening", "hobby", "chess")
    assert "learn it again?" in item.reason


def test_a_no_to_learning_it_again_forgets_it_again(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
    item = said_again(mc, extract_model, clock, "I live in Lisbon", "city", "Lisbon, Portugal")
    ana.inbox.reject(item.id)
    assert ana.inbox.list(status="rejected") == [], "its words do not stay behind there"
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.connection.exec_driver_sql(
            "UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'"
        )
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    (learned,) = mc.jobs.run().learned
    assert [change.kind for change in learned.changes] == ["refused"]
    assert ana.memories.list(status="all") == [] and ana.inbox.list() == []


PARAPHRASES = [
    fact("I moved to Zanzibar", "city", "Zanzibar City"),
    fact("I moved to Zanzibar", "home", "Zanzibar"),
    fact("I moved to Zanzibar", "recent_event", "moved to Zanzibar", memory_type="fact"),
    fact("moved to Zanzibar", "island", "the island of Zanzibar", memory_type="other", many=True),
    fact("Do you know Zanzibar", "interest", "zanzibar", memory_type="preference", many=True),
    fact("I moved to Zanzibar", "country", "Tanzania (Zanzibar)"),
]


@pytest.mark.parametrize("kept", [False, True], ids=["blanked", "transcript kept"])
@pytest.mark.parametrize("given_back", [False, True], ids=["as it is", "words put back"])
def test_no_wording_of_the_same_messages_brings_it_back(
    mc, extract_model, chat_model, kept, given_back
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    said = {m.id: m.content for m in ana.sessions.messages(1)}
    ana.memories.delete(memory_id, keep_transcript=kept)
    if kept:
        assert {m.id: m.content for m in ana.sessions.messages(1)} == said
        assert mc.jobs.run().learned == []
    if given_back:
        with private.database(mc).write() as tx:
            tx.connection.exec_driver_sql("UPDATE messages SET memory = 1")
    if kept and not given_back:
        return
    learned = read_again(mc, extract_model, *PARAPHRASES, undo_blanks=said if given_back else None)
    assert {change.kind for change in learned.changes} == {"refused"}, learned.changes
    assert [m.value for m in ana.memories.list(status="all")] == ["keep bees"]
    assert ana.inbox.list() == []


def test_an_older_message_does_not_bring_it_back_either(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("My flat in Zanzibar is small, and I keep bees.").read()
        chat.abandon()
        ana.memories.delete(ana.memories.add("profile", "city", "Zanzibar").id)
        clock.advance(seconds=60)
        extract_model.replies.append(
            answer(
                fact("My flat in Zanzibar is small", "home", "small flat in Zanzibar"),
                fact("I keep bees", "hobby", "keep bees"),
            )
        )
    assert [m.value for m in ana.memories.list()] == ["keep bees"]


def said_before_and_unread(
    mc, extract_model, clock, line: str, *facts, forgotten: str = "alpha bicycle"
):
    """What is done with facts that were said before another was forgotten, but read after it."""
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send(line).read()
        chat.abandon()
        ana.memories.delete(ana.memories.add("fact", "possession", forgotten).id)
        clock.advance(seconds=60)
        extract_model.replies.append(answer(*facts))
    return {change.kind for change in chat.learned.changes}


def test_another_fact_with_one_ordinary_word_alike_is_asked_about(mc, extract_model, clock) -> None:
    ana, line = mc.user("ana"), "I bought a bravo bicycle"
    bravo = fact(line, "possession", "bravo bicycle", memory_type="fact", many=True)
    assert said_before_and_unread(mc, extract_model, clock, line, bravo) == {"review"}
    (item,) = ana.inbox.list()
    assert item.value == "bravo bicycle" and "is it something else?" in item.reason
    ana.inbox.accept(item.id)
    assert [memory.value for memory in ana.memories.list()] == ["bravo bicycle"]


@pytest.mark.parametrize("line", ["Ich habe ein Fahrrad Bravo", "Mein neues Fahrrad Bravo ist da"])
def test_a_german_noun_is_an_ordinary_word_though_it_has_a_capital(
    mc, extract_model, clock, line
) -> None:
    bravo = fact(line, "possession", "Fahrrad Bravo", memory_type="fact", many=True)
    done = said_before_and_unread(mc, extract_model, clock, line, bravo, forgotten="Fahrrad Alpha")
    assert done == {"review"}
    assert "is it something else?" in mc.user("ana").inbox.list()[0].reason


def test_a_name_behind_a_german_noun_is_still_a_name(mc, extract_model, clock) -> None:
    line = "Mein Fahrrad Alpha ist neu"
    again = fact(line, "purchase", "Rad der Marke Alpha", memory_type="fact", many=True)
    done = said_before_and_unread(mc, extract_model, clock, line, again, forgotten="Fahrrad Alpha")
    assert done == {"refused"} and mc.user("ana").inbox.list() == []


@pytest.mark.parametrize("value", ["bicycle", "bicycle (alpha)"])
def test_all_words_of_a_fact_alike_is_the_forgotten_one(mc, extract_model, clock, value) -> None:
    line = "My bicycle is an alpha bicycle"
    again = fact(line, "possession", value, memory_type="fact", many=True)
    assert said_before_and_unread(mc, extract_model, clock, line, again) == {"refused"}
    assert mc.user("ana").inbox.list() == []


def test_with_the_transcript_kept_nothing_is_found_in_those_messages(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    ana.memories.delete(memory_id, keep_transcript=True)
    with private.database(mc).read() as tx:
        found = keywords.matches(tx, "turn", [1, 2], ["zanzibar"]).best(10)
        sessions_say = tx.connection.exec_driver_sql("SELECT title, summary FROM sessions").all()
    assert found == []
    assert [tuple(row) for row in sessions_say] == [(None, None)]
    assert ana.search("Zanzibar").confident == ()
    # Else they stand only where people wrote them, and where a proof of something else quotes them.
    holding = {line.split('"')[1] for line in rows_with(mc, "Zanzibar")}
    assert holding == {"messages", "memory_sources"}
