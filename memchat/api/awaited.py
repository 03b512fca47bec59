"""``AsyncMemChat``: the verbs of ``MemChat`` for programs that use ``await``.

A type checker reads ``awaited.pyi`` in the place of this file, so it is short: the wrapping, which
is to be checked, is in ``aio.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Self

from memchat import waiting
from memchat.api.aio import Face, Lanes
from memchat.api.store import MemChat
from memchat.providers.litellm_calls import RemoteModel


class _OwnModel:
    """A model that a program brings, or a reply of it: it may block, so no lane waits for it."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def complete(self, *given: Any, **named: Any) -> Any:
        return waiting.in_executor(partial(self._own.complete, *given, **named))

    def stream(self, *given: Any, **named: Any) -> Any:
        return _OwnModel(waiting.in_executor(partial(self._own.stream, *given, **named)))

    def __iter__(self) -> Iterator[str]:
        pieces = iter(self._own)
        while (piece := waiting.in_executor(partial(next, pieces, None))) is not None:
            yield piece


class AsyncMemChat(Face):
    """``MemChat`` with the same verbs and rooms, each verb awaited. Use it in ``async with``.

    A call that waits for a model holds no thread; work on the store is done on a few. A call that
    is cancelled has come to its end when ``CancelledError`` is raised: what it had stored stays,
    and what was still to be read is in the queue. ``user`` and ``client`` are not awaited; a chat
    is entered with ``async with``, a reply read by ``async for``. A model or embedder of your own
    that blocks is called in one of a few threads. Takes what ``MemChat`` takes, and raises what
    that raises.
    """

    def __init__(self, home: Path | str | None = None, **options: Any) -> None:
        mc = MemChat(home, **options)  # first, as it may refuse what it is given
        built = mc._assembly._built
        for name, given in built.items():
            built[name] = given if isinstance(given, RemoteModel) else _OwnModel(given)
        super().__init__(Lanes(), mc)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def blocking(self) -> MemChat:
        """The same store, for calls in threads of the program's own."""
        store: MemChat = self._face
        return store

    async def close(self) -> None:
        """Stop the calls under way, as if they were cancelled, and close the store."""
        done: Future[None] = waiting.beside("memchat-close", self._close)
        await asyncio.shield(asyncio.wrap_future(done))

    def _close(self) -> None:
        for lane in self._lanes.all:
            lane.close()
        self._face.close()
