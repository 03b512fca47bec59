"""The figures: what stands in the prompt, what a search finds, beside plain nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.recall.everyday.kept import Cues, Kept, kept
from benchmarks.recall.everyday.lives import STYLES, Life, Request, notes
from memchat.prompts import Prompts
from memchat.providers import Embedder
from memchat.search import render
from memchat.tokens import estimate_tokens

KS = (1, 3, 5)
NOTES = 280
CUES: tuple[Cues, ...] = ("file", "table", "none")
_NAMES = {"file": "the file's cues", "table": "the key table's", "none": "no cues"}


class Rows:
    """Shares by name, each the mean over requests of the share of its needed facts."""

    def __init__(self) -> None:
        self._of: dict[str, list[float]] = {}

    def add(self, name: str, marks: Sequence[bool]) -> None:
        """One request; one that has nothing to do with this row is left out."""
        if marks:
            self._of.setdefault(name, []).append(float(np.mean(marks)))

    def share(self, name: str) -> float:
        """The row's figure in per cent, 0 for a row without requests."""
        return 100 * float(np.mean(self._of.get(name, [0.0])))

    def line(self, name: str) -> str:
        """The row's figure as it is printed, with the number of requests."""
        return f"{self.share(name):5.1f} ({len(self._of.get(name, []))})"


def table(embedder: Embedder, lives: Sequence[Life], folder: Path) -> None:
    """Print every figure; those with further facts where LoCoMo is in the folder."""
    # Made beforehand: a prompt does not wait long for its vector, and a busy machine is slow.
    embedder.embed_documents([request.text for life in lives for request in life.requests])
    asked = sum(len(life.requests) for life in lives)
    facts = sum(len(life.facts) for life in lives)
    print(f"\nEveryday: {len(lives)} people with {facts} facts, {asked} requests")
    in_prompts(embedder, lives)
    if (folder / "locomo_dev.json").is_file():
        crowd = [notes(folder, number, NOTES) for number in range(len(lives))]
        for cues in ("file", "table"):
            crowded(embedder, lives, crowd, cues)
    else:
        print(f"  with {NOTES} further facts: not measured, locomo_dev.json is not there")
    searched(embedder, lives)


def in_prompts(embedder: Embedder, lives: Sequence[Life]) -> None:
    """Print how often a needed fact stands in the prompt, and what the prompt takes."""
    rows, tokens, late = Rows(), list[int](), 0
    for life in lives:
        with kept(embedder, life) as store:
            for request in life.requests:
                given = store.given(request.text)
                tokens.append(estimate_tokens(given) - _bare())
                _mark(rows, store, life, request, given)
            late += sum(store.late)
    print("  needed fact in the prompt, % (requests)")
    for name in ("all", "sensitive", "not sensitive", "not pinned"):
        print(f"    {name:<16}{rows.line(name)}")
    for style in STYLES:
        names = (style, f"{style}, not pinned")
        print(f"    {style:<16}{rows.line(names[0])}   not pinned {rows.line(names[1])}")
    print(f"    tokens sent     {np.mean(tokens):5.0f}   searched by words only: {late}")


def _mark(rows: Rows, store: Kept, life: Life, request: Request, given: str) -> None:
    needed = [fact for fact in life.facts if fact.id in request.needs]
    there = {fact.id: store.line(fact.id) in given for fact in needed}
    private = {i for i in there if store.memories[i].sensitive}
    loose = [there[fact.id] for fact in needed if not fact.own]
    rows.add("all", list(there.values()))
    rows.add("sensitive", [there[i] for i in there if i in private])
    rows.add("not sensitive", [there[i] for i in there if i not in private])
    rows.add("not pinned", loose)
    rows.add(request.style, list(there.values()))
    rows.add(f"{request.style}, not pinned", loose)


