"""The commands around MCP: who called, undoing, and tools of other servers."""

from __future__ import annotations

import json
import os
import sys

import pytest

from memchat import MemChat
from memchat.config import tokens


def test_the_configuration_of_an_assistant_is_printed_as_json(run, home) -> None:
    done = run("mcp", "config", "cursor", "--app", "work")
    entry = json.loads(done.out)["mcpServers"]["memchat"]
    assert entry["args"][-4:] == ["--user", "ana", "--app", "work"]
    assert entry["env"] == {"MEMCHAT_HOME": str(home)} and "~/.cursor/mcp.json" in done.err
    assert run("mcp", "config", "notepad").code == 2


def test_who_called_is_shown_and_undone_after_a_yes(run, home) -> None:
    assert run("mcp", "clients").out == "No program has called yet.\n"
    with MemChat(home) as mc:
        mc.user("ana").client("Claude", "trust").remember("preference", "drinks", "green tea")
    said = run("mcp", "clients").out
    assert said.startswith("Claude (trust): 1 call; 1 memory, 0 notes")
    assert json.loads(run("mcp", "clients", "--json").out)[0]["memories"] == 1
    assert run("mcp", "clients", "--undo", "Claude").code == 2  # nobody said yes
    assert "green tea" in run("memories", "list").out
    assert run("mcp", "clients", "--undo", "Claude", "--yes").code == 0
    assert "green tea" not in run("memories", "list").out
    assert run("mcp", "clients", "--undo", "Nobody", "--yes").code == 1


def test_a_memory_and_the_inbox_name_the_program(run, home) -> None:
    with MemChat(home) as mc:
        claude = mc.user("ana").client("Claude", "trust")
        stored = claude.remember("preference", "drinks", "green tea").memory
        city = mc.user("ana").memories.add("profile", "city", "Portosanto")
        forget, keep = claude.forget(city.id).inbox_id, claude.promote(stored.id).inbox_id
    said = run("memories", "show", str(stored.id)).out
    assert "by Claude over MCP" in said and "sent      “green tea” (by Claude over MCP" in said
    assert "said " not in said
    asked = run("inbox", "list").out
    for words in ("Forget “You live in Portosanto” for good?", "Claude asks to forget it",
                  "Keep drinks: green tea in every app?"):  # fmt: skip
        assert words in asked
    assert run("inbox", "accept", str(keep)).out == f"{stored.id}\n"
    done = run("inbox", "accept", str(forget))
    assert (done.code, done.out) == (0, "") and f"forgot memory {city.id}" in done.err
    assert "Portosanto" not in run("memories", "list", "--status", "all").out


@pytest.mark.slow
def test_a_tool_of_another_server_is_called(run, home) -> None:
    settings = home / "settings.toml"
    settings.touch(mode=0o600)
    path = json.dumps(os.pathsep.join(sys.path))
    settings.write_text(
        f"[mcp_servers.faulty]\ncommand = {json.dumps(sys.executable)}\n"
        f'args = ["-m", "tests.support.mcp_faulty_server"]\nenv = {{PYTHONPATH = {path}}}\n'
    )
    assert "echo: Gives back" in run("mcp", "call", "faulty").out
    done = run("mcp", "call", "faulty", "echo", "--args", '{"words": "green tea"}')
    assert (done.code, done.out) == (0, "green tea\n")
    words = json.dumps({"words": "\x1b[2J\x9b2J\u202etea"})
    for more in ([], ["--json"]):  # nothing of it steers the terminal
        said = run("mcp", "call", "faulty", "echo", "--args", words, *more).out
        assert "tea" in said and not {"\x1b", "\x9b", "\u202e"} & set(said)
    assert run("mcp", "call", "faulty", "echo", "--args", "[]").code == 1
    assert run("mcp", "call", "nobody").code == 1


def test_a_token_file_that_others_may_read_keeps_the_server_from_starting(run, home) -> None:
    run("tokens", "add", "Web app")
    (home / tokens.FILE).chmod(0o644)
    done = run("mcp", "--http", "--port", "8799")
    assert done.code == 1 and "may be read" in done.err and "Traceback" not in done.err
