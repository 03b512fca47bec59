"""What ``memchat serve`` costs with 10,000 facts: `make bench-http`.

    python -m benchmarks.over_http [--requests 300] [--embed hash] [--workers 1] [--litellm PATH]

The same requests go to the provider itself, by way of the server, and by way of litellm's own proxy
where its command is there (``pip install "litellm[proxy]"``), in turns. Then searches, of questions
that were asked before, by four clients at once; how long the start takes; and what the process
holds at rest. The texts and questions are those of ``benchmarks.speed``: no question has words of
more than a few facts. The hash embedder costs next to nothing, as cached vectors do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from benchmarks import slow_model
from benchmarks.speed import data
from memchat import MemChat
from memchat.config import Settings
from memchat.config.tokens import Token, Tokens
from memchat.db import apps
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, search_text
from memchat.types import Scope

GOALS = {"p50": 10.0, "p99": 40.0}
FACTS, SEARCHES, SECONDS, KEYS = 10_000, 50, 5.0, 500
SEARCH_GOAL = 200
OWN = "memchat serve"
PORT, PROXY_PORT = 18_390, 18_391
PROXY = """
model_list:
  - model_name: slow
    litellm_params: {{model: openai/slow, api_base: "{address}", api_key: "{key}"}}
"""


def fill(home: Path, folder: Path) -> list[str]:
    """Put the facts into a store; the questions."""
    place = data.make(folder, data.Size(FACTS, 1), 1)
    texts = (place / "texts.txt").read_text().splitlines()
    with MemChat(settings=Settings(home=home, embed_model="hash")) as mc:
        with mc._assembly.database.write() as tx:
            own, cause = apps.ensure(tx, Scope("ana")).own, Cause("user", "added by hand")
            for n, value in enumerate(texts):
                key = f"key_{n % KEYS}"
                words = search_text(key, value, tx.now, tx.zone)
                new = NewMemory("fact", key, value, True, words, tx.now, "manual")
                changes.add(tx, own, new, cause)
        mc.jobs.run()
    questions: list[str] = json.loads((place / "questions.json").read_text())
    return questions


def asked(client: httpx.Client, question: str) -> float:
    """The milliseconds of one request."""
    told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    began = time.perf_counter()
    client.post("/chat/completions", json={"model": "slow", "messages": told}).raise_for_status()
    return (time.perf_counter() - began) * 1000


@contextmanager
def started(
    command: list[str], environment: dict[str, str], ready: str
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """A server, and after how many seconds it answered."""
    began = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **quiet) as process:  # type: ignore[call-overload]
        try:
            while True:
                try:
                    httpx.get(ready)
                    break
                except httpx.TransportError:
                    assert process.poll() is None, f"{command[0]} ended"
                    time.sleep(0.01)
            yield process, time.perf_counter() - began
        finally:
            process.terminate()


def searched(base: str, token: str, questions: list[str]) -> tuple[float, int]:
    """Searches a second of four clients at once, and how many failed."""
    end = time.perf_counter() + SECONDS

    def client(first: int) -> tuple[int, int]:
        done = failed = 0
        with httpx.Client(base_url=base, headers=bearer(token), timeout=60) as web:
            while time.perf_counter() < end:
                query = questions[(first + done) % SEARCHES]
                failed += not web.get("/api/search", params={"query": query}).is_success
                done += 1
        return done, failed

    with ThreadPoolExecutor(4) as pool:
        counts = [*pool.map(client, range(0, SEARCHES, SEARCHES // 4))][:4]
    return sum(done for done, _ in counts) / SECONDS, sum(failed for _, failed in counts)


def told(name: str, values: list[float]) -> dict[str, float]:
    """Print what a way adds to each request; its p50 and p99."""
    added = sorted(values)
    found = {"p50": added[len(added) // 2], "p99": added[int(0.99 * (len(added) - 1))]}
    print(f"{name} adds: p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms")
    return found


def with_proxy(litellm: str, provider: str, folder: str, on: ExitStack) -> str:
    """The address of litellm's own proxy before the provider."""
    config = Path(folder, "proxy.yaml")
    config.write_text(PROXY.format(address=provider, key=slow_model.KEY))
    address = f"http://127.0.0.1:{PROXY_PORT}"
    command = [litellm, "--config", str(config), "--port", str(PROXY_PORT)]
    unset = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    on.enter_context(started(command, os.environ | unset, f"{address}/health/liveliness"))
    return address


def compare(ways: dict[str, tuple[str, str]], questions: list[str], count: int) -> None:
    """Send requests by all ways in turns, the direct one first, and print what each adds."""
    with ExitStack() as on:
        clients = [
            on.enter_context(httpx.Client(base_url=url, headers=bearer(key), timeout=60))
            for url, key in ways.values()
        ]
        for n in range(5):
            [asked(client, questions[-n]) for client in clients]
        rows = [
            [asked(client, questions[n % len(questions)]) for client in clients]
            for n in range(count)
        ]
    for place, name in enumerate([*ways][1:], 1):
        seen = told(name, [row[place] - row[0] for row in rows])
        for figure, goal in GOALS.items() if name == OWN else ():
            met = "met" if seen[figure] <= goal else "missed"
            print(f"  {figure}: goal {goal:g} ms: {met}")


def main() -> int:
    """Measure, and print the ways side by side."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--requests", type=int, default=300)
    options.add_argument("--embed", default="hash")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--litellm", default=shutil.which("litellm"))
    given = options.parse_args()
    with ExitStack() as on:
        folder = on.enter_context(tempfile.TemporaryDirectory())
        provider = on.enter_context(slow_model.served(0))
        home = Path(folder, "store")
        questions = fill(home, Path(folder))
        token = Tokens(home).add(Token("bench", "ana", mode="trust"))
        models = slow_model.settings(provider) | {"MEMCHAT_EMBED_MODEL": given.embed}
        how = {"--port": PORT, "--rate": 9_999_999, "--workers": given.workers}
        words = [str(word) for pair in how.items() for word in pair]
        command = [sys.executable, "-m", "memchat", "serve", *words]
        base = f"http://127.0.0.1:{PORT}"
        environment = os.environ | models | {"MEMCHAT_HOME": str(home)}
        process, seconds = on.enter_context(started(command, environment, f"{base}/healthz"))
        ways = {"direct": (provider, slow_model.KEY), OWN: (f"{base}/v1", token)}
        if given.litellm is not None:
            address = with_proxy(given.litellm, provider, folder, on)
            ways["litellm's proxy"] = (address, "no-secret")
        else:
            print("litellm's proxy is not there: its command is not on the path")
        compare(ways, questions, given.requests)
        searched(base, token, questions)  # each question once before
        rate, failed = searched(base, token, questions)
        met = "met" if rate >= SEARCH_GOAL and not failed else "missed"
        print(f"searches a second: {rate:.0f}, {failed} failed; goal {SEARCH_GOAL}: {met}")
        if given.workers == 1:
            status = Path(f"/proc/{process.pid}/status").read_text()
            rss = int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) // 1024
            print(f"start to first answer {seconds:.2f} s (goal 2); RSS after all this {rss} MB")
    return 0


def bearer(key: str) -> dict[str, str]:
    """The header with a key."""
    return {"authorization": f"Bearer {key}"}


if __name__ == "__main__":
    sys.exit(main())
