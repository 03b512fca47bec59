"""What a floor keeps of the evidence, and for how many foreign questions it lets things by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from benchmarks.recall.data import Person
from benchmarks.recall.feed import Fed, What, feed
from benchmarks.recall.stores import asked_at, covers, store
from memchat import MemChat
from memchat.db import apps
from memchat.providers import Embedder
from memchat.types import Hit, Scope

FLOORS = (0.20, 0.25, 0.28, 0.30, 0.35, 0.45)
Kind = Literal["memories", "messages"]
STORES: dict[Kind, What] = {
    "memories": What(facts=True),
    "messages": What(turns=True, facts=True, summaries=True),
}


def table(embedder: Embedder, people: Sequence[Person], foreign: Sequence[str]) -> None:
    """Print what each floor keeps and lets by; ``foreign`` are questions about something else."""
    print("\nFloor: evidence kept / foreign questions that still find anything, by cosine alone")
    best: dict[Kind, list[float]] = {kind: [] for kind in STORES}
    wrong: dict[Kind, list[float]] = {kind: [] for kind in STORES}
    found: dict[Kind, list[bool]] = {kind: [] for kind in STORES}
    for kind, what in STORES.items():
        for person in people:
            with store(embedder, asked_at(person)) as mc:
                fed = feed(mc, person, what)
                cosines, units = _cosines(mc, embedder, person, kind), _units(mc, person, fed, kind)
                for asked in person.asked:
                    near = cosines(asked.text)
                    hits = [c for i, c in near.items() if units[i] & asked.evidence]
                    best[kind] += [max(hits)] if hits else []
                for text in foreign:
                    wrong[kind].append(max(cosines(text).values(), default=0.0))
                    hits_ = mc.user(person.name).search(text).confident
                    found[kind].append(any(_is(hit, kind) for hit in hits_))
    service = embedder.service
    default = {"memories": service.floor, "messages": service.message_floor}
    for floor in FLOORS:
        parts = []
        for kind in STORES:
            kept = 100 * np.mean(np.array(best[kind]) >= floor)
            by = 100 * np.mean(np.array(wrong[kind]) >= floor)
            mark = "*" if abs(default[kind] - floor) < 0.001 else " "
            parts.append(f"{kind} {kept:5.1f} / {by:4.1f}{mark}")
        print(f"  {floor:.2f}   " + "   ".join(parts))
    for kind, some in found.items():
        print(f"  as shipped (*, with the rules of words): {100 * np.mean(some):.1f} % find {kind}")


def _units(mc: MemChat, person: Person, fed: Fed, kind: Kind) -> dict[int, frozenset[str]]:
    if kind == "messages":
        return {i: frozenset({name}) for i, name in fed.ids.items()}
    every = mc.user(person.name).memories.list(limit=10_000)
    hits = [Hit("memory", m.id, "", 0.0, None, None, "listed", 0) for m in every]
    return {hit.id: covers(mc, person, fed, hit) for hit in hits}


def _cosines(
    mc: MemChat, embedder: Embedder, person: Person, kind: Kind
) -> Callable[[str], dict[int, float]]:
    """Asks the index itself for the cosine of every unit."""
    meaning, _ = mc._assembly.embedding_space()
    assert meaning is not None

    def of(text: str) -> dict[int, float]:
        with mc._assembly.database.read() as tx:
            ids = apps.find(tx, Scope(person.name)).ids
            vector = embedder.embed_query(text)[0]
            of_kind = "fact" if kind == "memories" else "turn"
            return dict(meaning.index.search(tx, ids, vector, 10_000, kind=of_kind))

    return of


def _is(hit: Hit, kind: Kind) -> bool:
    return (hit.kind == "memory") == (kind == "memories")
