"""A reply that code wrote is taken apart by what the library knows of it."""

from __future__ import annotations

from memchat import MemChat
from memchat.types import Message, Question, ReplyParts


def last(mc: MemChat, session_id: int | None) -> Message:
    assert session_id is not None
    return mc.user("ana").sessions.messages(session_id)[-1]


def test_a_list_of_memories_has_their_ids_and_no_line_of_it_is_left(mc: MemChat) -> None:
    ana = mc.user("ana")
    ids = [ana.memories.add("fact", f"thing {n}", f"value\n{n}").id for n in range(45)]
    with ana.chat() as chat:
        chat.send("What do you remember about me?").read()
        assert chat.question is None
        parts = ana.sessions.parts(last(mc, chat.session_id))
    assert parts.before == "I remember 45 memories about you."
    assert set(parts.listed) < set(ids) and len(parts.listed) == 40
    assert (parts.after, parts.question) == ("", "")


def test_a_question_stands_by_itself_and_says_what_can_be_chosen(mc: MemChat) -> None:
    ana = mc.user("ana")
    for value in ("Lisbon", "Porto"):
        ana.memories.add("fact", "trip", value)
    with ana.chat() as chat:
        chat.send("Forget my trips").read()
        assert chat.question == Question("forget", 2)
        parts = ana.sessions.parts(last(mc, chat.session_id))
        assert parts.question == "Forget these 2 for good? (yes, no, or the numbers)"
        assert parts.before.startswith("I found 2 memories:\n1. ") and not parts.listed
        chat.send("no").read()
        assert chat.question is None


def test_words_that_only_read_like_a_list_stay_whole(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("Good morning!").read()
    words = "I remember 2 memories about you.\n- #1 city: Lisbon"
    told = Message(last(mc, chat.session_id).id, 1, "assistant", words, mc.now)
    assert ana.sessions.parts(told) == ReplyParts(words)
