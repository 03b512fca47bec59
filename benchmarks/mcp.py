"""What MCP costs: the start of a server, a search through it, its memory, and many clients at once.

    python -m benchmarks.mcp [--facts 1000] [--searches 100] [--clients 8] [--seconds 60]
                             [--embedder minilm hash]

Starts `memchat mcp` on a store of so many facts and prints, for each embedder and with the goals of
each figure: the time from its start to the answer of its first call, a search or none, beside a
Python that imports the SDK; the time of `recall` through standard input and output, beside the same
search by the library in this process, in turns; its resident memory when it is connected, and when
it has answered and rests; and how many calls that many clients at once, each with a server of its
own on the same store, got answered in so many seconds, and how many failed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import anyio
from mcp import Client, StdioServerParameters

from memchat import MemChat
from memchat.config import load

USER = "ana"
ROUNDS = 5
START_S, RECALL_MS, RSS_MB = 1.5, 5.0, 150
_PLACES = ("Lisbon", "Porto", "Faro", "Braga", "Evora", "Sintra", "Lagos", "Tavira", "Coimbra")


def question(number: int) -> str:
    """A question that no search was made for just before."""
    return f"what is thing {number} in {_PLACES[number % len(_PLACES)]}"


Settings = Mapping[str, str]
"""The environment of a server: its store, its person and its embedder."""


def server(settings: Settings, name: str = "bench") -> StdioServerParameters:
    """How a client starts it."""
    args = ["-m", "memchat", "mcp", "--client", name]
    env = {**os.environ, **settings}
    return StdioServerParameters(command=sys.executable, args=args, env=env)


def fill(settings: Settings, facts: int) -> None:
    """So many facts, with their vectors."""
    with MemChat(settings=load(settings)) as mc:
        for number in range(facts):
            place = _PLACES[number % len(_PLACES)]
            mc.user(USER).memories.add("fact", f"thing_{number}", f"thing {number} is in {place}")
        mc.jobs.embed()


def import_seconds() -> float:
    """A whole process that only imports the SDK."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp"], check=True)
    return time.perf_counter() - began


class Wire:
    """A server that is spoken to line by line: the SDK's own client checks each result against its
    schema in Python, which takes longer than all the rest."""

    def __init__(self, settings: Settings) -> None:
        start = server(settings)
        self.process = subprocess.Popen(
            [start.command, *start.args],
            env=start.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        self._send(method="notifications/initialized")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)  # closes its input, which ends it

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request."""
        self._send(id=1, method=method, params=params)
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        return said

    def _send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


def first_answer_seconds(settings: Settings, tool: str, **arguments: Any) -> float:
    """From the start of the process to the answer of its first call."""
    began = time.perf_counter()
    with Wire(settings) as wire:
        wire.call(tool, **arguments)
        return time.perf_counter() - began


def recall_seconds(settings: Settings, searches: int) -> tuple[list[float], list[float]]:
    """The times of the library and of `recall`, in turns, after a few of each."""
    own: list[float] = []
    through: list[float] = []
    with MemChat(settings=load(settings)) as mc, Wire(settings) as wire:
        user = mc.user(USER)
        for number in range(searches + 5):
            began = time.perf_counter()
            user.search(question(number))
            own.append(time.perf_counter() - began)
            began = time.perf_counter()
            wire.call("recall", query=question(number))
            through.append(time.perf_counter() - began)
    return own[5:], through[5:]


def resting_mb(settings: Settings) -> tuple[float, float]:
    """The resident memory of a server that is connected, and of one that has answered a search."""
    with Wire(settings) as wire:
        connected = _resident_mb(wire.process.pid)
        wire.call("recall", query=question(1))
        return connected, _resident_mb(wire.process.pid)


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def together(settings: Settings, clients: int, seconds: float) -> tuple[int, list[str]]:
    """The calls that so many clients at once got answered once all were connected, and what
    failed."""
    answered, failed, connected = 0, list[str](), 0
    all_there, over = anyio.Event(), anyio.Event()

    async def one(number: int) -> None:
        nonlocal answered, connected
        async with Client(server(settings, f"client {number}")) as client:
            connected += 1
            if connected == clients:
                all_there.set()
            await all_there.wait()
            turn = 0
            while not over.is_set():
                turn += 1
                result = await client.call_tool(*_call(number, turn))
                answered += 1
                if result.is_error:
                    failed.append(str(getattr(result.content[0], "text", "")))

    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            tasks.start_soon(one, number)
        await all_there.wait()
        await anyio.sleep(seconds)
        over.set()
    return answered, failed


def _call(number: int, turn: int) -> tuple[str, dict[str, Any]]:
    if turn % 5 == 0:
        fact = {"type": "fact", "key": f"said_{number}_{turn}", "value": f"thing {turn} is blue"}
        return "remember", fact
    if turn % 7 == 0:
        return "list_memories", {"limit": 10}
    return "recall", {"query": question(number * 1_000 + turn)}


def _line(name: str, figure: str, goal: str) -> None:
    print(f"{name:<46}{figure:>12}   {goal}", flush=True)


def main() -> None:
    """Fill a store and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--facts", type=int, default=1_000)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--embedder", nargs="+", default=["minilm", "hash"])
    given = parser.parse_args()
    for embedder in given.embedder:
        with tempfile.TemporaryDirectory() as home:
            _measure(given, embedder, home)


def _measure(given: argparse.Namespace, embedder: str, home: str) -> None:
    settings = {"MEMCHAT_HOME": home, "MEMCHAT_USER": USER, "MEMCHAT_EMBED_MODEL": embedder}
    fill(settings, given.facts)
    load_now = os.getloadavg()[0]
    print(f"{embedder}, {given.facts} facts, {time.strftime('%Y-%m-%d')}, load {load_now:.1f}")
    search = {"tool": "recall", "query": question(0)}
    starts = [
        (
            import_seconds(),
            first_answer_seconds(settings, "get_capabilities"),
            first_answer_seconds(settings, **search),
        )
        for _ in range(ROUNDS)
    ]
    imported, first, searched = (_median(column) for column in zip(*starts, strict=True))
    _line("python -c 'import mcp'", f"{imported:.2f} s", "")
    _line("start to first answer", f"{first:.2f} s", f"<= {START_S} s")
    _line("start to the answer of a first recall", f"{searched:.2f} s", "")
    own, through = recall_seconds(settings, given.searches)
    more = _median(b - a for a, b in zip(own, through, strict=True))
    _line("search by the library", f"{1000 * _median(own):.1f} ms", "")
    _line("recall over stdio", f"{1000 * _median(through):.1f} ms", "")
    _line("what MCP adds", f"{1000 * more:.1f} ms", f"<= {RECALL_MS} ms")
    connected, resting = resting_mb(settings)
    _line("resident memory when connected", f"{connected:.0f} MB", f"<= {RSS_MB} MB")
    _line("resident memory at rest after a recall", f"{resting:.0f} MB", f"<= {RSS_MB} MB")
    answered, failed = anyio.run(together, settings, given.clients, given.seconds)
    name = f"{given.clients} clients at once, {given.seconds:g} s"
    _line(name, f"{answered} calls", f"{len(failed)} failed, goal 0")
    for said in sorted(set(failed))[:5]:
        print(f"  {said}")


def _median(values: Any) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    main()
