"""How long a search takes while another process writes for the same person all the time.

    python -m benchmarks.beside_writers [--facts 2000] [--a-second 20] [--searches 100]

A store of so many facts is searched alone; then while a second process adds facts to the same scope
at that pace and makes their vectors; then while it adds them and leaves their vectors to others.
Prints the median, the 95th percentile and the slowest search of each, and how many searches said
that something had no vector yet.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.crash import forkserver
from memchat import MemChat
from memchat.config import Settings
from memchat.providers.embedders import HashEmbedder
from memchat.providers.local import MiniLMEmbedder
from memchat.testing import ScriptedModel

USER = "ana"
LIMIT_SECONDS = 1.0
"""What 95 of 100 searches may take at most."""
_BEGIN_SECONDS = 120.0
_FIRST = 1_000_000
"""The number of the writer's first fact; those that were there before have lower ones."""
_THINGS = ("boat", "garden", "piano", "bicycle", "kitchen", "camera", "tent", "library", "cellar")
_PLACES = ("Lisbon", "Porto", "Faro", "Braga", "Evora", "Sintra", "Lagos", "Tavira", "Coimbra")
_DONE = ("repaired", "sold", "painted", "bought", "lent", "moved", "cleaned", "measured")


@dataclass(frozen=True, slots=True)
class Searched:
    """What so many searches took, in seconds, and how many of them said they were not complete."""

    seconds: list[float]
    degraded: int

    @property
    def p95(self) -> float:
        """What 95 of 100 of them stay below."""
        return sorted(self.seconds)[int(len(self.seconds) * 0.95)]

    def line(self, name: str) -> str:
        """The figures, for people."""
        took = (statistics.median(self.seconds), self.p95, max(self.seconds))
        figures = "".join(f"{1000 * seconds:>10.1f}" for seconds in took)
        return f"{name:<18}{figures}{self.degraded:>14}"


def open_store(home: Path, model: str) -> MemChat:
    """The store of the measurement: its own folder, nothing from the environment."""
    return MemChat(
        settings=Settings(home=home, timezone="UTC"),
        chat_model=ScriptedModel(),
        extract_model=ScriptedModel(),
        embedder=MiniLMEmbedder(None) if model == "minilm" else HashEmbedder(),
    )


def measure(
    home: Path, model: str, facts: int, a_second: float, searches: int
) -> dict[str, Searched]:
    """The searches alone, and beside each kind of writer."""
    chance = random.Random(1)
    with open_store(home, model) as store:
        for number in range(facts):
            _add(store, chance, number)
        store.jobs.embed()
        store.user(USER).search("where is the boat?")  # the index is made from the rows once
        found = {"alone": _search(store, searches, a_second)}
        for name, embeds in (("beside a writer", True), ("vectors left over", False)):
            with _writing(home, model, a_second, embeds):
                found[name] = _search(store, searches, a_second)
    return found


@contextmanager
def _writing(home: Path, model: str, a_second: float, embeds: bool) -> Iterator[None]:
    """Beside a process that writes."""
    context = forkserver()
    begun, over = context.Event(), context.Event()
    args = (home, model, a_second, embeds, begun, over)
    writer = context.Process(target=_write, args=args, daemon=True)
    writer.start()
    try:
        if not begun.wait(_BEGIN_SECONDS):
            raise RuntimeError("the writer did not begin")
        yield
    finally:
        over.set()
        writer.join()


def _search(store: MemChat, count: int, a_second: float) -> Searched:
    """Questions at random, with a pause between two of them as long as between two additions."""
    chance, seconds, degraded = random.Random(3), [], 0
    for _ in range(count):
        question = f"which {chance.choice(_THINGS)} was {chance.choice(_DONE)}?"
        began = time.monotonic()
        degraded += store.user(USER).search(question).degraded is not None
        seconds.append(time.monotonic() - began)
        time.sleep(1 / a_second)
    return Searched(seconds, degraded)


def _write(
    home: Path, model: str, a_second: float, embeds: bool, begun: Event, over: Event
) -> None:
    """Add facts at this pace until it is over, each with its vector where it ``embeds``."""
    chance, added = random.Random(2), 0
    with open_store(home, model) as store:
        start = time.monotonic()
        while not over.is_set():
            _add(store, chance, _FIRST + added)
            if embeds:
                store.jobs.embed()
            added += 1
            if added >= a_second:
                begun.set()
            over.wait(max(0.0, start + added / a_second - time.monotonic()))
        pace = added / (time.monotonic() - start)
    print(f"the writer added {added} facts, {pace:.1f} a second", flush=True)


def _add(store: MemChat, chance: random.Random, number: int) -> None:
    thing, place, done = (chance.choice(some) for some in (_THINGS, _PLACES, _DONE))
    store.user(USER).memories.add(
        "fact", f"note {number}", f"{done} the {thing} in {place}, {number}"
    )


def main() -> int:
    """Measure and print; 1 where searches take too long."""
    parser = argparse.ArgumentParser(description="searches beside a process that writes")
    parser.add_argument("--facts", type=int, default=2_000)
    parser.add_argument("--a-second", type=int, default=20)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--model", choices=("minilm", "hash"), default="minilm")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="memchat-beside-"))
    try:
        found = measure(home / "store", args.model, args.facts, args.a_second, args.searches)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"{'searches':<18}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}{'not complete':>14}")
    for name, searched in found.items():
        print(searched.line(name))
    return 1 if any(searched.p95 > LIMIT_SECONDS for searched in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
