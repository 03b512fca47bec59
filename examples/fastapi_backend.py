"""A backend for many people: FastAPI over one store, whose waits for a model hold no thread.

``app`` is what a server such as uvicorn serves. Who asks is named by a header here; take yours from
how they signed in. Run as a script it asks itself, and prints::

    ana: You have not told me yet.
    ana: You drink green tea.
    ben: You have not told me yet.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse

from memchat import AsyncMemChat, InputError, MemChatError


@asynccontextmanager
async def opened(app: FastAPI) -> AsyncIterator[None]:
    """Hold the store open as long as the server runs, with a worker that reads what rests."""
    async with AsyncMemChat(app.state.folder) as app.state.memchat:
        worker = asyncio.create_task(app.state.memchat.jobs.work())
        yield
        worker.cancel()


async def my_model(known: str, text: str) -> str:
    """Stands for the model that answers; ``known`` goes into its system prompt."""
    return "You drink green tea." if "green tea" in known else "You have not told me yet."


app = FastAPI(lifespan=opened)
app.state.folder = None  # the one that the settings name


@app.exception_handler(MemChatError)
def refused(request: Request, error: Exception) -> JSONResponse:
    """Say what memchat says of what it cannot take."""
    return JSONResponse({"detail": str(error)}, 400 if isinstance(error, InputError) else 503)


@app.post("/chat/{session}")
async def chat(session: str, text: str, request: Request, person: Annotated[str, Header()]) -> str:
    """Answer with what is known of the person, and keep the turn."""
    user = request.app.state.memchat.user(person)
    known = await user.context(text)
    answer = await my_model(known.text, text)
    turn = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    await user.add(turn, session=session, wait=False)
    return answer


async def main() -> None:
    """Ask the app as its clients would."""
    with tempfile.TemporaryDirectory() as folder:
        app.state.folder = folder
        async with opened(app), httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:

            async def ask(person: str, session: str, text: str) -> None:
                reply = await client.post(
                    f"http://memchat/chat/{session}",
                    params={"text": text},
                    headers={"person": person},
                )
                print(f"{person}: {reply.json()}")

            await ask("ana", "monday", "I like green tea.")
            await ask("ana", "tuesday", "What do I drink?")
            await ask("ben", "tuesday", "What do I drink?")


if __name__ == "__main__":
    asyncio.run(main())
