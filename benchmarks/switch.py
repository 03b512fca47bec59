"""A store changes its embedding service while other processes search it all the time.

    python -m benchmarks.switch [--rows 150000] [--readers 2] [--kills 0] [--home FOLDER]

A store of facts in one scope has vectors of 384 numbers of one service. Reader processes ask for
facts at random, each question half of a fact's words, before, during and after `memchat services
migrate` and `rm` in a process of their own. A search fails that raises, is answered by words alone,
does not find the fact that was asked for, or holds a cosine that is not the question's with that
fact in one service for all hits. ``--kills`` ends the migration that often with kill -9 and runs it
again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path

from sqlalchemy import insert

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, schema
from memchat.db.database import Database
from memchat.facts.memories import sha1_of
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings, passages
from memchat.types import Hit, Scope

OLD, NEW = "before-384", "after-384"
USER = "reader"
WORDS = 20
VOCABULARY = 20_000
WRITTEN_AT_ONCE = 2_000
NEAR = 1e-4
SEARCHES_AFTER = 20
"""What each reader must have searched in the new service's space before the end."""


@dataclass(slots=True)
class Search:
    """One search of a reader, as it ended."""

    at: float
    seconds: float
    service: str
    """old, new, or either where the two happen to agree; empty for one that failed."""
    fault: str = ""


@dataclass(slots=True)
class Figure:
    """What was seen."""

    rows: int
    searches: list[Search] = field(default_factory=list)
    began: float = 0.0
    """When the migration was started, and so on; by the machine's monotonic clock."""
    switched: float = 0.0
    read: float = 0.0
    """Each reader had searched in the new service's space."""
    removed: float = 0.0
    kills: int = 0

    @property
    def faults(self) -> list[str]:
        """What was wrong, a line each."""
        return [search.fault for search in self.searches if search.fault]

    def between(self, start: float, end: float) -> list[Search]:
        """The searches that ended in this time."""
        return [s for s in self.searches if start <= s.at < end]


def text_of(row: int) -> str:
    """The words of a fact: the same for a row wherever it is asked."""
    chance = random.Random(row)
    return " ".join(f"w{_letters(chance.randrange(VOCABULARY))}" for _ in range(WORDS))


def _letters(number: int) -> str:
    """A number as letters: questions with digits are searched in a way of their own."""
    found = ""
    for _ in range(4):
        number, rest = divmod(number, 16)
        found += "bcdfghjklmnpqrst"[rest] + "aeiou"[rest % 5]
    return found


def fill(home: Path, rows: int) -> None:
    """A store of so many facts, all with their vector of the old service."""
    database, embedder = Database(home), HashEmbedder(OLD)
    with database.write() as tx:
        app_id = apps.ensure(tx, Scope(USER)).own
        service_id = embeddings.register_service(tx, embedder.service)
        embeddings.use_service(tx, service_id)
    for first in range(1, rows + 1, WRITTEN_AT_ONCE):
        numbers = range(first, min(first + WRITTEN_AT_ONCE, rows + 1))
        texts = [text_of(number) for number in numbers]
        vectors, _ = embedder.embed_documents(texts)
        hashes = [passages.text_hash(text) for text in texts]
        with database.write() as tx:
            facts = [
                {"id": n, "app_id": app_id, "memory_type": "fact", "key": "thing", "value": words,
                 "sha1": sha1_of("fact", "thing", words)}
                for n, words in zip(numbers, texts, strict=True)
            ]  # fmt: skip
            tx.execute(insert(schema.memories), facts)
            event = {"app_id": app_id, "kind": "add", "actor": "user"}
            tx.execute(insert(schema.memory_events), [event | {"memory_id": n} for n in numbers])
            for number, words in zip(numbers, texts, strict=True):
                passages.put_text(tx, "fact", number, app_id, words)
            passages.keep_vectors(tx, service_id, dict(zip(hashes, vectors, strict=True)))
    database.close()


