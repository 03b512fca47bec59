"""Workflows, and tools of another MCP server that they call: a server in this process, which counts
what is done."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from memchat import MemChat
from memchat.config.tokens import Token, Tokens
from memchat.mcp.server import Server, access_by_token, app_of
from tests.support.paths import DATA, ROOT
from tests.support.served import until

ASK_OVER_MCP = (DATA / "workflows" / "ask-memory-mcp.json").read_text("utf-8")
"""The second workflow of the document; the first is one of those that come with memchat."""


def of_the_document() -> list[str]:
    """The JSON texts of the document that workflows come from, as they stand there."""
    there = [one / "shared" / "seeds" / "talkie-memory.md" for one in ROOT.parents]
    found = next((one for one in there if one.exists()), None)
    if found is None:
        pytest.skip("needs shared/seeds/talkie-memory.md, which is not part of the project")
    return re.findall(r"```json\n(.*?)```", found.read_text("utf-8"), re.DOTALL)


def step(step_id: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": step_id, "type": kind, "config": config}


def tool(name: str, step_id: str = "act", **arguments: Any) -> dict[str, Any]:
    return step(step_id, "MCP Tool", server="tools", tool=name, arguments=arguments)


def ask(prompt: str, step_id: str = "answer", **more: Any) -> dict[str, Any]:
    return step(step_id, "LLM Generation", prompt=prompt, **more)


def text(*steps: dict[str, Any], slug: str = "test", **more: Any) -> str:
    return json.dumps({"slug": slug, "name": "A test", **more, "steps": steps})


@dataclass
class ToolServer:
    """The server, and what was asked of it."""

    url: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def serving_tools() -> Iterator[ToolServer]:
    """``look`` only reads, ``send`` changes something, ``put`` may be called twice."""
    there, server = ToolServer(), MCPServer("tools", log_level="CRITICAL")

    def look(what: str, most: int = 1) -> dict[str, Any]:
        """Looks something up."""
        there.calls.append(("look", (what, most)))
        deep: Any = []
        for _ in range(150):
            deep = [deep]
        answers = {"nested": {"a": deep}, "by name": {"Quokkaland": 3}}
        return answers.get(what, {"found": [{"name": what, "count": most}]})

    def whole() -> CallToolResult:
        """Says little, and gives much."""
        much = {"a": "b" * 1_000_000}
        return CallToolResult(content=[TextContent(text="a")], structured_content=much)

    def send(words: str) -> str:
        """Sends words to somebody."""
        there.calls.append(("send", words))
        if words == "refuse":
            raise ToolError("refused")
        return f"sent: {words}"

    def put(words: str) -> str:
        """Puts words in the place of others."""
        there.calls.append(("put", words))
        return "put"

    server.add_tool(look, annotations=ToolAnnotations(read_only_hint=True))
    server.add_tool(whole, annotations=ToolAnnotations(read_only_hint=True))
    server.add_tool(send)
    server.add_tool(put, annotations=ToolAnnotations(idempotent_hint=True))

    def app(port: int) -> Any:
        hosts = TransportSecuritySettings(allowed_hosts=[f"127.0.0.1:{port}"])
        return server.streamable_http_app(transport_security=hosts, host="127.0.0.1")

    with _running(app) as there.url:
        yield there


@contextmanager
def serving_memory(mc: MemChat, user: str) -> Iterator[None]:
    """Our own server of a person's memory, named ``talkie-memory`` in the settings."""
    tokens, person = Tokens(mc.settings.home), mc.user(user)
    token = tokens.add(Token("Workflows", user))
    server = Server(mc, person, access_by_token(person, tokens.of))
    with _running(lambda port: app_of(server, port, tokens.of)) as url:
        name_server(mc, "talkie-memory", url=url, token=token)
        yield


def name_server(store: MemChat | Path, name: str, **settings: Any) -> None:
    home = store if isinstance(store, Path) else Path(store.settings.home)
    path = home / "settings.toml"
    path.touch(mode=0o600)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path.write_text("\n".join([f"[mcp_servers.{name}]", *lines, ""]))


@contextmanager
def _running(app: Callable[[int], Any]) -> Iterator[str]:
    """The address at which an application is served."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = uvicorn.Config(app(port), log_level="critical", lifespan="on")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    until(lambda: running.started)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join()
