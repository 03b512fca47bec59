"""How much of what was said is found again, through the public search, beside plain searches.

    python -m benchmarks.recall --data DIR

``DIR`` holds ``locomo_dev.json`` and ``xquad_en.json``; neither is part of the project. Recall of a
question is the share of its evidence turns that the first k hits cover: a message covers itself, a
fact the turns it was drawn from. Vectors are kept in the folder for temporary files between runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.recall import data
from benchmarks.recall.data import Asked, Person, Talk, Turn
from benchmarks.recall.feed import Cached, Fed, feed
from memchat import MemChat
from memchat.config import Settings
from memchat.providers.minilm import MiniLM, available
from memchat.store import apps, keywords
from memchat.testing import FakeClock
from memchat.types import Hit, Scope

KS = (1, 5, 10, 25)
DEEPEST = max(KS)
PLAIN = ("words", "meaning")
STORES = {
    "messages": (True, False, False),
    "memories": (False, True, False),
    "both": (True, True, False),
    "both, with summaries": (True, True, True),
}
GOALS = {"messages": 75, "memories": 66, "both": 77, "both, with summaries": 81}
FLOORS = (0.20, 0.25, 0.28, 0.30, 0.35, 0.45)

Ranked = list[frozenset[str]]
"""What each hit covers, best first."""


@dataclass(slots=True)
class Row:
    """One way of searching, over every question."""

    name: str
    recall: list[list[float]] = field(default_factory=list)
    """For each question the recall at each k."""
    first: list[float] = field(default_factory=list)
    """The reciprocal rank of the first hit that covers any evidence."""
    characters: list[int] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)

    def add(self, asked: Asked, ranked: Ranked, characters: int) -> None:
        covered, at = set[str](), []
        for hit in (*ranked, *[frozenset[str]()] * DEEPEST):
            covered |= hit & asked.evidence
            at.append(len(covered) / len(asked.evidence))
        self.recall.append([at[k - 1] for k in KS])
        hits = [n for n, hit in enumerate(ranked, 1) if hit & asked.evidence]
        self.first.append(1 / hits[0] if hits else 0.0)
        self.characters.append(characters)
        self.categories.append(asked.category)

    def line(self) -> str:
        at = 100 * np.mean(self.recall, axis=0)
        ten = np.array([row[KS.index(10)] for row in self.recall])
        by = [
            100 * ten[[c == category for c in self.categories]].mean()
            for category in data.CATEGORIES.values()
        ]
        return (
            f"{self.name:<34}"
            + "".join(f"{value:6.1f}" for value in at)
            + f"  ±{interval(ten):.1f}{100 * np.mean(ten > 0):7.1f}{100 * np.mean(self.first):6.1f}"
            + f"   {'/'.join(f'{value:.0f}' for value in by)}"
            + f"{np.mean(self.characters):8.0f}"
        )


HEAD = (
    f"{'':<34}" + "".join(f"{f'R@{k}':>6}" for k in KS)
    + "   95%  any@10   MRR   single/multi/temporal/open   characters in 10"
)  # fmt: skip


def interval(values: np.ndarray) -> float:
    """Half the width of the 95 % bootstrap interval of the mean, in points."""
    picks = np.random.default_rng(7).integers(0, len(values), (1000, len(values)))
    low, high = np.percentile(values[picks].mean(axis=1), (2.5, 97.5))
    return float(100 * (high - low) / 2)


@contextmanager
def store(embedder: Cached) -> Iterator[MemChat]:
    """An empty store that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="memchat-recall-") as home:
        settings = Settings(home=Path(home), timezone="UTC")
        clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))
        with MemChat(settings=settings, embedder=embedder, clock=clock) as mc:
            yield mc


def covers(mc: MemChat, person: Person, fed: Fed, hit: Hit) -> frozenset[str]:
    """The turns that a hit stands for."""
    if hit.kind == "message":
        return frozenset({fed.ids[hit.id]})
    proofs = mc.evidence(hit.id, user=person.name)
    return frozenset(fed.ids[proof.message_id] for proof in proofs)


