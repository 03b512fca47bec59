"""What a provider can do wrong, in a reply and at the reading of a conversation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.provider_faults.server import (
    LEARNT,
    QUIET_SECONDS,
    REPLY,
    Play,
    Wire,
    completion,
    delta,
)

HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
IS_HTML = "Content-Type: text/html"
IS_EVENTS = "Content-Type: text/event-stream"


@dataclass(frozen=True, slots=True)
class Fault:
    """One bad thing. ``plays`` are what the provider does at its next requests."""

    name: str
    at: Literal["reply", "reading"]
    plays: tuple[Play, ...]


def status(code: int, *fields: str, body: str = '{"error": {"message": "no"}}') -> Play:
    """An error status."""
    return lambda wire: wire.whole(body, f"{code} No", *fields)


def events(*lines: str) -> Play:
    """A stream of these events and no others."""

    def play(wire: Wire) -> None:
        wire.begin()
        wire.events(lines)

    return play


def pieces(*parts: str, **end: Any) -> Play:
    """A streamed reply in these pieces."""
    return lambda wire: wire.stream(*parts, **end)


def answer(text: Any, **more: Any) -> Play:
    """A whole answer with this text."""
    return lambda wire: wire.whole(completion(text, **more))


def silence(wire: Wire) -> None:
    """Nothing at all."""
    time.sleep(QUIET_SECONDS)


def drip(wire: Wire) -> None:
    """A word now and then, and then no more, but the line stays open."""
    wire.begin()
    for word in ("One ", "two "):
        wire.events([delta(content=word)])
        time.sleep(0.2)
    time.sleep(QUIET_SECONDS)


def after(text: str, then: Callable[[Wire], None]) -> Play:
    """The beginning of a streamed reply, and then something else."""

    def play(wire: Wire) -> None:
        wire.begin()
        wire.events([delta(content=text)])
        time.sleep(0.05)  # so that it is read before the line breaks
        then(wire)

    return play


def short_of(length: int) -> Play:
    """A body that ends before the length it was announced with."""

    def play(wire: Wire) -> None:
        body = completion(LEARNT).encode()
        wire.head("200 OK", f"Content-Length: {len(body) + length}", "Content-Type: text/json")
        wire.raw(body[: len(body) // 2])

    return play


def cut_chunk(wire: Wire) -> None:
    """A chunked body that ends inside a chunk."""
    wire.head("200 OK", IS_EVENTS, "Transfer-Encoding: chunked")
    data = f"data: {delta(content='One two ')}\n\n".encode()
    wire.raw(b"%x\r\n%b\r\n" % (len(data), data))
    wire.raw(b"fff\r\nda")


def call(name: str, arguments: str) -> str:
    """A chunk with a call of a tool."""
    made = {"index": 0, "id": "t", "type": "function"}
    return delta(tool_calls=[{**made, "function": {"name": name, "arguments": arguments}}])


def moved(wire: Wire) -> None:
    """A redirect to a place where nobody listens."""
    wire.head("307 Moved", "Location: http://127.0.0.1:9/v1", "Content-Length: 0")


def round_and_round(wire: Wire) -> None:
    """A redirect to itself."""
    wire.head("307 Moved", "Location: /v1/chat/completions", "Content-Length: 0")


def garbage(wire: Wire) -> None:
    """No HTTP at all."""
    wire.raw(b"\x00\xff\x00 220 smtp ready\r\n\r\n")


IN_REPLY: dict[str, Play] = {
    **{f"status {n}": status(n) for n in (400, 401, 402, 403, 404, 408, 409, 413, 422, 500, 529)},
    "status 429, Retry-After inf": status(429, "Retry-After: inf"),
    "status 429, Retry-After -7": status(429, "Retry-After: -7"),
    "status 429, Retry-After soon": status(429, "Retry-After: soon"),
    "status 502, a page of HTML": status(502, IS_HTML, body=HTML),
    "status 503, Retry-After 1e300": status(503, "Retry-After: 1e300"),
    "a redirect to nowhere": moved,
    "a page of HTML": lambda wire: wire.whole(HTML, "200 OK", IS_HTML),
    "no body": lambda wire: wire.whole("", "200 OK", IS_EVENTS),
    "not streamed": answer(REPLY),
    "an event of half a JSON": after("One two ", lambda w: w.events(['{"choices": [{"del'])),
    "an error in the stream": after(
        "One two ", lambda w: w.events(['{"error": {"message": "overloaded", "code": 500}}'])
    ),
    "no finish": pieces("One ", "two", finish=None, done=False),
    "no finish, but [DONE]": pieces("One ", "two", finish=None),
    "a finish, but no [DONE]": pieces("One ", "two", done=False),
    "an emoji in two chunks": pieces("One \ud83d", "\ude00 two"),
    "half an emoji": pieces("One \ud83d", " two"),
    "a NUL in the text": pieces("One \0", " two"),
    "two megabytes in one chunk": pieces("é" * 1_000_000),
    "200 kilobytes in many chunks": pieces(*("some more words " * 10,) * 20, *map(str, range(9)),
                                           *(f"{n} more " * 50 for n in range(400))),
    "the same chunk for ever": pieces(*("again ",) * 300),
    "silence": silence,
    "a slow drip, then silence": drip,
    "reset before the head": Wire.reset,
    "closed before the head": lambda wire: None,
    "reset after the head": lambda wire: (wire.begin(), wire.reset())[0],
    "reset in the middle": after("One two ", Wire.reset),
    "a chunk cut in two": cut_chunk,
    "not UTF-8": after("One two ", lambda w: w.raw(b'data: {"choices": [{"delta": "\xff\xfe\n\n')),
    "said to be zipped": lambda wire: wire.whole("no zip", "200 OK", "Content-Encoding: gzip"),
    "no HTTP": garbage,
    "no choices": events('{"id": "c", "choices": []}', "[DONE]"),
    "null for text": events(delta(content=None), delta(finish="stop"), "[DONE]"),
    "a tool nobody has": events(call("fly", "{}"), delta(finish="tool_calls"), "[DONE]"),
    "a tool call of half a JSON": events(call("remember", '{"qu'), delta(finish="tool_calls")),
    "refused by a filter": events(delta(finish="content_filter"), "[DONE]"),
}  # fmt: skip
AT_READING: dict[str, tuple[Play, ...]] = {
    "500 six times": (status(500),) * 6,
    "429, Retry-After inf": (status(429, "Retry-After: inf"),),
    "429, Retry-After 1e11": (status(429, "Retry-After: 1e11"),),
    "429, Retry-After in 2099": (status(429, "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT"),),
    "401": (status(401),),
    "a redirect to itself": (round_and_round,) * 30,
    "silence": (silence,),
    "reset before the head": (Wire.reset,),
    "a body cut short": (short_of(9),),
    "a page of HTML": (lambda wire: wire.whole(HTML, "200 OK", IS_HTML),),
    "no choices": (lambda wire: wire.whole('{"id": "c", "choices": []}'),),
    "null for text": (answer(None),),
    "a tool call for text": (
        answer(None, tool_calls=[{"id": "t", "type": "function",
                                  "function": {"name": "fly", "arguments": "{}"}}]),
    ),
    "prose twice": (answer("Of course! Here you go."), answer("I noted everything.")),
    "half a JSON twice": (answer(LEARNT[:60]), answer(LEARNT[:60])),
    "three megabytes of prose": (answer("I see. " * 400_000),) * 2,
    "brackets without end": (answer("[" * 100_000), answer('{"facts": ' * 20_000)),
    "not UTF-8": (lambda wire: wire.whole(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),),
    "halves of characters": (answer('{"facts": "\ud83d", "title": 1e999'),) * 2,
}  # fmt: skip


def every() -> list[Fault]:
    """All of them."""
    replies = [Fault(name, "reply", (play,)) for name, play in IN_REPLY.items()]
    return replies + [Fault(name, "reading", plays) for name, plays in AT_READING.items()]
