"""The SDK's own client against a server of this package: in this process, over stdio, over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver.tools import Tool

from memchat import MemChat
from memchat.api.user import User
from memchat.mcp.server import Server

CLIENT = "Claude Desktop"
Ask = Callable[[Client], Awaitable[Any]]
_READ: dict[Callable[..., Any], Tool] = {}
_READ_ANEW = Tool.from_function


def _from_function(method: Any, **given: Any) -> Tool:
    """The tool that a method is. The SDK reads its schemas off the signature for each server, which
    takes longer than most tests with one."""
    if not hasattr(method, "__func__"):
        return _READ_ANEW(method, **given)
    tool = _READ.get(method.__func__)
    if tool is None:
        tool = _READ[method.__func__] = _READ_ANEW(method, **given)
    return tool.model_copy(update={"fn": method})


Tool.from_function = _from_function  # type: ignore[method-assign]


def run(what: Callable[[], Awaitable[Any]]) -> Any:
    """Run an asynchronous function in a thread of its own: a loop that ends in this one would drop
    the event loop that litellm may have left in it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, what).result()


def ask(mc: MemChat, user: User, what: Ask, *, mode: Any = "trust") -> Any:
    """What a client gets from a server in this process."""
    server = Server(mc, user, lambda _call: user.client(CLIENT, mode))

    async def talk() -> Any:
        async with Client(server) as client:
            return await what(client)

    return run(talk)


def call(mc: MemChat, user: User, tool: str, /, as_mode: str = "trust", **arguments: Any) -> Any:
    """The result of one tool."""
    return ask(mc, user, lambda client: client.call_tool(tool, arguments), mode=as_mode)


def text(result: Any) -> str:
    """What a model reads of a result."""
    return "\n".join(part.text for part in result.content)


def command(home: Path, *more: str) -> StdioServerParameters:
    """How an assistant starts the server."""
    kept = ("PATH", "PYTHONPATH", "HOME", "LANG")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    settings = {"MEMCHAT_HOME": str(home), "MEMCHAT_EMBED_MODEL": "hash", "MEMCHAT_USER": "ana"}
    args = ["-m", "memchat", "mcp", "--client", CLIENT, *more]
    return StdioServerParameters(command=sys.executable, args=args, env={**env, **settings})
