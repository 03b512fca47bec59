"""Reciprocal rank fusion: one list of several, by the ranks that things have in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

K = 60
"""Damps the first ranks, so that what stands in several lists comes before the first of one."""


class RankedItem(NamedTuple):
    """Something that was ranked, and its score."""

    id: int
    score: float


def merge(lists: Iterable[Sequence[RankedItem]]) -> list[RankedItem]:
    """One list of several, each of which has the best first: every item once, with the sum of
    1 / (60 + rank) over the lists it is in. Items with equal sums keep the order in which they
    come. The scores that were given do not count."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, item in enumerate(ranked, 1):
            scores[item.id] = scores.get(item.id, 0.0) + 1 / (K + rank)
    merged = [RankedItem(i, score) for i, score in scores.items()]
    return sorted(merged, key=lambda item: -item.score)
