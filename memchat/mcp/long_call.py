"""A call that may take long: it tells the client how far it is, and the client may cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp.server.mcpserver import Context

from memchat.types import Progress

T = TypeVar("T")


class Cancelled(Exception):
    """The client gave the call up; nobody waits for its result."""


class LongCall:
    """One running call of a tool, made in the event loop."""

    def __init__(self, call: Context[Any, Any]) -> None:
        self._call = call
        self._token = anyio.lowlevel.current_token()
        self._over = threading.Event()

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in a thread. A cancelled call is answered at once; its work ends where it
        next reports or gives something."""
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            self._over.set()

    def report(self, progress: Progress) -> None:
        """Tell the client, from any thread but that of the event loop. Raises Cancelled."""
        self.check()
        anyio.from_thread.run(
            self._call.report_progress, progress.done, progress.total, token=self._token
        )

    def read(self, pieces: Iterable[str]) -> None:
        """Read all pieces. Raises Cancelled between two of them."""
        for _ in pieces:
            self.check()

    def check(self) -> None:
        """Raise Cancelled where nobody waits for the result any more."""
        if self._over.is_set():
            raise Cancelled
