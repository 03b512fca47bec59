"""``memchat serve``: the application, and how it begins and ends."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from memchat import AsyncMemChat, MemChatError
from memchat.config.tokens import Tokens
from memchat.errors import InputError, NotFound, ProviderError, ScopeError, misfits
from memchat.http.completions import Completions
from memchat.http.gate import Caller, Gate, Options, Refused, Watch, needs, right_of
from memchat.http.rest import router_of

log = logging.getLogger(__name__)
SUMMARY = "A memory for any program. Every call needs a token of `memchat tokens add`."


def app_of(mc: AsyncMemChat, options: Options, tokens: Tokens) -> Watch:
    """The application over a store."""
    completions, gate = Completions(mc), Gate(options, tokens)

    class Checked(APIRoute):
        """A route that looks at the token before anything of the body is read."""

        def get_route_handler(self) -> Callable[[Request], Any]:
            answer = super().get_route_handler()

            async def checked(request: Request) -> Response:
                request.state.caller = gate.enter(request, right_of(self.endpoint))
                return await answer(request)

            return checked

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncIterator[None]:
        yield
        await completions.close()

    server = FastAPI(
        title="memchat", version=version("memchat"), description=SUMMARY, lifespan=opened,
        docs_url=None, redoc_url=None,
    )  # fmt: skip
    watch = Watch(server)
    bearer = [Depends(HTTPBearer(auto_error=False))]
    wire = APIRouter(route_class=Checked, dependencies=bearer, tags=["chat"])

    @wire.get("/v1/models")
    @needs("chat")
    def models() -> dict[str, Any]:
        """What a client may name as the model."""
        listed = [
            {"id": name, "object": "model", "owned_by": "memchat"} for name in completions.names
        ]
        return {"object": "list", "data": listed}

    @wire.post("/v1/chat/completions")
    @needs("chat")
    async def complete(request: Request) -> Response:
        """A reply, with what is known of the person before it, and kept after it."""
        caller: Caller = request.state.caller
        return await completions.answer(caller, await _json(request), request.headers)

    @wire.get("/metrics")
    @needs("admin")
    async def metrics() -> PlainTextResponse:
        """Counts and times of this process, and the queue, as Prometheus reads them."""
        waiting = [
            f'memchat_jobs{{status="{status}"}} {count}'
            for status, count in sorted((await mc.jobs.count()).items())
        ]
        lines = [*watch.lines(), "# TYPE memchat_jobs gauge", *waiting]
        return PlainTextResponse("\n".join(lines) + "\n")

    @server.get("/healthz", tags=["operation"])
    def alive() -> dict[str, str]:
        """Whether the server answers at all; without a token."""
        return {"status": "ok"}

    @server.get("/readyz", tags=["operation"])
    async def ready() -> dict[str, str]:
        """Whether the store can be read; without a token."""
        await mc.jobs.count()
        return {"status": "ok"}

    server.include_router(wire)
    server.include_router(router_of(mc, route_class=Checked, dependencies=bearer))
    rest = APIRouter(route_class=Checked)

    @rest.api_route("/{path:path}", methods=[*METHODS], include_in_schema=False)
    @needs("read")
    def unknown() -> None:
        raise NotFound("nothing is here; see /docs for what there is")

    server.include_router(rest)
    _answer_errors(server)
    return watch


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _answer_errors(server: FastAPI) -> None:
    @server.exception_handler(HTTPException)
    @server.exception_handler(MemChatError)
    @server.exception_handler(RequestValidationError)
    def refused(request: Request, error: Exception) -> JSONResponse:
        status, message, headers = _status(error), str(error), None
        if isinstance(error, HTTPException):
            message, headers = error.detail, error.headers
        if isinstance(error, RequestValidationError):
            message = "; ".join(misfits(error.errors()[:5]))
        if request.url.path.startswith("/v1/"):
            kind = "invalid_request_error" if status < 500 else "server_error"
            told = {"message": message, "type": kind, "param": None, "code": None}
            return JSONResponse({"error": told}, 400 if status == 422 else status, headers)
        title = HTTPStatus(status).phrase
        problem = {"title": title, "status": status, "detail": message, "code": _code(error)}
        kind = "application/problem+json"
        return JSONResponse(problem, status, headers, media_type=kind)


def _status(error: Exception) -> int:
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, InputError | ScopeError | RequestValidationError):
        return 422
    return 502 if isinstance(error, ProviderError) else 503


def _code(error: Exception) -> str:
    return type(error).__name__ if isinstance(error, MemChatError) else "InputError"


async def _json(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except ValueError:
        raise Refused(400, "the body is no JSON") from None


def serve(mc: AsyncMemChat, options: Options, tokens: Tokens, ready: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C; ``ready`` is called once it can be reached. Raises OSError
    where the port cannot be had."""
    listener = listening(options)
    config = uvicorn.Config(
        app_of(mc, options, tokens),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=30,
    )
    ready()
    uvicorn.Server(config).run(sockets=[listener])


def listening(options: Options) -> socket.socket:
    """The socket that takes the requests. Raises OSError where the port cannot be had."""
    listener = socket.create_server((options.host, options.port), backlog=512)
    # asyncio sets this only where a socket names its protocol; without it an answer waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
