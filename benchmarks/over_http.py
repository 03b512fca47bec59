"""What ``memchat serve`` adds to a request whose recall is among 10,000 facts.

    python -m benchmarks.over_http [--requests 300]

The same requests go to the provider itself and by way of the server, in turns; then the time from
the start of the process to its first answer, and what it holds at rest. Search is by words and the
hash embedder, whose vectors cost next to nothing, as cached ones do.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks import filters, slow_model
from memchat import MemChat
from memchat.config import Settings
from memchat.config.tokens import Token, Tokens
from memchat.providers.embedders import HashEmbedder

GOALS = {"p50": 10.0, "p99": 40.0}
PORT = 18_390


def question(n: int) -> str:
    """Of every boat another one."""
    return f"which {filters.COLOURS[n % 7]} boat of the harbour {n % 311}?"


def asked(client: httpx.Client, n: int) -> float:
    """The milliseconds of one request."""
    messages = [("system", "Be brief."), ("user", question(n))]
    told = [{"role": role, "content": words} for role, words in messages]
    body = {"model": "slow", "messages": told}
    began = time.perf_counter()
    client.post("/chat/completions", json=body).raise_for_status()
    return (time.perf_counter() - began) * 1000


def started(environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], float]:
    """The server, and after how many seconds it answered."""
    command = [sys.executable, "-m", "memchat", "serve", "--user", "ana", "--port", str(PORT)]
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{PORT}/v1/models")
            return process, time.perf_counter() - began
        except httpx.ConnectError:
            time.sleep(0.01)


def main() -> int:
    """Measure, and print the two side by side."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=300)
    count = options.parse_args().requests
    with tempfile.TemporaryDirectory() as folder, slow_model.served(0) as provider:
        home = Path(folder)
        with MemChat(settings=Settings(home=home), embedder=HashEmbedder()) as mc:
            filters.fill(mc)
        token = Tokens(home).add(Token("bench", "ana", mode="trust"))
        models = slow_model.settings(provider) | {"MEMCHAT_EMBED_MODEL": "hash"}
        process, seconds = started(os.environ | models | {"MEMCHAT_HOME": folder})
        try:
            with (
                httpx.Client(base_url=provider, headers=bearer(slow_model.KEY)) as direct,
                httpx.Client(
                    base_url=f"http://127.0.0.1:{PORT}/v1", headers=bearer(token), timeout=60
                ) as through,
            ):
                for n in range(5):
                    asked(through, n)
                pairs = [(asked(direct, n), asked(through, n)) for n in range(count)]
            rss = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0]
        finally:
            process.terminate()
            process.wait()
    added = sorted(behind - before for before, behind in pairs)
    measured = {"p50": added[count // 2], "p99": added[int(0.99 * (count - 1))]}
    for name, goal in GOALS.items():
        told = "met" if measured[name] <= goal else "missed"
        print(f"{name} of what it adds: {measured[name]:.1f} ms; goal {goal:g}: {told}")
    print(f"start to first answer {seconds:.2f} s; RSS {int(rss) // 1024} MB")
    return 0


def bearer(key: str) -> dict[str, str]:
    """The header with a key."""
    return {"authorization": f"Bearer {key}"}


if __name__ == "__main__":
    sys.exit(main())
