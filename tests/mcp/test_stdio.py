"""The server as an assistant starts it: a process spoken to over its standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from memchat import MemChat
from tests.support import empty_store
from tests.support.mcp import CLIENT, command, run, text
from tests.support.mcp_process import Raw

PATIENCE = 60


@pytest.fixture
def home(tmp_path) -> Path:
    return empty_store.place(tmp_path / "store")


@pytest.fixture
def raw(home):
    server = Raw(home)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server for several tests, that has been greeted; its store is in ``home``."""
    server = Raw(empty_store.place(tmp_path_factory.mktemp("shared") / "store"))
    server.begin()
    yield server
    server.kill()


def test_the_sdks_client_remembers_and_recalls_in_a_process_of_its_own(home) -> None:
    async def both() -> tuple[Any, Any]:
        async with Client(command(home)) as client:
            kept = await client.call_tool(
                "remember", {"type": "preference", "key": "drinks", "value": "green tea"}
            )
            return kept, await client.call_tool("recall", {"query": "green tea"})

    kept, found = run(both)
    assert kept.structured_content["status"] == "stored"
    assert "drinks: green tea" in text(found)


def test_a_client_of_the_older_protocol_is_told_name_and_tools(shared) -> None:
    said = shared.hello["result"]
    assert said["serverInfo"]["name"] == "memchat" and said["serverInfo"]["version"]
    assert "tools" in said["capabilities"]
    assert said["protocolVersion"] == "2025-06-18"


def test_a_client_is_who_the_person_said_not_who_it_says_it_is(shared) -> None:
    shared.tool(2, "remember", type="fact", key="pet", value="a dog")
    with MemChat(shared.home) as mc:
        assert [one.name for one in mc.user("ana").clients.list()] == [CLIENT]


def test_whatever_comes_in_the_server_lives_on_and_prints_only_protocol(shared) -> None:
    raw = shared
    for junk in (
        b"",
        b"not json",
        b"[]",
        b'{"jsonrpc": "2.0", "id": 5, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "nope"}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":'
        b'{"type":"fact","key":"k","value":"\\ud800x"}}}',
        b"\xff\xfe\x00broken",
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}',
        b"z" * 50_000_000,
    ):
        raw.send(junk)
    big = raw.tool(8, "remember", type="fact", key="k", value="y" * 1_000_000)
    assert big["result"]["isError"]
    memo = "The garden. " * 9_000
    done = raw.tool(9, "index_memo", memoId="m", transcript=memo, createdAt="2026-05-01")
    assert "Indexed" in done["result"]["content"][0]["text"]
    assert raw.tool(10, "get_capabilities")["result"]["structuredContent"]["client"] == CLIENT


@pytest.mark.parametrize(
    "last", ["", '{"jsonrpc": "2.0", "id": 2, "meth'], ids=["whole", "half a line"]
)
def test_an_input_that_is_closed_ends_it_without_a_word(raw, last) -> None:
    if last:
        raw.begin()
    raw.process.stdin.write(last)
    said, wrong = raw.process.communicate(timeout=PATIENCE)
    assert (raw.process.returncode, said, wrong) == (0, "", "")


def test_a_client_that_no_longer_reads_ends_it_without_a_word(raw) -> None:
    raw.begin()
    raw.process.stdout.close()
    raw.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    raw.process.stdin.close()
    assert (raw.process.wait(PATIENCE), raw.process.stderr.read()) == (0, "")


def test_requests_that_come_at_once_are_all_answered(shared) -> None:
    for number in range(20, 24):
        params = {"name": "recall", "arguments": {"query": f"pond {number}"}}
        shared.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    said = [json.loads(shared.process.stdout.readline()) for _ in range(4)]
    assert {one["id"] for one in said} == {*range(20, 24)}
    assert not [one for one in said if one["result"].get("isError")]


def test_ctrl_c_ends_it_without_a_traceback_in_the_middle_of_a_call(raw) -> None:
    raw.begin()
    memo = {"memoId": "m", "transcript": "The garden is wet. " * 1_000, "createdAt": "2026-05-01"}
    params = {"name": "index_memo", "arguments": memo}
    raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
    raw.tool(3, "get_capabilities")  # the call before is under way
    raw.process.send_signal(signal.SIGINT)
    # The pipe stays open: its end would end the server too.
    assert raw.process.wait(PATIENCE) == 130
    assert "Traceback" not in raw.process.stderr.read()


def test_what_was_acknowledged_survives_a_kill(home, raw) -> None:
    raw.begin()
    acknowledged = []
    for number in range(2, 12):
        raw.tool(number, "remember", type="fact", key=f"item_{number}", value=f"value {number}")
        acknowledged.append(f"value {number}")
    raw.send(
        {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {
            "name": "remember", "arguments": {"type": "fact", "key": "late", "value": "late"}}}
    )  # fmt: skip
    os.kill(raw.process.pid, signal.SIGKILL)
    raw.process.wait(PATIENCE)
    with MemChat(home) as mc:
        kept = {memory.value for memory in mc.user("ana").memories.list()}
        assert set(acknowledged) <= kept <= {*acknowledged, "late"}
        assert not [c for c in mc.doctor() if c.state == "problem"]


def test_without_the_sdk_the_command_says_what_to_install(home) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from memchat.cli import main; sys.exit(main(['mcp']))"
    )
    env = command(home).env
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        done.stderr.strip() == "memchat: MCP needs the mcp package; run pip install 'memchat[mcp]'"
    )