def read_on(home: Path, rows: int, seed: int, stop: Event, out: Path) -> None:
    """Search until told to stop; a line a search."""
    chance, judge = random.Random(seed), Judge()
    with open(out, "w", encoding="utf-8") as file, MemChat(settings=Settings(home)) as mc:
        while not stop.is_set():
            wanted = chance.randint(1, rows)
            question = " ".join(chance.sample(text_of(wanted).split(), WORDS // 2))
            started = time.monotonic()
            try:
                found = mc.user(USER).search(question)
                ended = time.monotonic()
                service, fault = judge.judged(question, wanted, found.confident, found.degraded)
            except Exception as error:  # noqa: BLE001 - any failure is what is looked for
                ended, service, fault = time.monotonic(), "", f"{type(error).__name__}: {error}"
            line = "\t".join((f"{ended}", f"{ended - started}", service, " ".join(fault.split())))
            print(line, file=file, flush=True)


class Judge:
    """Tells which service's space a list of hits was found in."""

    def __init__(self) -> None:
        self._embedders = {"old": HashEmbedder(OLD), "new": HashEmbedder(NEW)}

    def judged(
        self, question: str, wanted: int, hits: Sequence[Hit], degraded: str | None
    ) -> tuple[str, str]:
        """The service, or what is wrong."""
        if degraded is not None:
            return "", degraded
        if not hits:
            return "", "an empty search"
        if wanted not in [hit.id for hit in hits]:
            return "", f"row {wanted} is not among the hits"
        agreeing = []
        for name, embedder in self._embedders.items():
            asked, _ = embedder.embed_query(question)
            rows, _ = embedder.embed_documents([text_of(hit.id) for hit in hits])
            if all(
                hit.cosine is not None and abs(hit.cosine - float(row @ asked)) < NEAR
                for hit, row in zip(hits, rows, strict=True)
            ):
                agreeing.append(name)
        if not agreeing:
            return "", "the cosines are of no one service"
        return agreeing[0] if len(agreeing) == 1 else "either", ""


def run(home: Path, rows: int, *, readers: int = 2, kills: int = 0, seed: int = 1) -> Figure:
    """Fill a store, and change its service under the eyes of readers."""
    store = home / "store"
    fill(store, rows)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    outs = [home / f"reader-{n}" for n in range(readers)]
    processes = [
        context.Process(target=read_on, args=(store, rows, seed + n, stop, out), daemon=True)
        for n, out in enumerate(outs)
    ]
    for process in processes:
        process.start()
    figure = Figure(rows)
    try:
        _wait(outs, "old")
        figure.began = time.monotonic()
        figure.kills = _kill_some(store, kills, rows, random.Random(seed))
        _memchat(store, "services", "migrate", f"hash/{NEW}").wait()
        figure.switched = time.monotonic()
        _wait(outs, "new")
        figure.read = time.monotonic()
        _memchat(store, "services", "rm", f"hash/{OLD}").wait()
        figure.removed = time.monotonic()
        time.sleep(1)
    finally:
        stop.set()
        for process in processes:
            process.join(timeout=60)
            process.kill()
    for out in outs:
        figure.searches += _searches(out)
    figure.searches.sort(key=lambda search: search.at)
    return figure


def _kill_some(store: Path, kills: int, rows: int, chance: random.Random) -> int:
    """How many migrations were ended by kill -9, each after some more rows; one that was quicker
    is the last."""
    database = Database(store)
    for number in range(kills):
        wanted = _made(database) + chance.randrange(1, max(2, rows // (kills + 1)))
        running = _memchat(store, "services", "migrate", f"hash/{NEW}")
        while running.poll() is None and _made(database) < wanted:
            time.sleep(0.02)
        running.kill()
        if running.wait() == 0:
            kills = number
            break
    database.close()
    return kills


def _made(database: Database) -> int:
    """Vectors of the new service."""
    with database.read() as tx:
        ids = [i for i, service in embeddings.all_services(tx).items() if service.model == NEW]
        query = "SELECT count(*) FROM embeddings WHERE service_id = ?"
        return tx.connection.exec_driver_sql(query, (ids[0],)).scalar_one() if ids else 0


def _memchat(store: Path, *args: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "MEMCHAT_HOME": str(store)}
    env.pop("MEMCHAT_EMBED_MODEL", None)
    return subprocess.Popen([sys.executable, "-m", "memchat", *args], env=env)


def _searches(out: Path) -> list[Search]:
    found = []
    for line in out.read_text("utf-8").splitlines() if out.exists() else ():
        at, seconds, service, fault = line.split("\t")
        found.append(Search(float(at), float(seconds), service, fault))
    return found


def _wait(outs: Sequence[Path], service: str, seconds: float = 300) -> None:
    """Until each reader has searched so often in a service's space."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        counts = [sum(s.service == service for s in _searches(out)) for out in outs]
        if min(counts) >= SEARCHES_AFTER:
            return
        time.sleep(0.1)
    raise TimeoutError(f"the readers found nothing in the {service} service's vectors: {counts}")


def report(figure: Figure) -> None:
    """The figures, a line each."""
    took = figure.switched - figure.began
    print(
        f"{figure.rows:,} rows changed service in {took:.1f} s, {figure.rows / took:,.0f} a second,"
        f" with {figure.kills} kills; the old one was removed in"
        f" {figure.removed - figure.read:.1f} s"
    )
    last = figure.searches[-1].at + 1
    for name, start, end in (
        ("before", 0.0, figure.began),
        ("during", figure.began, figure.switched),
        ("after", figure.switched, last),
    ):
        seen = figure.between(start, end)
        times = sorted(search.seconds * 1000 for search in seen) or [0.0]
        services = {s: sum(one.service == s for one in seen) for s in ("old", "new")}
        print(f"{name:>7}: {len(seen)} searches ({services['old']} old, {services['new']} new),"
              f" median {statistics.median(times):.0f} ms,"
              f" 95 % {times[int(0.95 * (len(times) - 1))]:.0f} ms, slowest {times[-1]:.0f} ms,"
              f" faults {sum(bool(s.fault) for s in seen)}")  # fmt: skip
    for fault in figure.faults[:10]:
        print(f"  {fault}")


def main() -> int:
    """Run and print; 1 where a search failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--home", type=Path, help="keep the store in this new folder")
    args = parser.parse_args()
    home = args.home or Path(tempfile.mkdtemp(prefix="memchat-switch-"))
    figure = run(home, args.rows, readers=args.readers, kills=args.kills)
    report(figure)
    if args.home is None:
        shutil.rmtree(home, ignore_errors=True)
    return 1 if figure.faults else 0


if __name__ == "__main__":
    sys.exit(main())
