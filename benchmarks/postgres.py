"""A person's facts in PostgreSQL and in SQLite, in turns: adding, and searching again.

The server is the one that the tests start, without fsync; ``--server`` names another. Run it with
``python -m benchmarks.postgres``.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import HashEmbedder
from tests.support import postgres_server

WORDS = [a + b for a in "bcdfghklmnprst" for b in ("ara", "ilo", "une", "oto", "emi")]
SEARCHES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=600)
    parser.add_argument("--server", help="postgresql://…; its schema bench is made and left")
    given = parser.parse_args()
    mark = "&" if given.server and "?" in given.server else "?"
    url = f"{given.server}{mark}schema=bench" if given.server else postgres_server.url("bench")
    for name, where in (("SQLite", None), ("PostgreSQL", url), ("SQLite", None)):
        with tempfile.TemporaryDirectory() as home:
            measure(name, Settings(home=Path(home), database_url=where), given.facts)


def measure(name: str, settings: Settings, facts: int) -> None:
    chance = random.Random(3)

    def said(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
        ana = mc.user(f"ana {time.time_ns()}")
        adding = timed(lambda n: ana.memories.add("fact", f"thing {n}", said(5)), range(facts))
        mc.jobs.run()
        questions = [said(3) for _ in range(SEARCHES)]
        for one in questions:
            ana.search(one)
        print(f"{name:10}  add {adding}  search {timed(ana.search, questions)}", flush=True)


def timed(work: Callable[[object], object], given: Iterable[object]) -> str:
    took = []
    for one in given:
        began = time.perf_counter()
        work(one)
        took.append((time.perf_counter() - began) * 1000)
    return f"p50 {statistics.median(took):.1f}, p95 {statistics.quantiles(took, n=20)[-1]:.1f} ms"


if __name__ == "__main__":
    main()
