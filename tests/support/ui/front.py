"""A server in front of the app, by which people reach it from elsewhere: it speaks TLS."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.support.wire.tls import made_context


@contextlib.contextmanager
def tls_in_front(folder: Path, port: int, front: int) -> Iterator[None]:
    """Pass on to ``port`` what comes to ``front`` over TLS, until the block ends."""
    context, _ = made_context(folder)
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    lines: dict[asyncio.Task[None] | None, list[asyncio.StreamWriter]] = {}

    async def copy(read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await read.read(65536):
                write.write(data)
                await write.drain()
        write.close()

    async def passed_on(read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        answers, behind = await asyncio.open_connection("127.0.0.1", port)
        lines[asyncio.current_task()] = [write, behind]
        await asyncio.gather(copy(read, behind), copy(answers, write))

    async def serve() -> None:
        server = await asyncio.start_server(passed_on, "127.0.0.1", front, ssl=context)
        ready.set()
        await over.wait()
        server.close()
        for line in [line for both in lines.values() for line in both]:
            line.close()
        await asyncio.gather(*filter(None, lines), return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()
