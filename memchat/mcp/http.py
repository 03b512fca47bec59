"""The MCP server over HTTP: on this machine alone, for programs with a token.

The SDK checks Host and Origin against this address, so that no web page can reach it by another
name; ``RequireToken`` refuses everything without a token that the person made.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memchat.config.client_tokens import ClientToken, find
from memchat.errors import ConfigError, InputError
from memchat.mcp.server import Server
from memchat.mcp.tools import Call, WhoAsks

if TYPE_CHECKING:
    from memchat.app.client_access import ClientAccess
    from memchat.app.user import User

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
NO_TOKEN = "a bearer token is needed; memchat mcp token makes one"
_BEARER = "bearer "
Tokens = Callable[[], Mapping[str, ClientToken]]


def program_of(headers: Mapping[str, str] | None, tokens: Tokens) -> ClientToken | None:
    """The program whose token is in the headers of a request."""
    given = (headers or {}).get("authorization", "")
    if not given.lower().startswith(_BEARER):
        return None
    return find(tokens(), given[len(_BEARER) :].strip())


def access_by_token(user: User, tokens: Tokens) -> WhoAsks:
    """Gives the program of a call by the token of its request. Raises InputError where the token
    was deleted since the request came."""

    def who(call: Call) -> ClientAccess:
        token = program_of(call.headers, tokens)
        if token is None:
            raise InputError(NO_TOKEN)
        return user.client(token.name, token.mode)

    return who


class RequireToken:
    """Refuses requests without a known token, before anything else sees them."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> ASGIApp | None:
        try:
            if program_of(request.headers, self._tokens) is not None:
                return None
        except ConfigError as error:
            # Who has no token is not told where the file is.
            log.error("nobody can be let in: %s", error)
            said = "the tokens cannot be read; the log of memchat says why"
            return JSONResponse({"error": said}, status_code=503)
        return JSONResponse(
            {"error": NO_TOKEN},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )


def app_of(server: Server, port: int, tokens: Tokens) -> ASGIApp:
    """The server as an ASGI application for this port."""
    own = [f"{host}:{port}" for host in (HOST, "localhost")]
    security = TransportSecuritySettings(
        allowed_hosts=own, allowed_origins=[f"http://{host}" for host in own]
    )
    app: Any = server.streamable_http_app(transport_security=security, host=HOST)
    return RequireToken(app, tokens)


def serve(server: Server, port: int, tokens: Tokens, ready: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C; ``ready`` is called once it can be reached. Raises OSError
    where the port cannot be had."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    listener.listen(128)
    config = uvicorn.Config(
        app_of(server, listener.getsockname()[1], tokens), log_level="warning", access_log=False
    )
    ready()
    uvicorn.Server(config).run(sockets=[listener])
