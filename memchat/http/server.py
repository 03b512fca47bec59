"""``memchat serve``: who is let in, what is answered, and how it ends.

Every request needs a program's token. Other hosts' names, and pages of other origins, are refused,
so that a page in a browser gets nothing.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from memchat import AsyncMemChat, MemChatError
from memchat.config.keys import NO_TOKEN, UNREADABLE, ClientToken, program_of
from memchat.errors import ConfigError, InputError, NotFound, ScopeError
from memchat.http.completions import Completions

log = logging.getLogger(__name__)
HOST = "127.0.0.1"
MOST_BYTES = 32 * 1024 * 1024
Tokens = Callable[[], Mapping[str, ClientToken]]


class Refused(Exception):
    """A request that gets nothing but a status and a reason, in OpenAI's form of an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def app_of(mc: AsyncMemChat, user: str, app: str, tokens: Tokens) -> FastAPI:
    """The application over a store, for one person."""
    completions = Completions(mc, user, app)

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncIterator[None]:
        yield
        await completions.close()

    server = FastAPI(lifespan=opened, docs_url=None, redoc_url=None, openapi_url=None)

    def program(request: Request) -> ClientToken:
        host = request.headers.get("host", "").rpartition(":")
        if (host[0] or host[2]) not in (HOST, "localhost"):
            raise Refused(421, "this server answers to 127.0.0.1 and localhost alone")
        own = f"http://{request.headers['host']}"
        if request.headers.get("origin", own) != own:
            raise Refused(403, "pages of other sites get nothing here")
        try:
            found = program_of(request.headers.get("authorization", ""), tokens())
        except ConfigError as error:
            log.error("nobody can be let in: %s", error)
            raise Refused(503, UNREADABLE) from None
        if found is None:
            raise Refused(401, NO_TOKEN)
        if request.headers.get("x-memchat-user", user) != user:
            raise Refused(403, "this token is for one person")
        return found

    @server.get("/v1/models")
    def models(request: Request) -> dict[str, Any]:
        """What a client may name as the model."""
        program(request)
        listed = [
            {"id": name, "object": "model", "owned_by": "memchat"} for name in completions.names
        ]
        return {"object": "list", "data": listed}

    @server.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        """A reply, with what is known of the person before it, and kept after it."""
        asks = program(request)
        try:
            body = json.loads(await _body(request))
        except ValueError:
            raise Refused(400, "the body is no JSON") from None
        return await completions.answer(asks, body, request.headers)

    @server.exception_handler(Refused)
    @server.exception_handler(MemChatError)
    def refused(_: Request, error: Exception) -> JSONResponse:
        asked_wrongly = isinstance(error, InputError | ScopeError)
        status = 404 if isinstance(error, NotFound) else 400 if asked_wrongly else 503
        status = error.status if isinstance(error, Refused) else status
        headers = {"www-authenticate": "Bearer"} if status == 401 else None
        return JSONResponse(_error(str(error), status), status, headers)

    @server.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def unknown(request: Request) -> None:
        program(request)
        raise NotFound("there is GET /v1/models and POST /v1/chat/completions")

    return server


def _error(message: str, status: int) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


async def _body(request: Request) -> bytes:
    whole = bytearray()
    async for part in request.stream():
        whole += part
        if len(whole) > MOST_BYTES:
            raise Refused(413, f"the body is longer than {MOST_BYTES // 2**20} MB")
    return bytes(whole)


def serve(
    mc: AsyncMemChat, user: str, app: str, port: int, tokens: Tokens, ready: Callable[[], None]
) -> None:
    """Answer requests until Ctrl-C; ``ready`` is called once it can be reached. Raises OSError
    where the port cannot be had."""
    listener = socket.create_server((HOST, port), backlog=128)
    # asyncio sets this only where a socket names its protocol; without it an answer waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app_of(mc, user, app, tokens), log_level="warning", access_log=False, server_header=False
    )
    ready()
    uvicorn.Server(config).run(sockets=[listener])
