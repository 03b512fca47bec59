"""People with twenty facts each, and what each of them might type."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.recall import data

OURS = Path(__file__).parents[3] / "tests" / "data"
STYLES = ("none", "one", "direct")
"""How many words a request shares with the fact that matters; direct ones ask for it."""


@dataclass(frozen=True, slots=True)
class Stated:
    """One fact about a person, and the words that might ask for it."""

    id: str
    memory_type: str
    key: str
    value: str
    cues: tuple[str, ...]
    quote: str = ""
    """The words it was said in, where the file has them."""

    @property
    def own(self) -> bool:
        """Whether it is profile or preference, which may be pinned."""
        return self.memory_type in ("profile", "preference")


@dataclass(frozen=True, slots=True)
class Request:
    """Something a person types, the ids of the facts that help with it, and its style."""

    text: str
    needs: frozenset[str]
    style: str


@dataclass(frozen=True, slots=True)
class Life:
    """One person."""

    name: str
    facts: tuple[Stated, ...]
    requests: tuple[Request, ...]


def read(folder: Path) -> list[Life]:
    """The people of the folder's one pair of files, or else of the project's own pair."""
    found = sorted(folder.glob("everyday_facts_*.jsonl"))
    path = found[0] if found else OURS / "everyday_facts_dev.jsonl"
    facts = _lines(path)
    requests = _lines(path.with_name(path.name.replace("facts", "requests")))
    names = dict.fromkeys(line["person"] for line in facts)
    return [
        Life(
            name,
            tuple(_stated(line) for line in facts if line["person"] == name),
            tuple(_request(line) for line in requests if line["person"] == name),
        )
        for name in names
    ]


def notes(folder: Path, number: int, count: int) -> list[str]:
    """Observations of LoCoMo, from its conversation of that number on, each said once."""
    people = data.people(folder)
    first = number % len(people)
    said = (
        observed.text
        for person in (*people[first:], *people[:first])
        for talk in person.talks
        for observed in talk.observed
    )
    return list(islice(dict.fromkeys(said), count))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _stated(line: dict[str, Any]) -> Stated:
    cues = tuple(word for word in re.split(r"[,\s]+", line.get("cues", "")) if word)
    return Stated(
        line["id"], line["type"], line["key"], line["value"], cues[:10], line.get("quote", "")
    )


def _request(line: dict[str, Any]) -> Request:
    return Request(line["question"], frozenset(line["needs"]), line["style"])