def ask(mc: MemChat, person: Person, fed: Fed, row: Row) -> None:
    """Ask everything that is asked about a person, through the public search."""
    for asked in person.asked:
        hits = mc.recall(asked.text, user=person.name, limit=DEEPEST).hits
        ranked = [covers(mc, person, fed, hit) for hit in hits]
        row.add(asked, ranked, sum(len(hit.text) for hit in hits[:10]))


def ask_plainly(embedder: Cached, person: Person, rows: dict[str, Row]) -> None:
    """The same questions over the bare turns and facts, by words alone and by meaning alone."""
    units = [(f"[{_day(t.at)}] {turn.text}", {turn.id}) for t in person.talks for turn in t.turns]
    facts = [(f"[{_day(t.at)}] {o.text}", {*o.turns}) for t in person.talks for o in t.observed]
    for name, some in (("messages", units), ("memories", facts)):
        vectors, _ = embedder.embed_documents([text for text, _ in some])
        with store(embedder) as mc, mc._database.write() as tx:
            own, _ = apps.ensure(tx, Scope(person.name), datetime(2024, 1, 1, tzinfo=UTC))
            for number, (text, _) in enumerate(some, 1):
                keywords.write(tx, "memories", number, own, text)
            for asked in person.asked:
                words = keywords.query_terms(asked.text)
                found = keywords.search(tx, "memories", [own], words, DEEPEST)
                near = np.argsort(-(vectors @ embedder.embed_query(asked.text)[0]), kind="stable")
                lists = ([i - 1 for i, _ in found], near[:DEEPEST])
                for plain, order in zip(PLAIN, lists, strict=True):
                    ranked = [frozenset(some[i][1]) for i in order]
                    read = sum(len(some[i][0]) for i in order[:10])
                    rows[f"{name}: {plain} alone"].add(asked, ranked, read)


def recall_table(embedder: Cached, people: Sequence[Person]) -> None:
    """Recall by what is searched and how."""
    print(f"{sum(len(p.asked) for p in people)} questions about {len(people)} people\n\n{HEAD}")
    plain = {f"{n}: {p} alone": Row(f"{n}: {p} alone") for n in ("messages", "memories")
             for p in PLAIN}  # fmt: skip
    for person in people:
        ask_plainly(embedder, person, plain)
    for row in plain.values():
        print(row.line(), flush=True)
    for name, (turns, facts, summaries) in STORES.items():
        with store(embedder) as mc:
            fed = {
                p.name: feed(mc, p, turns=turns, facts=facts, summaries=summaries) for p in people
            }
            embedder.save()
            for ranking in ("rrf", "weighted"):
                row = Row(f"{name}: memchat" + (", rrf" if ranking == "rrf" else ""))
                settings = mc.settings.with_(ranking=ranking)
                with MemChat(settings=settings, embedder=embedder, clock=mc._clock) as asked:
                    for person in people:
                        ask(asked, person, fed[person.name], row)
                goal = f"   goal {GOALS[name]}" if ranking == "weighted" else ""
                print(row.line() + goal, flush=True)


def floor_table(embedder: Cached, people: Sequence[Person], foreign: Sequence[str]) -> None:
    """What a floor keeps of the evidence, and for how many foreign questions it lets things by."""
    print("\nFloor: evidence kept / foreign questions that still find anything, by cosine alone")
    best: dict[str, list[float]] = {"memories": [], "messages": []}
    wrong: dict[str, list[float]] = {"memories": [], "messages": []}
    by_default: dict[str, list[bool]] = {"memories": [], "messages": []}
    for kind, what in (("memories", (False, True, False)), ("messages", (True, True, True))):
        with store(embedder) as mc:
            for person in people:
                fed = feed(mc, person, turns=what[0], facts=what[1], summaries=what[2])
                top = _cosines(mc, embedder, person, kind)
                units = _units(mc, person, fed, kind)
                for asked in person.asked:
                    cosines = top(asked.text)
                    hits = [c for i, c in cosines.items() if units[i] & asked.evidence]
                    if hits:
                        best[kind].append(max(hits))
                for text in foreign:
                    wrong[kind].append(max(top(text).values(), default=0.0))
                    found = mc.recall(text, user=person.name).hits
                    by_default[kind].append(any(_is(hit, kind) for hit in found))
    service = embedder.service
    for floor in FLOORS:
        parts = []
        for kind, default in (("memories", service.floor), ("messages", service.message_floor)):
            kept = 100 * np.mean(np.array(best[kind]) >= floor)
            by = 100 * np.mean(np.array(wrong[kind]) >= floor)
            mark = "*" if abs(default - floor) < 0.001 else " "
            parts.append(f"{kind} {kept:5.1f} / {by:4.1f}{mark}")
        print(f"  {floor:.2f}   " + "   ".join(parts))
    for kind, some in by_default.items():
        print(f"  as shipped (*, with the rule of words): {100 * np.mean(some):.1f} % find {kind}")


