"""``memchat serve``: the application, and how it begins and ends."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib import util
from importlib.metadata import version
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.supervisors import Multiprocess

from memchat import AsyncMemChat, MemChatError
from memchat.config import Settings
from memchat.config.tokens import Tokens
from memchat.errors import InputError, NotFound, ProviderError, ScopeError, misfits
from memchat.http.completions import Completions
from memchat.http.gate import METHODS, Caller, Gate, Options, Refused, Watch, needs, right_of
from memchat.http.rest import PROBLEM, router_of
from memchat.http.routes import EXAMPLES

log = logging.getLogger(__name__)
REFUSED = {
    "description": "As OpenAI's interface has it, or as a provider told it.",
    "content": {"application/json": {"schema": {"type": "object", "required": ["error"]}}},
}
SUMMARY = "A memory for any program. Every call needs a token of `memchat tokens add`."


class Server:
    """The application over a store."""

    def __init__(
        self, mc: AsyncMemChat, options: Options, tokens: Tokens, *, close: bool = False
    ) -> None:
        """``close``: the store ends with the application."""
        self._mc, self._options, self._close = mc, options, close
        self._gate = Gate(options, tokens)
        self._completions = Completions(mc, options.session_header)
        self._mcp = McpApps(mc, self._gate, tokens)
        made = FastAPIOffline(
            redoc_url=None,
            title="memchat",
            version=version("memchat"),
            description=SUMMARY,
            lifespan=self._opened,
            favicon_url="data:,",
        )
        self.watch = Watch(made)
        bearer = [Depends(HTTPBearer(auto_error=False))]
        checked: Any = {"route_class": self._checked(), "dependencies": bearer}
        router = APIRouter(**checked, responses={"4XX": REFUSED, "5XX": REFUSED})
        messages, text = _asks("messages", EXAMPLES["messages"]), _asks("input", EXAMPLES["text"])
        plain: Any = {"response_class": PlainTextResponse, "responses": {"4XX": PROBLEM}}
        for method, path, endpoint, tag, more in (
            ("GET", "/v1/models", self.models, "chat", {}),
            ("POST", "/v1/chat/completions", self.complete, "chat", messages),
            ("POST", "/v1/embeddings", self.embed, "chat", text),
            ("GET", "/metrics", self.metrics, "operation", plain),
        ):
            router.add_api_route(path, endpoint, methods=[method], tags=[tag], **more)
        for path, answer in (("/healthz", self.alive), ("/readyz", self.ready)):
            made.add_api_route(path, answer, tags=["operation"])
        made.include_router(router)
        made.include_router(router_of(mc, **checked))
        made.router.add_route("/mcp", self._mcp, include_in_schema=False)  # type: ignore[arg-type]
        rest = APIRouter(route_class=checked["route_class"])
        every: Any = {"methods": [*METHODS], "include_in_schema": False}
        rest.add_api_route("/{path:path}", self.unknown, **every)
        made.include_router(rest)
        _answer_errors(made, str(mc.settings.home))

    def _checked(self) -> type[APIRoute]:
        gate = self._gate

        class Checked(APIRoute):
            """A route that looks at the token before anything of the body is read."""

            def get_route_handler(self) -> Callable[[Request], Any]:
                answer = super().get_route_handler()

                async def checked(request: Request) -> Response:
                    request.state.caller = gate.enter(request, right_of(self.endpoint))
                    return await answer(request)

                return checked

        return Checked

    @asynccontextmanager
    async def _opened(self, _: FastAPI) -> AsyncIterator[None]:
        work = asyncio.ensure_future(self._mc.jobs.work()) if self._options.worker else None
        try:
            yield
        finally:
            await self._mcp.close()
            await self._completions.close()
            if work is not None:
                await self._mc.jobs.stop()
                await work
            if self._close:
                await self._mc.close()

    @needs("chat")
    async def models(self) -> dict[str, Any]:
        """What a client may name as the model."""
        listed = [
            {"id": name, "object": "model", "owned_by": "memchat"}
            for name in self._completions.names
        ]
        return {"object": "list", "data": listed}

    @needs("chat")
    async def complete(self, request: Request) -> Response:
        """A reply in OpenAI's format, with what is known of the person before the messages, and
        kept after it."""
        caller: Caller = request.state.caller
        return await self._completions.answer(caller, await _json(request), request.headers)

    @needs("chat")
    async def embed(self, request: Request) -> Response:
        """Vectors in OpenAI's format: those of this store, or another model's."""
        return await self._completions.embeddings(await _json(request))

    @needs("admin")
    async def metrics(self) -> PlainTextResponse:
        """Counts and times of this process, and the queue, as Prometheus reads them."""
        waiting = [
            f'memchat_jobs{{status="{status}"}} {count}'
            for status, count in sorted((await self._mc.jobs.count()).items())
        ]
        lines = [*self.watch.lines(), "# TYPE memchat_jobs gauge", *waiting]
        return PlainTextResponse("\n".join(lines) + "\n")

    async def alive(self) -> dict[str, str]:
        """Whether the server answers at all; without a token."""
        return {"status": "ok"}

    async def ready(self) -> dict[str, str]:
        """Whether the store can be read; without a token."""
        await self._mc.jobs.count()
        return {"status": "ok"}

    @needs("read")
    async def unknown(self) -> None:
        """Whatever is not there."""
        raise NotFound("nothing is here; see /docs for what there is")


def _asks(name: str, example: Any) -> dict[str, Any]:
    """What FastAPI is told of a body that goes to a provider as it is."""
    schema = {"type": "object", "required": [name]}
    content = {"application/json": {"schema": schema, "example": {name: example}}}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


class McpApps:
    """MCP beside the rest, for the same tokens: a server for each person and app that calls."""

    def __init__(self, mc: AsyncMemChat, gate: Gate, tokens: Tokens) -> None:
        self._mc, self._gate, self._tokens = mc, gate, tokens
        self._apps: dict[tuple[str, str], asyncio.Future[ASGIApp]] = {}
        self._running: list[asyncio.Future[None]] = []
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI application."""
        caller = self._gate.enter(Request(scope), "read")
        whose = caller.user, caller.app
        begun = self._apps.get(whose)
        if begun is None or (begun.done() and begun.exception() is not None):
            begun = self._apps[whose] = asyncio.ensure_future(self._begin(*whose))
        app = await asyncio.shield(begun)
        await app(scope, receive, send)

    async def close(self) -> None:
        """End the sessions."""
        self._stop.set()
        if self._running:
            await asyncio.wait(self._running)

    async def _begin(self, user: str, app: str) -> ASGIApp:
        if util.find_spec("mcp") is None:
            raise NotFound("MCP needs an extra of the package on the server: memchat[mcp]")
        from mcp.server.transport_security import TransportSecuritySettings

        from memchat.mcp import server

        store, begun = self._mc.blocking, asyncio.Event()
        person = store.user(user, app)
        made = server.Server(store, person, server.access_by_token(person, self._tokens.of))
        # The gate has looked at Host and Origin.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        streamed = made.streamable_http_app(transport_security=unchecked)

        async def run() -> None:
            async with streamed.router.lifespan_context(streamed):
                begun.set()
                await self._stop.wait()

        running, waits = asyncio.ensure_future(run()), asyncio.ensure_future(begun.wait())
        await asyncio.wait((running, waits), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            waits.cancel()
            running.result()
        self._running.append(running)
        return server.require_token(streamed, person.scope, self._tokens.of)


def _answer_errors(server: FastAPI, home: str) -> None:
    @server.exception_handler(HTTPException)
    @server.exception_handler(MemChatError)
    @server.exception_handler(RequestValidationError)
    @server.exception_handler(RecursionError)
    def refused(request: Request, error: Exception) -> JSONResponse:
        status, headers = _status(error), None
        message = str(error).replace(home, "the data folder")
        if isinstance(error, HTTPException):
            message, headers = error.detail, error.headers
        if isinstance(error, RequestValidationError):
            message = "; ".join(misfits(error.errors()[:5]))
            if error.body and "json" not in request.headers.get("content-type", ""):
                message = "send the body as JSON, with the header Content-Type: application/json"
        if isinstance(error, RecursionError):
            message = "the lists or objects in it lie too deep in each other"
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
    if isinstance(error, InputError | ScopeError | RequestValidationError | RecursionError):
        return 422
    return 502 if isinstance(error, ProviderError) else 503


def _code(error: Exception) -> str:
    """The name of the library's error that a client raises."""
    if isinstance(error, HTTPException):
        kinds = {401: "ScopeError", 403: "ScopeError", 404: "NotFound"}
        later = error.status_code in (409, 412, 429, 503)
        return kinds.get(error.status_code, "StoreError" if later else "InputError")
    return type(error).__name__ if isinstance(error, MemChatError) else "InputError"


async def _json(request: Request) -> Any:
    try:
        found = json.loads(await request.body())
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()  # half characters, NaN
        return found
    except ValueError:
        raise Refused(400, "the body is no JSON") from None


def serve(
    settings: Settings,
    options: Options,
    workers: int,
    *,
    begin: Callable[[], None],
    ready: Callable[[], None],
) -> None:
    """Answer requests until Ctrl-C. ``begin`` is called in each process, and ``ready`` once the
    server can be reached. Raises OSError where the port cannot be had."""
    listener = socket.create_server((options.host, options.port), backlog=512)
    # asyncio sets this only where a socket names its protocol; without it an answer waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        partial(_made, settings, options, begin),
        factory=True,
        workers=workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=30,
    )
    ready()
    server = uvicorn.Server(config)
    if workers == 1:
        server.run(sockets=[listener])
    else:
        Multiprocess(config, sockets=[listener]).run()


def _made(settings: Settings, options: Options, begin: Callable[[], None]) -> Watch:
    """The application of one process, with a store of its own."""
    begin()
    mc = AsyncMemChat(settings=settings)
    return Server(mc, options, Tokens(settings.home), close=True).watch
