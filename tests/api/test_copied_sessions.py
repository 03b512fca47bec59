"""A copy of the beginning of a conversation: it goes on by itself, and nothing is learned or found
twice."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.errors import InputError, NotFound
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.conversation import sent_data, talk
from tests.support.leftovers import files_with

HOME = "I live in Lisbon, with a castle to be seen from my window"
LISBON = fact("I live in Lisbon", "city", "Lisbon")


def said(mc: MemChat, session_id: int) -> list[str]:
    return [turn.content for turn in mc.user("ana").sessions.messages(session_id)]


def places(mc: MemChat, question: str) -> list[int]:
    """The conversations in which a search finds something that was said."""
    hits = mc.user("ana").search(question).hits
    return [hit.session_id or 0 for hit in hits if hit.kind == "message"]


def lines(extract_model: ScriptedModel) -> list[str]:
    """The turns that the model was last sent to read."""
    data = sent_data(extract_model)
    return [line["text"] for part in ("context", "transcript") for line in data.get(part, [])]


def first_talk(mc: MemChat, extract_model: ScriptedModel) -> tuple[int, list[int]]:
    """A conversation of two turns that taught a city; its id, and those of its messages."""
    extract_model.replies.append(answer(LISBON, title="Lisbon"))
    session_id = talk(mc, HOME, "What can I see there?").session_id
    return session_id, [turn.id for turn in mc.user("ana").sessions.messages(session_id)]


def test_a_copy_holds_what_was_said_before_a_message_and_the_old_one_stays(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[2])
    assert (copy.copied_from, copy.status, copy.ended_at) == (old, "extracted", mc.now)
    assert said(mc, copy.id) == [HOME, "Fine."]
    assert [turn.copied_from for turn in ana.sessions.messages(copy.id)] == ids[:2]
    chat_model.replies.appendleft("The castle.")
    extract_model.replies.append(answer())
    with ana.chat(resume=copy.id) as chat:
        chat.send("Where do I get old maps?").read()
    sent = [message.content for message in chat_model.requests[-1].messages[1:]]
    assert sent == [HOME, "Fine.", "Where do I get old maps?"]
    assert said(mc, copy.id) == [*sent, "The castle."]
    assert said(mc, old) == [HOME, "Fine.", "What can I see there?", "Fine."]


def test_only_what_is_new_in_a_copy_is_learned_and_what_was_copied_is_read_with_it(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[2])
    near = fact("near the harbour", "quarter", "near the harbour", msg="u3")
    extract_model.replies.append(answer(LISBON, near))
    with ana.chat(resume=copy.id) as chat:
        chat.send("near the harbour, I mean").read()
    assert lines(extract_model) == [HOME, "Fine.", "near the harbour, I mean", "Fine."]
    memories = {m.key: m for m in ana.memories.list()}
    assert set(memories) == {"city", "quarter"} and memories["city"].seen_count == 1
    assert [p.session_id for p in ana.memories.evidence(memories["city"].id)] == [old]
    assert list(ana.sessions.learned(copy.id)) == [ana.sessions.messages(copy.id)[2].id]


def test_an_original_that_was_not_read_yet_is_read_once_and_its_copy_is_not(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("I live in Lisbon").read()
    chat.send("Where is the sea?").read()
    asked = ana.sessions.messages(chat.session_id)[2].id
    copy = ana.sessions.copy(chat.session_id, before=asked)
    extract_model.replies.append(answer(LISBON))
    assert len(chat.end().changes) == 1
    mc.jobs.run()
    assert [request.purpose for request in extract_model.requests].count("extract") == 1
    assert ana.sessions.get(copy.id).status == "extracted"


def test_what_was_copied_is_found_once_and_never_beside_its_copy(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    said_it = "The plumber comes on Mondays to mend our boiler."
    extract_model.replies.append(answer(title="Boiler"))
    old = talk(mc, said_it, "And the roof?").session_id
    roof = ana.sessions.messages(old)[2].id
    copies = [ana.sessions.copy(old, before=roof) for _ in range(3)]
    of_copy = ana.sessions.copy(copies[0].id, before=ana.sessions.messages(copies[0].id)[1].id)
    assert places(mc, "which plumber mends the boiler?") == [old]
    with ana.chat(resume=of_copy.id) as chat:
        chat.send("Which plumber mends the boiler?").read()
        assert "Mondays" not in chat_model.requests[-1].messages[0].content
        extract_model.replies.append(answer())
    assert [check for check in mc.doctor() if check.state == "problem"] == []


def test_what_a_deleted_conversation_taught_stays_with_its_copy_as_proof(mc, extract_model) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copies = [ana.sessions.copy(old, before=ids[2]) for _ in range(2)]
    done = ana.sessions.delete(old)
    assert done.gone == () and [m.value for m in done.kept] == ["Lisbon"]
    (city,) = ana.memories.list()
    assert [p.session_id for p in ana.memories.evidence(city.id)] == [copies[0].id]
    assert ana.sessions.get(copies[0].id).copied_from is None
    assert places(mc, "what can be seen from my window?") == [copies[0].id]
    (change,) = ana.sessions.learned(copies[0].id).values()
    assert [one.memory.value for one in change] == ["Lisbon"]
    heir = ana.sessions.messages(copies[0].id)[0].id
    assert ana.sessions.messages(copies[1].id)[0].copied_from == heir
    ana.sessions.delete(copies[0].id)
    assert [m.value for m in ana.sessions.delete(copies[1].id).gone] == ["Lisbon"]
    assert ana.memories.list() == []


def test_what_was_deleted_before_it_was_read_is_learned_from_its_copy(mc, extract_model) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("I live in Lisbon").read()
    chat.send("Where is the sea?").read()
    asked = ana.sessions.messages(chat.session_id)[2].id
    copy, other = (ana.sessions.copy(chat.session_id, before=asked) for _ in range(2))
    chat.abandon()
    ana.sessions.delete(chat.session_id)
    assert [ana.sessions.get(s.id).status for s in (copy, other)] == ["pending", "extracted"]
    extract_model.replies.append(answer(LISBON))
    mc.jobs.run()
    (city,) = ana.memories.list()
    assert [p.session_id for p in ana.memories.evidence(city.id)] == [copy.id]
    assert ana.sessions.get(copy.id).status == "extracted"
    assert [check for check in mc.doctor() if check.state == "problem"] == []


def test_deleting_a_copy_takes_back_only_what_was_said_in_it(mc, extract_model) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[2])
    extract_model.replies.append(answer(fact("I have a boat", "boat", "a boat", msg="u3")))
    with ana.chat(resume=copy.id) as chat:
        chat.send("I have a boat").read()
    assert [m.key for m in ana.sessions.delete(copy.id).gone] == ["boat"]
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_why_a_copied_reply_is_as_it_is_can_still_be_seen(mc, extract_model, chat_model) -> None:
    ana = mc.user("ana")
    first_talk(mc, extract_model)
    extract_model.replies.append(answer())
    old = talk(mc, "Which city is mine?", "Thanks").session_id
    turns = ana.sessions.messages(old)
    copy = ana.sessions.copy(old, before=turns[3].id)
    copied = ana.sessions.messages(copy.id)
    was, now = ana.sessions.why(turns[1].id), ana.sessions.why(copied[1].id)
    assert [line.hit for line in now.lines] == [line.hit for line in was.lines]
    assert (now.prompt, now.question, now.deleted) == (was.prompt, was.question, 0)
    assert now.prompt is not None and "Lisbon" in now.prompt[0].content
    assert ana.sessions.why().reply.id == turns[3].id


def test_a_copy_before_the_first_message_is_empty_and_can_be_spoken_in(mc, extract_model) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[0])
    assert (copy.message_count, copy.status) == (0, "off")
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    with ana.chat(resume=copy.id) as chat:
        chat.send("I live in Porto").read()
    assert chat.failure is None and said(mc, copy.id) == ["I live in Porto", "Fine."]


def test_with_memory_off_a_copy_is_not_read_as_its_original_is_not(mc, extract_model) -> None:
    ana = mc.user("ana")
    ana.set_memory(False)
    old = talk(mc, "I live in Lisbon", "What now?").session_id
    copy = ana.sessions.copy(old, before=ana.sessions.messages(old)[2].id)
    ana.set_memory(True)
    extract_model.replies.append(answer())
    with ana.chat(resume=copy.id) as chat:
        chat.send("I have a boat").read()
    assert lines(extract_model) == ["I have a boat", "Fine."]


def test_an_unknown_place_to_copy_from_is_refused(mc, extract_model) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    extract_model.replies.append(answer())
    other = talk(mc, "Hello").session_id
    for session_id, before in ((other, ids[2]), (old, 999), (999, ids[2])):
        with pytest.raises(NotFound):
            ana.sessions.copy(session_id, before=before)
    with pytest.raises(NotFound):
        mc.user("bo").sessions.copy(old, before=ids[2])
    assert len(ana.sessions.list()) == 2


def test_export_and_import_keep_what_is_a_copy_of_what(
    mc, open_store, extract_model, tmp_path
) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[2])
    file = tmp_path / "ana.jsonl"
    ana.export_file(file)
    there = open_store(home=tmp_path / "there")
    there.user("bo").import_file(file)
    there.user("ana").import_file(file)
    for name in ("ana", "bo"):
        sessions = {one.id: one for one in there.user(name).sessions.list()}
        (new,) = (one for one in sessions.values() if one.copied_from)
        first = there.user(name).sessions.messages(new.copied_from)
        copied = there.user(name).sessions.messages(new.id)
        assert [turn.copied_from for turn in copied] == [turn.id for turn in first[:2]]
        assert new.status == "extracted"
    assert there.user("ana").import_file(file).added == {}
    assert copy.message_count == 2


def test_an_incognito_chat_begins_with_turns_of_another_and_leaves_nothing_on_disk(
    mc, chat_model
) -> None:
    ana = mc.user("ana")
    first = ana.chat(incognito=True)
    first.send("Zanzibar is warm").read()
    first.send("And dry?").read()
    second = ana.chat(incognito=True, turns=first.turns[:2])
    second.send("And wet?").read()
    sent = [message.content for message in chat_model.requests[-1].messages[1:]]
    assert sent == ["Zanzibar is warm", "Fine.", "And wet?"]
    assert [turn.content for turn in first.turns][2:] == ["And dry?", "Fine."]
    second.end()
    assert list(ana.sessions.list()) == []
    assert files_with(mc, "Zanzibar") == []
    with pytest.raises(InputError, match="incognito"):
        ana.chat(turns=first.turns)


def test_a_copy_is_named_after_the_first_words_that_are_its_own(mc, extract_model) -> None:
    ana = mc.user("ana")
    old, ids = first_talk(mc, extract_model)
    copy = ana.sessions.copy(old, before=ids[2])
    extract_model.replies.append(answer())
    with ana.chat(resume=copy.id) as chat:
        chat.send("Where do I get old maps?").read()
    openings = {old: HOME, copy.id: "Where do I get old maps?"}
    assert ana.sessions.first_words([old, copy.id]) == openings
    assert ana.sessions.get(copy.id).title == "Where do I get old maps?"
