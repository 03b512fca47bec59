"""What both fake endpoints share: the loopback server, the script of answers, the refusals."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Say:
    """Answer with this text, word by word where a stream was asked for."""

    text: str


@dataclass(frozen=True)
class Call:
    """Answer with tool calls, each a name and its arguments as JSON, after this text if any."""

    calls: tuple[tuple[str, str], ...]
    text: str = ""
    cut: bool = False
    """Whether the connection is dropped in the middle of the last call."""


@dataclass(frozen=True)
class Fail:
    """Answer with an error status."""

    status: int
    message: str = "scripted failure"
    retry_after: str | None = None
    code: str | None = None
    """The provider's own word for the error, e.g. ``context_length_exceeded``."""
    retry_delay: str | None = None
    """Gemini's way to say Retry-After, inside the body."""


@dataclass(frozen=True)
class Hang:
    """Send nothing for so many seconds, or until the server closes; then hang up."""

    seconds: float = 5.0


@dataclass(frozen=True)
class Cut:
    """Stream this text, then drop the connection without an end."""

    text: str


@dataclass(frozen=True)
class Pieces:
    """Stream exactly these pieces, and the end of a reply without a word that it is over."""

    parts: tuple[str, ...]
    finish: bool = False
    """Whether that word comes after all."""
    silence: float = 0.0
    """Seconds of silence before the end, or until the server closes."""


@dataclass(frozen=True)
class Endless:
    """Stream words until the client goes away, which sets ``server.client_left``."""


@dataclass(frozen=True)
class Empty:
    """A well-formed answer without any text; ``reason`` in the provider's own words."""

    reason: str = "stop"


@dataclass(frozen=True)
class Raw:
    """Status 200 with this body, whatever it is."""

    body: str


@dataclass(frozen=True)
class Rows:
    """Embeddings exactly as given, in this order, whatever was asked."""

    vectors: list[list[float]]


Step = Say | Call | Fail | Hang | Cut | Pieces | Endless | Empty | Raw | Rows


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]


class Refused(Exception):
    """The real endpoint would have refused this request."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code


def _friendly(messages: list[dict[str, Any]]) -> str:
    return "Hello there, friend."


class Listening(ThreadingHTTPServer):
    """Takes as many requests at a time as a real provider."""

    request_queue_size = 512


@dataclass
class WireServer:
    """A fake endpoint on 127.0.0.1; ``refusals`` lists why requests were turned away."""

    key: str = "test-key-8d1f0a77c2"
    dimensions: int = 16
    requests: list[Received] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    client_left: threading.Event = field(default_factory=threading.Event)
    reply: Callable[[list[dict[str, Any]]], str] = _friendly
    handler: ClassVar[type[Handler]]

    def __post_init__(self) -> None:
        self.steps: deque[Step] = deque()
        self.closing = threading.Event()
        wire = self

        class Bound(self.handler):  # type: ignore[name-defined,misc]
            server_side = wire

        self._http = Listening(("127.0.0.1", 0), Bound)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address without a version path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, *steps: Step) -> None:
        """What to answer to the next requests, in order."""
        self.steps.extend(steps)

    def next_step(self, messages: list[dict[str, Any]]) -> Step:
        return self.steps.popleft() if self.steps else Say(self.reply(messages))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


class Handler(BaseHTTPRequestHandler):
    """Reads a request, checks it, plays the next step. The endpoints fill in the shapes."""

    protocol_version = "HTTP/1.1"
    server_side: WireServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, received: Received) -> None:
        raise NotImplementedError

    def error_body(self, status: int, message: str, code: str | None, delay: str | None) -> Any:
        raise NotImplementedError

    def content_type(self, path: str) -> str:
        """What a request to a path has to be."""
        return "application/json"

    def parsed(self, path: str, headers: dict[str, str], raw: bytes) -> Any:
        """The body of a request."""
        return json.loads(raw)

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = self.parsed(parts.path, headers, raw)
            received = Received(parts.path, dict(parse_qsl(parts.query)), headers, body)
            self.server_side.requests.append(received)
            wanted = self.content_type(parts.path)
            if not headers.get("content-type", "").startswith(wanted):
                raise Refused(415, f"content-type must be {wanted}")
            self.answer(received)
        except json.JSONDecodeError:
            self.refuse(Refused(400, "the body is no JSON"))
        except Refused as refused:
            self.refuse(refused)
        except (BrokenPipeError, ConnectionResetError):
            self.server_side.client_left.set()
            self.close_connection = True

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self.answer(Received(self.path, {}, headers, None))
        except Refused as refused:
            self.refuse(refused)

    def refuse(self, refused: Refused) -> None:
        self.server_side.refusals.append(refused.message)
        self.fail(Fail(refused.status, refused.message, code=refused.code))

    def fail(self, step: Fail) -> None:
        body = self.error_body(step.status, step.message, step.code, step.retry_delay)
        extra = {} if step.retry_after is None else {"Retry-After": step.retry_after}
        self.send_json(body, step.status, extra)

    def send_json(self, body: Any, status: int = 200, extra: dict[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, events: Iterable[str]) -> None:
        """Server-sent events without a length: the end of the connection is the end."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"data: {event}\r\n\r\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Drop the connection; the client was promised more."""
        self.wfile.flush()
        self.close_connection = True

    def play_common(self, step: Step) -> bool:
        """The steps that look alike everywhere; False for the ones that do not."""
        if isinstance(step, Fail):
            self.fail(step)
        elif isinstance(step, Raw):
            self.send_json(step.body)
        elif isinstance(step, Hang):
            self.server_side.closing.wait(step.seconds)
            self.hang_up()
        else:
            return False
        return True

    def stream_cut(self, events: Iterable[str]) -> None:
        """Some events, then nothing: the chunked body is left without its last chunk."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"data: {event}\r\n\r\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.hang_up()

    def with_silence(self, step: Pieces) -> Iterator[str]:
        """The pieces, and the silence behind them."""
        yield from step.parts
        self.server_side.closing.wait(step.silence)

    def endless_words(self) -> Iterator[str]:
        # Numbered: litellm gives up a stream that says the same thing a hundred times.
        for n in count():
            if self.server_side.closing.wait(0.01):
                return
            yield f"word {n} " * 5


def words(text: str) -> list[str]:
    """The text in the pieces a stream sends: each word with the space behind it."""
    return text.replace(" ", " \0").split("\0")


def vector(text: str, dimensions: int) -> list[float]:
    """A vector that belongs to the text and is not of length one."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    draw = random.Random(seed)
    return [draw.gauss(0, 3) for _ in range(dimensions)]


def only(body: dict[str, Any], allowed: set[str], where: str, say: str = "Unknown name") -> None:
    """Refuse a field that the endpoint does not know."""
    for name in body:
        if name not in allowed:
            raise Refused(400, f'{say} "{name}" at {where}')


def require(condition: bool, message: str, status: int = 400, code: str | None = None) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        raise Refused(status, message, code)
