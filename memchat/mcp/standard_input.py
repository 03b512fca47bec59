"""Standard input by lines, for a server that Ctrl-C can end while it waits for one."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from threading import Thread

import anyio
import anyio.from_thread
import anyio.lowlevel

_AT_ONCE = 1 << 16


class StandardInput:
    """The lines of standard input, for one reader. Programs that are started meanwhile find
    nothing in theirs.

    The SDK reads in a thread that it waits for at its end, so that Ctrl-C would do nothing until
    the next line comes. Nobody waits for the thread of this one.
    """

    def __init__(self) -> None:
        number = sys.stdin.fileno()
        self._descriptor = os.dup(number)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, number)
        os.close(empty)

    async def __aiter__(self) -> AsyncIterator[str]:
        send, receive = anyio.create_memory_object_stream[str](0)
        token = anyio.lowlevel.current_token()

        def read() -> None:
            # Where the loop has ended, nobody takes the line any more.
            with suppress(RuntimeError, anyio.BrokenResourceError):
                for line in self._lines():
                    anyio.from_thread.run(send.send, line, token=token)
                anyio.from_thread.run(send.aclose, token=token)

        Thread(target=read, name="standard input", daemon=True).start()
        async with receive:
            async for line in receive:
                yield line

    def _lines(self) -> Iterator[str]:
        begun: list[bytes] = []
        while read := os.read(self._descriptor, _AT_ONCE):
            *ended, rest = read.split(b"\n")
            for end in ended:
                yield b"".join([*begun, end]).decode("utf-8", "replace")
                begun.clear()
            begun.append(rest)
        if any(begun):
            yield b"".join(begun).decode("utf-8", "replace")