def paragraph_table(
    embedder: Cached, texts: Sequence[str], asked: Sequence[tuple[str, int]]
) -> None:
    """Paragraphs as messages, each in a conversation of its own; as notes they come later."""
    at = datetime(2023, 5, 1, tzinfo=UTC)
    talks = tuple(Talk(at, (Turn(str(n), text),), (), "") for n, text in enumerate(texts))
    person = Person("reader", talks, ())
    with store(embedder) as mc:
        fed = feed(mc, person, turns=True, facts=False, summaries=False)
        found = [
            [int(fed.ids[hit.id]) for hit in mc.recall(text, user="reader", limit=5).hits]
            for text, _ in asked
        ]
    right = [number for _, number in asked]
    one = np.array([bool(f) and f[0] == n for f, n in zip(found, right, strict=True)])
    five = np.array([n in f for f, n in zip(found, right, strict=True)])
    print(
        f"\n{len(asked)} questions, {len(texts)} paragraphs as messages (notes come later): "
        f"R@1 {100 * one.mean():.1f} ±{interval(one):.1f} (goal 95.5), "
        f"R@5 {100 * five.mean():.1f} ±{interval(five):.1f} (goal 99.5)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.recall", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder: Path = parser.parse_args().data
    for name in ("locomo_dev.json", "xquad_en.json"):
        if not (folder / name).is_file():
            print(f"{folder / name} is not there; nothing is measured", file=sys.stderr)
            return 1
    if not available():
        print("the weights of MiniLM are not installed; run make", file=sys.stderr)
        return 1
    started = time.perf_counter()
    embedder = Cached(MiniLM(None))
    people = data.people(folder)
    texts, asked = data.paragraphs(folder)
    try:
        recall_table(embedder, people)
        floor_table(embedder, people, [text for text, _ in asked[::5]])
        paragraph_table(embedder, texts, asked)
    finally:
        embedder.save()
    print(f"\n{embedder.new} texts embedded, {time.perf_counter() - started:.0f} s in all")
    return 0


def _units(mc: MemChat, person: Person, fed: Fed, kind: str) -> dict[int, frozenset[str]]:
    if kind == "messages":
        return {i: frozenset({name}) for i, name in fed.ids.items()}
    every = mc.memories(user=person.name, limit=10_000)
    return {
        m.id: frozenset(fed.ids[p.message_id] for p in mc.evidence(m.id, user=person.name))
        for m in every
    }


def _cosines(
    mc: MemChat, embedder: Cached, person: Person, kind: str
) -> Callable[[str], dict[int, float]]:
    """Asks the index itself for the cosine of every unit."""
    meaning, _ = mc._assembly.meaning()
    assert meaning is not None

    def of(text: str) -> dict[int, float]:
        with mc._database.read() as tx:
            ids = apps.find(tx, Scope(person.name)).ids
            vector = embedder.embed_query(text)[0]
            some = "memories" if kind == "memories" else "messages"
            return dict(meaning.index.search(tx, ids, vector, 10_000, (), some))

    return of


def _is(hit: Hit, kind: str) -> bool:
    return (hit.kind == "memory") == (kind == "memories")


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


if __name__ == "__main__":
    sys.exit(main())
