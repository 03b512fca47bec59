"""What a program notes beside memories, conversations and notes, and the filters of a search, a
list and a prompt: what they leave out takes no place."""

from __future__ import annotations

from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat import InputError, MemChat
from memchat.errors import NotFound
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import clean_metadata
from tests.support.answers import answer, fact
from tests.support.leftovers import files_with

TRIP = {"trip": "oslo", "day": 3, "paid": True, "cost": 2.5}


def say(words: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": words}]


@pytest.fixture
def ana(mc: MemChat) -> Any:
    return mc.user("ana")


def taught(ana: Any, extract_model: ScriptedModel, city: str, **more: Any) -> int:
    extract_model.replies.append(answer(fact(f"I was in {city}", f"visit_{city.lower()}", city)))
    session_id = ana.add(say(f"I was in {city}"), **more).session_id
    assert session_id is not None
    return int(session_id)


def keys(found: Any) -> list[str]:
    return [hit.memory.key for hit in found.hits if hit.memory is not None]


def test_it_is_given_back_as_it_was_set_and_an_edit_takes_its_place(ana: Any) -> None:
    memory = ana.memories.add("profile", "city", "Oslo", metadata=TRIP)
    assert memory.metadata == TRIP == ana.memories.get(memory.id).metadata
    again = ana.memories.add("profile", "city", "Oslo", metadata={"day": 4, "seat": "12A"})
    assert again.metadata == TRIP | {"day": 4, "seat": "12A"}
    assert ana.memories.update(memory.id, metadata={"day": 5}).metadata == {"day": 5}
    assert ana.memories.update(memory.id, value="Bergen").metadata == {"day": 5}
    assert ana.memories.update(memory.id, metadata={}).metadata is None
    note = ana.notes.add("The ferry was late.", external_id="f", metadata=TRIP)
    assert note.metadata == TRIP
    assert ana.notes.add("The ferry was early.", external_id="f").metadata == TRIP
    assert ana.notes.update(note.id, metadata={"a": 1}).metadata == {"a": 1}
    session_id = ana.add(say("Hello"), session="s", when="end", metadata=TRIP).session_id
    assert ana.sessions.get(session_id).metadata == TRIP
    ana.add(say("Once more"), session="s", when="end", metadata={"day": 4})
    assert ana.sessions.get(session_id).metadata == TRIP | {"day": 4}
    assert ana.sessions.set_metadata(session_id, {}).metadata is None
    moved = ana.sessions.move(ana.sessions.set_metadata(session_id, TRIP).id, "work")
    assert moved.metadata == TRIP


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        [("a", 1)],
        {1: "a"},
        {"": "a"},
        {"k" * 65: 1},
        {"a": None},
        {"a": [1]},
        {"a": {"b": 1}},
        {"a": inf},
        {"a": float("nan")},
        {"a": "x" * 4_100},
        {"token": "AKIA" + "ABCDEFGHIJKLMNOP"},
    ],
    ids=str,
)
def test_what_is_not_flat_too_long_or_secret_is_refused_and_nothing_is_kept(
    ana: Any, bad: Any
) -> None:
    with pytest.raises(InputError, match="metadata"):
        ana.memories.add("profile", "city", "Oslo", metadata=bad)
    with pytest.raises(InputError, match="metadata"):
        ana.notes.add("The ferry was late.", metadata=bad)
    with pytest.raises(InputError, match="metadata"):
        ana.add(say("Hello"), metadata=bad)
    assert ana.memories.list() == [] == ana.notes.list() and ana.sessions.list() == []


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.integers() | st.booleans() | st.text()))
def test_any_flat_mapping_that_is_kept_has_a_text_for_each_name(given: dict[str, Any]) -> None:
    try:
        found = clean_metadata(given)
    except InputError:
        return
    assert len(found) == len(given) and sum(map(len, found.values())) <= 4_096


