"""Topics on the notes page and among the insights, and tags of a note."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.planted import planted
from tests.support.ui.tab import ANA, app, buttons, press, text


@pytest.fixture
def models(models: dict[str, str]) -> dict[str, str]:
    return models | {"MEMCHAT_EMBED_MODEL": "hash/words"}


@pytest.fixture
def many(mc: MemChat) -> MemChat:
    mc.user(**ANA).notes.add_many(planted(1))
    return mc


def test_topics_are_found_when_they_are_first_looked_at(many: MemChat) -> None:
    at = app("notes")
    press(at, "topics")
    found = many.user(**ANA).notes.topics()
    assert buttons(at, "topic-") == [f"topic-{one.id}" for one in found]
    assert [at.button(key=f"topic-{one.id}").label for one in found] == [o.title for o in found]
    assert "20 notes · last " in text(at)
    press(at, f"topic-{found[0].id}")
    its = many.user(**ANA).notes.list(topic=found[0].id, limit=12)
    assert buttons(at, "note-") == [f"note-{note.id}" for note in its]
    assert "Notes and chats of each month." in text(at)
    press(at, "all-topics")
    press(at, "all-notes")
    assert len(buttons(at, "note-")) == 12


def test_a_topic_is_summed_up(many: MemChat) -> None:
    found = many.user(**ANA).notes.find_topics()
    at = app("notes", topic=str(found[0].id))
    press(at, "sum-up-topic")
    assert f"What do my notes say about {found[0].title}?" in text(at)


def test_a_topic_that_is_gone_says_so(many: MemChat) -> None:
    assert "This topic is there no more" in text(app("notes", topic="99"))


def test_a_few_notes_are_told_what_topics_will_be(mc: MemChat) -> None:
    mc.user(**ANA).notes.add("Beans.")
    at = app("notes")
    press(at, "topics")
    assert "No topics yet" in text(at)


def test_suggested_tags_are_taken_over_and_taken_away(mc: MemChat) -> None:
    notes = mc.user(**ANA).notes
    notes.add("Elsewhere.", tags=["garden"])
    note = notes.add("We plant beans in the garden.")
    at = app("notes", note=str(note.id))
    assert buttons(at, "tag-") == ["tag-garden"]
    press(at, "tag-garden")
    assert notes.get(note.id).tags == ("garden",)
    assert buttons(at, "tag-") == []
    press(at, "untag-garden")
    assert notes.get(note.id).tags == ()


def test_insights_show_topics_and_lead_to_their_notes(many: MemChat) -> None:
    ana = many.user(**ANA)
    found = ana.notes.find_topics()
    ana.memories.add("fact", "hobby", "beans")
    at = app("insights")
    assert buttons(at, "topic-") == [f"topic-{one.id}" for one in found]
    assert "20 notes and chats, 0 this month, 0 last month" in text(at)
    assert ana.notes.add("boat sail anchor tide harbour rope deck") is not None
    ana.notes.find_topics()
    assert "21 notes and chats, 1 this month, 0 last month" in text(at.run())


def test_each_number_of_memories_leads_to_them(mc: MemChat) -> None:
    mc.user(**ANA).memories.add("fact", "hobby", "beans")
    at = app("insights")
    assert buttons(at, "show-") == ["show-In use", "show-Kept this week", "show-Never used"]
    press(at, "show-Never used")
    assert at.session_state["status"] == "never used"
