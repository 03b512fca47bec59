"""The client against a server that is slow, dies or writes noise; and servers named in a file."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from memchat.errors import ConfigError, NotFound, ProviderError
from memchat.providers import mcp_client as client
from memchat.providers.mcp_client import MCPClient, McpServer
from tests.support.served import until
from tests.support.slow import slow_but

FAULTY = McpServer(
    "faulty",
    sys.executable,
    ("-m", "tests.support.mcp_faulty_server"),
    {"PYTHONPATH": os.pathsep.join(sys.path)},
)


def children() -> set[str]:
    """The processes that this one started, zombies among them."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(entry.name)
    return found


def test_noise_on_standard_error_does_not_stand_in_the_way_and_nothing_is_left_running() -> None:
    before = children()
    assert MCPClient(FAULTY).call("echo", {"words": "green tea"}).text == "green tea"
    assert children() <= before


def test_a_server_that_never_answers_is_left_after_the_timeout() -> None:
    before = children()
    with pytest.raises(ProviderError, match="did not answer within 3 s"):
        MCPClient(FAULTY, timeout=3).call("hang")
    assert children() <= before


def test_ctrl_c_ends_a_call_and_its_server() -> None:
    before = children()

    def press() -> None:
        until(lambda: bool(children() - before))
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        MCPClient(FAULTY).call("hang")
    pressing.join()
    assert children() <= before


def test_a_server_that_dies_is_an_error_and_no_zombie() -> None:
    before = children()
    with pytest.raises(ProviderError):
        MCPClient(FAULTY, timeout=30).call("die")
    assert children() <= before


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("exit 3", "ended without an answer"),
        ("echo private words; exit 0", "ended without an answer"),
        ("sleep 60", "did not answer within 2 s"),
    ],
    ids=["ends at once", "noise on standard output", "never speaks"],
)
def test_what_is_no_server_is_an_error_in_one_line_that_holds_nothing_it_wrote(
    code, says, caplog, capfd
) -> None:
    before = children()
    with pytest.raises(ProviderError, match=says) as error:
        MCPClient(McpServer("none", "sh", ("-c", code)), timeout=2).tools()
    assert "\n" not in str(error.value)
    assert children() <= before
    assert "private" not in caplog.text and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("tool", slow_but(["echo"], ["echo", "hang"]))
def test_a_server_that_another_program_starts_as_npx_does_is_ended_too(tool) -> None:
    mark = f"mark-{os.getpid()}-{tool}"
    started = f"{sys.executable} -m tests.support.mcp_faulty_server {mark}; true"
    client = MCPClient(McpServer("npx", "sh", ("-c", started), FAULTY.env), timeout=5)
    if tool == "echo":
        assert client.call("echo", {"words": "green tea"}).text == "green tea"
    else:
        with pytest.raises(ProviderError, match="did not answer"):
            client.call("hang")
    assert not [one for one in Path("/proc").glob("[0-9]*") if mark in cmdline(one)]


def cmdline(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_a_server_that_goes_away_in_the_middle_of_an_answer_is_an_error() -> None:
    class Gone(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(100)

    with socketserver.TCPServer(("127.0.0.1", 0), Gone) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        with pytest.raises(ProviderError, match="'web' cannot be reached"):
            MCPClient(McpServer("web", url=url), timeout=30).tools()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_what_answers_otherwise_is_no_mcp_server_and_the_error_says_so(kind: str) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = {"protocolVersion": "private words", "capabilities": 7}
            page = b"<html>private words</html>"
            if kind == "application/json":
                page = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    with socketserver.TCPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        says = "'web' does not answer as an MCP server does; see its url in settings.toml"
        with pytest.raises(ProviderError, match=says) as error:
            MCPClient(McpServer("web", url=url), timeout=30).tools()
        server.shutdown()
        thread.join()
    assert "private" not in str(error.value)


def write(home: Path, text: str) -> None:
    path = home / "settings.toml"
    path.touch(mode=0o600)
    path.write_text(text)


def test_servers_are_named_in_the_settings_beside_what_else_stands_there(tmp_path) -> None:
    from memchat.config import load

    write(
        tmp_path,
        'MEMCHAT_TIMEZONE = "Europe/Berlin"\n'
        '[mcp_servers.files]\ncommand = "server"\nargs = ["--root", "x"]\nenv = {A = "b"}\n'
        '[mcp_servers.web]\nurl = "http://127.0.0.1:1/mcp"\ntoken = "a-token"\n',
    )
    assert load({"MEMCHAT_HOME": str(tmp_path)}).timezone == "Europe/Berlin"
    files = client.find(tmp_path, "files")
    assert (files.command, *files.args) == ("server", "--root", "x") and files.env == {"A": "b"}
    web = client.find(tmp_path, "web")
    assert web.token == "a-token" and "a-token" not in repr(web)
    with pytest.raises(NotFound, match="no MCP server is named 'other'"):
        client.find(tmp_path, "other")


@pytest.mark.parametrize(
    "table",
    ["", 'command = "a"\nurl = "b"', "command = 3", 'command = "a"\nargs = [1]', 'speed = "x"'],
)
def test_a_server_that_cannot_be_is_a_clear_error(tmp_path, table) -> None:
    write(tmp_path, f"[mcp_servers.bad]\n{table}\n")
    with pytest.raises(ConfigError, match="bad"):
        client.find(tmp_path, "bad")
