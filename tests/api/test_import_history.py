"""Importing what other products exported."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memchat.errors import InputError, NotFound, ProviderError
from memchat.testing import FakeClock
from tests.support.answers import answer, fact
from tests.support.histories import (
    SEPTEMBER,
    chatgpt,
    claude,
    gemini,
    message,
    node,
    talk,
    write,
    zipped,
)
from tests.support.store import Opener


@pytest.fixture
def ana(mc):
    return mc.user("ana")


Take = Callable[..., Any]


@pytest.fixture
def take(ana, tmp_path: Path) -> Take:
    """Imports this content."""

    def one(content: Any, **more: Any) -> Any:
        return ana.import_history(write(tmp_path / "given", content), **more)

    return one


def said(person: Any) -> dict[str, list[tuple[str, str]]]:
    """What each conversation holds, by its title."""
    return {
        session.title: [(m.role[0], m.content) for m in person.sessions.messages(session.id)]
        for session in person.sessions.list(limit=1000)
    }


TWO = [
    talk("a", "I live in Lisbon", "A fine city.", "I like tea", "So do I."),
    talk("b", "Hi", "Hello.", at=SEPTEMBER + 86_400),
]
HELD = {
    "Talk a": [
        *[("u", "I live in Lisbon"), ("a", "A fine city."), ("u", "I like tea")],
        ("a", "So do I."),
    ],
    "Talk b": [("u", "Hi"), ("a", "Hello.")],
}
SHAPES = {
    "array": TWO,
    "one conversation to a line": "\n".join(map(json.dumps, TWO)),
    "zip": zipped({"conversations.json": TWO, "user.json": {"id": "u"}, "chat.html": b"<html>"}),
    "shards": zipped({f"x/conversations-00{n}.json": [one] for n, one in enumerate(TWO)}),
    "zip in zip": zipped({"outer/inner.zip": zipped({"conversations-000.json": TWO})}),
    "other names": zipped({"data.bin": TWO}),
    "a Mac's": zipped({"conversations.json": TWO, "__MACOSX/._conversations.json": b"\0\5junk"}),
    "UTF-16": json.dumps(TWO).encode("utf-16"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + json.dumps(TWO).encode(),
    "indented": json.dumps(TWO, indent=4),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_chatgpt_export_holds_the_same(ana, take: Take, shape: str) -> None:
    done = take(SHAPES[shape])
    assert (done.product, done.conversations, done.messages) == ("ChatGPT", 2, 6)
    assert done.added == {"session": 2, "message": 6}
    assert said(ana) == HELD


def test_a_folder_is_read_as_what_lies_in_it(ana, tmp_path: Path) -> None:
    folder = tmp_path / "export" / "part"
    folder.mkdir(parents=True)
    write(folder / "one.json", TWO[:1])
    write(folder / "two.zip", zipped({"conversations.json": TWO[1:]}))
    (tmp_path / "elsewhere.json").write_text(json.dumps([talk("c", "Not mine")]))
    (folder / "link.json").symlink_to(tmp_path / "elsewhere.json")
    done = ana.import_history(tmp_path / "export")
    assert said(ana) == HELD and done.left_out == {"links, which are not followed": 1}


def test_conversations_keep_their_dates(ana, take: Take) -> None:
    done = take(TWO)
    began = datetime.fromtimestamp(SEPTEMBER, UTC)
    assert (done.first, done.last) == (began, began + timedelta(days=1, minutes=1))
    first = min(ana.sessions.list(), key=lambda one: one.started_at)
    assert (first.started_at, first.last_activity_at) == (began, began + timedelta(minutes=3))
    turns = ana.sessions.messages(first.id)
    assert [m.created_at - began for m in turns] == [timedelta(minutes=n) for n in range(4)]
    assert ana.search("tea").hits[0].said_at.year == 2023


def test_only_the_branch_that_is_shown_is_taken(ana, take: Take) -> None:
    nodes = {
        "r": node("r", None, None),
        "s": node("s", "r", message("system", "Be kind")),
        "u": node("u", "s", message("user", "What is tea?")),
        "old": node("old", "u", message("assistant", "Coffee.")),
        "new": node("new", "u", message("assistant", "Leaves.")),
        "loop": node("loop", "loop", message("user", "round")),
    }
    done = take([{"id": "a", "title": None, "mapping": nodes, "current_node": "new"}])
    assert said(ana) == {None: [("u", "What is tea?"), ("a", "Leaves.")]}
    assert done.left_out == {
        "messages of branches that were abandoned": 2,
        "system, tool and hidden messages": 1,
    }


def test_without_a_current_node_the_newest_leaf_is_taken(ana, take: Take) -> None:
    nodes = {
        "u": node("u", None, message("user", "Hi")),
        "old": node("old", "u", message("assistant", "Old.", at=SEPTEMBER)),
        "new": node("new", "u", message("assistant", "New.", at=SEPTEMBER + 1)),
    }
    take([{"id": "a", "title": "T", "mapping": nodes}])
    assert said(ana) == {"T": [("u", "Hi"), ("a", "New.")]}


def test_hidden_messages_tools_and_citation_marks_are_left_out(ana, take: Take) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    talked = chatgpt(
        "a",
        message("user", "Hidden", metadata=hidden),
        message(
            "user", {"content_type": "image_asset_pointer"}, "Look", content_type="multimodal_text"
        ),
        message("assistant", "", content={"content_type": "code", "text": "print()"}),
        message("assistant", "search()", recipient="browser"),
        message("tool", "output"),
        message("assistant", "", content={"content_type": "thoughts", "thoughts": []}),
        message("user", {"content_type": "image_asset_pointer"}, content_type="multimodal_text"),
        message("assistant", "It is so.\ue200cite\ue202turn0\ue201 And so【4†source】."),
    )
    done = take([talked])
    assert said(ana) == {"Talk a": [("u", "Look"), ("a", "It is so. And so.")]}
    assert done.left_out == {"system, tool and hidden messages": 5, "messages without text": 1}


def test_missing_times_are_those_of_the_message_before(ana, take: Take) -> None:
    words = ("one", "two", "three")
    times = (None, SEPTEMBER + 5, None)
    take([chatgpt("a", *(message("user", w, at=at) for w, at in zip(words, times, strict=True)))])
    (session,) = ana.sessions.list()
    at = [m.created_at.timestamp() - SEPTEMBER for m in ana.sessions.messages(session.id)]
    assert at == [0, 5, 5]


def test_times_that_cannot_be_are_as_missing_ones(ana, take: Take) -> None:
    times = (SEPTEMBER, 1e12 * 9, -5, float("nan"), "soon", True)
    done = take([chatgpt("a", *(message("user", f"m{n}", at=at) for n, at in enumerate(times)))])
    (session,) = ana.sessions.list()
    assert {m.created_at.timestamp() for m in ana.sessions.messages(session.id)} == {SEPTEMBER}
    assert done.first == done.last
    take([chatgpt("b", message("user", "Undated", at=None), create_time=None)])
    newest = max(ana.sessions.list(), key=lambda one: one.started_at)
    assert newest.started_at == ana.sessions.list()[0].started_at, "it is dated today"


def test_saved_memories_wait_in_the_inbox_with_their_origin_and_day(ana, take: Take) -> None:
    context = "1. [2024-05-01]. Has a dog named Bo\n2. [2024-06-02]. Plays the cello"
    shown = {"content_type": "model_editable_context", "model_set_context": context}
    talked = chatgpt(
        "a",
        message("assistant", content=shown),
        message("user", "", content={"content_type": "user_editable_context", "user_profile": "x"}),
        message("user", "I drink tea"),
        message("assistant", "Drinks tea\nHas a dog named Bo", recipient="bio"),
        message("tool", "Model set context updated.", author={"role": "tool", "name": "bio"}),
        message("assistant", "Noted."),
    )
    done = take([talked])
    waiting = {one.value: one for one in ana.inbox.list()}
    assert waiting.keys() == {"Has a dog named Bo", "Plays the cello", "Drinks tea"}
    assert waiting["Plays the cello"].reason == "imported from ChatGPT, saved 2024-06-02"
    assert done.saved == done.added["inbox_item"] == 3 and ana.memories.list() == []
    assert ana.search("cello").hits == (), "nothing is known of it without a yes"
    assert "Plays the cello" in ana.inbox.question(waiting["Plays the cello"])
    kept = ana.inbox.accept(waiting["Plays the cello"].id)
    assert kept.said_at.date().isoformat() == "2024-06-01"  # midnight in Berlin
    assert take([talked]).added == {} and len(ana.inbox.list()) == 2
    ana.inbox.reject(waiting["Drinks tea"].id)
    assert take([talked]).added == {} and len(ana.inbox.list()) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_lines_may_be_in_another_encoding(ana, take: Take, encoding: str) -> None:
    take("- [2024-05-01] Mag grünen Tee und süße Brötchen\r\n- [2024-05-02] Läuft".encode(encoding))
    found = [one.value for one in ana.inbox.list()]
    assert found == ["Mag grünen Tee und süße Brötchen", "Läuft"]


def test_a_saved_fact_with_a_secret_or_too_long_is_left_out_and_said(ana, take: Take) -> None:
    lines = ["The password is hunter2x9!", "a word " * 60]
    bad = "".join(f"- [2024-05-01] {line}\n" for line in lines)
    with pytest.raises(InputError, match="look like a secret"):
        take(bad)
    assert ana.sessions.list() == []
    done = take(f"{bad}- [2024-05-03] Likes tea")
    assert [one.value for one in ana.inbox.list()] == ["Likes tea"]
    assert done.left_out == {
        "saved facts that look like a secret": 1,
        "saved facts of more than 280 characters": 1,
    }


def test_a_saved_fact_that_was_forgotten_here_is_not_asked_about(ana, take: Take) -> None:
    memory = ana.memories.add("other", "note", "Has a dog named Barnaby")
    ana.memories.delete(memory.id)
    done = take("- [2024-05-01] Has a dog named Barnaby\n- [2024-05-01] Likes tea")
    assert [one.value for one in ana.inbox.list()] == ["Likes tea"]
    assert done.left_out == {"saved facts that were forgotten here": 1}


def test_lines_of_facts_wait_in_the_inbox(ana, take: Take) -> None:
    lines = ("- [2024-05-01] Likes tea", "[9999-12-31] - Has a cat", "- [?] Runs")
    lines = (*lines, "* [0001-01-01]: Swims")
    done = take("\n".join(("Here is what I know:", "```", *lines, "```")))
    assert [one.value for one in ana.inbox.list()] == ["Likes tea", "Has a cat", "Runs", "Swims"]
    assert done.left_out == {"lines that are no “- [date] fact”": 1}


CLAUDE = [claude("a", "I live in Lisbon", "A fine city."), claude("b", "Hi", "Hello.")]
CLAUDE_HELD = {"Talk a": [*HELD["Talk a"][:2]], "Talk b": HELD["Talk b"]}
CLAUDE_SHAPES = {
    "array": CLAUDE,
    "zip": zipped({"conversations.json": CLAUDE, "users.json": [{"full_name": "Ana"}]}),
    "index and files": zipped(
        {"conversations.json": [{"uuid": one["uuid"], "name": one["name"]} for one in CLAUDE]}
        | {f"conversations/{one['uuid']}.json": one for one in CLAUDE}
    ),
    "messages": [
        {("messages" if k == "chat_messages" else k): v for k, v in one.items()} for one in CLAUDE
    ],
    "zip in zip": zipped({"conversations-000.zip": zipped({"conversations.json": CLAUDE})}),
}


@pytest.mark.parametrize("shape", CLAUDE_SHAPES)
def test_every_shape_of_a_claude_export_holds_the_same(ana, take: Take, shape: str) -> None:
    done = take(CLAUDE_SHAPES[shape])
    assert (done.product, said(ana)) == ("Claude", CLAUDE_HELD)
    (one, _) = sorted(ana.sessions.list(), key=lambda one: one.title)
    assert one.started_at == datetime(2024, 2, 3, 10, 0, tzinfo=UTC)


def test_thinking_tools_and_attachments_of_claude_are_no_words(ana, take: Take) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "text", "text": "Yes."},
        {"type": "tool_use", "input": {}},
    ]
    first, second, third = claude("a", "Look", "x", "y")["chat_messages"]
    first |= {"attachments": [{"file_name": "a.txt", "extracted_content": "I live in Rome"}]}
    second |= {"text": "Hm Yes.", "content": blocks}
    third |= {"text": "", "content": [], "files": [{"file_name": "b.png"}]}
    only_thought = claude("b", "z")
    only_thought["chat_messages"][0] |= {"content": blocks[:1]}
    done = take([claude("a") | {"chat_messages": [first, second, third]}, only_thought])
    assert said(ana) == {"Talk a": [("u", "Look"), ("a", "Yes.")]}
    assert done.left_out == {
        "attachments": 2,
        "messages without text": 2,
        "conversations without a message that can be read": 1,
    }


def test_only_the_last_branch_of_a_claude_tree_is_taken(ana, take: Take) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    first, old, new = claude("a", "Hi", "Old.", "x")["chat_messages"]
    first |= {"parent_message_uuid": root}
    old |= {"parent_message_uuid": "a-0"}
    new |= {
        "parent_message_uuid": "a-0",
        "sender": "assistant",
        "content": [{"type": "text", "text": "New."}],
    }
    take([claude("a") | {"chat_messages": [first, old, new]}])
    assert said(ana) == {"Talk a": [("u", "Hi"), ("a", "New.")]}
    shown = claude("b") | {"chat_messages": [first, old, new], "current_leaf_message_uuid": "a-1"}
    take([shown])
    assert said(ana)["Talk b"] == [("u", "Hi"), ("a", "Old.")]


def test_memories_projects_and_missing_files_of_claude(ana, take: Take) -> None:
    memories = {
        "conversations_memory": "**Work**\n- Builds boats\n\nLikes rain",
        "project_memories": {"p": "The boat is blue"},
        "account_uuid": "u",
    }
    project = {"uuid": "p", "name": "Boat", "prompt_template": "", "docs": [{"content": "x"}]}
    done = take(
        zipped(
            {
                "conversations.json": [*CLAUDE, {"uuid": "gone", "name": "Gone"}],
                "projects/p.json": project,
                "memories.json": [memories],
            }
        )
    )
    found = [one.value for one in ana.inbox.list()]
    assert found == ["Work", "Builds boats", "Likes rain", "The boat is blue"]
    assert done.left_out == {
        "projects with their documents": 1,
        "conversations that are only listed, without their file": 1,
    }


def test_gemini_is_parted_where_it_was_silent_for_half_an_hour(ana, take: Take) -> None:
    activity = [
        gemini("Prompted Goodbye", "2024-01-02T10:00:00Z", "<p>See <b>you</b></p>"),
        gemini("Asked What is tea?\nAttached 2 files.", "2024-01-01T10:20:00Z", "<p>Leaves</p>"),
        gemini("Gefragt: „Wie geht es?“", "2024-01-01T10:05:00Z", "<p>Gut</p>"),
        gemini("Said Hello", "2024-01-01T10:00:00Z"),
        gemini("Used an Assistant feature", "2024-01-01T10:00:00Z"),
        gemini("Created Gemini Canvas", "2024-01-01T10:00:00Z", "<p>x</p>"),
        gemini("Asked no answer", "no time"),
        gemini("Searched for cats", "2024-01-01T10:00:00Z", header="Search", products=["Search"]),
    ]
    done = take(zipped({"Takeout/My Activity/Gemini Apps/MyActivity.json": activity}))
    first, second = sorted(ana.sessions.list(), key=lambda one: one.started_at)
    turns = [(m.role[0], m.content) for m in ana.sessions.messages(first.id)]
    assert turns == [
        ("u", "Hello"),
        ("u", "Wie geht es?"),
        ("a", "Gut"),
        ("u", "What is tea?"),
        ("a", "Leaves"),
    ]
    assert [m.content for m in ana.sessions.messages(second.id)] == ["Goodbye", "See you"]
    assert sum(done.left_out.values()) == 4


def test_json_lines_with_messages_are_conversations(ana, take: Take) -> None:
    lines = [
        {"session": "x", "messages": [{"role": "user", "content": "Hi", "created_at": SEPTEMBER}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Yo"}]}]},
        {"messages": [{"role": "user", "content": "Yo"}, {"role": "tool", "content": "x"}]},
    ]
    done = take("\n".join(map(json.dumps, lines)))
    assert sorted(turns[0][1] for turns in held(ana)) == ["Hi", "Yo", "Yo"]
    assert done.left_out == {"system, tool and hidden messages": 1}
    assert take("\n".join(map(json.dumps, lines))).added == {}


def held(person: Any) -> list[list[tuple[str, str]]]:
    return [
        [(m.role[0], m.content) for m in person.sessions.messages(one.id)]
        for one in person.sessions.list(limit=1000)
    ]


def test_a_second_import_adds_nothing_and_a_grown_conversation_what_is_new(ana, take: Take) -> None:
    take(TWO)
    again = take(TWO)
    assert (again.added, again.known, again.id) == ({}, 2, None) and said(ana) == HELD
    grown = talk("b", "Hi", "Hello.", "I moved to Porto", "Oh!", at=SEPTEMBER + 86_400)
    done = take([TWO[0], grown])
    assert (done.added, done.known, done.grown) == ({"message": 2}, 1, 1)
    assert said(ana)["Talk b"] == [*HELD["Talk b"], ("u", "I moved to Porto"), ("a", "Oh!")]


def test_a_conversation_that_stands_twice_in_an_export_is_one(ana, take: Take) -> None:
    twice = zipped({"a.json": TWO, "b.json": TWO[:1]})
    plan, done = take(twice, dry_run=True), take(twice)
    assert (plan.added, plan.known) == (done.added, done.known)
    assert (done.known, said(ana)) == (1, HELD)


def test_a_turn_that_was_said_again_or_in_another_place_is_known(ana, take: Take) -> None:
    take([talk("a", "ok", "Fine.", "ok", "Good.")])
    assert take([talk("a", "ok", "Fine.")]).added == {}
    assert take([talk("a", "ok", "Other.", "ok", "Good.", "ok")]).added == {"message": 2}
    assert take([talk("a", "ok", "Other.", "ok", "Good.", "ok")]).added == {}


def test_what_was_deleted_here_stays_so(ana, take: Take) -> None:
    take(TWO)
    by_title = {one.title: one.id for one in ana.sessions.list()}
    ana.sessions.delete(by_title["Talk b"])
    ana.sessions.delete_message(ana.sessions.messages(by_title["Talk a"])[2].id)
    grown = talk("b", "Hi", "Hello.", "More", at=SEPTEMBER + 86_400)
    done = take([TWO[0], grown])
    assert (done.added, done.known, done.deleted) == ({}, 1, 1)
    assert said(ana) == {"Talk a": [*HELD["Talk a"][:2], HELD["Talk a"][3]]}


def test_a_preview_stores_nothing_and_says_what_an_import_does(ana, take: Take) -> None:
    plan = take(TWO, dry_run=True)
    assert plan.dry_run and plan.id is None and said(ana) == {} and not ana.apps.list()
    done = take(TWO)
    assert (
        (plan.added, plan.to_read)
        == (done.added, done.to_read)
        == ({"session": 2, "message": 6}, 2)
    )
    assert plan.calls >= 4 and "calls" in plan.effort
    told = "\n".join(plan.told())
    assert "ChatGPT: 2 conversations, 6 messages" in told and "2023-09-06 to 2023-09-07" in told


def test_the_newest_are_read_the_oldest_of_them_first(ana, take: Take, extract_model) -> None:
    many = [talk(str(n), f"I said {n}", at=SEPTEMBER + n * 86_400) for n in (3, 1, 4, 0, 2)]
    extract_model.replies.extend([answer()] * 20)
    done = take(many, newest=3, learn="now")
    assert done.to_read == 3
    sent = [request.messages[-1].content for request in extract_model.requests]
    read = [n for prompt in sent for n in "01234" if f"I said {n}" in prompt]
    assert [*dict.fromkeys(read)] == ["2", "3", "4"]
    assert len(sent) <= done.calls, "it said so at most"
    assert {one.title: one.status for one in ana.sessions.list()}["Talk 0"] == "extracted"


def test_later_leaves_the_reading_to_a_worker_and_no_to_nobody(
    mc, ana, take: Take, extract_model
) -> None:
    assert take(TWO, learn="no").to_read == 0 and mc.jobs.run().done == 0
    assert ana.search("Lisbon").hits, "it is found all the same"
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    assert take([talk("c", "I live in Porto", "Fine.")]).to_read == 1
    mc.jobs.run()
    (city,) = ana.memories.list()
    assert (city.value, city.said_at.year) == ("Porto", 2023)


def test_what_was_said_earlier_never_replaces_what_was_said_later(
    ana, take: Take, extract_model
) -> None:
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    take([talk("new", "I live in Porto", at=SEPTEMBER + 9e6)], learn="now")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    take([talk("old", "I live in Lisbon")], learn="now")
    assert [one.value for one in ana.memories.list()] == ["Porto"]


def test_an_answer_to_a_saved_fact_survives_the_import_that_brought_it(ana, take: Take) -> None:
    done = take("- [2024-05-01] Likes tea\n- [2024-06-01] Has a dog")
    ana.inbox.accept(ana.inbox.list()[0].id)
    ana.undo_import(done.id)
    assert [one.value for one in ana.memories.list()] == ["Likes tea"] and ana.inbox.list() == []


def test_a_failing_model_leaves_the_reading_to_a_later_worker(
    mc, ana, take: Take, extract_model, clock: FakeClock
) -> None:
    extract_model.replies.append(ProviderError("no answer", retryable=True))
    done = take(TWO[:1], learn="now")
    assert done.added == {"session": 1, "message": 4} and ana.memories.list() == []
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    clock.advance(seconds=3600)
    mc.jobs.run()
    assert [one.value for one in ana.memories.list()] == ["Lisbon"]


def test_an_import_is_taken_back_as_a_whole(mc, ana, take: Take, extract_model) -> None:
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    first = take(TWO[:1], learn="now")
    assert len(ana.memories.list()) == 1
    grown = talk("a", *(words for _, words in HELD["Talk a"]), "I like jam", "Good.")
    second = take([grown, TWO[1]], learn="no")
    take("- [2024-05-01] Likes tea")
    assert first.id and second.id and first.id < second.id
    assert ana.undo_import("last").sessions == 1 and ana.inbox.list() == []
    assert ana.undo_import(second.id).sessions == 1 and said(ana) == {"Talk a": HELD["Talk a"]}
    assert len(ana.memories.list()) == 1
    again = take([grown, TWO[1]], learn="no")
    assert again.added == {"session": 1, "message": 4}, "it can be imported again"
    ana.undo_import(first.id)
    assert ana.memories.list() == [] and said(ana).keys() == {"Talk b"}
    with pytest.raises(NotFound, match=f"there are {again.id}"):
        ana.undo_import(first.id)


def test_a_conversation_that_grew_with_many_imports_moves_to_another_store(
    open_store: Opener, ana, take: Take, clock: FakeClock, tmp_path: Path
) -> None:
    words = ["Hi", "Hello."]
    for n in range(45):
        take([talk("a", *words)], learn="no")
        words.append(f"And {n}")
        clock.advance(seconds=n % 3)
    last = take([talk("a", *words)], learn="no")
    own = ana.export_file(tmp_path / "own").file
    bo = open_store(home=tmp_path / "other").user("bo")
    assert bo.import_file(own).refused == () and said(bo) == said(ana)
    assert bo.undo_import(last.id).sessions == 0 and said(bo) == said(ana), "no other is deleted"
    ana.undo_import(last.id)
    assert said(ana)["Talk a"][-1][1] == "And 43"
    ana.undo_import(min(one.metadata["import"] for one in ana.sessions.list()))
    assert said(ana) == {} and take([talk("a", *words)]).added == {"session": 1, "message": 47}


def test_what_a_program_noted_under_the_name_of_an_import_is_no_import_and_stays(ana) -> None:
    said_before = [{"role": "user", "content": "Hi"}]
    ana.add(said_before, metadata={"import 2099-01-01T00:00:00": 5}, wait=False)
    assert ana.undo_import("last").sessions == 0
    assert [one.message_count for one in ana.sessions.list()] == [1]


def test_what_was_deleted_before_an_import_was_taken_back_stays_away(ana, take: Take) -> None:
    done = take(TWO)
    ana.sessions.delete(next(one.id for one in ana.sessions.list() if one.title == "Talk b"))
    ana.undo_import(done.id)
    assert take(TWO).deleted == 1 and said(ana).keys() == {"Talk a"}


BAD = [
    {"mapping": None},
    {"mapping": {"a": 3, "b": {"message": "x", "parent": ["b"]}}, "current_node": "b"},
    {"mapping": {"a": {"message": {"author": 3, "content": []}}}},
    {"chat_messages": 5},
    {"title": 3, "time": {}, "header": []},
    {"messages": [3, None, {"role": 3}]},
    "text",
    7,
    None,
]


def test_one_bad_conversation_never_stops_the_rest_and_is_counted(ana, take: Take) -> None:
    done = take([TWO[0], *BAD, TWO[1]])
    assert said(ana) == HELD
    conversations = done.left_out["conversations without a message that can be read"]
    assert conversations + done.left_out["records of another kind"] + 1 == len(BAD)


@pytest.mark.parametrize("junk", ["{broken}", '{"mapping": [1, {"a": tru}], "x": 3}', "nul", "}"])
def test_broken_json_between_conversations_is_counted(ana, take: Take, junk: str) -> None:
    first, second = map(json.dumps, TWO)
    assert take(f"[{first}, {junk}, {second}]").left_out == {"parts that are no JSON": 1}
    assert said(ana) == HELD


def test_a_file_that_was_cut_off_gives_what_is_whole(ana, take: Take) -> None:
    done = take(json.dumps(TWO)[:-40])
    assert said(ana).keys() == {"Talk a"} and done.left_out["parts that are no JSON"]


NOTHING: dict[str, Any] = {
    "empty file": b"",
    "empty list": [],
    "empty object": {},
    "empty zip": zipped({}),
    "bytes": bytes(range(256)) * 20,
    "prose": "Dear diary, nothing happened today.",
    "other JSON": [{"a": 1}],
    "only empty conversations": [chatgpt("a")],
    "half a zip": zipped({"conversations.json": TWO})[:200],
    "deep": "[" * 100_000,
    "deep objects": '[{"a":' + '{"a":' * 50_000,
}


@pytest.mark.parametrize("what", NOTHING)
def test_nothing_imported_is_never_success(take: Take, what: str) -> None:
    with pytest.raises(InputError):
        take(NOTHING[what])


def test_a_conversation_that_is_open_in_a_chat_is_left_out_and_said(ana, take: Take) -> None:
    take(TWO, learn="no")
    session = next(one for one in ana.sessions.list() if one.title == "Talk a")
    grown = talk("a", *(words for _, words in HELD["Talk a"]), "More")
    with ana.chat(resume=session.id) as chat:
        chat.send("Hello again").read()
        assert take([grown], learn="no").left_out == {"conversations that are open in a chat": 1}
    assert take([grown], learn="no").added == {"message": 1}


def test_memory_that_is_off_refuses_an_import(ana, take: Take) -> None:
    ana.set_memory(False)
    for dry_run in (True, False):
        with pytest.raises(InputError, match="nothing was imported"):
            take(TWO, dry_run=dry_run)


def test_an_own_export_is_left_to_import_file(ana, mc, take: Take, tmp_path: Path) -> None:
    ana.memories.add("fact", "pet", "a cat")
    (tmp_path / "talk.json").write_text(json.dumps(TWO), encoding="utf-8")
    ana.notes.add_files([tmp_path / "talk.json"])
    for form in ("jsonl", "zip"):
        own = ana.export_file(tmp_path / form, format=form).file
        assert ana.import_history(own, dry_run=True).product == "memchat"
        with pytest.raises(InputError, match="import_file"):
            ana.import_history(own)


def packed(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return made.getvalue()


def test_a_zip_reaches_nothing_outside_and_follows_no_link(ana, take: Take, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    mine, other = json.dumps(TWO).encode(), json.dumps([talk("c", "Other")]).encode()
    before = {*tmp_path.rglob("*")}
    done = take(
        packed(("../up.json", other), ("/root.json", other), (link, b"/etc/passwd"), ("a", mine))
    )
    assert said(ana) == HELD
    assert done.left_out == {
        "files with a name that leads out of the archive": 2,
        "links, which are not followed": 1,
    }
    assert {*tmp_path.rglob("*.json")} <= before


def test_a_bomb_is_refused(ana, take: Take) -> None:
    with pytest.raises(InputError, match="unpack to far more"):
        take(packed(("conversations.json", b"[" + b" " * 50_000_000 + b"]")))
    assert said(ana) == {}


def test_a_broken_file_in_a_zip_does_not_stop_the_others(ana, take: Take) -> None:
    data = bytearray(zipped({"a.json": [TWO[0]], "b.json": [TWO[1]]}))
    at = data.index(b"a.json") + 20
    data[at : at + 30] = b"\xff" * 30
    done = take(bytes(data))
    assert said(ana).keys() == {"Talk b"} and done.left_out


def test_zips_in_one_another_without_end_are_left_out(take: Take) -> None:
    packed_ = zipped({"conversations.json": TWO})
    for _ in range(4):
        packed_ = zipped({"inner.zip": packed_})
    with pytest.raises(InputError):
        take(packed_)


@pytest.mark.parametrize("given", [{"learn": "soon"}, {"newest": -1}])
def test_arguments_that_cannot_be_are_refused(take: Take, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        take(TWO, **given)
