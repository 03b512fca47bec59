"""A model that takes its time, in a process of its own: OpenAI's wire format on 127.0.0.1.

It finds one fact in "I live in …", holds every second look to be right, and says "Fine.".
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.answers import answer, fact
from tests.support.second_look import HOLDS

KEY = "no-secret"


def settings(address: str) -> dict[str, str]:
    """The environment by which memchat asks this model."""
    model = {"MEMCHAT_CHAT_MODEL": "openai/slow", "MEMCHAT_EXTRACT_MODEL": "openai/slow"}
    return {
        **model,
        "MEMCHAT_EMBED_MODEL": "minilm",
        "OPENAI_BASE_URL": address,
        "OPENAI_API_KEY": KEY,
    }


@contextmanager
def served(seconds: float, *, spread: float = 0.0) -> Iterator[str]:
    """The address of such a model, which answers after ``seconds``, up to ``spread`` later."""
    command = [sys.executable, "-m", "benchmarks.slow_model", str(seconds), str(spread)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def said(instructions: str, prompt: str) -> str:
    """What it answers to a prompt."""
    if '"facts"' not in instructions and '"verdicts"' not in instructions:
        return "Fine."
    if '"candidates"' in prompt:
        return HOLDS
    city = re.findall(r"I live in (\w+)", prompt)[-1]
    return answer(fact(f"I live in {city}", "city", city))


async def _serve(seconds: float, spread: float) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = re.search(rb"content-length: *(\d+)", head, re.I)
            sent = json.loads(await reader.readexactly(int(length[1]) if length else 0))
            await asyncio.sleep(seconds + spread * random.random())
            first, *_, last = (one["content"] for one in sent["messages"])
            words = said(first, last)
            choice = {"index": 0, "message": {"role": "assistant", "content": words}}
            usage = {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950}
            body = {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": sent["model"],
                "choices": [{**choice, "finish_reason": "stop"}],
                "usage": usage,
            }
            data = json.dumps(body).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n%b" % (len(data), data))

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the client went away

    server = await asyncio.start_server(quietly, "127.0.0.1", 0, backlog=1000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), float(sys.argv[2])))
