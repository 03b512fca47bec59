"""What goes wrong below the server is a tool error in one line, and the server answers on."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from memchat.cli import main
from memchat.db.database import FILE
from tests.support.full_disk import tiny  # noqa: F401
from tests.support.mcp import ask, call, text

FACT = {"type": "preference", "key": "drinks", "value": "green tea"}


async def remember_and_recall(client):
    kept = await client.call_tool("remember", FACT)
    return kept, await client.call_tool("recall", {"query": "Porto"})


def assert_one_plain_line(failed, says: str) -> None:
    said = text(failed)
    assert failed.is_error and says in said and "\n" not in said.strip()


def test_a_store_that_another_process_writes_is_read_all_the_same(open_store, monkeypatch) -> None:
    monkeypatch.setattr("memchat.db.database.BUSY_SECONDS", 0.05)
    mc = open_store()
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Porto")
    mc.jobs.run()
    with closing(sqlite3.connect(mc.settings.home / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kept, found = ask(mc, ana, remember_and_recall)
    assert_one_plain_line(kept, "another process kept")
    assert not found.is_error and "Porto" in text(found)
    kept, _ = ask(mc, ana, remember_and_recall)
    assert kept.structured_content["status"] == "stored"


def test_a_full_disk_is_named_and_what_is_there_is_found(open_store, tiny) -> None:  # noqa: F811
    mc = open_store(home=tiny.home)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Porto")
    mc.jobs.run()
    tiny.fill()
    kept, found = ask(mc, ana, remember_and_recall)
    assert_one_plain_line(kept, "is full. Nothing that was kept is lost.")
    assert not found.is_error and "Porto" in text(found)
    tiny.free()
    kept, _ = ask(mc, ana, remember_and_recall)
    assert kept.structured_content["status"] == "stored"


def test_while_memory_is_switched_the_list_of_tools_follows(mc) -> None:
    ana = mc.user("ana")

    async def names(client) -> set[str]:
        return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}

    async def both(client):
        before = await names(client)
        ana.set_memory(False)
        off = await names(client)
        ana.set_memory(True)
        return before, off, await names(client)

    before, off, after = ask(mc, ana, both)
    assert before == after and "recall" in before - off and "query_memory" in off


@pytest.mark.parametrize("tool", ["remember", "recall", "list_memories", "update_memory"])
def test_a_tool_that_a_client_still_knows_says_why_it_is_not_offered(mc, tool) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Porto")
    ana.set_memory(False)
    arguments = {"query": "Porto", "memory_id": memory.id, "value": "Faro"}
    given = {"remember": FACT, "list_memories": {}}.get(tool, arguments)
    assert_one_plain_line(call(mc, ana, tool, **given), ana.memory_switch().reason)


def test_no_change_of_the_list_of_tools_is_promised_that_is_not_announced(mc) -> None:
    async def promised(client):
        return client.server_capabilities.tools

    assert not ask(mc, mc.user("ana"), promised).list_changed


def test_a_folder_that_cannot_be_written_is_named_in_one_line(tiny, monkeypatch, capfd) -> None:  # noqa: F811
    monkeypatch.setenv("MEMCHAT_HOME", str(tiny.home))
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash")
    tiny.make_read_only()
    assert main(["mcp"]) == 1
    said, wrong = capfd.readouterr()
    assert said == "" and "cannot be used (Read-only file system); make it writable" in wrong
    assert wrong.count("\n") == 1