def test_a_fact_is_found_by_what_is_noted_beside_it_or_beside_a_conversation_that_proves_it(
    ana: Any, extract_model: ScriptedModel
) -> None:
    taught(ana, extract_model, "Oslo", metadata={"trip": "north"})
    taught(ana, extract_model, "Porto", metadata={"trip": "south"})
    ana.memories.add("fact", "ferry", "was late", metadata={"trip": "north", "leg": 2})
    north = {"visit_oslo", "ferry"}
    assert {m.key for m in ana.memories.list(metadata={"trip": "north"})} == north
    assert ana.memories.count(metadata={"trip": "north"}) == 2
    assert {*keys(ana.search("Where was I?", metadata={"trip": "north"}))} == north
    assert [m.key for m in ana.memories.list(metadata={"trip": "north", "leg": 2})] == ["ferry"]
    for other in ({"leg": "2"}, {"leg": 2.5}, {"leg": True}, {"trip": "east"}):
        assert ana.memories.list(metadata=other) == []
    context = ana.context("Where was I?", metadata={"trip": "south"}).text
    assert "Porto" in context and "Oslo" not in context and "ferry" not in context
    hits = ana.search("I was in Porto", metadata={"trip": "south"}).hits
    assert all("Oslo" not in hit.text for hit in hits) and hits


def test_a_filter_takes_no_place_of_the_limit_and_a_person_finds_no_others(
    mc: MemChat, ana: Any
) -> None:
    for n in range(60):
        ana.memories.add("fact", f"boat_{chr(97 + n % 26)}{n // 26}", f"a red kayak, the {n}th")
    wanted = ana.memories.add("fact", "pet", "a dog", metadata={"for": "vet"})
    mc.user("ben").memories.add("fact", "pet", "a cat", metadata={"for": "vet"})
    found = ana.search("Which red kayak is it?", limit=3, metadata={"for": "vet"})
    assert [hit.id for hit in found.hits] == [wanted.id]
    assert [m.value for m in mc.user("ben").memories.list(metadata={"for": "vet"})] == ["a cat"]


def test_filters_by_day_key_type_tag_and_by_whom_it_was_said(
    mc: MemChat, ana: Any, clock: FakeClock, extract_model: ScriptedModel
) -> None:
    early = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)  # the second of March in Berlin
    taught(ana, extract_model, "Oslo", at=early)
    taught(ana, extract_model, "Porto", at=datetime(2026, 4, 1, 9, tzinfo=UTC))
    ana.memories.add("preference", "tea", "green", tags=["kitchen"])
    ana.client("Editor", "trust").remember("fact", "tool", "a red brush")

    everything = {"visit_oslo", "visit_porto", "tea", "tool"}
    assert {m.key for m in ana.memories.list()} == everything
    found = {m.key for m in ana.memories.list(since=date(2026, 3, 2), until=date(2026, 3, 2))}
    assert found == {"visit_oslo"}
    assert {m.key for m in ana.memories.list(since=early, until=early)} == {"visit_oslo"}
    assert {m.key for m in ana.memories.list(until=date(2026, 3, 1))} == set()
    search = ana.search("I was in Oslo or Porto", since=date(2026, 3, 15), until=date(2026, 4, 15))
    assert {*keys(search)} == {"visit_porto"}
    assert all("Oslo" not in hit.text for hit in search.hits)
    assert [m.key for m in ana.memories.list(key="Tea")] == ["tea"]
    assert keys(ana.search("What of me?", key="tea")) == ["tea"]
    assert keys(ana.search("What of me?", type="preference")) == ["tea"]
    assert keys(ana.search("What of me?", tags=["kitchen"])) == ["tea"]
    for only in ({"key": "tea"}, {"type": "preference"}, {"tags": ["kitchen"]}):
        context = ana.context("What of me?", **only).text
        assert "tea: green" in context and "Oslo" not in context and "brush" not in context
    assert {m.key for m in ana.memories.list(said_by="program")} == {"tool"}
    assert {m.key for m in ana.memories.list(said_by="person")} == everything - {"tool"}
    hits = ana.search("I was in Oslo, with a brush", said_by="program").hits
    assert [hit.kind for hit in hits] == ["memory"]
    for bad in (
        {"type": "thing"},
        {"said_by": "nobody"},
        {"since": "2026-03-01"},
        {"since": datetime(2026, 3, 1)},
        {"metadata": "x"},
    ):
        for verb in (ana.memories.list, ana.search, ana.context):
            with pytest.raises(InputError):
                verb("What of me?", **bad)
    with pytest.raises(TypeError, match="no filter colour"):
        ana.search("What of me?", colour="red")


