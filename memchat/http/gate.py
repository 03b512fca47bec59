"""Who is let in, how often, and what is counted of it.

Every request needs a program's token. Other hosts' names, and pages of other origins, are refused,
so that a page in a browser gets nothing. Logs and figures have ids, counts and times, never words
or names of people.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memchat.config.tokens import NO_TOKEN, UNREADABLE, Right, Token, Tokens
from memchat.errors import ConfigError, ScopeError

log = logging.getLogger(__name__)
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
OWN_HOSTS = ("127.0.0.1", "localhost")
MOST_BYTES = 32 * 1024 * 1024
UNBOUNDED = ("/api/import",)
"""Paths whose bodies are read in parts, to a file."""
_OWN = ("user", "app", "session", "memory")
ONCE = ("host", "origin", "authorization", *(f"x-memchat-{name}" for name in _OWN))
"""Headers that a request may have once: of two, another reader may believe the other one."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds up to which answers are counted."""


class Refused(HTTPException):
    """A request that gets nothing but a status and a reason."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, reason, headers)


@dataclass(frozen=True, slots=True)
class Options:
    """How the server is reached."""

    host: str = OWN_HOSTS[0]
    port: int = 8766
    public_url: str = ""
    """The address before a proxy, as ``https://memory.example``; its Host and Origin are let in."""
    user_header: str = ""
    """A front end's own header for the person who signed in, beside ``X-Memchat-User``."""
    session_header: str = ""
    """A front end's own header for the conversation, of which it sends everything each time."""
    per_minute: int = 6_000
    """Requests of one token."""
    worker: bool = True
    """Whether it also does what is queued, for everybody."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose token came, and for which person and app."""

    token: Token
    user: str
    app: str

    @property
    def through(self) -> str | None:
        """The program, where what it teaches waits in the inbox."""
        return None if self.token.mode == "trust" else self.token.name

    @property
    def access(self) -> tuple[str, str]:
        """The program's name and mode."""
        return self.token.name, self.token.mode

    def check_width(self, all_apps: object) -> None:
        """Raise Refused for what is of all apps, where the token is for one."""
        if all_apps and self.token.app:
            raise Refused(403, "this token is for one app, and that is of all")


def needs(right: Right) -> Callable[[Endpoint], Endpoint]:
    """Marks an endpoint with what a token must allow for it."""

    def marked(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)["right"] = right
        return endpoint

    return marked


def right_of(endpoint: Callable[..., Any]) -> Right:
    """What a token must allow for an endpoint; everything for one that is not marked."""
    right: Right = getattr(endpoint, "right", "admin")
    return right


class Gate:
    """Lets requests in, each by its token."""

    def __init__(self, options: Options, tokens: Tokens, app: str = "default") -> None:
        self._options, self._tokens, self._app = options, tokens, app
        public = urlsplit(options.public_url)
        self._hosts = {public.netloc.lower()} if public.netloc else set()
        self._room: dict[str, tuple[float, float]] = {}

    def enter(self, request: Request, right: Right) -> Caller:
        """Who asks. Raises Refused for everybody who may not."""
        self.check_place(request)
        try:
            token = self._tokens.of(request.headers.get("authorization", ""))
        except ConfigError as error:
            log.error("nobody can be let in: %s", error)
            raise Refused(503, UNREADABLE) from None
        if token is None:
            raise Refused(401, NO_TOKEN, {"www-authenticate": "Bearer"})
        self._count(token.name)
        if not token.allows(right):
            raise Refused(403, f"this needs a token that may {right}; this one may {token.may}")
        named = _words(request, "x-memchat-user")
        if named is None and self._options.user_header:
            named = _words(request, self._options.user_header)
        try:
            user, app = token.scope(named, _words(request, "x-memchat-app"), self._app)
        except ScopeError as error:
            raise Refused(403, str(error)) from None
        return Caller(token, user, app)

    def check_place(self, request: Request) -> None:
        """Raise Refused for a request to another host, or of another site's page."""
        once = (*ONCE, self._options.user_header, self._options.session_header)
        twice = [name for name in once if len(request.headers.getlist(name)) > 1]
        if twice:
            raise Refused(400, f"the header {twice[0]} came twice")
        if {"content-length", "transfer-encoding"} <= {*request.headers}:
            raise Refused(400, "its body has two lengths", {"connection": "close"})
        host = request.headers.get("host", "").lower()
        name = host.rpartition(":")[0] or host
        if name not in OWN_HOSTS and host not in self._hosts:
            raise Refused(421, "this server does not answer to that name")
        own = f"http://{host}" if name in OWN_HOSTS else f"https://{host}"
        if request.headers.get("origin", own) != own:
            raise Refused(403, "pages of other sites get nothing here")

    def _count(self, name: str) -> None:
        """Take one of the requests that a token has left. Raises Refused where there is none."""
        most, now = self._options.per_minute, time.monotonic()
        left, at = self._room.get(name, (most, now))
        left = min(most, left + (now - at) * most / 60)
        if left < 1:
            wait = f"{int((1 - left) * 60 / most) + 1}"
            raise Refused(429, f"at most {most} requests a minute", {"retry-after": wait})
        self._room[name] = left - 1, now


def _words(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    try:
        return value and value.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise Refused(400, f"the header {name} is not in UTF-8") from None


@dataclass(slots=True)
class Watch:
    """Around the application: an id for each request, a line in the log, and counts."""

    app: ASGIApp
    answered: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    buckets: Counter[float] = field(default_factory=Counter)
    total: float = 0.0
    running: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number, began, status = uuid.uuid4().hex[:16], time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ())]
                if all(name != b"x-request-id" for name, _ in headers):  # a provider's own stays
                    headers.append((b"x-request-id", number.encode()))
                message = {**message, "headers": headers}
            await send(message)

        told_bytes = sum(int(v) for name, v in scope["headers"] if name == b"content-length")
        left = MOST_BYTES if told_bytes <= MOST_BYTES else -1  # nothing is read in vain

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0 and scope["path"] not in UNBOUNDED:
                raise Refused(413, f"the body is longer than {MOST_BYTES // 2**20} MB")
            return message

        self.running += 1
        try:
            await self.app(scope, bounded, noting)
        finally:
            self.running -= 1
            took, place = time.perf_counter() - began, getattr(scope.get("route"), "path", "")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.answered[method, place, status] += 1
            self.total += took
            self.buckets.update(bound for bound in BUCKETS if took <= bound)
            told = (number, method, place, status, took * 1000)
            log.info("request=%s method=%s route=%s status=%d ms=%.1f", *told)

    def lines(self) -> Iterator[str]:
        """The counts as Prometheus reads them."""
        yield "# TYPE memchat_requests_total counter"
        for (method, route, status), count in sorted(self.answered.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"memchat_requests_total{{{labels}}} {count}"
        yield "# TYPE memchat_requests_running gauge"
        yield f"memchat_requests_running {self.running}"
        yield "# TYPE memchat_request_seconds histogram"
        for bound in BUCKETS:
            yield f'memchat_request_seconds_bucket{{le="{bound}"}} {self.buckets[bound]}'
        every = self.answered.total()
        yield f'memchat_request_seconds_bucket{{le="+Inf"}} {every}'
        yield f"memchat_request_seconds_sum {self.total:.6f}"
        yield f"memchat_request_seconds_count {every}"
