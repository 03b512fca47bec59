"""How long a turn of a backend takes: its context, and keeping what was said.

800 turns of 200 people, 20 at a time, over HTTP: the FastAPI example as it is, and the same app
with the blocking face in FastAPI's threads, in turns. The server is a process of its own, so is the
client; the model answers at once, so that all that is counted is memchat's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]
BLOCKING = """
from typing import Annotated
from fastapi import FastAPI, Header
from memchat import MemChat

mc, app = MemChat(), FastAPI()

@app.post("/chat/{session}")
def chat(session: str, text: str, person: Annotated[str, Header()]) -> str:
    user = mc.user(person)
    known = user.context(text)
    turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
    user.add(turn, session=session, wait=False)
    return known.text
"""
FACES = {"awaited": "examples.fastapi_backend:app", "threads": "blocking:app"}
SAID = ("I moved to {}.", "What do I drink in {}?", "My sister lives in {}.", "How far is {}?")
PLACES = ("Porto", "Dresden", "Utrecht", "Ghent", "Lyon")


async def turns(base: str, people: int, at_once: int) -> list[float]:
    """The seconds of each turn: four of each person, in order, so many people at once."""
    took: list[float] = []
    free = asyncio.Semaphore(at_once)
    async with httpx.AsyncClient(base_url=base, timeout=60) as client:

        async def talk(number: int) -> None:
            async with free:
                for place, words in enumerate(SAID):
                    text = words.format(PLACES[(number + place) % len(PLACES)])
                    began = time.perf_counter()
                    answer = await client.post(
                        "/chat/s", params={"text": text}, headers={"person": f"p{number}"}
                    )
                    answer.raise_for_status()
                    took.append(time.perf_counter() - began)

        await asyncio.gather(*(talk(number) for number in range(people)))
    return took


def measured(face: str, port: int, people: int, at_once: int) -> tuple[float, float, float]:
    """One round with a store of its own: the median, the 95th percentile, and turns a second."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "blocking.py").write_text(BLOCKING)
        environment = {**os.environ, "MEMCHAT_HOME": f"{folder}/store"}
        environment["PYTHONPATH"] = f"{ROOT}:{folder}"
        command = [sys.executable, "-m", "uvicorn", FACES[face], "--port", str(port)]
        server = subprocess.Popen([*command, "--log-level", "warning"], env=environment)
        try:
            base = f"http://127.0.0.1:{port}"
            for _ in range(200):
                try:
                    warm = {"params": {"text": "Hello"}, "headers": {"person": "warm"}}
                    httpx.post(f"{base}/chat/s", timeout=60, **warm).raise_for_status()
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            began = time.perf_counter()
            took = sorted(asyncio.run(turns(base, people, at_once)))
            rate = len(took) / (time.perf_counter() - began)
            return statistics.median(took), took[int(0.95 * (len(took) - 1))], rate
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Measure both faces in turns and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, default=200)
    options.add_argument("--at-once", type=int, default=20)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--faces", default="awaited,threads")
    given = options.parse_args()
    print("| face | p50 | p95 | turns a second |\n|---|---|---|---|", flush=True)
    for number in range(given.rounds):
        for face in given.faces.split(","):
            port = 18_300 + number
            p50, p95, rate = measured(face, port, given.people, given.at_once)
            print(
                f"| {face} | {p50 * 1000:.0f} ms | {p95 * 1000:.0f} ms | {rate:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
