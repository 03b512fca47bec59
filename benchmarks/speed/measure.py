"""One size: everybody loads, then takes turns; then each is opened anew."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.data import EXTRA, QUESTIONS, Size
from benchmarks.speed.peers.serving import Data
from benchmarks.speed.stores import Entry, Running, Unavailable

A_ROUND = 30
WRITES_A_ROUND = 4
TIE = 1e-6


@dataclass(slots=True)
class Seen:
    """What was seen of one store at one size; None where it was not measured. Times in ms."""

    store: str
    finds: str
    rows: int = 0
    load_seconds: float = 0.0
    why_not: str | None = None
    cold: list[float] = field(default_factory=list)
    """The first search of each person."""
    search: list[float] = field(default_factory=list)
    add: list[float] = field(default_factory=list)
    delete: list[float] = field(default_factory=list)
    exact: float | None = None
    """The share of questions whose ten nearest by meaning are the ten of exact arithmetic."""
    recall: float | None = None
    """The share of the ten nearest of exact arithmetic that are among its ten nearest."""
    returned: float | None = None
    open_ms: float | None = None
    """Opening the store and the first search, in a fresh process, without its imports."""
    start_ms: float | None = None
    """The same from the start of the process on."""
    opened_mb: float | None = None
    """What opening adds to the process's memory, before the first search."""
    rss: float | None = None
    peak: float | None = None
    embed: float | None = None
    purge: float | None = None
    rebuild_ms: float | None = None
    database: int | None = None
    index: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    entries: Sequence[Entry], size: Size, data: Path, work: Path, *, rounds: int, limit: float
) -> list[Seen]:
    """Load, take turns, open anew; one record a store, in their order."""
    folder = work / "stores" / data.name
    shutil.rmtree(folder, ignore_errors=True)
    seen = {entry: Seen(entry.name, entry.finds) for entry in entries}
    running: dict[Entry, Running] = {}
    try:
        for entry in entries:
            _note(f"{size} {entry.name}: loading")
            child = _loaded(entry, size, seen[entry], data, work, folder, limit)
            if child is not None:
                running[entry] = child
        _take_turns(running, seen, size, rounds, Data(data))
        for entry in list(running):
            running.pop(entry).close()
            _note(f"{size} {entry.name}: opening anew")
            _open_anew(entry, seen[entry], data, work, folder)
    finally:
        for child in running.values():
            child.kill()
    return list(seen.values())


def _loaded(
    entry: Entry, size: Size, seen: Seen, data: Path, work: Path, folder: Path, limit: float
) -> Running | None:
    try:
        child = Running(entry, work, folder / _slug(entry), data)
        # The limit is for choosing peers; memchat itself is always loaded.
        done = child.load(24 * 3600 if entry.ours else limit)
    except Unavailable as reason:
        seen.why_not = str(reason)
        return None
    seen.rows, seen.load_seconds = done["rows"], done["seconds"]
    if seen.rows == size.rows and done.get("every"):
        return child
    rate = seen.rows / seen.load_seconds
    seen.why_not = f"not loaded: {rate:.0f} rows/s, {seen.rows} in {seen.load_seconds:.0f} s"
    child.kill()
    return None


def _take_turns(
    running: dict[Entry, Running], seen: dict[Entry, Seen], size: Size, rounds: int, data: Data
) -> None:
    """Round by round the same questions and rows to everybody, so that noise hits all alike."""
    found: dict[Entry, dict[int, list[int]]] = {entry: {} for entry in running}
    used = list(range(min(rounds * A_ROUND, QUESTIONS)))
    for entry, child in running.items():
        # Whoever keeps a person's rows in memory has read them before the clock runs.
        times = child.ask("search", questions=used)["ms"]
        people = {data.asked[n]: time for n, time in reversed([*zip(used, times, strict=True)])}
        seen[entry].cold = list(people.values())
    for number in range(rounds):
        questions = [(number * A_ROUND + n) % QUESTIONS for n in range(A_ROUND)]
        first = number * WRITES_A_ROUND % EXTRA
        new = [size.rows + (first + n) % EXTRA for n in range(WRITES_A_ROUND)]
        for entry, child in running.items():
            answer = child.ask("search", questions=questions)
            seen[entry].search += answer["ms"]
            found[entry] |= dict(zip(questions, answer["found"], strict=True))
        for entry, child in running.items():
            seen[entry].add += child.ask("add", rows=new)["ms"]
        for entry, child in running.items():
            if entry.ours:
                seen[entry].embed = child.ask("embed")["answer"]
            seen[entry].delete += child.ask("delete", rows=new)["ms"]
    for entry, child in running.items():
        asked = list(found[entry])
        got = list(found[entry].values())
        seen[entry].returned = statistics.mean(map(len, got))
        if entry.ours:
            seen[entry].purge = child.ask("purge")["answer"]
            got = child.ask("dense", questions=asked)["answer"]
        if entry.ours or entry.finds == "meaning":
            shares = recalls(data, size.rows, asked, got)
            seen[entry].recall = statistics.mean(shares)
            seen[entry].exact = statistics.mean(share == 1 for share in shares)


def _open_anew(entry: Entry, seen: Seen, data: Path, work: Path, folder: Path) -> None:
    child, first = _opened(entry, data, work, folder)
    seen.opened_mb = child.added
    seen.open_ms = child.opened * 1000 + first
    seen.start_ms = child.started * 1000 + first
    child.ask("search", questions=list(range(A_ROUND)))
    held = child.ask("memory")
    seen.rss, seen.peak = held["rss"], held["peak"]
    if entry.ours:
        sizes = child.ask("bytes")["answer"]
        seen.database, seen.index = sizes["database"], sizes["index"]
        child.ask("drop_index")
        child.kill()  # else it would save the index as it closes
        child, rebuilt = _opened(entry, data, work, folder)
        seen.rebuild_ms = rebuilt
    child.close()


def _opened(entry: Entry, data: Path, work: Path, folder: Path) -> tuple[Running, float]:
    child = Running(entry, work, folder / _slug(entry), data)
    return child, child.ask("search", questions=[0])["ms"][0]


def recalls(
    data: Data, rows: int, questions: Sequence[int], found: Sequence[Sequence[int]]
) -> list[float]:
    """Of each question the share of its ten nearest rows, by exact arithmetic, that were found;
    ties may swap."""
    users = data.users[:rows]
    shares = []
    for n, got in zip(questions, found, strict=True):
        mine = np.flatnonzero(users == int(data.asked[n].removeprefix("user")))
        scores = _scores(data, mine, data.question_vectors[n])
        wanted = min(10, len(mine))
        worst = np.sort(scores)[-wanted]
        at = dict(zip(mine.tolist(), scores.tolist(), strict=True))
        kept = {i for i in got if i in at and at[i] >= worst - TIE}
        shares.append(min(len(kept) / wanted, 1.0))
    return shares


def _scores(data: Data, rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    if len(rows) == len(data.vectors):
        return np.asarray(data.vectors @ vector)
    if len(rows) > 50_000:
        return np.asarray(data.vectors[rows[0] : rows[-1] + 1] @ vector)[rows - rows[0]]
    return np.asarray(data.vectors[rows] @ vector)


def _slug(entry: Entry) -> str:
    return entry.name.replace(" ", "-")


def _note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)
