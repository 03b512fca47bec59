"""What every measured process does: one command a line in, one JSON answer a line out.

Times are taken here, around the store's own call, so that no pipe is in them. Only the standard
library and numpy: this file runs in every peer's environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

BATCH = 10_000
OUT = os.fdopen(os.dup(1), "w", buffering=1)
"""The answers; what a library prints goes to standard error."""


class Data:
    """The rows and questions of one size; vectors and texts are read at need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        rest = np.load(folder / "rest.npz")
        self.users = rest["users"]
        self.asked = [f"user{self.users[i]}" for i in rest["asked"]]
        self.filtered = bool(rest["filtered"])
        """Whether a question asks for the rows of one user or type alone."""
        self.dimensions: int = self.vectors.shape[1]
        self.question_vectors = rest["questions"]
        self.questions: list[str] = json.loads((folder / "questions.json").read_text())

    def user(self, row: int) -> str:
        """Whose row it is; of a note its type."""
        return f"user{self.users[row]}"

    def batches(self) -> Iterator[tuple[int, list[str]]]:
        """The texts to load, in batches: the number of the first row, and the texts."""
        with (self.folder / "texts.txt").open() as file:
            start = 0
            while lines := [line.rstrip("\n") for line in islice(file, BATCH)]:
                yield start, lines
                start += len(lines)

    def extra(self) -> list[str]:
        """The texts to add one by one; their rows lie behind the loaded ones."""
        return (self.folder / "extra.txt").read_text().splitlines()


class Store(Protocol):
    """A store under measurement. Rows and questions go by their numbers in the data."""

    def load(self, start: int, texts: list[str]) -> None:
        """Put rows in, in bulk."""

    def search(self, question: int) -> list[int]:
        """The ten best rows, of the asker where ``filtered``."""

    def add(self, row: int, text: str) -> None:
        """One row, as the public call does it, until it is on disk."""

    def delete(self, row: int) -> None:
        """Take one row out, as the public call does it."""


def serve(make: Any) -> None:
    """``make(folder, data)`` opens a store; then commands are answered until the input ends."""
    os.dup2(2, 1)
    folder, data_folder = Path(sys.argv[1]), Path(sys.argv[2])
    data = Data(data_folder)
    folder.mkdir(parents=True, exist_ok=True)
    before, started = memory()["rss"], time.perf_counter()
    store = make(folder, data)
    _say({"opened": time.perf_counter() - started, "added": memory()["rss"] - before})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            _say(_answer(store, data, **command))
        except Exception as error:  # noqa: BLE001  (whatever a peer raises is an answer)
            _say({"error": f"{type(error).__name__}: {error}"[:300]})
    if hasattr(store, "close"):
        store.close()


def _answer(store: Any, data: Data, do: str, **given: Any) -> dict[str, Any]:
    if do == "load":
        return _load(store, data, **given)
    if do == "search":
        return _timed(given["questions"], store.search)
    if do == "add":
        texts, first = data.extra(), len(data.users) - len(data.extra())
        return _timed(given["rows"], lambda row: store.add(row, texts[row - first]))
    if do == "delete":
        return _timed(given["rows"], store.delete)
    if do == "memory":
        return memory()
    return {"answer": getattr(store, do)(**given)}


def _load(store: Any, data: Data, limit: float) -> dict[str, Any]:
    """In batches until all is in or the time is over; whole batches count."""
    started = time.perf_counter()
    done, every = 0, True
    for start, texts in data.batches():
        if time.perf_counter() - started > limit:
            every = False
            break
        store.load(start, texts)
        done = start + len(texts)
        _say({"loading": done, "seconds": time.perf_counter() - started})
    if every and hasattr(store, "loaded"):
        store.loaded()
    return {"rows": done, "seconds": time.perf_counter() - started, "every": every}


def _timed(numbers: list[int], call: Any) -> dict[str, Any]:
    times, found = [], []
    for number in numbers:
        started = time.perf_counter()
        result = call(number)
        times.append((time.perf_counter() - started) * 1000)
        found.append(result)
    return {"ms": times, "found": found}


def memory() -> dict[str, float]:
    """MB held now, without pages that only mirror files, and MB at most."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kb = {key: int(status[key].split()[0]) for key in ("VmRSS", "VmHWM", "RssFile", "RssAnon")}
    return {"rss": kb["VmRSS"] / 1024, "peak": kb["VmHWM"] / 1024, "anon": kb["RssAnon"] / 1024}


def _say(answer: dict[str, Any]) -> None:
    OUT.write(json.dumps(answer) + "\n")
    OUT.flush()
