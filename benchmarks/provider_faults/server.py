"""A local provider in OpenAI's wire format that answers as it is told to, down to the last byte."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

SAID = "I moved to Lisbon last week."
REPLY = "Lisbon is lovely."
FACT = {
    "quotes": [{"msg": "u1", "text": "I moved to Lisbon"}], "ref": None, "type": "profile",
    "key": "city", "value": "Lisbon", "many": False, "until_said": None, "until": None,
    "to": None, "is": "new", "flags": [],
}  # fmt: skip
LEARNT = json.dumps({"facts": [FACT], "forget": [], "title": "Moving", "summary": ""})
HOLDS = json.dumps({"verdicts": [{"id": "c1", "answer": "holds", "why": None, "now": None}]})
QUIET_SECONDS = 3.0
"""How long a silence lasts: longer than the patience of whoever asks."""


class Wire:
    """One connection with one request read; what is sent over it is nobody's business but a
    fault's."""

    def __init__(
        self, connection: socket.socket, request: dict[str, Any], path: str = "/v1/chat/completions"
    ) -> None:
        self.connection = connection
        self.request = request
        self.path = path

    @property
    def streams(self) -> bool:
        """Whether a reply was asked for, and not a reading."""
        return bool(self.request.get("stream"))

    def raw(self, data: bytes) -> None:
        """Exactly these bytes."""
        self.connection.sendall(data)

    def head(self, status: str = "200 OK", *fields: str) -> None:
        """The head of an answer; its end is the end of the connection where no length is given."""
        lines = [f"HTTP/1.1 {status}", "Connection: close", *fields, "", ""]
        self.raw("\r\n".join(lines).encode("latin-1"))

    def whole(self, body: str | bytes, status: str = "200 OK", *fields: str) -> None:
        """A whole answer; JSON where nothing else is said."""
        data = body.encode() if isinstance(body, str) else body
        kind = () if any("content-type" in f.lower() for f in fields) else (JSON,)
        self.head(status, f"Content-Length: {len(data)}", *kind, *fields)
        self.raw(data)

    def begin(self) -> None:
        """The head of a stream of events."""
        self.head("200 OK", "Content-Type: text/event-stream")

    def events(self, events: Iterable[str]) -> None:
        """Server-sent events, one after another."""
        for event in events:
            self.raw(f"data: {event}\n\n".encode())

    def stream(self, *pieces: str, finish: str | None = "stop", done: bool = True) -> None:
        """A streamed reply in these pieces."""
        self.begin()
        self.events(delta(content=piece) for piece in pieces)
        self.events([delta(finish=finish)] if finish else [])
        self.events(["[DONE]"] if done else [])

    def reset(self) -> None:
        """Break the connection off, as a machine does that goes down."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def well(self) -> None:
        """What a healthy provider would answer."""
        if self.streams:
            self.stream(*REPLY.split(" ", 1)[0:1], " " + REPLY.split(" ", 1)[1])
            return
        asked = json.dumps(self.request.get("messages"))
        self.whole(completion(HOLDS if "candidates" in asked else LEARNT))


JSON = "Content-Type: application/json"
Play = Callable[[Wire], None]


def delta(finish: str | None = None, **fields: Any) -> str:
    """One chunk of a streamed reply."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps({**made, "choices": [choice]})


def completion(content: Any, finish: str = "stop", **more: Any) -> str:
    """A whole answer with this text."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    made = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**made, "choices": [choice]})


class Provider:
    """The server. ``plan`` says what it does at the next requests; then it is well again.
    ``asked`` counts them."""

    def __init__(self, well: Play = Wire.well) -> None:
        self.asked = 0
        self._well = well
        self._plan: deque[Play] = deque()
        self.closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def base(self) -> str:
        """Its address, as a client wants it."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def plan(self, plays: Sequence[Play]) -> None:
        """Forget what was planned, and do these things at the next requests."""
        self._plan.clear()
        self._plan.extend(plays)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed while it waits
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        # Whoever asked may have left, which is what some of this is about.
        with connection, contextlib.suppress(OSError):
            path, request = _read(connection)
            if request is not None:
                self.asked += 1
                play = self._plan.popleft() if self._plan else self._well
                play(Wire(connection, request, path))


def _read(connection: socket.socket) -> tuple[str, dict[str, Any] | None]:
    """The path and the body of a request; no body where there was no request."""
    stream = connection.makefile("rb")
    path = stream.readline().decode("latin-1").split(" ")[1:2]
    length = 0
    for line in stream:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        if line in (b"\r\n", b"\n"):
            break
    body = stream.read(length)
    if not path:
        return "", None
    return path[0], json.loads(body) if body else {}
