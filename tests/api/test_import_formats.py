"""Importing from products that people run themselves, pages of Google, and Markdown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memchat.errors import InputError
from memchat.transfer import archive
from tests.support.histories import (
    SEPTEMBER,
    gemini_page,
    letta,
    librechat,
    mem0,
    openwebui,
    write,
    zipped,
)


@pytest.fixture
def ana(mc):
    return mc.user("ana")


@pytest.fixture
def take(ana, tmp_path: Path):
    """Imports this content; what came in and what was left out."""

    def one(content: Any, name: str = "given") -> Any:
        return ana.import_history(write(tmp_path / name, content))

    return one


def said(person: Any) -> dict[str | None, list[tuple[str, str]]]:
    """What each conversation holds, by its title."""
    return {
        session.title: [(m.role[0], m.content) for m in person.sessions.messages(session.id)]
        for session in person.sessions.list(limit=1000)
    }


def asked(person: Any) -> list[tuple[str, str]]:
    return [(item.value, item.reason) for item in person.inbox.list()]


TEA = [("u", "What is tea?"), ("a", "Leaves."), ("u", "And coffee?"), ("a", "Beans.")]
WORDS = [text for _, text in TEA]


@pytest.mark.parametrize(
    ("product", "content"),
    [
        ("Open WebUI", [openwebui("a", *WORDS)]),
        ("Open WebUI", json.dumps(openwebui("a", *WORDS)) + "\n"),
        ("LibreChat", librechat("a", *WORDS)),
        ("LibreChat", librechat("a", *WORDS, tree=True)),
        ("Letta", letta("Talk a", *WORDS)),
    ],
    ids=["Open WebUI", "Open WebUI's API", "LibreChat", "LibreChat as a tree", "Letta"],
)
def test_a_conversation_is_read_and_is_known_again(ana, take, product: str, content: Any) -> None:
    done = take(content)
    assert (done.product, done.added) == (product, {"session": 1, "message": 4})
    assert done.left_out == {} and said(ana) == {"Talk a": TEA}
    assert done.first is not None and done.first.year in (2023, 2024, 2025)
    assert take(content).added == {}
    ana.undo_import(done.id)
    assert said(ana) == {}


def test_open_webui_gives_the_branch_that_was_shown_without_thoughts(ana, take) -> None:
    chat = openwebui("a", "Hi", '<details type="reasoning" done="true">Hm</details>\nHello.')
    other = {"id": "x", "parentId": "a-0", "role": "assistant", "content": "Not this", "files": []}
    chat["chat"]["history"]["messages"]["x"] = other
    done = take([chat])
    assert said(ana) == {"Talk a": [("u", "Hi"), ("a", "Hello.")]}
    assert done.left_out == {"messages of branches that were abandoned": 1}


def test_open_webui_gives_answers_that_stand_in_their_output_alone(ana, take) -> None:
    chat = openwebui("a", "Hi", "")
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
    ]
    chat["chat"]["history"]["messages"]["a-1"]["output"] = output
    take([chat])
    assert said(ana) == {"Talk a": [("u", "Hi"), ("a", "Hello.")]}


def test_an_older_chat_of_open_webui_without_a_tree_is_read(ana, take) -> None:
    listed = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    take(
        [openwebui("a", chat={"title": "Old", "messages": listed, "timestamp": 1_700_000_000_000})]
    )
    assert said(ana) == {"Talk a": [("u", "Hi"), ("a", "Hello.")]}


def test_memories_of_open_webui_wait_in_the_inbox(ana, take) -> None:
    row = {"id": "1", "user_id": "u", "type": "user", "content": "Likes tea", "meta": None}
    done = take([row | {"created_at": int(SEPTEMBER), "updated_at": int(SEPTEMBER)}])
    assert done.saved == 1 and asked(ana)[0][0] == "Likes tea"
    assert "Open WebUI, saved 2023-09-06" in asked(ana)[0][1]


def test_librechat_gives_the_newest_branch_and_no_errors(ana, take) -> None:
    talk = librechat("a", "Hi", "Old answer")
    parts = [{"type": "think", "think": "Hm"}, {"type": "text", "text": {"value": "New answer"}}]
    newer = {**talk["messages"][1], "messageId": "n", "text": "", "content": parts}
    error = {**newer, "messageId": "e", "parentMessageId": "n", "error": True, "text": "x"}
    newer["createdAt"], error["createdAt"] = "2024-03-01T11:00:00Z", "2024-03-01T11:01:00Z"
    talk["messages"] += [newer, error]
    done = take(talk)
    assert said(ana) == {"Talk a": [("u", "Hi"), ("a", "New answer")]}
    assert done.left_out == {
        "messages of branches that were abandoned": 1,
        "system, tool and hidden messages": 1,
    }


@pytest.mark.parametrize("bare", [False, True])
def test_memories_of_mem0_wait_in_the_inbox_with_their_day(ana, take, bare: bool) -> None:
    held = mem0("Likes tea", "Has a cat")
    done = take(held["results"] if bare else held | {"relations": [{"source": "ana"}]})
    assert (done.product, done.saved, done.conversations) == ("mem0", 2, 0)
    assert [value for value, _ in asked(ana)] == ["Likes tea", "Has a cat"]
    assert all("imported from mem0, saved 2025-03-04" in reason for _, reason in asked(ana))
    assert done.left_out == ({} if bare else {"relations between things": 1})


def test_what_mem0_had_saved_twice_or_only_for_a_time_is_counted(ana, take) -> None:
    held = mem0("Likes tea", "Likes tea", "Has a cat")
    over = mem0("Is in Rome", expiration_date="2025-04-01")
    held["results"] += [*over["results"], {"memory": ""}]
    done = take(held)
    assert [value for value, _ in asked(ana)] == ["Likes tea", "Has a cat"]
    assert done.left_out == {
        "saved facts that were saved more than once": 1,
        "saved facts whose last day is over": 1,
        "saved facts without text": 1,
    }


def test_blocks_of_letta_are_facts_but_for_the_agents_own(ana, take) -> None:
    done = take(letta("a", blocks={"human": "Name: Ana\n- Likes tea\n", "persona": "I am kind."}))
    assert [value for value, _ in asked(ana)] == ["Name: Ana", "Likes tea"]
    assert done.left_out["blocks in which an agent says who it is"] == 1


def test_an_agent_file_of_old_is_read_and_heartbeats_are_not(ana, take) -> None:
    new = letta("Old", "Hi", "Hello.")
    beat = {"role": "user", "content": [{"type": "text", "text": '{"type": "heartbeat"}'}]}
    thought = {"role": "assistant", "content": "Hm", "tool_calls": [{"function": {"name": "x"}}]}
    block = {"label": "human", "value": "Likes tea", "updated_at": "2024-05-01T00:00:00"}
    old = {**new["agents"][0], "core_memory": [block], "agent_type": "memgpt_agent"}
    old["messages"] = [*old["messages"], beat, thought]
    done = take(old)
    assert said(ana)["Old"] == [("u", "Hi"), ("a", "Hello.")]
    assert asked(ana)[0][1].endswith("saved 2024-05-01")
    assert done.left_out == {"system, tool and hidden messages": 2}


def test_a_newer_agent_of_letta_speaks_without_a_tool(ana, take) -> None:
    agent = letta("a", "Hi")
    more = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
    agent["agents"][0]["messages"].append(more)
    take(agent)
    assert said(ana) == {"a": [("u", "Hi"), ("a", "Hello.")]}


ANSWER = "<p>Leaves<br>of a <b>bush</b></p><div><ul><li>green</li></ul></div>"
FILES = "<br>Attached 1 file.<br>-&emsp;a.pdf"
PAGE = gemini_page(
    (f"Prompted&nbsp;And coffee?{FILES}", "Nov 5, 2025, 1:40:47\u202fAM CET", "Beans."),
    ("Prompted&nbsp;What is &lt;b&gt; &amp; tea?", "Nov 5, 2025, 1:34:47\u202fAM CET", ANSWER),
    ("Used Gemini Apps", "Nov 5, 2025, 1:30:47 AM CET", ""),
    ("Prompted no time", "soon", "x"),
)


def test_a_page_of_takeout_is_read_as_its_json_is(ana, take) -> None:
    done = take(zipped({"Takeout/My Activity/Gemini Apps/MyActivity.html": PAGE.encode()}))
    assert done.product == "Gemini" and done.left_out == {
        "activities that are no prompt": 1,
        "activities without a time": 1,
    }
    assert [(role, text.split("\n")[0]) for role, text in said(ana)[None]] == [
        *(("u", "What is <b> & tea?"), ("a", "Leaves")),
        *(("u", "And coffee?"), ("a", "Beans.")),
    ]
    assert "- green" in said(ana)[None][1][1]
    assert done.first == datetime(2025, 11, 5, 0, 34, 47, tzinfo=UTC)


@pytest.mark.parametrize(
    "time",
    [
        *("Nov 5, 2025, 1:34:47\u202fPM CET", "5. nov. 2025, 13:34:47 MEZ"),
        *("05.11.2025, 13:34:47 CET", "2025. 11. 5. 오후 9:34:47 KST", "2025/11/05 21:34:47 JST"),
        *("11/5/2025, 7:34:47 AM EST", "5 de nov. de 2025, 12:34:47 UTC"),
        *("5 нояб. 2025 г., 15:34:47 MSK", "5 nov. 2025, 09:34:47 GMT-03:00"),
    ],
)
def test_times_of_a_page_are_read_in_several_languages(ana, take, time: str) -> None:
    done = take(gemini_page(("Prompted Hi", time, "Hello.")))
    assert done.first == datetime(2025, 11, 5, 12, 34, 47, tzinfo=UTC)


def test_activities_of_other_products_in_a_page_are_counted(take) -> None:
    page = gemini_page(("Watched a film", "Nov 5, 2025, 1:34:47 AM CET", ""), product="YouTube")
    with pytest.raises(InputError, match="activities of other Google products: 1"):
        take(page)


def test_a_page_is_read_piece_by_piece(ana, take, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [("Prompted Hi", f"Nov 5, 2025, 1:{n:02}:47 AM CET", "Yo " * 300) for n in range(60)]
    monkeypatch.setattr(archive, "_CHUNK", 500)
    monkeypatch.setattr(archive, "LARGEST", 12_000)
    assert take(gemini_page(*cells)).messages == 120
    with pytest.raises(InputError, match="files that cannot be read"):
        take(gemini_page(("Prompted Hi", "Nov 5, 2025, 1:34:47 AM CET", "Yo " * 9_000)))


MARKDOWNS = {
    "headings": "# On tea\n\n## User\n\nWhat is tea?\n\n## Assistant\n\nLeaves.\n\n---\n\n"
    "## User\nAnd coffee?\n\n## Assistant\n\nBeans.\n",
    "headings with times": "---\ntitle: On tea\ndate: 2024-05-01\n---\n"
    "#### You (2024-05-01 10:00:00):\nWhat is tea?\n#### ChatGPT (2024-05-01 10:01:00):\n"
    "Leaves.\n#### You:\nAnd coffee?\n#### ChatGPT:\nBeans.",
    "bold and behind it": "# On tea\n**User:** What is tea?\n\n**Assistant:** Leaves.\n\n"
    "**User:** And coffee?\n\n**Assistant:** Beans.",
    "bold above": "# On tea\n\n**You**\nWhat is tea?\n\n\n**GPT-4o**\nLeaves.\n\n**You**\n"
    "And coffee?\n\n**GPT-4o**\nBeans.",
    "said": "# On tea\n##### You said:\nWhat is tea?\n###### ChatGPT said:\nLeaves.\n"
    "##### You said:\nAnd coffee?\n###### ChatGPT said:\nBeans.",
    "quoted": "# On tea\n## 👤 Human\n> What is tea?\n\n## 🤖 Claude 3.5\n> Leaves.\n\n"
    "## 👤 Human\n> And coffee?\n\n## 🤖 Claude 3.5\n> Beans.",
    "plain": "# On tea\nUser: What is tea?\nAssistant: Leaves.\nUser: And coffee?\nAI: Beans.",
}


@pytest.mark.parametrize("shape", MARKDOWNS)
def test_markdown_of_many_exporters_holds_the_same(ana, take, shape: str) -> None:
    done = take(MARKDOWNS[shape])
    assert done.product == "Markdown" and said(ana) == {"On tea": TEA}
    assert done.left_out == {} and take(MARKDOWNS[shape]).added == {}


def test_markdown_keeps_its_dates(take) -> None:
    assert take(MARKDOWNS["headings with times"]).first == datetime(2024, 5, 1, 10, 0, tzinfo=UTC)


def test_headings_and_code_in_a_message_begin_no_other(ana, take) -> None:
    answer = "# Summary\n**Prompt:** a word\n```\n## User\nnot me\n```\n### Response"
    take(f"## User\nHi\n## Assistant\n{answer}\n")
    assert said(ana) == {None: [("u", "Hi"), ("a", answer)]}


def test_a_folder_of_markdown_is_read_file_by_file(ana, tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    for number, shape in enumerate(("headings", "plain")):
        write(folder / f"{number}.md", MARKDOWNS[shape].replace("tea?", f"tea {number}?"))
    write(folder / "README.md", "# Notes\n\nNothing was said here.\n")
    write(folder / "alone.md", "## Response\n\nNobody asked.\n")
    done = ana.import_history(folder)
    assert done.added == {"session": 2, "message": 8} and done.left_out == {
        "files of another kind": 1,
        "texts without a message of the person": 1,
    }


def test_words_before_the_first_message_are_counted(take) -> None:
    text = "# On tea\n\nExported by me\nfor you\n\n## User\nHi\n## Assistant\nYo"
    assert take(text).left_out == {"lines before the first message": 2}


def test_facts_may_begin_with_a_bracket(ana, take) -> None:
    assert take("[2024-05-01] Likes tea\n").saved == 1 and asked(ana)[0][0] == "Likes tea"
