"""Versions of a message: one is shown, and it alone is sent, found, learned from and exported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memchat import MemChat
from memchat.chat import Chat
from memchat.errors import InputError, NotFound
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.leftovers import files_with

LISBON = fact("I live in Lisbon", "city", "Lisbon")
PORTO = fact("I live in Porto", "city", "Porto")


def said(mc: MemChat, session_id: int) -> list[str]:
    return [turn.content for turn in mc.user("ana").sessions.messages(session_id)]


def cities(mc: MemChat) -> list[str]:
    return [memory.value for memory in mc.user("ana").memories.list()]


def edited(mc: MemChat, extract_model: ScriptedModel) -> tuple[int, list[int]]:
    """A chat that said "I live in Lisbon", was read, and says "I live in Porto" now; the versions
    of its first message."""
    ana = mc.user("ana")
    extract_model.replies.append(answer(LISBON, title="Where they live"))
    with ana.chat() as chat:
        chat.send("I live in Lisbon").read()
        chat.send("It has a castle").read()
        chat.end()
        extract_model.replies.append(answer(PORTO))
        chat.redo("I live in Porto", message=chat.turns[0]).read()
    session_id = chat.session_id or 0
    (versions,) = ana.sessions.versions(session_id).values()
    return session_id, list(versions)


def test_new_words_for_an_earlier_message_keep_the_old_ones_and_what_followed_as_a_version(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    session_id, (old, new) = edited(mc, extract_model)
    assert said(mc, session_id) == ["I live in Porto", "Fine."] and cities(mc) == ["Porto"]
    extract_model.replies.append(answer(LISBON))
    ana.sessions.show_version(old)
    assert said(mc, session_id) == ["I live in Lisbon", "Fine.", "It has a castle", "Fine."]
    assert ana.sessions.versions(session_id) == {old: [old, new]}
    assert cities(mc) == [], "taken back, and read anew with the words"
    mc.jobs.run()
    assert cities(mc) == ["Lisbon"]
    ana.sessions.show_version(new)
    assert said(mc, session_id) == ["I live in Porto", "Fine."]


def test_only_the_version_that_is_shown_is_sent_and_found(
    mc: MemChat, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    session_id, (old, _) = edited(mc, extract_model)
    with ana.chat(resume=session_id) as chat:
        chat.send("And now?").read()
        sent = " ".join(message.content for message in chat_model.requests[-1].messages)
        assert "Porto" in sent and "Lisbon" not in sent and "castle" not in sent
        extract_model.replies.append(answer())
    texts = [hit.text for hit in ana.search("castle in Lisbon").hits]
    assert not any("castle" in text or "Lisbon" in text for text in texts)
    assert list(ana.sessions.list("castle")) == [] and len(ana.sessions.list("Porto")) == 1
    assert ana.sessions.found_words("castle", [session_id]) == {}
    ana.sessions.show_version(old)
    assert any("castle" in hit.text for hit in ana.search("castle").hits)
    assert len(ana.sessions.list("castle")) == 1 and list(ana.sessions.list("And now")) == []


def test_a_reply_that_was_asked_for_again_has_versions_too(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    chat_model.replies.clear()
    chat_model.replies.extend(["One.", "Two.", "Three.", "Four."])
    with ana.chat() as chat:
        chat.send("Count").read()
        chat.redo().read()
        chat.redo().read()
        session_id = chat.session_id or 0
        (one, _, three) = ana.sessions.versions(session_id)[ana.sessions.messages(session_id)[1].id]
        ana.sessions.show_version(one)
        assert said(mc, session_id) == ["Count", "One."]
        chat.send("Go on").read()
        assert said(mc, session_id) == ["Count", "One.", "Go on", "Four."]
        ana.sessions.show_version(three)
        assert said(mc, session_id) == ["Count", "Three."]
        ana.sessions.show_version(one)
        assert said(mc, session_id)[2:] == ["Go on", "Four."]


def test_a_fact_that_is_forgotten_is_blanked_in_every_version_and_leaves_no_byte(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    session_id, (old, _) = edited(mc, extract_model)
    known = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(known.id)
    mc.jobs.run()
    assert files_with(mc, "Lisbon") == []
    ana.sessions.show_version(old)
    assert said(mc, session_id)[2:] == ["It has a castle", "Fine."]


def test_a_deleted_chat_takes_its_versions_along(mc: MemChat, extract_model: ScriptedModel) -> None:
    ana = mc.user("ana")
    session_id, (old, _) = edited(mc, extract_model)
    ana.sessions.delete(session_id)
    mc.jobs.run()
    with pytest.raises(NotFound):
        ana.sessions.show_version(old)
    assert files_with(mc, "castle") == files_with(mc, "Porto") == []


def test_an_export_has_what_is_shown(mc: MemChat, extract_model: ScriptedModel, tmp_path) -> None:
    ana = mc.user("ana")
    edited(mc, extract_model)
    file = tmp_path / "ana.jsonl"
    ana.export_file(file)
    told = file.read_text("utf-8")
    assert "I live in Porto" in told and "castle" not in told
    bob = mc.user("bob")
    bob.import_file(file)
    (session,) = bob.sessions.list()
    assert [turn.content for turn in bob.sessions.messages(session.id)] == [
        "I live in Porto",
        "Fine.",
    ]


def test_a_message_that_is_not_in_the_chat_is_not_said_anew(mc: MemChat) -> None:
    with mc.user("ana").chat() as other, mc.user("ana").chat() as chat:
        other.send("Hello").read()
        chat.send("Good evening").read()
        with pytest.raises(InputError, match="not in this chat"):
            chat.redo("Good night", message=other.turns[0])
        assert said(mc, chat.session_id or 0) == ["Good evening", "Fine."]


STEPS = st.lists(st.tuples(st.sampled_from(["say", "edit", "again", "show"]), st.integers(0, 99)))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS.filter(lambda steps: len(steps) > 2))
def test_whatever_is_edited_and_shown_there_is_one_path_and_search_knows_no_other(
    mc: MemChat, chat_model: ScriptedModel, steps: list[tuple[str, int]]
) -> None:
    ana = mc.user("ana")
    chat_model.replies.extend(["Fine."] * (len(steps) + 2))
    words = iter(f"word{n}x" for n in range(10_000))
    chat: Chat = ana.chat()
    chat.send(next(words)).read()
    session_id = chat.session_id or 0
    for step, number in steps:
        turns = ana.sessions.messages(session_id)
        mine = [turn for turn in turns if turn.role == "user"]
        versions = ana.sessions.versions(session_id)
        others = [i for every in versions.values() for i in every if i not in versions]
        if step == "say":
            chat.send(next(words)).read()
        elif step == "edit":
            chat.redo(next(words), message=mine[number % len(mine)]).read()
        elif step == "again":
            chat.redo().read()
        elif others:
            ana.sessions.show_version(others[number % len(others)])
    turns = ana.sessions.messages(session_id)
    assert [turn.role for turn in turns] == ["user", "assistant"] * (len(turns) // 2)
    chat.send("the last word").read()
    sent = [message.content for message in chat_model.requests[-1].messages[1:]]
    assert sent == [*(turn.content for turn in turns), "the last word"]
    shown = {turn.content for turn in turns if turn.role == "user"}
    with private.database(mc).read() as tx:
        found = {row[0] for row in tx.connection.exec_driver_sql(
            "SELECT content FROM messages JOIN passages ON kind = 'turn' AND owner_id = messages.id"
            " WHERE role = 'user' AND session_id = ?", (session_id,)
        )}  # fmt: skip
    assert found == shown | {"the last word"}
    chat.abandon()
    ana.sessions.delete(session_id)
    chat_model.replies.clear()


def test_an_older_export_does_not_bring_back_what_a_version_taught_that_is_not_shown(
    mc: MemChat, extract_model: ScriptedModel, tmp_path: Path
) -> None:
    ana = mc.user("ana")
    session_id, (old, new) = edited(mc, extract_model)
    ana.export_file(tmp_path / "porto.jsonl")
    extract_model.replies.append(answer(LISBON))
    ana.sessions.show_version(old)
    mc.jobs.run()
    imported = ana.import_file(tmp_path / "porto.jsonl")
    assert not {"memory", "message", "session", "evidence"} & imported.added.keys()
    assert imported.known["memory"] == 1 and len(ana.sessions.list()) == 1
    assert cities(mc) == ["Lisbon"]
    assert said(mc, session_id) == ["I live in Lisbon", "Fine.", "It has a castle", "Fine."]
    assert ana.sessions.versions(session_id) == {old: [old, new]}
    ana.memories.add("fact", "city", "Porto")
    assert cities(mc) == ["Porto"], "without a tombstone"
