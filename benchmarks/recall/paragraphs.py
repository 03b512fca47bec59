"""Paragraphs as messages, each in a conversation of its own; ``notes`` has them as notes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from benchmarks.recall.data import Person, Talk, Turn
from benchmarks.recall.feed import What, feed
from benchmarks.recall.found import PLAIN, plain_orders
from benchmarks.recall.rows import interval
from benchmarks.recall.stores import asked_at, store
from memchat.providers import Embedder


def table(embedder: Embedder, texts: Sequence[str], asked: Sequence[tuple[str, int]]) -> None:
    """Print how often a question's paragraph is first, and among the first five."""
    print(f"\n{len(asked)} questions, {len(texts)} paragraphs as messages")
    talks = tuple(
        Talk(datetime(2023, 5, 1, tzinfo=UTC), (Turn(str(n), text),), (), "")
        for n, text in enumerate(texts)
    )
    person = Person("reader", talks, ())
    orders = plain_orders(embedder, texts, [text for text, _ in asked])
    for place, way in enumerate(PLAIN):
        print(line(f"plain {way}", [order[place] for order in orders], asked))
    with store(embedder, asked_at(person)) as mc:
        fed = feed(mc, person, What(turns=True))
        found = [
            [int(fed.ids[hit.id]) for hit in mc.user("reader").search(text, limit=5).hits]
            for text, _ in asked
        ]
    print(line("memchat", found, asked) + "   goals 95.5, 99.5")


def line(name: str, found: Sequence[Sequence[int]], asked: Sequence[tuple[str, int]]) -> str:
    """How often the number that goes with a question is first, and among the first five."""
    pairs = list(zip(found, (number for _, number in asked), strict=True))
    one = np.array([list(some[:1]) == [number] for some, number in pairs])
    five = np.array([number in some[:5] for some, number in pairs])
    return (
        f"  {name:<14} R@1 {100 * one.mean():.1f} ±{interval(one):.1f}"
        f"   R@5 {100 * five.mean():.1f} ±{interval(five):.1f}"
    )
