"""What is forgotten leaves the copies of a conversation as it leaves the conversation."""

from __future__ import annotations

from memchat import MemChat
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, rows_with

CELLO = fact("I play the cello", "hobby", "cello", many=True)


def learned(mc: MemChat, extract_model: ScriptedModel, line: str, *facts, **where) -> int:
    """A conversation that said this and taught these facts; its id."""
    extract_model.replies.append(answer(*facts))
    with mc.user("ana").chat(**where) as chat:
        chat.send(line).read()
    return chat.session_id or 0


def copied(mc: MemChat, session_id: int, *, left: int = 0) -> int:
    """A copy of a conversation without its last ``left`` messages and the one after; its id."""
    ana = mc.user("ana")
    turns = ana.sessions.messages(session_id)
    return ana.sessions.copy(session_id, before=turns[len(turns) - 1 - left].id).id


def said(mc: MemChat, session_id: int) -> list[str]:
    return [turn.content for turn in mc.user("ana").sessions.messages(session_id)]


def session_of(mc: MemChat) -> int:
    return mc.user("ana").sessions.list()[0].id


def test_a_forgotten_value_leaves_the_bytes_of_the_copy_too(mc, extract_model, chat_model) -> None:
    city = learn_zanzibar(mc, extract_model, chat_model)
    old, ana = session_of(mc), mc.user("ana")
    extract_model.replies.append(answer())
    with ana.chat(resume=old) as chat:
        chat.send("And now?").read()
    copy = copied(mc, old, left=1)
    copied(mc, copy)
    ana.memories.delete(city)
    assert said(mc, copy) == said(mc, old)[:2]
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_value_that_a_copied_reply_was_shown_leaves_that_reply_too(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Zanzibar")
    mc.jobs.run()
    chat_model.replies.appendleft("You live in Zanzibar.")
    extract_model.replies.append(answer())
    old = talk(mc, "Which city is mine?", "Thanks").session_id
    copy = copied(mc, old, left=1)
    ana.sessions.delete(old)
    ana.memories.delete(city.id)
    assert said(mc, copy)[1] == f"{'·' * 20}."  # the sentence that tells it
    assert files_with(mc, "Zanzibar") == []


def test_a_word_that_is_also_said_in_a_copy_is_listed_there_and_blanked_there(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer())
    old = talk(mc, "Zanzibar is hot, they say", "Really?").session_id
    copy = copied(mc, old, left=1)
    city = ana.memories.add("profile", "city", "Zanzibar")
    found = ana.mentions.find([city.id])
    assert found is not None and {place.session_id for place in found.places} == {old, copy}
    ana.memories.delete(city.id)
    ana.mentions.blank(found)
    assert said(mc, old)[0] == said(mc, copy)[0] == "········ is hot, they say"
    assert files_with(mc, "Zanzibar") == []


def test_what_is_forgotten_before_it_was_read_is_never_learned_from_the_original(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("I live in Zanzibar").read()
    chat.send("And now?").read()
    copy = copied(mc, chat.session_id, left=1)
    with ana.chat(resume=copy) as second:
        second.send("forget that I live in Zanzibar").read()
        second.send("yes").read()
        extract_model.replies.append(answer())
    extract_model.replies.append(answer(fact("I live in Zanzibar", "city", "Zanzibar")))
    chat.end()
    assert ana.memories.list() == []


def test_what_is_taken_back_from_a_message_is_not_learned_from_its_copy(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Zanzibar", "city", "Zanzibar")))
    old = talk(mc, "I live in Zanzibar", "And now?").session_id
    copy = copied(mc, old, left=1)
    first = ana.sessions.messages(old)[0].id
    assert [m.value for m in ana.sessions.unlearn(first).gone] == ["Zanzibar"]
    extract_model.replies.append(answer(fact("I live in Zanzibar", "city", "Zanzibar")))
    with ana.chat(resume=copy) as chat:
        chat.send("I have a boat").read()
    assert ana.memories.list() == []
    assert said(mc, copy)[0] == "I live in Zanzibar"


def test_what_only_a_deleted_conversation_brought_back_is_over_again_though_a_copy_says_it_was(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    old = learned(mc, extract_model, "I play the cello", CELLO)
    clock.advance(days=1)
    over = fact("I no longer play the cello", "hobby", "cello", to="k1", **{"is": "ends"})
    learned(mc, extract_model, "I no longer play the cello", over)
    assert ana.memories.list() == []
    clock.advance(days=1)
    again = fact("I play the cello again", "hobby", "cello", msg="u3", many=True)
    learned(mc, extract_model, "I play the cello again", again, resume=old)
    assert [m.value for m in ana.memories.list()] == ["cello"]
    copied(mc, old, left=1)
    ana.sessions.delete(old)
    assert ana.memories.list() == []
