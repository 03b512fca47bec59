"""Replies on their way to the pages: served as events by a route of the app's own.

Each tab has a secret, by which it is told what goes on in the chat that it shows: at once where a
reply comes in, and within a second where another tab of it says something.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ui.desk import Talk, Turn

PATH = "/memchat/live"
PAUSE = 0.05
"""Seconds between two looks at a reply."""
AGAIN = 700
"""Milliseconds after which a page asks again while nothing comes in."""
_shown: dict[str, Callable[[], Talk | None]] = {}


def show(tab: str, talk: Callable[[], Talk | None]) -> str:
    """The address at which a tab hears of its chat from now on."""
    _shown[tab] = talk
    return f"{PATH}/{tab}"


def is_shown(tab: str) -> bool:
    """Whether this is the secret of an open tab."""
    return tab in _shown


def leave(tab: str) -> None:
    """A tab was closed."""
    _shown.pop(tab, None)


def version(talk: Talk | None, answering: bool) -> str:
    """Changes with each thing that is said, and when a reply has come in."""
    return f"{talk.said if talk is not None else 0}{'+' * answering}"


def _now(talk: Talk | None) -> str:
    return version(talk, talk is not None and talk.answering)


async def _follow(request: Request) -> Response:
    talk = _shown.get(request.path_params["tab"])
    if talk is None:
        return Response(status_code=404)
    events = _events(talk, request.headers.get("last-event-id", ""))
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(find: Callable[[], Talk | None], seen: str) -> AsyncIterator[str]:
    """What came of the reply since the event ``seen``, for as long as it comes in."""
    yield f"retry: {AGAIN}\n\n"
    talk = find()
    turn = talk.turn if talk is not None else None
    said, _, count = seen.partition(":")
    now = _now(talk)
    blocks = int(count) if said == now and count.isdecimal() else 0
    before = ""
    while turn is not None and turn.running:
        last = await run_in_threadpool(_draw, turn) if turn.text else ""
        new = turn.drawing.blocks[blocks:]
        if last != before or new:
            told = {"version": now, "from": blocks, "blocks": new, "last": last}
            blocks, before = blocks + len(new), last
            yield _event(told, f"{now}:{blocks}")
        await asyncio.sleep(PAUSE)
    yield _event({"version": _now(find())})


def _draw(turn: Turn) -> str:
    with turn.lock:
        return turn.drawing.last(turn.text)


def _event(told: dict[str, Any], name: str = "") -> str:
    return f"id: {name}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n"


async def _stop(request: Request) -> Response:
    """Stop the reply that comes in."""
    find = _shown.get(request.path_params["tab"])
    talk = find() if find is not None else None
    if talk is not None and talk.turn is not None and talk.answering:
        await run_in_threadpool(talk.turn.stop)
    return Response(status_code=204)


ROUTES = [
    Route(f"{PATH}/{{tab}}", _follow, methods=["GET"]),
    Route(f"{PATH}/{{tab}}/stop", _stop, methods=["POST"]),
]
