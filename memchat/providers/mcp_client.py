"""A client of other MCP servers: it starts one, or reaches one over HTTP, and calls its tools.

Other MCP servers, named in ``settings.toml``: ``[mcp_servers.NAME]`` with ``command``, ``args``
and ``env``, or with ``url`` and ``token``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import Tool
from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from memchat import disk, waiting
from memchat.config.settings import FILE
from memchat.config.settings import MCP_SERVERS as TABLE
from memchat.errors import ConfigError, InputError, MemChatError, NotFound, ProviderError, misfits

T = TypeVar("T")
# The SDK logs whatever a server writes that is no message, word by word.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
TIMEOUT = 60.0
"""Seconds that a call may take."""


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class McpServer:
    """Where a server is: a command that starts it, or an address.

    Raises ConfigError unless it is one of the two.
    """

    name: str
    command: str | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ConfigError(f"the MCP server {self.name!r} needs either a command or a url")


class ToolAnswer(NamedTuple):
    """What a tool returned: its text, and its structured result where it has one."""

    text: str
    structured: Any


class MCPClient:
    """Calls the tools of one server. Each call starts the server, or connects to it, and ends it
    again: nothing is left running."""

    def __init__(self, server: McpServer, *, timeout: float = TIMEOUT) -> None:
        self._server = server
        self._timeout = timeout

    def tools(self) -> list[Tool]:
        """The tools of the server. Raises ProviderError where it does not answer."""

        async def ask(client: Client) -> list[Tool]:
            page = await client.list_tools()
            found = page.tools
            while page.next_cursor:
                page = await client.list_tools(cursor=page.next_cursor)
                found += page.tools
            return found

        return self._run(ask)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> ToolAnswer:
        """Call a tool. Raises InputError where the tool says that it failed, ProviderError where
        the server does not answer in time or at all."""

        async def ask(client: Client) -> ToolAnswer:
            result = await client.call_tool(tool, dict(arguments or {}))
            text = "\n".join(getattr(part, "text", "") for part in result.content)
            if result.is_error:
                raise InputError(f"{self._server.name}: {text.strip() or 'the tool failed'}")
            return ToolAnswer(text, result.structured_content)

        return self._run(ask)

    def _run(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        async def limited() -> T:
            # What a server writes to its standard error is its own log.
            with anyio.fail_after(self._timeout), open(os.devnull, "w", encoding="utf-8") as unread:
                async with self._transport(unread) as transport:
                    try:
                        async with Client(transport, cache=None) as client:
                            return await ask(client)
                    except MCPError as error:
                        raise InputError(f"{self._server.name}: {error}") from error

        # In a thread of its own: the caller's may have an event loop, and keeps it.
        # Whatever ends the waiting, as Ctrl-C, ends the call.
        try:
            with start_blocking_portal() as portal:
                return waiting.result(portal.start_task_soon(limited))
        except TimeoutError:
            raise ProviderError(
                f"the MCP server {self._server.name!r} did not answer within {self._timeout:g} s",
                retryable=True,
            ) from None
        except (BaseExceptionGroup, OSError, RuntimeError, ValueError) as error:
            first: BaseException = error
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise self._failure(first) from error

    @asynccontextmanager
    async def _transport(self, unread: TextIO) -> AsyncIterator[Any]:
        server = self._server
        if server.command is not None:
            start = StdioServerParameters(
                command=server.command, args=[*server.args], env=dict(server.env)
            )
            yield stdio_client(start, errlog=unread)
            return
        assert server.url is not None
        headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
        async with create_mcp_http_client(headers=headers) as http:
            http.event_hooks = {"response": [self._check_token]}
            yield streamable_http_client(server.url, http_client=http)

    async def _check_token(self, response: Any) -> None:
        if response.status_code in (401, 403):
            raise ProviderError(f"the MCP server {self._server.name!r} refuses the token")

    def _failure(self, error: BaseException) -> Exception:
        if isinstance(error, MemChatError):
            return error
        said = f"cannot be reached ({type(error).__name__})"
        if isinstance(error, MCPError | ValueError):
            said = "does not answer as an MCP server does; see its url in settings.toml"
        if self._server.command is not None:
            said = "ended without an answer; run its command in a terminal to see why"
            if isinstance(error, OSError):
                said = f"cannot be started ({error.strerror}); see its command in settings.toml"
        return ProviderError(f"the MCP server {self._server.name!r} {said}")


def find(home: Path, name: str) -> McpServer:
    """The server of a name. Raises NotFound where none is named so, ConfigError for one that
    cannot be used."""
    path = home / FILE
    servers = disk.read(path).get(TABLE, {})
    found = servers.get(name) if isinstance(servers, Mapping) else None
    if found is None:
        raise NotFound(f"no MCP server is named {name!r}; add [{TABLE}.{name}] to {path}")
    if not isinstance(found, Mapping):
        raise ConfigError(f"{path}: {TABLE}.{name} is no table")
    try:
        return McpServer(**{**found, "name": name})
    except ValidationError as error:
        wrong = "; ".join(misfits(error.errors()))
        raise ConfigError(f"{path}: {TABLE}.{name}: {wrong}") from None
