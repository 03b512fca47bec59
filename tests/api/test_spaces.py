"""What a person does with an app as a whole, and where they put its conversations."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import InputError, MemChat, NotFound
from memchat.config import Settings
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact


def test_a_renamed_app_keeps_all_that_it_holds(mc) -> None:
    work = mc.user("ana", app="Work")
    work.memories.add("profile", "city", "Lisbon")
    mc.user("ana", app="Home").set_memory(True)
    work.apps.rename("Work", "Office")
    assert [app.name for app in work.apps.list()] == ["Home", "Office"]
    assert [m.value for m in mc.user("ana", app="Office").memories.list()] == ["Lisbon"]
    with pytest.raises(InputError, match="already"):
        work.apps.rename("Office", "Home")
    with pytest.raises(NotFound):
        work.apps.rename("Work", "Other")


def test_instructions_stand_in_each_prompt_of_their_app_and_in_no_incognito_chat(
    tmp_path: Path,
) -> None:
    model, settings = ScriptedModel(["Fine."] * 3), Settings(home=tmp_path, embed_model="none")
    with MemChat(settings=settings, chat_model=model, extract_model=ScriptedModel()) as mc:
        ana, work = mc.user("ana"), mc.user("ana", app="Work")
        ana.set_instructions("Answer in Dutch.", all_apps=True)
        work.set_instructions("Be formal.")
        assert (work.instructions(), work.instructions(all_apps=True)) == (
            "Be formal.",
            "Answer in Dutch.",
        )
        for person, incognito in ((work, False), (ana, False), (work, True)):
            chat = person.chat(incognito=incognito)
            chat.send("Hello").read()
            chat.abandon()
        prompts = [request.messages[0].content for request in model.requests]
        said = [[word for word in ("Dutch", "formal") if word in text] for text in prompts]
        assert said == [["Dutch", "formal"], ["Dutch"], []]
        with pytest.raises(InputError):
            ana.set_instructions("x" * 4_001)
        ana.set_instructions(" ", all_apps=True)
        assert ana.instructions(all_apps=True) == ""


def test_conversations_are_pinned_archived_and_put_back(mc) -> None:
    ana = mc.user("ana")
    ids = []
    for words in ("Hello", "What is a heron?"):
        with ana.chat() as chat:
            chat.send(words).read()
        ids.append(chat.session_id)
    ana.sessions.put(ids[0], "pinned")
    ana.sessions.put(ids[1], "archived")
    assert [s.id for s in ana.sessions.list(shelf="pinned")] == [ids[0]]
    assert [s.id for s in ana.sessions.list("heron", shelf="archived")] == [ids[1]]
    assert list(ana.sessions.list(shelf="")) == [] and len(ana.sessions.list()) == 2
    ana.sessions.put(ids[1], "")
    assert [s.id for s in ana.sessions.list(shelf="")] == [ids[1]]
    with pytest.raises(InputError):
        ana.sessions.put(ids[1], "elsewhere")


def test_shelves_and_instructions_come_with_an_export(mc, tmp_path: Path) -> None:
    ana, bob = mc.user("ana"), mc.user("bob")
    with ana.chat() as chat:
        chat.send("Hello").read()
    ana.sessions.put(chat.session_id, "pinned")
    ana.set_instructions("Answer in Dutch.")
    bob.import_file(ana.export_file(tmp_path / "ana.jsonl").file)
    assert [one.shelf for one in bob.sessions.list()] == ["pinned"]
    assert bob.instructions() == "Answer in Dutch."


def test_a_moved_conversation_teaches_the_app_that_receives_it_and_no_longer_the_other(
    mc, extract_model
) -> None:
    home, work = mc.user("ana"), mc.user("ana", app="Work")
    extract_model.replies.extend([answer(fact("I live in Lisbon", "city", "Lisbon"))] * 2)
    with home.chat() as chat:
        chat.send("I live in Lisbon.").read()
    home.sessions.rename(chat.session_id, "Where I live")
    assert [memory.value for memory in home.memories.list()] == ["Lisbon"]
    moved = home.sessions.move(chat.session_id, "Work")
    assert list(home.sessions.list()) == [] and list(home.memories.list()) == []
    (there,) = work.sessions.list()
    assert (there.id, there.title, there.message_count) == (moved.id, "Where I live", 2)
    mc.jobs.run()
    assert [memory.value for memory in work.memories.list()] == ["Lisbon"]
    assert [one.session_id for one in work.memories.evidence(work.memories.list()[0].id)] == [
        moved.id
    ]
