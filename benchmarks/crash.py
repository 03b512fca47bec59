"""kill -9 over 2 to 4 processes on one store: is anything lost that was acknowledged?

    python -m benchmarks.crash [--rounds 500] [--seed 1] [--home FOLDER]

Processes chat, end sessions, add, edit, delete, search and embed at random (crash_child.py). Each
round kills one of them at a random moment, searches at once for the facts that were written last
(crash_fresh.py), starts another, opens the store as a next start would, and checks that everything
which ever returned is there, that no session is lost, and that index, keyword rows, events and rows
agree (crash_checks.py). Prints one line each 25 rounds, then figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks import crash_checks, crash_child, crash_fresh
from memchat.db import records
from memchat.db.database import Database
from memchat.errors import MemChatError
from memchat.providers.embedders import SERVICE
from memchat.search.vector_index import VectorIndex

CLOCK_SLACK = timedelta(seconds=5)
"""A job's time is taken before its transaction waits for the writer's place."""

_WAITING = """
    SELECT (SELECT count(*) FROM jobs WHERE status = -1)
        + (SELECT count(*) FROM passages WHERE status = -1)
"""


def forkserver() -> ForkServerContext:
    """A clean process that has everything imported; its forks are at work within milliseconds."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["memchat.api", "memchat.chat", "memchat.search.vector_index", "memchat.db.migrate",
         "memchat.learn.learner", "memchat.providers.factory",
         "memchat.providers.embedders", "memchat.testing"]
    )  # fmt: skip
    return context


