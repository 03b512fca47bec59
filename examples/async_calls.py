"""Async code: every verb blocks, so call it with ``asyncio.to_thread``.

One ``MemChat`` serves any number of threads. With ``wait=False`` the conversation is on disk when
``add`` returns, and a worker reads it: as soon as it can, here, else once it rests. It prints::

    ana: city: Porto
    ben: city: Dresden
    eva: city: Utrecht
"""

from __future__ import annotations

import asyncio
import tempfile

from memchat import MemChat


async def tell(mc: MemChat, person: str, text: str) -> None:
    """Store one message; nobody waits for a model."""
    add = mc.user(person).add
    await asyncio.to_thread(add, text, session="chat", wait=False, when="now")


async def main() -> None:
    """Three people tell something at the same time; then the queue is worked off."""
    said = {"ana": "I live in Porto.", "ben": "I live in Dresden.", "eva": "I live in Utrecht."}
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        await asyncio.gather(*(tell(mc, person, text) for person, text in said.items()))
        await asyncio.to_thread(mc.jobs.run)
        for person in said:
            for memory in await asyncio.to_thread(mc.user(person).memories.list):
                print(f"{person}: {memory.key}: {memory.value}")


if __name__ == "__main__":
    asyncio.run(main())
