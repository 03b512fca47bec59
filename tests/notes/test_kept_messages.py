"""A message kept as a note: found as a note, and never learned from."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.errors import InputError, NotFound
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import sent_data

PASTE = "Minutes of Monday. Otto moved to Porto. The lease of the warehouse ends in June. " * 40


def test_it_is_a_note_with_the_words_and_the_time_of_the_message(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send(PASTE).read()
        said = chat.turns[0]
        note = ana.sessions.keep_as_note(said.id, title="Minutes")
        assert (note.text, note.title, note.created_at) == (PASTE, "Minutes", said.created_at)
        again = ana.sessions.keep_as_note(said.id)
        assert (again.id, len(ana.notes.list())) == (note.id, 1)
        assert again.title == "Minutes"
        assert ana.sessions.keep_as_note(said.id, title="Monday").title == "Monday"
        chat.send(PASTE).read()
        other = ana.sessions.keep_as_note(chat.turns[2].id)
        assert other.title == "Minutes of Monday. Otto moved to Porto. The lease of the wa…"


def test_keeping_it_again_leaves_what_was_changed_in_the_note(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send(PASTE).read()
        note = ana.sessions.keep_as_note(chat.turns[0].id)
        changed = ana.notes.update(note.id, text="Only this matters.", title="Short")
        assert ana.sessions.keep_as_note(chat.turns[0].id) == changed
        with pytest.raises(InputError, match="title"):
            ana.sessions.keep_as_note(chat.turns[0].id, title=" ")
        assert ana.notes.get(note.id) == changed


def test_nothing_is_learned_from_it_and_the_rest_is(mc: MemChat, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    with ana.chat() as chat:
        chat.send(PASTE).read()
        ana.sessions.keep_as_note(chat.turns[0].id)
        chat.send("I live in Lisbon.").read()
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]
    assert "warehouse" not in str(sent_data(extract_model))
    assert ana.notes.search("When does the lease of the warehouse end?").hits[0].confident
    assert [hit.kind for hit in ana.search("lease of the warehouse").confident] == []


def test_it_works_with_memory_off_and_for_the_copy_of_a_message(mc: MemChat) -> None:
    ana = mc.user("ana")
    ana.set_memory(False)
    chat = ana.chat()
    chat.send(PASTE).read()
    reply = private.last_reply(chat).message_id
    assert chat.session_id is not None
    first = ana.sessions.keep_as_note(chat.turns[0].id)
    chat.end()
    copy = ana.sessions.copy(chat.session_id, before=reply)
    (copied,) = ana.sessions.messages(copy.id)
    assert ana.sessions.keep_as_note(copied.id).id == first.id


def test_a_message_of_somebody_else_and_a_bad_title_keep_nothing(mc: MemChat) -> None:
    chat = mc.user("ana").chat()
    chat.send(PASTE).read()
    with pytest.raises(NotFound):
        mc.user("bob").sessions.keep_as_note(1)
    with pytest.raises(InputError):
        mc.user("ana").sessions.keep_as_note(1, title="x" * 300)
    assert mc.user("ana").notes.list() == [] and mc.user("bob").notes.list() == []
