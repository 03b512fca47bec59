"""Files on their way into a message: read as they come, and held in memory until it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_urlsafe

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from memchat.chat import Chat
from memchat.errors import InputError, MemChatError
from memchat.types import Attachment
from ui import components as ui
from ui import live

MOST_BYTES = 100_000_000
MOST_HELD = 50
"""Files that wait for their message; the oldest make room."""
_held: dict[str, Attachment] = {}


def held(keys: Sequence[str]) -> list[Attachment]:
    """The files of these keys. Raises InputError where one is not held any more."""
    if not all(key in _held for key in keys):
        raise InputError("an attached file is not there any more; remove it and attach it again")
    return [_held[key] for key in keys]


def drop(keys: Sequence[str]) -> None:
    """Let go of files."""
    for key in keys:
        _held.pop(key, None)


async def _take(request: Request) -> JSONResponse:
    """Read a file, and tell by which key it goes with a message; or why it cannot."""
    if not live.is_shown(request.path_params["tab"]):
        return JSONResponse({"error": "This page is out of date; reload it."}, 404)
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_BYTES:
            most = MOST_BYTES // 1_000_000
            return JSONResponse({"error": f"It has more than {most} MB."}, 413)
    name = request.query_params.get("name", "")
    try:
        one = await run_in_threadpool(Chat.attachment, name, bytes(data))
    except MemChatError as error:
        return JSONResponse({"error": ui.as_sentence(str(error))}, 400)
    key = token_urlsafe()
    _held[key] = one
    drop([*_held][:-MOST_HELD])
    return JSONResponse({"key": key, "size": one.size})


async def _remove(request: Request) -> JSONResponse:
    drop([request.path_params["key"]])
    return JSONResponse({})


ROUTES = [
    Route(f"{live.PATH}/{{tab}}/attach", _take, methods=["POST"]),
    Route(f"{live.PATH}/{{tab}}/attach/{{key}}", _remove, methods=["DELETE"]),
]
