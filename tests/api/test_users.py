"""The people of a store: who is there, and taking one out with all that is kept of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.errors import NotFound
from memchat.testing import FakeClock, ScriptedModel
from tests.support.answers import answer
from tests.support.leftovers import files_with


def people(mc: MemChat, extract_model: ScriptedModel) -> None:
    extract_model.replies.append(answer())
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Porto")
    ana.memories.add("profile", "pet", "a quokka", all_apps=True)
    mc.user("ana", app="work").notes.add("The quokka report is due.")
    with ana.chat() as chat:
        chat.send("My quokka sleeps.").read()
    ana.client("Editor", "ask").remember("fact", "tool", "quokka brush")
    mc.user("bob").memories.add("profile", "city", "Faro")


def test_everybody_is_listed_with_what_is_kept_of_them_and_when_they_were_last_here(
    mc: MemChat, clock: FakeClock, extract_model: ScriptedModel
) -> None:
    assert mc.users.list() == []
    people(mc, extract_model)
    clock.advance(days=2)
    mc.user("ana", app="work").notes.add("Another one.")
    ana, bob = mc.users.list()
    assert (ana.name, ana.apps, ana.memories, ana.sessions, ana.notes) == ("ana", 2, 2, 1, 2)
    assert (bob.name, bob.apps, bob.memories, bob.sessions, bob.notes) == ("bob", 1, 1, 0, 0)
    assert ana.last_used_at == mc.now and bob.last_used_at == mc.now - timedelta(days=2)


def test_a_person_is_taken_out_and_brought_back(
    mc: MemChat, extract_model: ScriptedModel, tmp_path: Path
) -> None:
    people(mc, extract_model)
    written = mc.users.export("ana", tmp_path / "ana.jsonl")
    assert written.records["memory"] == 2 and "Faro" not in written.file.read_text()
    mc.users.delete("ana")
    with pytest.raises(NotFound):
        mc.users.export("ana", tmp_path / "again.jsonl")
    mc.user("ana").import_file(written.file)
    assert {m.value for m in mc.user("ana").memories.list()} == {"Porto", "a quokka"}
    assert [one.name for one in mc.users.list()] == ["ana", "bob"]


def test_a_person_is_deleted_with_what_was_kept_for_every_app_and_leaves_no_byte(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    people(mc, extract_model)
    done = mc.users.delete("ana")
    assert (done.memories, done.notes, done.apps) == (2, 1, 2)
    mc.jobs.run()
    assert [one.name for one in mc.users.list()] == ["bob"]
    assert files_with(mc, "quokka") == []
    assert [m.value for m in mc.user("bob").memories.list()] == ["Faro"]
    with pytest.raises(NotFound, match="nothing is kept of ana"):
        mc.users.delete("ana")
