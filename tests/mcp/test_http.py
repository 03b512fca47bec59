"""The server over HTTP: on this machine alone, for programs with a token of the person's."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from memchat import MemChat
from memchat.config import tokens
from memchat.config.tokens import Token, Tokens
from memchat.errors import ConfigError, InputError, NotFound, ProviderError
from memchat.mcp.server import SESSIONS
from memchat.providers.mcp_client import MCPClient, McpServer
from tests.support import empty_store
from tests.support.mcp import command, run

PATIENCE = 60


class Running(NamedTuple):
    home: Path
    port: int
    asks: str
    trusted: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Running]:
    home = empty_store.place(tmp_path_factory.mktemp("http") / "store")
    asks = Tokens(home).add(Token("Web", "ana"))
    trusted = Tokens(home).add(Token("Mine", "ana", mode="trust"))
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = command(home, "--http", "--port", str(port))
    process = subprocess.Popen(
        [start.command, *start.args], env=start.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    assert str(port).encode() in said, said
    yield Running(home, port, asks, trusted)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE)
    assert b"Traceback" not in rest


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def send(
    server: Running,
    body: dict[str, Any],
    place: str = "/mcp",
    *,
    method: str = "POST",
    **headers: str,
) -> http.client.HTTPResponse:
    """The answer to a request, read."""
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {server.asks}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as line:
        line.request(method, place, json.dumps(body), given)
        answer = line.getresponse()
        answer.read()
        return answer


def post(server: Running, **headers: str) -> int:
    return send(server, LIST, **headers).status


def ask(server: Running, token: str, tool: str, **arguments: Any) -> Any:
    async def talk() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            create_mcp_http_client(headers=headers) as web,
            Client(streamable_http_client(server.url, http_client=web)) as client,
        ):
            return await client.call_tool(tool, arguments)

    return run(talk)


def test_without_a_token_that_the_person_made_nothing_is_answered(server) -> None:
    assert post(server, Authorization="") == 401
    assert post(server, Authorization="Bearer wrong") == 401
    assert post(server, Authorization=f"Basic {server.asks}") == 401


def test_a_token_counts_in_the_header_alone(server) -> None:
    for place in (f"/mcp?token={server.asks}", f"/mcp?access_token={server.asks}"):
        assert send(server, LIST, place, Authorization="").status == 401


def test_many_wrong_tokens_lock_nobody_out(server) -> None:
    wrong = {post(server, Authorization=f"Bearer wrong-{n}") for n in range(100)}
    assert wrong == {401} and post(server) not in (401, 429)


def test_the_older_transport_is_not_offered(server) -> None:
    assert {send(server, LIST, place).status for place in ("/sse", "/messages/")} == {404}


def test_a_request_of_more_than_four_megabytes_is_refused_and_the_next_is_answered(server) -> None:
    assert send(server, {**LIST, "params": {"more": "x" * 4_200_000}}).status == 413
    assert post(server) != 413


def begin(server: Running, **headers: str) -> str:
    """The number of a new session."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    begun = send(server, {**LIST, "method": "initialize", "params": hello}, **headers)
    assert begun.status == 200
    return str(begun.headers["Mcp-Session-Id"])


def test_a_session_is_its_tokens_alone(server) -> None:
    session = {"Mcp-Session-Id": begin(server)}
    foreign = {**session, "Authorization": f"Bearer {server.trusted}"}
    fact = {"type": "fact", "key": "borrowed", "value": "a borrowed session"}
    asked = {**LIST, "method": "tools/call", "params": {"name": "remember", "arguments": fact}}
    assert send(server, asked, **foreign).status == 404
    assert send(server, LIST, method="DELETE", **foreign).status == 404
    with MemChat(server.home) as mc:
        assert "a borrowed session" not in [one.value for one in mc.user("ana").memories.list()]
    assert post(server, **session) == 200
    assert send(server, LIST, method="DELETE", **session).status == 200
    assert post(server, **session) == 404