class Crash:
    """One store under fire, and what was seen."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.home = home / "store"
        self.faults: list[str] = []
        self.kills = self.in_a_call = self.died = self.started = self._errors = 0
        (home / "diaries").mkdir(parents=True)
        self.diaries = crash_checks.Diaries(home / "diaries")
        self.fresh: Counter[str] = Counter()
        """How the facts written last were found right after each kill."""
        self.held: Counter[str] = Counter()
        """What the store had at the end."""
        self._random = chance
        self._children: list[tuple[BaseProcess, str]] = []
        self._context = forkserver()
        with crash_child.open_store(self.home) as store:
            store.jobs.embed()  # names the store's embedding service
        self._database = Database(self.home)
        self._watch: VectorIndex | None = None

    def round(self) -> list[str]:
        """Kill one process at a random moment, start others, look; the faults of this round."""
        wanted = self._random.randint(2, 4)
        while len(self._children) < wanted:
            self._start()
        time.sleep(self._random.uniform(0.02, 0.5))
        self._kill()
        found = self._search()
        while len(self._children) > wanted:
            self._kill()
        self._start()
        return found + self._look()

    def end(self) -> list[str]:
        """Kill all that is left and look once more: now nothing may be under way."""
        while self._children:
            self._kill()
        found = self._look()
        with self._database.read() as tx:
            left = tx.connection.exec_driver_sql(_WAITING).scalar()
        self.held = self._stored()
        self._database.close()
        if left:
            found.append(f"{left} jobs are left with nobody to do them")
            self.faults.append(found[-1])
        return found

    def _stored(self) -> Counter[str]:
        """Rows and events of the store, by kind."""
        with self._database.read() as tx:
            sizes = {
                name: tx.connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
                for name in ("sessions", "messages", "memories", "memory_sources", "tombstones")
            }
            events = tx.connection.exec_driver_sql(
                "SELECT kind, count(*) FROM memory_events GROUP BY kind"
            )
            return Counter(sizes | {f"{kind} events": count for kind, count in events})

    def _start(self) -> None:
        self.started += 1
        name = f"c{self.started}"
        child = self._context.Process(
            target=crash_child.live, args=(self.home, self.diaries.folder / name, name), daemon=True
        )
        child.start()
        self._children.append((child, name))

    def _kill(self) -> None:
        child, name = self._children.pop(self._random.randrange(len(self._children)))
        died = child.exitcode is not None
        child.kill()
        child.join()
        self.diaries.read()
        self.died += died
        self.kills += not died
        last = max((key for key in self.diaries.calls if key[0] == name), default=None)
        self.in_a_call += last is not None and self.diaries.calls[last].returned == float("inf")

    def _search(self) -> list[str]:
        """Look for what was written last, before anybody works off the queue."""
        seen = crash_fresh.search(self.home, crash_fresh.latest(self.diaries))
        self.fresh += Counter(how for how, _ in seen)
        found = [fact for how, fact in seen if how == crash_fresh.MISSED]
        self.faults += found
        return found

    def _look(self) -> list[str]:
        since = datetime.now(UTC) - CLOCK_SLACK
        found = []
        try:
            with crash_child.open_store(self.home) as store:
                found += store.jobs.run().errors  # the next start
        except MemChatError as error:
            found.append(f"the next start failed: {error}")
        cut = time.monotonic_ns()
        with self._database.read() as tx:
            store_id, service_id = records.get(tx, "store_id"), records.get(tx, "service_id")
            assert store_id and service_id
            where = (self.home, store_id, int(service_id), SERVICE)
            self._watch = self._watch or VectorIndex(*where)
            indexes = [self._watch, VectorIndex(*where)]
            found += crash_checks.every_fault(tx, self.diaries, cut, since, indexes)
        found += self.diaries.errors[self._errors :]
        self._errors = len(self.diaries.errors)
        self.faults += found
        return found


def run(
    home: Path, rounds: int, seed: int, seen: Callable[[int, Crash], None] = lambda *_: None
) -> Crash:
    """So many rounds on a new store in ``home``."""
    crash = Crash(home, random.Random(seed))
    for number in range(1, rounds + 1):
        for fault in crash.round():
            print(f"round {number}: {fault}", flush=True)
        seen(number, crash)
    for fault in crash.end():
        print(f"at the end: {fault}", flush=True)
    return crash


def report(crash: Crash, seconds: float) -> None:
    """The figures, for people."""
    calls = list(crash.diaries.calls.values())
    kinds = Counter(call.name for call in calls)
    print(f"\n{crash.kills} kills, {crash.in_a_call} of them inside a call, in {seconds:.0f} s")
    print(f"{len(crash.diaries.acknowledged)} of {len(calls)} calls acknowledged;"
          f" {sum(c.refused for c in calls)} refused, another process was first")  # fmt: skip
    print("call       count   p50 ms   p99 ms   max ms")
    back = crash.diaries.acknowledged
    for name, count in kinds.most_common():
        took = sorted((call.returned - call.began) / 1e6 for call in back if call.name == name)
        if took:
            p50, p99 = statistics.median(took), took[int(len(took) * 0.99)]
            print(f"{name:<8} {count:>7} {p50:>8.1f} {p99:>8.1f} {took[-1]:>8.1f}")
    print(", ".join(f"{count} {name}" for name, count in crash.held.items()))
    told = ", ".join(f"{crash.fresh[how]} {how}" for how in crash_fresh.WAYS)
    print(f"facts just written, searched for right after a kill: {told}")
    lost = sum("LOST" in fault for fault in crash.faults)
    print(f"lost: {lost}; errors in processes: {len(crash.diaries.errors)}, deaths by error: "
          f"{crash.died}; faults in all: {len(crash.faults)}")  # fmt: skip


def main() -> int:
    """Run and print; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description="kill -9 over several processes on one store")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help="keep the store and diaries in this new folder")
    args = parser.parse_args()
    home = args.home or Path(tempfile.mkdtemp(prefix="memchat-crash-"))
    began = time.monotonic()

    def seen(number: int, crash: Crash) -> None:
        if number % 25 == 0:
            took = time.monotonic() - began
            print(f"{number} rounds, {crash.kills} kills, {len(crash.diaries.calls)} calls,"
                  f" {len(crash.faults)} faults, {took:.0f} s", flush=True)  # fmt: skip

    crash = run(home, args.rounds, args.seed, seen)
    report(crash, time.monotonic() - began)
    if args.home is None:
        shutil.rmtree(home, ignore_errors=True)
    return 1 if crash.faults or crash.died else 0


if __name__ == "__main__":
    sys.exit(main())
