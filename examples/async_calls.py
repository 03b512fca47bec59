"""Async code: ``AsyncMemChat`` has the same verbs, awaited; waiting for a model holds no thread.

With ``wait=False`` the conversation is on disk when ``add`` returns, and a worker reads it: as soon
as it can, here, else once it rests. It prints::

    ana: city: Porto
    ben: city: Dresden
    eva: city: Utrecht
"""

from __future__ import annotations

import asyncio
import tempfile

from memchat import AsyncMemChat


async def main() -> None:
    """Three people tell something at the same time; then the queue is worked off."""
    said = {"ana": "I live in Porto.", "ben": "I live in Dresden.", "eva": "I live in Utrecht."}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncMemChat(folder) as mc:
            adds = (
                mc.user(person).add(text, session="chat", wait=False, when="now")
                for person, text in said.items()
            )
            await asyncio.gather(*adds)
            await mc.jobs.run()
            for person in said:
                for memory in await mc.user(person).memories.list():
                    print(f"{person}: {memory.key}: {memory.value}")


if __name__ == "__main__":
    asyncio.run(main())
