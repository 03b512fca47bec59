"""How close a backfill and a change of service come to the speed of the service itself."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.queue import store
from memchat.providers import Embedder
from memchat.providers.embedders import HashEmbedder
from memchat.search.embed import CALLS
from memchat.types import Service, Usage

BATCH = 100
GOAL = 0.9
WAIT = 0.02
"""Seconds a fake provider takes for a request."""
SAMPLE = 20
"""Batches by which the service alone is measured, before and after."""
DIMENSIONS = 384
KEY = "no-secret"


class Sleeper:
    """A provider that thinks for 20 ms and costs no work of this machine."""

    def __init__(self) -> None:
        import numpy as np

        vectors = np.random.default_rng(1).normal(size=(2 * BATCH, DIMENSIONS))
        self._vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f4")

    @property
    def service(self) -> Service:
        """fake/sleeper."""
        return Service("fake", "sleeper", DIMENSIONS, 8191)

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        """Some vectors, after a while."""
        time.sleep(WAIT)
        return self._vectors[: len(texts)], Usage("embed", "fake/sleeper", len(texts), 0, 0.0, WAIT)

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        """One, after a while."""
        vectors, usage = self.embed_documents([text])
        return vectors[0], usage


@dataclass(frozen=True, slots=True)
class Pace:
    """Texts a second: the service alone, and memchat through it."""

    name: str
    rows: int
    alone: float
    """One call after another."""
    together: float
    """With as many calls under way as memchat has."""
    backfill: float
    migrate: float

    @property
    def ratio(self) -> float:
        """The part of the service's own speed that the slower of the two reaches."""
        return min(self.backfill, self.migrate) / self.alone


def measure(name: str, embedder: Embedder, rows: int, sample: int = SAMPLE) -> Pace:
    """Fill two stores, embed one and change the other, and call the service alone around it."""
    texts = [store.text(number) for number in range(rows)]
    embedder.embed_documents(texts[:BATCH])  # loads, connects
    calls = 1 if embedder.service.local else CALLS
    alone = [_alone(embedder, texts, sample, 1)]
    backfill = _backfill(embedder, rows)
    together = [_alone(embedder, texts, sample, calls), _alone(embedder, texts, sample, calls)]
    migrate = _migrate(embedder, rows)
    alone.append(_alone(embedder, texts[::-1], sample, 1))
    mean = statistics.mean
    return Pace(name, rows, mean(alone), mean(together), rows / backfill, rows / migrate)


def _backfill(embedder: Embedder, rows: int) -> float:
    """Seconds that a backfill takes."""
    with tempfile.TemporaryDirectory(prefix="memchat-pace-") as folder:
        store.words_only(Path(folder), rows)
        with store.with_service(Path(folder), embedder) as mc:
            mc.jobs.run(kinds=())  # imports and opens all that a first use does
            mc.doctor()
            began = time.perf_counter()
            result = mc.jobs.backfill(batch=BATCH)
            spent = time.perf_counter() - began
    if result.done != rows or result.left:
        raise RuntimeError(f"{result.done} of {rows} texts were embedded, {result.left} left")
    return spent


def _migrate(embedder: Embedder, rows: int) -> float:
    """Seconds that a change to the service takes."""
    with tempfile.TemporaryDirectory(prefix="memchat-pace-") as folder:
        store.words_only(Path(folder), rows)
        with store.with_service(Path(folder), HashEmbedder()) as mc:
            mc.jobs.backfill()
        with store.with_service(Path(folder), embedder) as mc:
            mc.services.list()
            began = time.perf_counter()
            done = mc.services.migrate()
            spent = time.perf_counter() - began
    if not done.switched or done.embedded != rows:
        raise RuntimeError(f"{done.embedded} of {rows} texts were embedded")
    return spent


def run(rows: int) -> bool:
    """All services, as a table; whether the goal was reached by each."""
    os.environ["OPENAI_API_KEY"] = KEY
    from memchat.providers.local import MiniLMEmbedder, available

    print(f"{'':<18}{'':>8}{'alone,':>10}{'alone,':>11}")
    print(
        f"{'texts a second':<18}{'rows':>8}{'1 call':>10}{f'{CALLS} calls':>11}{'backfill':>10}"
        f"{'migrate':>9}   goal {GOAL:.0%} of 1 call"
    )
    reached = _told(measure("20 ms, a double", Sleeper(), rows))
    with served() as address:
        reached &= _told(measure("20 ms, over HTTP", _remote(address), rows))
    if available():
        reached &= _told(measure("MiniLM", MiniLMEmbedder(None), rows))
    else:
        print("MiniLM: not measured, its weights are not installed")
    return reached


def _told(pace: Pace) -> bool:
    good = pace.ratio >= GOAL
    parts = (f"{one / pace.alone:.0%}" for one in (pace.backfill, pace.migrate))
    print(
        f"{pace.name:<18}{pace.rows:>8}{pace.alone:>10.0f}{pace.together:>11.0f}"
        f"{pace.backfill:>10.0f}{pace.migrate:>9.0f}   {'reached' if good else 'MISSED'}: "
        f"{', '.join(parts)}",
        flush=True,
    )
    return good


@contextmanager
def served() -> Iterator[str]:
    """A fake provider of its own process, in OpenAI's wire format; its address."""
    context = multiprocessing.get_context("spawn")
    told, tell = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(tell,), daemon=True)
    child.start()
    try:
        yield f"http://127.0.0.1:{told.recv()}/v1"
    finally:
        child.kill()
        child.join()


def _serve(tell: Any) -> None:
    answers: dict[int, bytes] = {}

    class Provider(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            count = len(json.loads(self.rfile.read(length))["input"])
            if count not in answers:
                answers[count] = _answer(count)
            time.sleep(WAIT)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answers[count])))
            self.end_headers()
            self.wfile.write(answers[count])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    tell.send(server.server_address[1])
    server.serve_forever()


def _answer(count: int) -> bytes:
    numbers = [0.01 * (i % 17) + 0.01 for i in range(1536)]
    data = [{"object": "embedding", "index": i, "embedding": numbers} for i in range(count)]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": usage}).encode()


def _remote(address: str) -> Embedder:
    from memchat.providers.embedders import LiteLLMEmbedder

    model = "openai/text-embedding-3-small"
    return LiteLLMEmbedder(model, timeout=60, api_base=address, per_minute=1_000_000)


def _alone(embedder: Embedder, texts: Sequence[str], sample: int, calls: int) -> float:
    """Texts a second of the service, in the same batches, with so many calls under way."""
    batches = [texts[i * BATCH : (i + 1) * BATCH] for i in range(sample)]
    batches = [batch for batch in batches if batch]
    with ThreadPoolExecutor(calls) as pool:
        began = time.perf_counter()
        for _ in pool.map(embedder.embed_documents, batches):
            pass
        return sum(map(len, batches)) / (time.perf_counter() - began)