def test_notes_are_listed_and_searched_by_it(ana: Any) -> None:
    ana.notes.add("The ferry was late.", metadata={"trip": "north"})
    ana.notes.add("The ferry was early.", metadata={"trip": "south"})
    assert [n.metadata for n in ana.notes.list(metadata={"trip": "south"})] == [{"trip": "south"}]
    (hit,) = ana.notes.search("ferry", metadata={"trip": "north"}, include_text=True).hits
    assert hit.text == "The ferry was late."


def test_no_model_sees_it(
    ana: Any, extract_model: ScriptedModel, chat_model: ScriptedModel
) -> None:
    taught(ana, extract_model, "Oslo", metadata={"case": "quokka"})
    ana.memories.add("profile", "city", "Bergen", metadata={"case": "quokka"})
    ana.notes.add("The ferry was late.", metadata={"case": "quokka"})
    with ana.chat() as chat:
        chat.send("Where was I, and was the ferry late?").read()
    extract_model.replies.append(answer())
    sent = [*extract_model.requests, *chat_model.requests]
    assert len(sent) > 2
    assert all("quokka" not in turn.content for one in sent for turn in one.messages)
    assert "quokka" not in ana.context("Where was I?").text


def test_it_leaves_the_disk_with_its_owner(
    mc: MemChat, ana: Any, extract_model: ScriptedModel
) -> None:
    session_id = taught(ana, extract_model, "Oslo", metadata={"case": "quokkaone"})
    memory = ana.memories.add("profile", "city", "Bergen", metadata={"case": "quokkatwo"})
    note = ana.notes.add("The ferry was late.", metadata={"case": "quokkathree"})
    assert files_with(mc, "quokkaone") and files_with(mc, "quokkatwo")
    ana.memories.delete(memory.id)
    ana.notes.delete(note.id)
    ana.sessions.delete(session_id)
    for words in ("quokkaone", "quokkatwo", "quokkathree"):
        assert files_with(mc, words) == []


def test_an_export_takes_it_along_and_an_import_brings_it_back(
    mc: MemChat, ana: Any, extract_model: ScriptedModel, tmp_path: Path
) -> None:
    session_id = taught(ana, extract_model, "Oslo", metadata={"case": "a", "n": 1})
    ana.memories.add("profile", "city", "Bergen", metadata=TRIP)
    ana.notes.add("The ferry was late.", metadata={"case": "c"})
    ana.export_file(tmp_path / "ana.jsonl")
    mc.users.delete("ana")
    with pytest.raises(NotFound):
        ana.sessions.get(session_id)
    ana.import_file(tmp_path / "ana.jsonl")
    ana.import_file(tmp_path / "ana.jsonl")
    assert [m.metadata for m in ana.memories.list(key="city")] == [TRIP]
    assert [m.key for m in ana.memories.list(metadata={"case": "a"})] == ["visit_oslo"]
    assert [n.metadata for n in ana.notes.list()] == [{"case": "c"}]
    assert [s.metadata for s in ana.sessions.list()] == [{"case": "a", "n": 1}]


def test_undoing_a_mended_repeat_brings_it_back(ana: Any, mc: MemChat) -> None:
    memory = ana.memories.add("profile", "city", "Bergen", metadata=TRIP)
    ana.memories.delete(memory.id, hold=60)
    assert ana.memories.restore(memory.id).metadata == TRIP


def test_the_page_for_people_shows_what_is_noted_beside_each(ana: Any, tmp_path: Path) -> None:
    ana.memories.add("profile", "city", "Oslo", metadata=TRIP)
    ana.notes.add("The ferry was late.", metadata={"line": 7})
    ana.add(say("Hello"), session="s", when="end", metadata={"channel": "mail"})
    page = ana.export_file(tmp_path / "ana.md", format="markdown").file.read_text("utf-8")
    assert "cost = 2.5, day = 3, paid = True, trip = oslo)" in page
    assert "; line = 7" in page and "App: default; channel = mail" in page
