"""Workers killed at random over a flaky service: every job ends, once, and none without its vector.

Time runs faster than the machine's for all of them, so that a retry after 16 minutes is one after
seconds. The service writes down what it was asked before it answers or fails.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.queue import store
from memchat import MemChat
from memchat.db.database import Database
from memchat.errors import ProviderError
from memchat.providers.embedders import HashEmbedder

ONE_IN = 5
"""One call of so many in a row fails: a seed says which, and nobody's luck how many."""
SPEED = 300.0
"""Seconds that pass for the store in one of the machine's."""
LOOK = 0.02
CALL_SECONDS = 0.05
TEXT_SECONDS = 0.001
POISON = "unspeakable"
KILLER = "deadly"
PATIENCE = 120.0
"""Seconds to wait for the last retries."""


class FastClock:
    """The time in a world that began at ``start``, by the machine's ``began``."""

    def __init__(self, start: datetime, began: float, speed: float) -> None:
        self._start, self._began, self._speed = start, began, speed

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=(time.time() - self._began) * self._speed)


class Flaky(HashEmbedder):
    """Fails in one call of five, refuses one kind of text, dies of another."""

    def __init__(self, diary: Path, clock: FastClock, seed: int) -> None:
        super().__init__()
        self._diary = os.open(diary, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._numbers = os.open(diary.with_name("calls"), os.O_CREAT | os.O_RDWR)
        self._clock = clock
        self._seed = seed

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """As the hash embedder, or not."""
        number = self._next()
        failing = number % ONE_IN == random.Random(f"{self._seed}/{number // ONE_IN}").randrange(
            ONE_IN
        )
        now = self._clock().isoformat()
        self._write({"pid": os.getpid(), "at": now, "texts": list(texts), "failing": failing})
        try:
            return self._answer(texts, number if failing else None)
        finally:
            self._write({"pid": os.getpid()})

    def _next(self) -> int:
        """The number of this call, among those of all workers."""
        fcntl.flock(self._numbers, fcntl.LOCK_EX)
        number = int(os.pread(self._numbers, 20, 0) or 0)
        os.pwrite(self._numbers, str(number + 1).encode(), 0)
        fcntl.flock(self._numbers, fcntl.LOCK_UN)
        return number

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._diary, (json.dumps(line) + "\n").encode())

    def _answer(self, texts: Sequence[str], failing: int | None) -> Any:
        time.sleep(CALL_SECONDS + TEXT_SECONDS * len(texts))
        if any(KILLER in text for text in texts):
            os._exit(9)
        if failing is not None:
            failures = (
                ProviderError("the service is failing", status=503, retryable=True),
                ProviderError("the service did not answer", retryable=True),
                ProviderError("busy", status=429, retryable=True, retry_after=90),
            )
            raise failures[failing // ONE_IN % len(failures)]
        if any(POISON in text for text in texts):
            raise ProviderError("the service refused a text", status=400)
        return super().embed_documents(texts)


def live(home: Path, start: datetime, began: float, seed: int) -> None:
    """One worker process, as ``memchat worker`` runs it."""
    clock = FastClock(start, began, SPEED)
    mc = MemChat(
        settings=_settings(home), clock=clock, embedder=Flaky(home.parent / "diary", clock, seed)
    )
    mc.jobs.work(look=LOOK)


@dataclass(slots=True)
class Outcome:
    """What was left, and what went wrong."""

    kills: int = 0
    in_a_call: int = 0
    """Of these, those that came while the service was asked."""
    deaths: int = 0
    """Workers that a text took down."""
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    failing: int = 0
    texts: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Kills:
    """One run on a new store."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._home = folder / "store"
        self._diary = folder / "diary"
        self._random = random.Random(seed)
        self._seed = seed
        self._began = time.time()
        self._start = datetime(2026, 5, 1, 12, tzinfo=UTC)
        self._clock = FastClock(self._start, self._began, SPEED)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["benchmarks.queue.kills", "memchat.assembly"])
        self._children: list[BaseProcess] = []
        self._out = Outcome()

    def run(self, jobs: int, kills: int, workers: int = 2) -> Outcome:
        """Put the jobs in, some between any two kills; wait for the last retry; look."""
        database = Database(self._home)
        database.embeds, database.clock = lambda: True, self._clock
        try:
            for number in range(kills):
                share = range(jobs * number // kills, jobs * (number + 1) // kills)
                store.fill(database, map(_text, share), self._clock())
                self._staff(workers)
                self._wait_for_a_call()
                time.sleep(self._random.uniform(0, 0.2))
                self._kill()
            self._wait(database, workers)
            self._look(database, jobs)
        finally:
            while self._children:
                self._kill(counted=False)
            database.close()
        self._out.seconds = time.time() - self._began
        return self._out

    def _staff(self, workers: int) -> None:
        alive = [child for child in self._children if child.exitcode is None]
        self._out.deaths += len(self._children) - len(alive)
        self._children = alive
        while len(self._children) < workers:
            args = (self._home, self._start, self._began, self._seed)
            child = self._context.Process(target=live, args=args, daemon=True)
            child.start()
            self._children.append(child)

    def _wait_for_a_call(self) -> None:
        """A worker that has just begun to start is no worker yet."""
        before = len(self._lines())
        until = time.monotonic() + PATIENCE
        while len(self._lines()) == before and time.monotonic() < until:
            time.sleep(0.01)

    def _lines(self) -> list[dict[str, Any]]:
        if not self._diary.exists():
            return []
        return [json.loads(line) for line in self._diary.read_text().splitlines()]

    def _kill(self, *, counted: bool = True) -> None:
        child = self._children.pop(self._random.randrange(len(self._children)))
        died = child.exitcode is not None
        child.kill()
        child.join()
        self._out.deaths += died
        self._out.kills += counted and not died
        its = [line for line in self._lines() if line["pid"] == child.pid]
        self._out.in_a_call += counted and not died and bool(its) and "at" in its[-1]

    def _wait(self, database: Database, workers: int) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self._staff(workers)
            with database.read() as tx:
                waiting = "SELECT count(*) FROM passages WHERE status = -1"
                left = tx.connection.exec_driver_sql(waiting).scalar()
            if not left:
                return
            time.sleep(0.1)

    def _look(self, database: Database, jobs: int) -> None:
        out = self._out
        with database.read() as tx:
            rows = tx.connection.exec_driver_sql(
                "SELECT p.status, p.error_message, p.text, e.hash IS NOT NULL,"
                # One change when the fact was written, and one when it got its vector.
                " (SELECT count(*) - 1 FROM changes c WHERE c.passage_id = p.id),"
                " CASE p.status WHEN 0 THEN e.created_at END"
                " FROM passages p LEFT JOIN embeddings e ON e.hash = p.hash"
            ).all()
        if len(rows) != jobs:
            out.faults.append(f"{len(rows)} jobs where {jobs} were put in")
        ended: dict[str, datetime] = {}
        for status, error, text, has_vector, completions, at in rows:
            name = "waiting" if status < 0 else "completed" if status == 0 else "failed"
            out.statuses[name] += 1
            if name == "waiting":
                out.faults.append(f"a job waits still: {error}")
            if name == "failed":
                out.reasons[error] += 1
                if not error:
                    out.faults.append("a job failed without a reason")
            if (name == "completed") != bool(has_vector):
                out.faults.append(
                    f"a job is {name}, and its vector {'there' if has_vector else 'not'}"
                )
            if completions != (name == "completed"):
                out.faults.append(f"a job that is {name} was completed {completions} times")
            if at is not None:
                ended[text] = datetime.fromisoformat(at)
            bad = POISON in text or KILLER in text
            if bad and name == "completed":
                out.faults.append("a text that cannot be embedded was")
        self._read_diary(ended)

    def _read_diary(self, ended: dict[str, datetime]) -> None:
        out = self._out
        for call in self._lines():
            if "at" not in call:
                continue
            out.calls += 1
            out.failing += call["failing"]
            out.texts += len(call["texts"])
            asked = datetime.fromisoformat(call["at"])
            late = [text for text in call["texts"] if text in ended and asked > ended[text]]
            if late:
                out.faults.append(f"{len(late)} texts were sent again after their job was done")


def report(out: Outcome) -> None:
    """The figures, for people."""
    print(
        f"{sum(out.statuses.values())} jobs, {out.kills} kill -9 ({out.in_a_call} inside a call), "
        f"{out.deaths} workers taken down by a text, {out.seconds:.0f} s"
    )
    print(", ".join(f"{count} {name}" for name, count in sorted(out.statuses.items())))
    for reason, count in out.reasons.most_common():
        print(f"  failed: {count} × {reason}")
    print(
        f"{out.calls} calls, {out.failing} of them failing ({out.failing / out.calls:.0%}), "
        f"{out.texts} texts sent"
    )
    print(f"faults: {len(out.faults)}")
    for fault, count in Counter(out.faults).most_common(10):
        print(f"  {count} × {fault}")


def _text(number: int) -> str:
    """Four of five hundred cannot be embedded; one in all takes its worker down."""
    if number == 700:
        return f"a {KILLER} sentence, number {number}"
    return f"an {POISON} sentence, number {number}" if number % 400 == 399 else store.text(number)


def _settings(home: Path) -> Any:
    from memchat.config import Settings

    return Settings(home=home, timezone="UTC")
