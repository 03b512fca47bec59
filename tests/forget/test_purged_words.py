"""The words of a forgotten value leave replies, titles, receipts, cues and the inbox."""

from __future__ import annotations

from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import files_with, rows_with


def test_a_short_value_leaves_the_replies_title_and_summary_too(mc, chat_model, extract_model):
    ana = mc.user("ana")
    chat_model.replies.appendleft("Noted: you are 42, and 42 is fine.")
    extract_model.replies.append(
        answer(fact("I am 42 years old", "age", "42"), title="Being 42", summary="Ana's age is 42.")
    )
    chat = talk(mc, "I am 42 years old.")
    (age,) = ana.memories.list()
    ana.memories.delete(age.id)
    turns = ana.sessions.messages(chat.session_id)
    assert [t.content for t in turns][1] == "Noted: you are ··, and ·· is fine."
    session = ana.sessions.list()[0]
    assert (session.title, session.summary) == (None, None)


def test_a_title_in_other_words_goes_from_the_conversation_that_taught_it(mc, extract_model):
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            fact("I am allergic to peanuts", "allergy", "peanuts"),
            title="Peanut allergy",
            summary="Has a peanut allergy.",
        )
    )
    talk(mc, "I am allergic to peanuts.")
    ana.memories.delete(ana.memories.list()[0].id)
    assert rows_with(mc, "peanut") == []


def test_a_value_replaced_twice_leaves_every_receipt(mc, chat_model, extract_model, clock) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Zanzibar")
    for name in ("Porto", "Faro"):
        clock.advance(days=1)
        ana.memories.add("profile", "city", name)
    mc.jobs.run()
    chat_model.replies.appendleft("Once you lived in Zanzibar.")
    extract_model.replies.append(answer())
    talk(mc, "Tell me of Zanzibar, the city")
    assert rows_with(mc, "Zanzibar")
    ana.memories.delete(first.id)
    assert [line for line in rows_with(mc, "Zanzibar") if "Once" in line or "before" in line] == []


def test_what_is_forgotten_while_a_reply_comes_in_is_not_kept_with_it(
    mc, chat_model, extract_model
) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Zanzibar")

    def forgets(_: object) -> str:
        ana.memories.delete(memory.id)
        return "You live in Zanzibar, as I recall."

    chat_model.replies.appendleft(forgets)
    extract_model.replies.append(answer())
    chat = talk(mc, "Where do I live?")
    reply = ana.sessions.messages(chat.session_id)[1]
    assert reply.content == f"{'·' * 20}, as I recall."
    assert ana.sessions.receipt(reply.id) == []
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_no_cue_of_anything_else_tells_what_is_forgotten(mc, extract_model) -> None:
    ana = mc.user("ana")
    cues = ["zanzibar", "zanzibari", "beach"]
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I keep bees", "hobby", "keep bees", cues=cues),
            fact("I have asthma", "health", "asthma", flags=["sensitive"], cues=cues),
            fact("I drink tea", "drink", "tea", flags=["not_meant"], cues=cues),
        )
    )
    talk(mc, "I moved to Zanzibar. I keep bees. I have asthma. I drink tea.")
    city = next(m for m in ana.memories.list() if m.key == "city")
    before = len(rows_with(mc, "zanzibari"))
    ana.memories.delete(city.id)
    assert before == 6, "three rows of cues, the searched text and its keyword rows"
    assert rows_with(mc, "zanzibar") == []
    assert [m.cues for m in ana.memories.list()] == [("beach",)]


def test_another_value_by_hand_takes_the_cues_of_the_one_before_away(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto", cues=["harbour"])))
    talk(mc, "I live in Porto.")
    (city,) = ana.memories.list()
    assert ana.memories.update(city.id, type="fact").cues == ("harbour",)
    assert ana.memories.update(city.id, value="Oslo").cues == ()


def test_a_very_short_value_that_waits_goes_with_the_one_that_is_forgotten(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I have HD", "health", "HD", flags=["sensitive"], memory_type="fact"))
    )
    talk(mc, "I have HD.")
    assert [item.value for item in ana.inbox.list()] == ["HD"]
    other = ana.memories.add("fact", "screen", "hd")
    ana.memories.delete(other.id)
    assert len(ana.inbox.list()) == 1, "it is another fact"
    same = ana.memories.add("profile", ana.inbox.list()[0].key, "hd")
    ana.memories.delete(same.id)
    assert ana.inbox.list() == []


def test_what_waits_with_the_words_of_a_deleted_message_goes_with_it(mc, extract_model) -> None:
    ana = mc.user("ana")
    illness = fact("It is asthma", "health", "asthma from Zanzibar", flags=["sensitive"], msg="u3")
    faith = fact("It is asthma", "faith", "asthma", flags=["sensitive"], msg="u3")
    extract_model.replies.append(answer(illness, faith))
    talk(mc, "I was ill in Zanzibar", "It is asthma")
    assert {i.value for i in ana.inbox.list()} == {"asthma from Zanzibar", "asthma"}
    (session,) = ana.sessions.list()
    ana.sessions.delete_message(ana.sessions.messages(session.id)[0].id)
    assert [i.value for i in ana.inbox.list()] == ["asthma"]
