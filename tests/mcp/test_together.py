"""Several servers, a worker, the commands and the app's library on one store at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.db.database import FILE
from tests.support import empty_store
from tests.support.mcp import command
from tests.support.mcp_process import Raw

ROUNDS = 10
WORKER = """
from memchat import MemChat
with MemChat() as mc:
    while True:
        mc.jobs.run()
        print("ran", flush=True)
"""
MIGRATES = """
from memchat import MemChat
from memchat.db import migrate
upgrade = migrate.upgrade
def held(tx):
    upgrade(tx)
    print("migrated, not committed", flush=True)
    input()
migrate.upgrade = held
MemChat().close()
"""


@contextmanager
def child(home: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the code on this store and has printed its first line."""
    args = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    env = command(home).env
    process = subprocess.Popen(args, env=env, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None and process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def calls(server: Raw, name: str) -> list[str]:
    """What a server answered to calls of each kind, about things of this name."""
    said = []
    for n in range(ROUNDS):
        word = f"{name}word{n}"
        for number, (tool, given) in enumerate(
            (
                ("remember", {"type": "fact", "key": f"{name}_{n}", "value": word}),
                ("recall", {"query": word}),
                ("query_memory", {"question": word}),
                ("list_memories", {}),
            ),
            2 + 4 * n,
        ):
            result = server.tool(number, tool, **given)["result"]
            assert not result.get("isError"), result
            said.append(result["content"][0]["text"])
    return said


@pytest.mark.slow
def test_three_servers_a_worker_that_is_killed_and_writers_share_a_store(tmp_path) -> None:
    home = empty_store.place(tmp_path / "store")
    servers = {
        "anaone": Raw(home, "--user", "ana"),
        "anatwo": Raw(home, "--user", "ana", "--client", "VS Code"),
        "bobone": Raw(home, "--user", "bob"),
    }
    try:
        with child(home, WORKER) as worker, MemChat(home) as mc, ThreadPoolExecutor(4) as pool:
            for server in servers.values():
                server.begin()
            asked = {n: pool.submit(calls, server, n) for n, server in servers.items()}
            for n in range(ROUNDS):
                mc.user("ana").memories.add("fact", f"hand_{n}", f"anahand{n}")
                if n == ROUNDS // 2:
                    worker.kill()
                mc.user("bob").notes.add(f"The bobhand{n} garden is wet.")
            said = {name: one.result(timeout=120) for name, one in asked.items()}
            assert worker.wait() != 0
    finally:
        for server in servers.values():
            server.kill()
    assert not any("bob" in text for name in ("anaone", "anatwo") for text in said[name])
    assert not any("ana" in text for text in said["bobone"])
    numbers = range(ROUNDS)
    with MemChat(home) as mc:
        ana, bob = mc.user("ana"), mc.user("bob")
        kept = {memory.value for memory in ana.memories.list(limit=1_000)}
        mine = ("anaoneword", "anatwoword", "anahand")
        assert kept == {f"{word}{n}" for word in mine for n in numbers}
        kept = {memory.value for memory in bob.memories.list(limit=1_000)}
        assert kept == {f"boboneword{n}" for n in numbers}
        assert len(bob.notes.list()) == ROUNDS and ana.notes.list() == []
        assert mc.jobs.run().failed == []
        assert not [check for check in mc.doctor() if check.state == "problem"]


def test_a_server_that_starts_while_another_process_migrates_waits_and_answers(tmp_path) -> None:
    with child(tmp_path, MIGRATES) as other:
        server = Raw(tmp_path)
        try:
            while not has_open(server.process.pid, tmp_path / FILE):
                assert server.process.poll() is None
            assert other.poll() is None
            other.communicate("\n")
            server.begin()
            listed = server.tool(2, "list_memories")["result"]["structuredContent"]
        finally:
            server.kill()
    assert listed["memories"] == []


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        return str(path) in {os.readlink(one) for one in folder.iterdir()}
    except OSError:
        return False  # it closed one of them meanwhile
