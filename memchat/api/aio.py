"""How anything that has verbs gets awaited ones.

Nothing is declared twice: a verb is run on a lane, where waiting for a model holds no thread, and
what it gives is wrapped in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from memchat import waiting
from memchat.api.base import Resource
from memchat.api.store import Backups, Jobs, Services, Users
from memchat.errors import StoreError

T = TypeVar("T")
LANES = 4
HANDLES = ("user", "client")
"""Verbs that only name something, and are not awaited."""
IN_A_THREAD = (
    *("add_files", "add_upload", "watch", "export", "export_file", "import_file"),
    *("fetch", "doctor", "repair", "connect", "models", "warm"),
    *("import_history", "undo_import"),
)
"""Verbs that read and write files at length, or load and try models. Each has a thread for itself,
as have those of ``backups``, and goes on there when whoever waits for it is cancelled."""


class Face:
    """Anything of the other face that has verbs."""

    def __init__(self, lanes: Lanes, face: Any) -> None:
        self._lanes, self._face = lanes, face

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(f"{type(self._face).__name__} has no attribute {name!r}")
        value = getattr(self._face, name)
        if not callable(value):
            return self._lanes.wrapped(value)
        if name in HANDLES:
            return lambda *given, **named: self._lanes.wrapped(value(*given, **named))
        if name == "chat":
            return lambda *given, **named: _Opening(self._lanes, partial(value, *given, **named))

        async def verb(*given: Any, **named: Any) -> Any:
            apart = name in IN_A_THREAD or isinstance(self._face, Backups)
            lane = None if apart else self._lanes.next()
            return self._lanes.wrapped(await _awaited(lane, partial(value, *given, **named)))

        verb.__qualname__ = f"{type(self._face).__name__}.{name}"  # if it is never awaited
        return verb

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._face) if name[0] != "_"]

    def __repr__(self) -> str:
        return f"<awaited {self._face!r}>"


class _Opening:
    """A chat that is being opened: ``await`` it, or enter it with ``async with``."""

    def __init__(self, lanes: Lanes, work: Callable[[], Any]) -> None:
        self._lanes, self._work = lanes, work

    def __await__(self) -> Generator[Any, None, Any]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Any:
        self._chat = await _awaited(self._lanes.next(), self._work)
        return Face(self._lanes, self._chat)

    async def __aexit__(self, *error: object) -> None:
        await _awaited(self._lanes.next(), partial(self._chat.__exit__, *error))


class _Stream(Face):
    """A reply, or another answer that comes in pieces: ``async for`` gives them, ``read`` all."""

    def __init__(self, lanes: Lanes, face: Any) -> None:
        super().__init__(lanes, face)
        # What it waits for comes to one lane; it is read by one at a time.
        self._lane, self._one = lanes.next(), asyncio.Lock()

    async def __aiter__(self) -> AsyncIterator[Any]:
        pieces: Iterator[Any] = iter(self._face)
        end = object()
        while (piece := await self._next(partial(next, pieces, end))) is not end:
            yield piece

    async def read(self, *given: Any, **named: Any) -> Any:
        return await self._next(partial(self._face.read, *given, **named))

    async def stop(self) -> None:
        """As ``Reply.stop``: what came is stored when this returns."""
        await _awaited(self._lane, self._face.stop)  # whoever reads it comes to the end
        await self._next(self._face.stop)

    async def _next(self, work: Callable[[], T]) -> T:
        async with self._one:
            try:
                return await _awaited(self._lane, work)
            except asyncio.CancelledError:
                if hasattr(self._face, "stop"):  # what came is stored
                    await _ended(asyncio.wrap_future(self._lane.begin(self._face.stop)))
                raise


class Lanes:
    """The lanes of a store. One takes all calls while none takes long: several threads of Python
    get less done at once than one does after another."""

    def __init__(self) -> None:
        self.all = [waiting.Lane(f"memchat-lane-{n}") for n in range(LANES)]

    def next(self) -> waiting.Lane:
        """The lane for a call."""
        free = (lane for lane in self.all if not lane.stuck)
        return next(free, min(self.all, key=lambda lane: lane.under_way))

    def wrapped(self, value: Any) -> Any:
        """What a verb gave, with verbs that are awaited where it has any."""
        if hasattr(value, "__next__") or (hasattr(value, "__iter__") and hasattr(value, "read")):
            return _Stream(self, value)
        with_verbs = isinstance(value, Resource | Backups | Jobs | Services | Users)
        return Face(self, value) if with_verbs else value


async def _awaited(lane: waiting.Lane | None, work: Callable[[], T]) -> T:
    """What ``work`` gives. When whoever waits is cancelled, it is stopped at its next wait, and has
    come to its end when that is raised."""
    call = waiting.beside("memchat-apart", work) if lane is None else lane.begin(work)
    future = asyncio.wrap_future(call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if isinstance(call, waiting.Call):
            call.stop()
            await _ended(future)
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise StoreError("the store was closed before this was done") from None


async def _ended(future: asyncio.Future[Any]) -> None:
    """Wait until it has come to its end, also where that is cancelled once more."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((future,))
    future.cancelled() or future.exception()  # seen
