"""One line of the table: recall at several depths over every question, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.recall import data
from benchmarks.recall.data import Asked

KS = (1, 5, 10, 25)
DEEPEST = max(KS)
HEAD = (
    f"{'':<38}" + "".join(f"{f'R@{k}':>6}" for k in KS)
    + "   95%  any@10   MRR   single/multi/temporal/open   characters in 10"
)  # fmt: skip


@dataclass(slots=True)
class Row:
    """One way of searching, over every question."""

    name: str
    goal: float | None = None
    recall: list[list[float]] = field(default_factory=list)
    """For each question the recall at each k."""
    first: list[float] = field(default_factory=list)
    """The reciprocal rank of the first hit that covers any evidence."""
    characters: list[int] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)

    def add(self, asked: Asked, ranked: Sequence[frozenset[str]], characters: int) -> None:
        """One question's hits, best first, as the turns that each covers."""
        covered, at = set[str](), []
        for hit in (*ranked, *[frozenset[str]()] * DEEPEST):
            covered |= hit & asked.evidence
            at.append(len(covered) / len(asked.evidence))
        self.recall.append([at[k - 1] for k in KS])
        hits = [n for n, hit in enumerate(ranked, 1) if hit & asked.evidence]
        self.first.append(1 / hits[0] if hits else 0.0)
        self.characters.append(characters)
        self.categories.append(asked.category)

    @property
    def ten(self) -> np.ndarray:
        """Each question's recall at 10."""
        return np.array([row[KS.index(10)] for row in self.recall])

    def line(self) -> str:
        """The row as it is printed."""
        at = 100 * np.mean(self.recall, axis=0)
        by = [
            100 * self.ten[[c == category for c in self.categories]].mean()
            for category in data.CATEGORIES.values()
        ]
        goal = "" if self.goal is None else f"   goal {self.goal:g}"
        return (
            f"{self.name:<38}"
            + "".join(f"{value:6.1f}" for value in at)
            + f"  ±{interval(self.ten):.1f}{100 * np.mean(self.ten > 0):7.1f}"
            + f"{100 * np.mean(self.first):6.1f}   {'/'.join(f'{value:.0f}' for value in by)}"
            + f"{np.mean(self.characters):8.0f}{goal}"
        )


def over_better(row: Row, single: Sequence[Row]) -> str:
    """By how much a row passes the better of single lists at R@10, question by question."""
    better = max(single, key=lambda one: one.ten.mean())
    gain = row.ten - better.ten
    return (
        f"{row.name} over {better.name}: {100 * gain.mean():+.1f} ±{interval(gain):.1f} at R@10 "
        "(goal: not below by more than the interval)"
    )


def interval(values: np.ndarray) -> float:
    """Half the width of the 95 % bootstrap interval of the mean, in points."""
    picks = np.random.default_rng(7).integers(0, len(values), (1000, len(values)))
    low, high = np.percentile(values[picks].mean(axis=1), (2.5, 97.5))
    return float(100 * (high - low) / 2)