def crowded(
    embedder: Embedder, lives: Sequence[Life], crowd: Sequence[Sequence[str]], cues: Cues = "file"
) -> None:
    """Print the same among many further facts, where not all fit."""
    rows, tokens, fit = Rows(), list[int](), list[int]()
    for life, more in zip(lives, crowd, strict=True):
        with kept(embedder, life, cues=cues, more=more) as store:
            room = store.mc.settings.budget_tokens - render.frame_tokens(Prompts())
            lines = [store.line(fact.id) for fact in life.facts]
            lines += [render.escaped(f"note: {text}") for text in more]
            for request in life.requests:
                given = store.given(request.text)
                tokens.append(estimate_tokens(given) - _bare())
                _mark(rows, store, life, request, given)
                near = _filling([lines[i] for i in nearest(embedder, lines, request.text)], room)
                fit.append(len(near))
                needed = [store.line(i) for i in sorted(request.needs)]
                rows.add("near", [line in near for line in needed])
                rows.add("best", [line in _filling(needed, room) for line in needed])
    best = rows.share("best")
    print(f"  the same with {NOTES} further facts, 1,000 tokens, {_NAMES[cues]}, % (requests)")
    for name in ("all", "sensitive", "not sensitive", "not pinned", *STYLES):
        print(f"    {name:<16}{rows.line(name)}")
    print(f"    tokens sent     {np.mean(tokens):5.0f}")
    print(f"    ceiling: who knew which facts are needed {best:5.1f}; of it reached "
          f"{100 * rows.share('all') / max(best, 1):.1f}")  # fmt: skip
    print(f"    nearest neighbours until the room is full ({np.mean(fit):.0f} facts) "
          f"{rows.share('near'):.1f}")  # fmt: skip


def searched(embedder: Embedder, lives: Sequence[Life]) -> None:
    """Print what a search has among its first hits, and for foreign requests."""
    print("  search                 " + "".join(f"{f'R@{k}':>7}" for k in KS)
          + "   nothing found (direct)   foreign with a confident hit")  # fmt: skip
    for cues in CUES:
        rows = Rows()
        for life in lives:
            with kept(embedder, life, cues=cues) as store:
                _search(rows, store, life)
        print(f"    {_NAMES[cues]:<21}" + "".join(f"{rows.share(f'R@{k}'):7.1f}" for k in KS)
              + f"{rows.share('empty'):12.1f} ({rows.share('empty, direct'):.1f})"
              + f"{rows.share('foreign'):20.1f}")  # fmt: skip
    rows = Rows()
    for life in lives:
        lines = [f"{fact.key.replace('_', ' ')}: {fact.value}" for fact in life.facts]
        for request in life.requests:
            ids = [life.facts[i].id for i in nearest(embedder, lines, request.text)]
            _ranked(rows, request, ids)
    print("    nearest neighbours   " + "".join(f"{rows.share(f'R@{k}'):7.1f}" for k in KS))


def _search(rows: Rows, store: Kept, life: Life) -> None:
    ids = {memory.id: fact_id for fact_id, memory in store.memories.items()}
    for request in life.requests:
        hits = store.hits(request.text, max(KS))
        if request.needs:
            _ranked(rows, request, [ids[hit.id] for hit in hits if hit.kind == "memory"])
            rows.add("empty", [not hits])
            rows.add(f"empty, {request.style}", [not hits])
        else:
            # Until hits say so themselves, all that are returned are above the floor.
            rows.add("foreign", [any(getattr(hit, "confident", True) for hit in hits)])


def _ranked(rows: Rows, request: Request, ids: Sequence[str]) -> None:
    for k in KS:
        rows.add(f"R@{k}", [i in ids[:k] for i in sorted(request.needs)])


def nearest(embedder: Embedder, texts: Sequence[str], question: str) -> list[int]:
    """The places of the texts, nearest in meaning first, without any floor."""
    vectors, _ = embedder.embed_documents(texts)
    cosines = vectors @ embedder.embed_query(question)[0]
    return [int(i) for i in np.argsort(-cosines, kind="stable")]


def _filling(lines: Sequence[str], room: int) -> list[str]:
    """Of lines in this order those that fit; a shorter one takes the place a longer one left."""
    taken = []
    for line in lines:
        cost = estimate_tokens(f"- {line}\n")
        if cost <= room:
            taken.append(line)
            room -= cost
    return taken


def _bare() -> int:
    """What the prompt takes for somebody of whom nothing is known."""
    return estimate_tokens(Prompts().render("chat", memories=""))