@pytest.mark.slow
def test_a_program_that_opens_more_and_more_sessions_loses_its_oldest_and_nobody_elses(
    server,
) -> None:
    mine = [begin(server) for _ in range(3)]
    theirs = begin(server, Authorization=f"Bearer {server.trusted}")
    assert post(server, **{"Mcp-Session-Id": mine[0]}) == 200  # used since: the next is the oldest
    for _ in range(SESSIONS - 2):
        begin(server)
    assert post(server, **{"Mcp-Session-Id": mine[1]}) == 404
    assert post(server, **{"Mcp-Session-Id": mine[0]}) == 200
    trusted = {"Mcp-Session-Id": theirs, "Authorization": f"Bearer {server.trusted}"}
    assert post(server, **trusted) == 200


def test_a_page_of_another_name_or_origin_is_refused(server) -> None:
    assert post(server, Host="evil.example") in (403, 421)
    assert post(server, Host=f"evil.example:{server.port}") in (403, 421)
    assert post(server, Origin="https://evil.example") == 403


def test_it_listens_on_this_machine_alone(server) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    local = [line.split()[1] for line in listening if line.split()[3] == "0A"]
    assert [a for a in local if a.endswith(f":{server.port:04X}")] == [
        f"0100007F:{server.port:04X}"
    ]


def test_each_token_has_its_own_name_and_mode(server) -> None:
    fact = {"type": "preference", "key": "drinks", "value": "green tea"}
    assert ask(server, server.asks, "remember", **fact).structured_content["status"] == "waiting"
    assert ask(server, server.trusted, "remember", **fact).structured_content["status"] == "stored"
    with MemChat(server.home) as mc:
        called = {one.name: one.mode for one in mc.user("ana").clients.list()}
    assert called == {"Web": "ask", "Mine": "trust"}


def test_the_tokens_are_in_a_file_that_only_this_account_may_read(server) -> None:
    path = server.home / tokens.FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    try:
        with pytest.raises(ConfigError, match="may be read"):
            Tokens(server.home).all()
    finally:
        path.chmod(0o600)


def test_while_the_tokens_cannot_be_read_nobody_gets_in_and_afterwards_all_is_well(server) -> None:
    path = server.home / tokens.FILE
    there = path.read_bytes()
    path.chmod(0o644)
    assert post(server) == 503
    path.chmod(0o600)
    path.write_text("broken =")
    assert post(server) == 503
    path.write_bytes(there)
    assert post(server) not in (401, 500, 503)


@pytest.mark.parametrize("name", ["Web 🦊", "网络", "a\x7fb", 'q"u\\o', "a.b = 1", "\u202eabc"])
def test_whatever_a_program_is_called_its_token_and_the_others_can_be_read(tmp_path, name) -> None:
    kept = Tokens(tmp_path)
    kept.add(Token("First", "ana"))
    made = kept.add(Token(name, "ana", mode="trust"))
    found = kept.of(f"Bearer {made}")
    assert kept.all().keys() == {"First", name} and found is not None and found.name == name


def test_a_deleted_token_is_refused_at_once(server) -> None:
    token = Tokens(server.home).add(Token("Passing", "ana"))
    assert post(server, Authorization=f"Bearer {token}") != 401
    Tokens(server.home).remove("Passing")
    assert post(server, Authorization=f"Bearer {token}") == 401
    with pytest.raises(NotFound):
        Tokens(server.home).remove("Passing")


def test_the_client_of_this_package_calls_over_http_and_over_stdio(server, tmp_path) -> None:
    over_http = MCPClient(McpServer("web", url=server.url, token=server.asks))
    start = command(empty_store.place(tmp_path / "other"))
    over_stdio = MCPClient(McpServer("own", start.command, start.args, start.env or {}))
    for client in (over_http, over_stdio):
        answer = client.call("get_capabilities")
        assert answer.structured["memory_on"] and '"memory_on"' in answer.text
    assert "recall" in {tool.name for tool in over_http.tools()}
    with pytest.raises(InputError, match="no memory 99"):
        over_http.call("forget", {"memory_id": 99})


def test_the_client_says_so_where_the_token_or_the_address_is_wrong(server) -> None:
    for wrong, says in (
        (McpServer("web", url=server.url, token="nonsense"), "refuses the token"),
        (McpServer("web", url="http://127.0.0.1:9/mcp"), "cannot be reached"),
        (McpServer("own", "no-such-program-here"), "cannot be started"),
    ):
        with pytest.raises(ProviderError, match=says):
            MCPClient(wrong).tools()
