"""The MCP server over HTTP: on this machine alone, for programs with a token.

The SDK checks Host and Origin against this address, so that no web page can reach it by another
name; ``RequireToken`` refuses everything without a token that the person made. A session is its
token's alone.
"""

from __future__ import annotations

import logging
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memchat.config.client_tokens import ClientToken, find
from memchat.errors import ConfigError, InputError
from memchat.mcp.server import Server
from memchat.mcp.tools import Call, WhoAsks

if TYPE_CHECKING:
    from memchat.app.client_access import ClientAccess
    from memchat.app.user import User

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
SESSIONS_AT_MOST = 50
"""Sessions that a token has open at once, of about 37 KB each; then the one used least recently
ends, and its program begins another."""
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
    """Refuses requests without a known token, before anything else sees them, and ends the oldest
    sessions of a token that begins too many."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens
        self._sessions: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The sessions of each program, the one used last at the end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            program = program_of(Headers(scope=scope), self._tokens)
        except ConfigError as error:
            # Who has no token is not told where the file is.
            log.error("nobody can be let in: %s", error)
            said = "the tokens cannot be read; the log of memchat says why"
            await JSONResponse({"error": said}, status_code=503)(scope, receive, send)
            return
        if program is None:
            refused = JSONResponse(
                {"error": NO_TOKEN}, status_code=401, headers={"WWW-Authenticate": "Bearer"}
            )
            await refused(scope, receive, send)
            return
        # By this the SDK knows whose a session is; to others it is not there.
        owner = AccessToken(token="", client_id=program.name, scopes=[])
        scope = {**scope, "user": AuthenticatedUser(owner)}
        await self._answer(scope, receive, send, self._sessions[program.name])

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, sessions: dict[str, None]
    ) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if session is not None:
                    sessions.pop(session, None)
                    if scope["method"] != "DELETE":
                        sessions[session] = None
            await send(message)

        await self._app(scope, receive, noting)
        while len(sessions) > SESSIONS_AT_MOST:
            oldest = next(iter(sessions))
            del sessions[oldest]
            await self._end(oldest, scope)

    async def _end(self, session: str, scope: Scope) -> None:
        """End a session as its client would."""
        headers = MutableHeaders(scope=scope).mutablecopy()
        headers[MCP_SESSION_ID_HEADER] = session

        async def nothing() -> Message:
            return {"type": "http.request"}

        async def unread(_answer: Message) -> None:
            pass

        await self._app({**scope, "method": "DELETE", "headers": headers.raw}, nothing, unread)


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
